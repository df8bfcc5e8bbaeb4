"""Proofs: statistics, verdicts, growth, and what a killed driver leaves to be read."""

from __future__ import annotations

import json
import math
import os
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.calibrate import Calibration, CalibrationSpec, summarize
from penstock.bench.prove import faults, overhead, reaction, scaling, soak, source, stage
from penstock.bench.prove.figures import drift, growth, median
from penstock.bench.prove.orders import Order, Reports, report
from penstock.bench.prove.overhead import Segment, Stretch
from penstock.bench.prove.proof import Check, Proof, keep
from penstock.bench.prove.samples import Sample, folder_bytes, journal_bytes, process
from penstock.bench.prove.soak_figure import draw
from penstock.bench.prove.tables import checks_table, details_table
from penstock.bench.prove.tasks import TaskRest
from penstock.bench.statistics import estimate
from penstock.core.errors import EngineError, InputError
from penstock.spark.local import java
from penstock.spark.measure.progress import Batch
from penstock.spark.measure.rest import epoch
from tests.shell import Shell

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
    assert found.absent(0.03)
    assert found.low <= found.per_hour <= found.high


def test_a_slow_leak_is_found_under_noise() -> None:
    draws = random.Random(3)
    values = [1e9 * (1 + 0.10 * t / 3600) + draws.gauss(0, 1e7) for t in MINUTES]
    found = growth(MINUTES, values)
    assert not found.absent(0.03)
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


def sample(n: int, **more: Any) -> Sample:
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
    return Sample(**values | more)


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
    assert soak.judge(filling, actions=1).held


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


# ---- overhead ------------------------------------------------------------------------------


def batch(n: int, start: float, duration: float, rows: int) -> Batch:
    return Batch(
        query="q", run_id="r", id=n, start=start, duration=duration, rows=rows, available=None,
        taken=None,
    )  # fmt: skip


def test_batches_that_span_a_switch_do_not_count() -> None:
    batches = [batch(n, n * 1.0, 0.9, 100 if 10 <= n < 15 else 10_000) for n in range(30)]
    # 9.5 falls into a batch, and so does 15.5: those from 10 to 14.9 count.
    assert overhead.work_within(batches, 9.5, 15.5) == pytest.approx((500, 4.9))
    assert overhead.work_within(batches, 9.5, 11.5) is None


@given(st.booleans(), st.floats(-0.01, 0.01))
def test_a_steady_drift_of_the_machine_cancels_out(inside: bool, drift: float) -> None:
    moment = 0.0
    parts: dict[bool, list[Stretch]] = {True: [], False: []}
    for watched, seconds in overhead.order_of(inside, 12.0):
        middle = moment + seconds / 2
        rate = 1e6 * (1.0 + drift * middle)  # the same with and without
        parts[watched].append(
            Stretch(
                records=round(rate * seconds),
                took=seconds,
                process=0.5,
                thread=0.0,
                seconds=seconds,
            )
        )
        moment += seconds
    both, alone = overhead.joined(parts[True]), overhead.joined(parts[False])
    assert both.throughput == pytest.approx(alone.throughput, abs=1.0)
    assert both.process == pytest.approx(0.5 * len(parts[True]) / 12.0)


def segment(throughput: float, process: float, thread: float) -> Segment:
    return Segment(throughput=throughput, process=process, thread=thread)


def test_a_cheap_auto_scaler_holds_and_a_dear_one_does_not() -> None:
    draws = random.Random(4)
    spec = overhead.Spec()

    def pairs(ratio: float, thread: float) -> list[tuple[Segment, Segment]]:
        noise = [draws.gauss(1.0, 0.005) for _ in range(10)]
        return [
            (segment(1e5 * ratio * n, 0.05 + thread + 0.002, thread), segment(1e5, 0.05, 0.0))
            for n in noise
        ]

    assert overhead.judge(spec, pairs(0.995, 0.01)).held
    slow = overhead.judge(spec, pairs(0.96, 0.01))
    assert [c.held for c in slow.checks] == [False, True]
    dear = overhead.judge(spec, pairs(0.995, 0.2))  # 2.7 % of a core at 15 s, and listening
    assert [c.held for c in dear.checks] == [True, False]


# ---- scaling -------------------------------------------------------------------------------


def calibration(query: str, exponent: float) -> Calibration:
    spec = CalibrationSpec(query=query)
    draws = random.Random(1)
    passes = [{n: 1e4 * n**exponent * draws.gauss(1, 0.01) for n in spec.sizes} for _ in range(3)]
    return summarize(spec, passes, limited=True)


def test_scaling_is_judged_at_the_largest_size() -> None:
    # 8^0.9 = 6.5 and 8^0.7 = 4.3: the one keeps both bounds, the other only that of query 5.
    good = scaling.judge([calibration("q1", 0.9), calibration("q5", 0.7)])
    assert [round(c.value or 0) for c in good.checks] == [6, 4]
    assert good.held
    bad = scaling.judge([calibration("q1", 0.7), calibration("q5", 0.6)])
    assert [c.held for c in bad.checks] == [False, False]
    assert len(bad.details) == 8


# ---- reaction ------------------------------------------------------------------------------


@given(st.floats(0.0, 2000.0))
def test_an_action_answers_the_last_step_before_it(moment: float) -> None:
    step = reaction.step_before(moment, 0.0)
    cycle = reaction.CALM + reaction.BUSY
    if step is None:
        assert moment < reaction.CALM
    else:
        assert step <= moment < step + cycle
        assert (step - reaction.CALM) % cycle == pytest.approx(0.0)


def test_only_the_first_scale_up_after_a_step_counts() -> None:
    seen = reaction.Seen()
    for moment in (3.0, 29.0, 36.0, 25.0 + 47 + 9):  # the first comes before any step
        seen.asked.append(reaction.Asked(time=moment, known=frozenset("0"), after=3))
    assert {step: a.time for step, a in seen.firsts(0.0).items()} == {25.0: 29.0, 72.0: 81.0}


def clock(second: float) -> str:
    return f"2026-11-16T03:00:{second:06.3f}GMT"


class PretendedRest(TaskRest):
    """Stages that overlap, as those of a join do; executor 7 is new at second 10."""

    STAGES: ClassVar[dict[int, dict[str, Any]]] = {
        1: {"submissionTime": clock(2.0), "completionTime": clock(9.0)},
        2: {"submissionTime": clock(9.5)},
        3: {"submissionTime": clock(10.2)},
        4: {"submissionTime": clock(20.0)},
        5: {},  # skipped: it never ran
    }
    TASKS: ClassVar[dict[int, list[tuple[str, float]]]] = {
        1: [("7", 3.0)],  # an executor of the same id cannot have been there: over before
        2: [("0", 9.6), ("7", 12.0)],
        3: [("7", 10.4)],
        4: [("7", 20.1)],
    }

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _get(self, path: str, *, missing_ok: bool = False) -> Any:
        if path == "/stages":
            return [{"stageId": n, "attemptId": 0} | s for n, s in self.STAGES.items()]
        self.asked.append(path)
        stage_id = int(path.split("/")[2])
        return [{"executorId": e, "launchTime": clock(t)} for e, t in self.TASKS[stage_id]]


def test_the_first_task_is_found_also_where_stages_overlap() -> None:
    rest = PretendedRest()
    since = epoch(clock(10.0))
    assert rest.first_launch(["7"], since) == epoch(clock(10.4))
    assert [path.split("/")[2] for path in rest.asked] == ["2", "3"]
    assert rest.first_launch(["8"], since) is None


def test_pulses_rise_and_fall_for_ever(tmp_path: Path) -> None:
    load = stage.pulses(tmp_path / "load.csv", low=10.0, high=50.0, calm=3, busy=2)
    assert [load.rate(t + 0.5) for t in range(10)] == [10, 10, 10, 50, 50] * 2
    assert load.offered(10.0) == pytest.approx(2 * (30 + 100))
    offered = [load.offered(t / 7) for t in range(200)]
    assert all(a <= b for a, b in pairwise(offered))


# ---- faults --------------------------------------------------------------------------------


def result(**more: Any) -> faults.Result:
    fault = faults.Fault(query="q5", what="worker", before=1, after=2, registered=1, seconds=8.0)
    values: dict[str, Any] = {
        "query": "q5", "faults": (fault,), "events": 10, "rows": 5, "missing": 0, "surplus": 0,
        "resumed": True,
    }  # fmt: skip
    return faults.Result(**values | more)


@pytest.mark.parametrize(
    ("more", "held"),
    [
        ({}, True),
        ({"missing": 1}, False),
        ({"surplus": 1}, False),
        ({"resumed": False}, False),
        ({"faults": ()}, False),  # nothing was killed: nothing was proved
    ],
)
def test_one_row_or_a_forgotten_action_breaks_the_proof(more: dict[str, Any], held: bool) -> None:
    assert faults.judge(faults.Spec(), [result(), result(**more)][-1:], True).held is held


def test_reports_survive_a_driver_that_is_killed_while_it_writes(tmp_path: Path) -> None:
    order = Order(
        folder=str(tmp_path / "shared"), query="q5", conf={}, journal="", slots=2,
        policy="static", parameters={}, rate=None, low=1.0, high=2.0, calm=1, busy=1,
        period=1.0, cool_down=0.0,
    )  # fmt: skip
    assert Order.load(order.save()) == order
    reports = Reports(order)
    assert reports.new() == []
    report(order, "started", 1.0, python=1)
    with (order.path / "reports.jsonl").open("ab") as file:
        file.write(b'{"kind": "batch", "ti')  # killed here
    assert [r.kind for r in reports.new()] == ["started"]
    report(order, "batch", 2.0, id=7)
    (found,) = reports.new()
    assert (found.kind, found.more["id"]) == ("batch", 7)


# ---- the command ---------------------------------------------------------------------------


@pytest.fixture
def prove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setattr(java, "find_java", lambda: None)  # none of these tests starts Spark
    return Shell.at(tmp_path, monkeypatch, capsys, "prove")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["faults", "--query", "q7"], "unknown query 'q7'"),
        (["faults", "--query", ","], "--query names none"),
        (["faults", "--seconds", "1"], "--seconds 1 must lie between 10 and 3600"),
        (["reaction", "--actions", "0"], "--actions 0 must lie between 1 and 1000"),
        (["overhead", "--pairs", "1"], "--pairs 1 must lie between 2 and 1000"),
        (["overhead", "--seconds", "6"], "--seconds 6 must lie between 8, two decisions"),
        (["scaling", "--repeats", "0"], "--repeats 0 must lie between 1 and 100"),
        (["soak", "--minutes", "0.5"], "0.5 minutes must last from a minute to a week"),
        (["source", "--seconds", "0"], "--seconds 0 must lie between 1 and 3599"),
    ],
)
def test_wrong_values_are_refused_before_anything_starts(
    prove: Shell, arguments: list[str], said: str, tmp_path: Path
) -> None:
    done = prove(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


def pretend(patch: pytest.MonkeyPatch, proof: Proof | Exception) -> None:
    """Let the proof of the source come to this at once."""

    def come_to(spec: Any, *, folder: Path, say: Any) -> Proof:
        if isinstance(proof, Exception):
            raise proof
        say("working…")
        return proof

    patch.setattr(source, "prove", come_to)


HELD = Proof(name="source", title="Source", checks=(Check(figure="f", value=1, bound=2),))


@pytest.mark.parametrize(
    ("proof", "code", "verdict"),
    [
        (HELD, 0, "held"),
        (replace(HELD, checks=(Check(figure="f", value=3, bound=2),)), 1, "not held"),
        (replace(HELD, interrupted=True), 130, "ended early by Ctrl-C"),
    ],
)
def test_the_exit_code_is_the_verdict(
    prove: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    proof: Proof, code: int, verdict: str,
) -> None:  # fmt: skip
    pretend(monkeypatch, proof)
    done = prove("source")
    assert (done.code, verdict in done.out, "working…" in done.err) == (code, True, True)
    (folder,) = (tmp_path / "runs").iterdir()
    assert json.loads((folder / "proof.json").read_text())["held"] is (code != 1)
    assert json.loads((folder / "config.json").read_text())["command"] == "prove source"


def test_json_is_one_document(
    prove: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, HELD)
    done = prove("source", "--json", "--no-save")
    assert (done.code, done.json["held"], done.json["run"]) == (0, True, None)
    assert list(tmp_path.iterdir()) == []


def test_a_proof_that_fails_at_once_leaves_no_folder(
    prove: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, EngineError("no luck"))
    done = prove("source")
    assert (done.code, "no luck" in done.err) == (1, True)
    assert list((tmp_path / "runs").iterdir()) == []


def test_tables_fit_80_columns() -> None:
    from rich.console import Console

    samples = [sample(n) for n in range(100)]
    pairs = [(segment(1e5, 0.06, 0.01), segment(1e5, 0.05, 0.0))] * 3
    proofs = [
        soak.judge(samples, actions=12),
        overhead.judge(overhead.Spec(), pairs),
        scaling.judge([calibration("q1", 0.9), calibration("q5", 0.8)]),
        faults.judge(faults.Spec(), [result()], True),
    ]
    for proof in proofs:
        screen = Console(width=80, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
        screen.print(checks_table(proof))
        if proof.details:
            screen.print(details_table(proof))
        lines = screen.export_text().splitlines()
        assert max(map(len, lines)) <= 80
        assert "…" not in "".join(lines)
