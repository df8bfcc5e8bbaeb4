"""Proofs: overhead, scaling, reaction and faults are judged rightly, and their tables fit."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.values import Batch
from penstock.lab.calibrate.throughput import Calibration, CalibrationSpec, summarize
from penstock.lab.proofs import faults, overhead, reaction, scaling, setting
from penstock.lab.proofs.faults_child import DriverOrder, DriverReports, report
from penstock.lab.proofs.overhead import Segment, Stretch
from penstock.lab.proofs.reaction import TaskRest
from penstock.spark.read.documents import epoch
from tests.fakes.terminal import assert_fits

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
    spec = overhead.OverheadSettings()

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


# ---- what executors take --------------------------------------------------------------------


def becoming_faster(seconds: float, until: float) -> list[Batch]:
    """Batches of a second, each with more rows than the one before until a moment."""
    return [batch(n, n * 1.0, 1.0, 1000 + 100 * min(n, round(until))) for n in range(int(seconds))]


@given(st.integers(0, 60))
def test_executors_are_warm_when_they_become_no_faster(warm_at: int) -> None:
    def is_warm(seconds: int) -> bool:
        return setting.is_warm(becoming_faster(seconds, warm_at))

    first = next(n for n in range(1, 200) if is_warm(n))
    assert first > warm_at  # never while they do
    assert first <= warm_at + 2 * setting.WARMING_SECONDS + 2


def test_a_few_batches_say_nothing_of_warmth_however_long() -> None:
    slow = [batch(n, n * 30.0, 30.0, 1000) for n in range(2 * setting.BATCHES)]
    assert not any(setting.is_warm(slow[:n]) for n in range(1, len(slow)))
    assert setting.is_warm(slow)


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
    load = setting.pulses(tmp_path / "load.csv", low=10.0, high=50.0, calm=3, busy=2)
    assert [load.rate(t + 0.5) for t in range(10)] == [10, 10, 10, 50, 50] * 2
    assert load.offered(10.0) == pytest.approx(2 * (30 + 100))
    offered = [load.offered(t / 7) for t in range(200)]
    assert all(a <= b for a, b in pairwise(offered))


# ---- faults --------------------------------------------------------------------------------


def result(**more: Any) -> faults.QueryFaults:
    fault = faults.Fault(query="q5", what="worker", before=1, after=2, registered=1, seconds=8.0)
    values: dict[str, Any] = {
        "query": "q5", "faults": (fault,), "events": 10, "rows": 5, "missing": 0, "surplus": 0,
        "resumed": True,
    }  # fmt: skip
    return faults.QueryFaults(**values | more)


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
    assert faults.judge(faults.FaultsSettings(), [result(), result(**more)][-1:], True).held is held


def test_reports_survive_a_driver_that_is_killed_while_it_writes(tmp_path: Path) -> None:
    order = DriverOrder(
        folder=str(tmp_path / "shared"), query="q5", conf={}, journal="", slots=2,
        policy="static", parameters={}, rate=None, low=1.0, high=2.0, calm=1, busy=1,
        period=1.0, cool_down=0.0,
    )  # fmt: skip
    assert DriverOrder.load(order.save()) == order
    reports = DriverReports(order)
    assert reports.new() == []
    report(order, "started", 1.0, python=1)
    with (order.path / "reports.jsonl").open("ab") as file:
        file.write(b'{"kind": "batch", "ti')  # killed here
    assert [r.kind for r in reports.new()] == ["started"]
    report(order, "batch", 2.0, id=7)
    (found,) = reports.new()
    assert (found.kind, found.more["id"]) == ("batch", 7)


# ---- tables --------------------------------------------------------------------------------


def test_tables_fit_80_columns() -> None:
    pairs = [(segment(1e5, 0.06, 0.01), segment(1e5, 0.05, 0.0))] * 3
    proofs = [
        overhead.judge(overhead.OverheadSettings(), pairs),
        scaling.judge([calibration("q1", 0.9), calibration("q5", 0.8)]),
        faults.judge(faults.FaultsSettings(), [result()], True),
    ]
    for proof in proofs:
        assert_fits(proof)
