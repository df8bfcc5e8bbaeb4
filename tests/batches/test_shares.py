"""How stages spend the executors' time: timelines computed by hand, and what always holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.shares import (
    ExecutorTime,
    Phase,
    StageTimes,
    Used,
    cpu_of,
    shares_of,
    spells_of,
)
from penstock.batches.snapshot import query_window, snapshot
from penstock.batches.values import Batch, Executor, Stage
from penstock.core.model import Slot, Snapshot
from penstock.policies import DS2, Dhalion, HpaVarga
from penstock.policies.signals.bottleneck import bottlenecks
from penstock.policies.signals.turns import pooled

STAGES = ("read", "stage-2", "stage-3")
EXECUTORS = 2
EVERY = 10.0  # seconds from one batch to the next


def executor(number: int, added: float = 0.0, removed: float | None = None) -> Executor:
    return Executor(
        id=str(number), host="h", cores=1, alive=removed is None, added=added, removed=removed,
        task_seconds=0.0, completed_tasks=0, active_tasks=0,
    )  # fmt: skip


def batch(number: int, *, behind: int, rows: int = 1000, seconds: float = 10.0) -> Batch:
    return Batch(
        query="q", run_id="r", id=number, start=1000.0 + EVERY * number, duration=seconds,
        rows=rows, available=rows * (number + 1) + behind, taken=rows * (number + 1),
    )  # fmt: skip


def stages(one: Batch, lengths: Sequence[float], *, timed: bool = True) -> list[Stage]:
    """Three stages in a row after 0.5 s of planning, each with all executors at work."""
    found, at = [], one.start + 0.5
    for i, seconds in enumerate(lengths):
        found.append(
            Stage(
                id=3 * one.id + i, run_id="r", batch=one.id, done=True, tasks=4,
                run_time=EXECUTORS * seconds, cpu_time=seconds, fetch_wait=0.0,
                input_records=one.rows if i == 0 else 0, read_records=0 if i == 0 else one.rows,
                write_records=one.rows if i < 2 else 0,
                submitted=at if timed else None, ended=at + seconds if timed else None,
            )
        )  # fmt: skip
        at += seconds
    return found


def seen(
    lengths: Sequence[float], *, behind: int = 5000, timed: bool = True, **more: Any
) -> Snapshot:
    """Four batches of 10 s without a pause; each leaves ``behind`` records."""
    batches = [batch(n, behind=behind * (n + 1), **more) for n in range(4)]
    every = [s for b in batches for s in stages(b, lengths, timed=timed)]
    now = batches[-1].end + 1.0
    window = query_window(batches, every, now=now, window=100.0, cores=1)
    assert window is not None
    slots = {str(n): Slot(id=str(n)) for n in range(EXECUTORS)}
    return snapshot([window], [executor(n) for n in range(EXECUTORS)], now=now, slots=slots)


def shares(s: Snapshot) -> list[tuple[float | None, float | None, float | None]]:
    """Busy, back-pressured and idle of the three stages."""
    of = [s.operators[name] for name in STAGES]
    return [(o.busy, o.backpressured, o.idle) for o in of]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        # Planned for 0.5 s, read for 1, dealt with for 1 and for 7, committed for 0.5.
        ((1, 1, 7), [(0.1, 0.9, 0.0), (0.1, 0.7, 0.2), (0.7, 0.0, 0.3)]),
        ((1, 7, 1), [(0.1, 0.9, 0.0), (0.7, 0.1, 0.2), (0.1, 0.0, 0.9)]),
        ((7, 1, 1), [(0.7, 0.3, 0.0), (0.1, 0.1, 0.8), (0.1, 0.0, 0.9)]),
    ],
)
def test_a_slow_stage_is_busy_those_above_are_held_back_and_those_below_idle(
    lengths: tuple[float, ...], expected: list[tuple[float, float, float]]
) -> None:
    for found, wanted in zip(shares(seen(lengths)), expected, strict=True):
        assert found == pytest.approx(wanted)


def test_nothing_is_held_back_where_nothing_waits() -> None:
    found = shares(seen((1, 1, 7), behind=0))
    assert found == [pytest.approx((b, 0.0, 1.0 - b)) for b in (0.1, 0.1, 0.7)]


def test_a_stage_that_cannot_use_all_executors_is_idle_and_holds_back_those_above() -> None:
    """Its one long task takes 7 s on one of two executors."""
    one = batch(0, behind=5000)
    read, middle, last = stages(one, (1, 1, 7))
    last = replace(last, run_time=7.0)
    window = query_window([one], [read, middle, last], now=1011.0, window=20.0, cores=1)
    assert window is not None
    slots = {"0": Slot(id="0"), "1": Slot(id="1")}
    s = snapshot([window], [executor(0), executor(1)], now=1011.0, slots=slots)
    assert shares(s)[1:] == [pytest.approx((0.1, 0.7, 0.2)), pytest.approx((0.35, 0.0, 0.65))]


def test_without_times_stages_follow_each_other_for_their_share_of_the_batch() -> None:
    """1 : 1 : 7 of 10 s, so that nothing is left for the driver."""
    found = shares(seen((1, 1, 7), timed=False))
    assert found[0] == pytest.approx((0.1, 8 / 9, 1.0 - 0.1 - 8 / 9))
    assert found[1] == pytest.approx((0.1, 7 / 9, 1.0 - 0.1 - 7 / 9))
    assert found[2] == pytest.approx((0.7, 0.0, 0.3))


def test_a_stage_that_has_not_ended_takes_what_the_others_leave() -> None:
    one = batch(0, behind=0)
    read, middle, last = stages(one, (1, 1, 7))
    spells = spells_of(one, [read, replace(middle, ended=None), replace(last, ended=None)], cores=2)
    # Of the 8.5 s that are left one part in eight, and seven.
    assert [s.start for s in spells.values()] == pytest.approx([1000.5, 1001.5, 1002.5625])
    assert [s.end for s in spells.values()] == pytest.approx([1001.5, 1002.5625, 1010.0])
    assert [s.busy for s in spells.values()] == [1.0, 1.0, 7.0]


def test_times_of_another_batch_are_not_believed() -> None:
    one = batch(0, behind=0)
    (read, *_) = stages(one, (1, 1, 7))
    spells = spells_of(one, [replace(read, submitted=900.0, ended=905.0)], cores=1)
    assert (spells[read.id].start, spells[read.id].end) == (one.start, one.end)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.none() | st.floats(0, 100)), max_size=6),
    st.floats(0, 100),
    st.floats(0, 100),
)
def test_executor_seconds_are_those_of_each_executor_summed(
    lives: list[tuple[float, float | None]], a: float, b: float
) -> None:
    start, end = min(a, b), max(a, b)
    each = [
        max(0.0, min(end, end if removed is None else removed) - max(start, added))
        for added, removed in lives
    ]
    time = ExecutorTime([executor(n, *life) for n, life in enumerate(lives)])
    assert time.between(start, end) == pytest.approx(sum(each), abs=1e-9)


@given(
    lengths=st.lists(st.floats(0, 20), min_size=3, max_size=3),
    behind=st.integers(0, 10_000),
    timed=st.booleans(),
    count=st.integers(1, 5),
)
def test_shares_lie_between_0_and_1_and_sum_to_1(
    lengths: list[float], behind: int, timed: bool, count: int
) -> None:
    """Whatever tasks report: more than there was, or times after the batch has ended."""
    batches = [batch(n, behind=behind * n) for n in range(count)]
    found = [s for b in batches for s in stages(b, lengths, timed=timed)]
    window = query_window(batches, found, now=2000.0, window=1000.0, cores=1)
    assert window is not None
    s = snapshot([window], [executor(0)], now=2000.0, slots={"0": Slot(id="0")})
    for busy, held, idle in shares(s):
        assert busy is not None
        assert held is not None
        assert idle is not None
        assert min(busy, held, idle) >= 0.0
        assert max(busy, held, idle) <= 1.0
        assert busy + held + idle == pytest.approx(1.0)
    (query,) = s.queries.values()
    assert sum(o.busy or 0.0 for o in s.operators.values()) == pytest.approx(query.busy)


def test_without_any_time_there_are_no_shares_to_tell() -> None:
    phase = Phase(start=5.0, end=5.0, busy=0.0, waiting=True)
    found = shares_of({"read": StageTimes(upstream=(), spells=())}, [phase], ExecutorTime([]), 1)
    assert (found["read"].busy, found["read"].held, found["read"].idle) == (0.0, 0.0, 1.0)


# ---- CPU ---------------------------------------------------------------------------------------


def test_cpu_of_a_stage_is_what_its_tasks_used_of_their_part() -> None:
    """Of two busy executors, one used half of a core and the other all of one."""
    found = cpu_of([Used(busy=1.0, cpu=0.5), Used(busy=1.0, cpu=1.0)], pool=0.375, busy=0.5)
    assert found == pytest.approx([0.25, 0.5])


def test_cpu_beyond_what_tasks_report_goes_to_those_that_waited() -> None:
    """The first ran in a Python worker: its JVM waited. Executors used all they had at work."""
    found = cpu_of([Used(busy=1.0, cpu=0.0), Used(busy=1.0, cpu=1.0)], pool=0.9, busy=1.0)
    assert found == pytest.approx([0.8, 1.0])


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), min_size=1, max_size=5),
    st.floats(0.01, 1.2),
    st.floats(0.01, 1.0),
)
def test_cpu_of_stages_has_the_mean_of_the_pool(
    used: list[tuple[float, float]], pool: float, busy: float
) -> None:
    whole = sum(b for b, _ in used)
    found = cpu_of([Used(busy=b, cpu=b * c) for b, c in used], pool, busy)
    assert all(0.0 <= cpu <= max(pool, busy) + 1e-9 for cpu in found)
    if whole > 1e-3:
        mean = sum(cpu * b for cpu, (b, _) in zip(found, used, strict=True)) / whole
        assert mean == pytest.approx(pool, rel=1e-6)


# ---- which stage policies choose ---------------------------------------------------------------

SLOW = [((7, 1, 1), "read"), ((1, 7, 1), "stage-2"), ((1, 1, 7), "stage-3")]


@pytest.mark.parametrize(("lengths", "slow"), SLOW)
def test_the_slow_stage_is_the_bottleneck(lengths: tuple[float, ...], slow: str) -> None:
    s = seen(lengths)
    assert bottlenecks(s) == (slow,)
    proposal, _ = Dhalion().decide(s, Dhalion().start(0))
    assert set(proposal.needs) == {slow}
    assert proposal.needs[slow].slots > s.operators[slow].parallelism
    needs = DS2().decide(s, None)[0].needs
    assert max(needs, key=lambda name: needs[name].slots) == slow
    assert DS2().decide(s, None)[0].reason.startswith(f"demand over service rate: {slow} ")


@pytest.mark.parametrize(("lengths", "slow"), SLOW)
def test_a_lag_that_grows_without_back_pressure_is_the_slow_stages_too(
    lengths: tuple[float, ...], slow: str
) -> None:
    """A source that hands all it has to every batch leaves nothing behind, and yet falls back."""
    policy = Dhalion(lag_rate=50.0)
    memory = policy.start(0)
    for tick, lag in enumerate((1000.0, 3000.0, 6000.0, 9000.0)):
        s = seen(lengths, behind=0)
        read = replace(s.operators["read"], lag=lag, offered_rate=200.0)
        s = replace(s, time=1000.0 + 15.0 * tick, operators={**s.operators, "read": read})
        proposal, memory = policy.decide(s, memory)
    assert set(proposal.needs) == {slow}
    # The lag grows by 180 records/s, twice as fast as 100 records/s are taken, and nothing is held.
    rise = (9000.0 * 1.5 + 6000.0 * 0.5 - 3000.0 * 0.5 - 1000.0 * 1.5) / 5.0 / 15.0
    factor = 1.0 + rise / 100.0
    assert proposal.needs[slow].slots == pytest.approx(s.operators[slow].parallelism * factor)


@pytest.mark.parametrize(("lengths", "slow"), SLOW)
def test_what_a_stage_is_scaled_by_is_the_time_that_it_took(
    lengths: tuple[float, ...], slow: str
) -> None:
    s = seen(lengths)
    proposal, _ = Dhalion().decide(s, Dhalion().start(0))
    # The middle and the last stage took 0.7 of the time of those above; to a source lag growth
    # counts: 5,000 records more in 10 s, of which 1,000 were taken.
    factor = 6.0 if slow == "read" else 1.0 / 0.3
    assert proposal.needs[slow].slots / s.operators[slow].parallelism == pytest.approx(factor)


@pytest.mark.parametrize(("lengths", "slow"), SLOW)
def test_hpa_varga_counts_the_use_of_the_pool_and_the_lag_of_the_slow_stage(
    lengths: tuple[float, ...], slow: str
) -> None:
    policy = HpaVarga(target=1.0, lag_rate=50.0)
    s = seen(lengths)
    proposal, _ = policy.decide(s, policy.start(0))
    # Records waited all the time: the pool was used fully, and each stage needs its part of it.
    for name in STAGES:
        part = s.operators[name].parallelism
        assert proposal.needs[name].slots == pytest.approx(part * (6.0 if name == slow else 1.0))
    assert f"held up by {slow}" in proposal.reason


def test_policies_that_size_the_pool_see_what_its_executors_did() -> None:
    s = seen((1, 1, 7))
    whole = pooled(s)
    (query,) = s.queries.values()
    for name in STAGES:
        o = whole.operators[name]
        assert (o.busy, o.idle, o.backpressured) == pytest.approx((0.9, 0.0, 0.1))
        assert o.busy == query.busy
    assert pooled(whole) == whole
    assert pooled(replace(s, queries={})) == replace(s, queries={})
    assert pooled(replace(s, execution="continuous")) == replace(s, execution="continuous")


def test_figures_of_stages_that_are_missing_are_no_reason_to_act() -> None:
    s = seen((1, 1, 7))
    for name in STAGES:
        blind = replace(s.operators[name], busy=None, idle=None, backpressured=None)
        dark = replace(s, operators={**s.operators, name: blind})
        proposal, _ = Dhalion().decide(dark, Dhalion().start(0))
        assert proposal.needs == {}
        assert proposal.term == "back-pressure-not-measured"
