"""The decentralized protocol's evaluation: scores by hand, what is written, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.decentralized.steps import Course
from penstock.papers import harness
from penstock.papers.decentralized import evidence, findings, paper
from penstock.papers.decentralized.evidence import Evidence
from penstock.papers.decentralized.experiment import OTHERS, PAPER, scores
from penstock.papers.harness import Reproduction
from tests.fakes.paper_commands import check_json, check_written, invoke

NAME = "decentralized"
Done = Reproduction[Evidence]
TINY = paper.PAPER.asked(seeds=2, first_seed=5)


@pytest.fixture(scope="module")
def gathered() -> Evidence:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "SIZES", (50, 1_000))
        return evidence.gather(TINY.numbers)


@pytest.fixture(scope="module")
def done(gathered: Evidence, tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = harness.begin(paper.PAPER, TINY, tmp_path_factory.mktemp("runs"))
    return harness.finish(paper.PAPER, TINY, folder, gathered)


def course(instances: list[list[int]], load: list[list[float]]) -> Course:
    """One that was never simulated: capacity 500, ratio 0.7, nothing under way."""
    counts, rates = np.array(instances), np.array(load)
    none = np.zeros_like(counts)
    return Course(
        load=rates,
        instances=counts,
        known=counts,
        ideal=rates / 350.0,
        throughput=np.minimum(rates, 500.0 * counts),
        messages=none + 3,
        tried=none,
        grown=none + 1,
        left=none,
    )


# ---- scores ---------------------------------------------------------------------------------


def test_scores_by_hand() -> None:
    """Two operators; the middle one is the second. Ideal 1 and 2 instances, then 2 and 4."""
    steps = 30
    load = [[350.0, 700.0]] * 15 + [[700.0, 1400.0]] * 15
    found = scores(course([[1, 3]] * 15 + [[2, 2]] * 15, load))
    assert len(load) == steps
    assert found.accuracy == pytest.approx((4 / 3 + 4 / 6) / 2)
    assert found.local == pytest.approx((1.0 + 1.5 + 1.0 + 0.5) / 4)
    assert (found.highest, found.lowest) == pytest.approx((1.5, 0.5))
    # 400 of 1,400 records cannot be processed by the second operator from step 15 on.
    assert found.throughput == pytest.approx(1.0 - 400.0 / (1050.0 + 2100.0))
    assert found.lowest_throughput == pytest.approx(1000.0 / 1400.0)
    assert (found.messages, found.actions) == (6.0, 2.0)
    assert (found.fewest, found.peak) == (1, 4)


@pytest.mark.parametrize("shift", [0, 3, 7])
def test_the_lag_is_how_far_the_nodes_are_behind(shift: int) -> None:
    wave = np.round(50 + 30 * np.sin(np.arange(120) / 9)).astype(int)
    late = np.roll(wave, shift)[20:]
    found = course([[n, 1] for n in late.tolist()], [[350.0 * n, 1.0] for n in wave[20:].tolist()])
    assert scores(found).lag == shift


def test_a_course_that_grows_too_early_is_noticed() -> None:
    good = PAPER.by_messages(0)
    assert evidence.mistimed_in(good, PAPER.setup) == 0
    early = replace(good, instances=np.roll(good.instances, -1, axis=0))
    assert evidence.mistimed_in(early, PAPER.setup) > 0


def test_the_delay_to_double_the_size_is_the_wait_for_a_trial_and_two_steps() -> None:
    """p = 1 exactly: all seven duplicate at their next trial; seven seeds see all waits."""
    found = evidence.delays(2.0, [0, 1, 2, 3, 4])
    assert sorted(set(found.steps)) == [2, 3, 4, 5, 6]
    assert found.median == 4.0 and found.p90 == 6.0


def test_a_load_that_does_not_change_needs_no_time() -> None:
    assert set(evidence.delays(1.0, [0, 1]).steps) == {0}


def test_exponents_of_traffic_that_is_known() -> None:
    nodes = np.geomspace(10.0, 1e4, 50)
    exact = evidence.Traffic(nodes=nodes, messages=3.0 * nodes**2)
    assert exact.per_period == pytest.approx(2.0)
    assert exact.in_all is not None and evidence.in_proportion(0.0, 1).in_all is None
    assert evidence.in_proportion(0.03, 1).per_period == pytest.approx(2.0, abs=0.1)
    assert evidence.by_the_same_amount(1).in_all == pytest.approx(2.0, abs=0.1)


def test_settings_differ_from_the_paper_in_one_thing_each() -> None:
    labels = [cell.label for cell in OTHERS]
    assert len(set(labels)) == len(labels) == 10
    for cell in OTHERS:
        changed = (cell.setup != PAPER.setup) + (cell.deviation != PAPER.deviation)
        assert changed == 1
    assert PAPER.load(3).shape == (200, 5) and PAPER.load(3).min() >= 350.0


# ---- the command ----------------------------------------------------------------------------


def test_writes_the_page_the_text_the_figures_and_the_json(done: Done) -> None:
    check_written(done, resumable=False)
    check_json(done, findings="abcdefgh", rows=[10, 11, 7, 4, 3])


def test_what_is_exact_is_exact_with_any_seed(done: Done, gathered: Evidence) -> None:
    held = {f.id for f in done.report.findings if f.verdict == "held"}
    assert held >= {"e", "f", "h"}
    assert gathered.compared == 2 * 200 * 5 and gathered.differ == 0


def test_findings_can_fail(gathered: Evidence) -> None:
    runs = tuple(
        replace(run, accuracy=1.3, throughput=0.9, lag=9, fewest=0) for run in gathered.runs
    )
    slow = tuple(replace(d, steps=(20,) * len(d.steps)) for d in gathered.delays)
    worse = replace(
        gathered,
        runs=runs,
        delays=slow,
        differ=1,
        mistimed=1,
        in_proportion={0.03: gathered.by_the_same_amount},
    )
    assert {f.verdict for f in findings.judge(worse)} == {"not held"}


def test_published_documents_name_their_pictures(done: Done, tmp_path: Path) -> None:
    written = {path.name for path in harness.publish(done, tmp_path)}
    text = (tmp_path / "decentralized.md").read_text(encoding="utf-8")
    assert "--seeds 2 --first-seed 5" in text
    assert all(f"({name})" in text for name in written - {"decentralized.md"})


def test_the_command_prints_json_or_tables(
    done: Done,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(harness, "reproduce", lambda *_, **__: done)
    printed = invoke(NAME, "--out", str(tmp_path), "--json")
    assert json.loads(printed.stdout) == done.document()
    shown = invoke(NAME, "--out", str(tmp_path), "--docs", str(tmp_path / "docs")).stdout
    assert "findings held" in shown and (tmp_path / "docs" / "decentralized.md").exists()
