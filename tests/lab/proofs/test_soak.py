"""Proofs: verdicts, medians, growth, and the soak that rests on them."""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.lab.proofs import soak
from penstock.lab.proofs.proof import Check, Proof, keep
from penstock.lab.proofs.soak import draw
from penstock.lab.proofs.soak_samples import SoakSample, folder_bytes, journal_bytes, process
from penstock.lab.proofs.statistics import drift, growth, median
from penstock.report.statistics import estimate
from tests.fakes.terminal import assert_fits

# ---- verdicts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "held"),
    [
        (Check(figure="f", value=10.0, bound=10.0), True),
        (Check(figure="f", value=10.1, bound=10.0), False),
        (Check(figure="f", value=0.97, bound=0.97, at_most=False), True),
        (Check(figure="f", value=0.96, bound=0.97, at_most=False), False),
        (Check(figure="f", value=None, bound=10.0), False),  # not measured proves nothing
        (Check(figure="f", value=1.0, low=0.96, bound=0.97, at_most=False, by="low"), False),
        (Check(figure="f", value=1.0, low=None, bound=0.97, at_most=False, by="low"), False),
        (Check(figure="f", value=0.01, high=0.03, bound=0.02, by="high"), False),
    ],
)
def test_a_bound_holds_or_not(check: Check, held: bool) -> None:
    assert check.held is held


def test_a_proof_holds_if_all_of_it_holds() -> None:
    good, bad = Check(figure="g", value=1, bound=2), Check(figure="b", value=3, bound=2)
    assert Proof(name="p", title="", checks=(good, good)).held
    assert not Proof(name="p", title="", checks=(good, bad)).held
    assert not Proof(name="p", title="", checks=()).held


def test_a_single_value_has_no_interval_and_cannot_be_judged_by_one() -> None:
    check = Check.of("f", estimate([1.0]), 0.9, at_most=False, by="low")
    assert (check.low, check.held) == (None, False)
    several = Check.of("f", estimate([1.0, 1.0, 1.0]), 0.9, at_most=False, by="low")
    assert (several.low, several.held) == (1.0, True)


def test_the_result_is_kept_as_json(tmp_path: Path) -> None:
    check = Check(figure="p50", value=9.0, bound=10.0, unit="s")
    proof = Proof(name="p", title="t", checks=(check,), details=({"at": 1.0},))
    document = json.loads(keep(proof, tmp_path).read_text())
    assert document["held"] is True
    assert document["checks"][0]["held"] is True
    assert document["details"] == [{"at": 1.0}]


# ---- the median ----------------------------------------------------------------------------


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_the_interval_of_a_median_encloses_it(values: list[float]) -> None:
    found = median(values)
    assert (found.low is None) == (len(values) < 6)
    if found.low is not None and found.high is not None:
        assert min(values) <= found.low <= found.value <= found.high <= max(values)


def test_the_interval_of_a_median_covers_it_as_often_as_it_says() -> None:
    draws = random.Random(1)
    true = math.log(2)  # median of an exponential distribution
    hits = 0
    for _ in range(2000):
        found = median([draws.expovariate(1.0) for _ in range(15)])
        assert found.low is not None and found.high is not None
        hits += found.low <= true <= found.high
    assert hits / 2000 >= 0.95


# ---- growth --------------------------------------------------------------------------------

MINUTES = [30.0 * n for n in range(240)]  # two hours


def test_a_steady_series_with_spikes_does_not_grow() -> None:
    draws = random.Random(2)
    values = [1e9 + draws.gauss(0, 5e6) + (2e8 if n % 17 == 0 else 0) for n in range(240)]
    found = growth(MINUTES, values)
    assert found.low <= 0.0 or found.per_hour <= 0.03
    assert found.low <= found.per_hour <= found.high


def test_a_slow_leak_is_found_under_noise() -> None:
    draws = random.Random(3)
    values = [1e9 * (1 + 0.10 * t / 3600) + draws.gauss(0, 1e7) for t in MINUTES]
    found = growth(MINUTES, values)
    assert found.low > 0.0 and found.per_hour > 0.03
    assert found.low > 0.03
    assert found.per_hour == pytest.approx(0.10 / 1.1, rel=0.1)  # of the level half-way


@given(st.integers(3, 40), st.floats(1.0, 1e9), st.floats(-0.5, 0.5))
def test_the_slope_of_a_line_is_exact(count: int, level: float, share: float) -> None:
    seconds = [60.0 * n for n in range(count)]
    values = [level * (1 + share * (t - seconds[-1] / 2) / 3600) for t in seconds]
    assert growth(seconds, values).per_hour == pytest.approx(share, abs=1e-6)


def test_two_points_have_no_growth() -> None:
    with pytest.raises(InputError, match="2 points"):
        growth([0.0, 1.0], [1.0, 2.0])


def test_drift_compares_the_quarters() -> None:
    assert drift([50] * 30 + [70] * 3 + [50] * 30) == 0
    assert drift(list(range(100))) == 75


# ---- soak ----------------------------------------------------------------------------------


def sample(n: int, **more: Any) -> SoakSample:
    values: dict[str, Any] = {
        "seconds": 30.0 * n,
        "python_rss": 150 << 20,
        "python_threads": 20,
        "python_files": 40,
        "jvm_rss": 1300 << 20,
        "jvm_threads": 120,
        "jvm_files": 400,
        "heap": 200 << 20 if n % 4 == 0 else None,
        "executors": 1 + n % 3,
        "executor_rss": 400e6,
        "dead": min(n, 20),
        "journal": min(n * 10_000, 700_000),
        "checkpoint": 5_000_000,
        "scrape": 9_000 if n % 2 == 0 else None,
        "batch": 15 * n,
    }
    return SoakSample(**values | more)


def test_a_soak_without_growth_holds(tmp_path: Path) -> None:
    samples = [sample(n) for n in range(100)]
    proof = soak.judge(samples, actions=12)
    assert proof.held, [c for c in proof.checks if not c.held]
    assert draw(samples, tmp_path).stat().st_size > 10_000


@pytest.mark.parametrize(
    ("figure", "leak"),
    [
        ("Python memory", lambda n: {"python_rss": (150 << 20) + n * 500_000}),
        ("JVM memory", lambda n: {"jvm_rss": (1300 << 20) + n * 2_000_000}),
        ("JVM heap", lambda n: {"heap": (200 << 20) + n * 1_000_000}),
        ("checkpoint", lambda n: {"checkpoint": 5_000_000 + n * 20_000}),
        ("Python open files", lambda n: {"python_files": 40 + n // 10}),
        ("JVM threads", lambda n: {"jvm_threads": 120 + n // 10}),
        ("journal", lambda n: {"journal": n * 10_000}),
        ("dead executors", lambda n: {"dead": n}),
        ("scrapes", lambda n: {"scrape": None}),
    ],
)
def test_each_kind_of_growth_is_found(figure: str, leak: Any) -> None:
    proof = soak.judge([sample(n, **leak(n)) for n in range(100)], actions=12)
    assert [c.figure.startswith(figure) for c in proof.checks if not c.held] == [True]


def test_what_fills_during_the_warm_up_is_no_growth() -> None:
    filling = [sample(n, python_rss=(100 << 20) + min(n, 20) * 4_000_000) for n in range(100)]
    assert soak.judge(filling, actions=12).held


def test_a_soak_that_hardly_acts_proves_nothing() -> None:
    proof = soak.judge([sample(n) for n in range(100)], actions=11)  # 49.5 minutes: 12 cycles
    assert [c.figure for c in proof.checks if not c.held] == ["actions, at least one per cycle"]


def test_a_soak_that_is_too_short_says_so() -> None:
    proof = soak.judge([sample(n) for n in range(5)], actions=0, interrupted=True)
    assert proof.interrupted
    assert any("too short to judge growth" in note for note in proof.notes)


def test_samples_read_this_process_and_folders(tmp_path: Path) -> None:
    me = process(os.getpid())
    assert me is not None and me.rss > 10 << 20 and me.threads >= 1
    with (tmp_path / "open").open("w"):
        more = process(os.getpid())
    assert more is not None and more.files == me.files + 1
    assert process(2**22 + 1) is None
    for name, size in (("j.jsonl", 10), ("j.jsonl.1", 20), ("other", 40)):
        (tmp_path / name).write_bytes(b"x" * size)
    assert journal_bytes(tmp_path / "j.jsonl") == 30
    assert folder_bytes(tmp_path) == 70


def test_its_tables_fit_80_columns() -> None:
    assert_fits(soak.judge([sample(n) for n in range(100)], actions=12))
