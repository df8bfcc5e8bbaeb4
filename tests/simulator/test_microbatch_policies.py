"""Every policy runs on the micro-batch simulator as on any engine; what always holds there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.batches.snapshot import POOL
from penstock.bench.compressed.thesis_time import Scale
from penstock.comparison.batch_series import Observed, series_of
from penstock.core.errors import NotReady
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Loop, Mode
from penstock.core.sanity import believable
from penstock.policies import POLICIES, SparkDra, create
from penstock.simulator.microbatch import ExecutorProfile, MicroBatchEngine, Profile
from penstock.workloads.patterns import Constant, Cosine, Pattern, Step
from tests.fakes.microbatch_examples import EXECUTOR, counting, pair, single

LOADS: dict[str, Pattern] = {
    "bids": Cosine(low=300.0, high=6000.0, period=300.0),
    "people": Constant(rps=80.0),
}
GUARDS = Guards(minimum=1, maximum=12, cool_down=30.0)


def played(
    policy: str, profile: Profile, loads: Pattern | dict[str, Pattern], *, seconds: float
) -> tuple[MicroBatchEngine, list[Decision]]:
    """A policy that acts every 15 s, as on Spark: what is not measured yet is left for later."""
    made = create(policy)
    allocation = made if isinstance(made, SparkDra) else None
    engine = MicroBatchEngine(
        profile, loads, seconds=seconds, start=2, limits=(1, 12), seed=3, allocation=allocation
    )
    decisions: list[Decision] = []
    mode: Mode = "act" if allocation is None else "advise"
    loop = Loop(engine, made, GUARDS, mode=mode, seed=3, record=lambda d, _: decisions.append(d))
    while engine.advance(15.0):
        try:
            loop.tick()
        except NotReady:
            continue
        if engine.now >= seconds:
            break
    engine.finish()
    return engine, decisions


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_runs_without_a_fault(policy: str) -> None:
    engine, decisions = played(policy, pair(), LOADS, seconds=450.0)
    assert len(decisions) > 25
    for decision in decisions:
        line = decision.explain()
        assert "raised" not in line and "unusable" not in line and "not done" not in line, line
        assert believable(decision.seen)[1] == ()
    _, slots = engine.record().slots()
    assert slots.min() >= 1 and slots.max() <= 12


@pytest.mark.parametrize("policy", ["ds2", "ds2+", "spark-dra"])
def test_a_policy_that_scales_keeps_up_where_a_fixed_size_does_not(policy: str) -> None:
    profile = Profile(version=1, queries=(counting(),), executor=EXECUTOR)
    load = Step(low=500.0, high=3500.0, at=60.0)
    waits = {}
    for name in ("static", policy):
        engine, _ = played(name, profile, load, seconds=600.0)
        latency = engine.record().latency("counts")
        assert latency is not None
        waits[name] = latency.mean
    assert waits[policy] < waits["static"] / 2


def test_a_run_can_be_scored_as_a_run_on_spark_is() -> None:
    profile = Profile(version=1, queries=(counting(),), executor=EXECUTOR)
    load = LOADS["bids"]
    engine, _ = played("ds2", profile, load, seconds=600.0)
    record = engine.record()
    observed = Observed(batches=record.batches["counts"], executors=record.executors)
    series = series_of(load, 600, Scale(start=0.0, speed=1.0, rate=1.0), observed)
    latency = record.latency("counts")
    assert latency is not None
    in_time = [b for b in record.batches["counts"] if b.end < 600.0]
    assert series.delivered.sum() == pytest.approx(sum(b.rows for b in in_time))
    mean = float((series.latency * series.delivered).sum() / series.delivered.sum())
    assert mean == pytest.approx(latency.mean, rel=0.05)
    paid = sum(e.removed is None or e.removed > 599.0 for e in record.executors)
    assert series.slots[POOL][-1] == paid


profiles = st.builds(
    lambda tasks, fixed, per_record, rows, trigger, noise: single(
        tasks=tasks,
        fixed=fixed,
        per_record=per_record,
        max_rows=rows,
        trigger=trigger,
        planning=0.1,
        task_noise=noise,
        batch_noise=noise / 2,
        executor=ExecutorProfile(cpu_idle=0.02),
    ),
    st.integers(1, 9),
    st.floats(0.001, 0.5),
    st.floats(0.0, 2e-3),
    st.none() | st.integers(1, 5000),
    st.sampled_from([0.0, 0.5, 2.0, 7.0]),
    st.sampled_from([0.0, 0.3]),
)


@settings(max_examples=40)
@given(profile=profiles, rate=st.floats(0.0, 5000.0), slots=st.integers(1, 9))
def test_what_holds_of_every_run(profile: Profile, rate: float, slots: int) -> None:
    engine = MicroBatchEngine(profile, Constant(rps=rate), seconds=60.0, start=slots)
    for _ in range(4):
        engine.advance(15.0)
        assert all(n >= 0 for n in engine.waiting.values())
        try:
            seen = engine.observe()
        except NotReady:
            continue
        assert believable(seen)[1] == ()
    engine.finish()
    record = engine.record()
    batches = [b for b in record.batches["q"] if not b.idle]
    most = profile.queries[0].sources[0].max_rows
    taken = 0
    for b in batches:
        taken += b.rows
        assert b.taken == taken
        assert b.available is not None and b.available >= taken
        assert b.rows > 0 and b.duration >= 0.09 * 0.3 and (most is None or b.rows <= most)
    assert taken <= rate * 60.0 + 1
    latency = record.latency("q")
    if latency is not None:
        assert 0 <= latency.p50 <= latency.p95 <= latency.p99


@settings(max_examples=40)
@given(
    tasks=st.integers(1, 9),
    slots=st.integers(1, 8),
    noise=st.sampled_from([0.0, 0.4]),
    seed=st.integers(0, 99),
)
def test_one_more_executor_never_makes_an_overloaded_query_slower(
    tasks: int, slots: int, noise: float, seed: int
) -> None:
    """Its batches are all of the same size and draw the same noise."""
    profile = single(tasks=tasks, max_rows=100, task_noise=noise, batch_noise=noise)
    ends = []
    for size in (slots, slots + 1):
        load = Constant(rps=1e6)
        engine = MicroBatchEngine(profile, load, seconds=20.0, start=size, seed=seed)
        engine.advance(20.0)
        ends.append([b.end for b in engine.record().batches["q"]])
    few, many = ends
    assert len(many) >= len(few)
    assert all(b <= a + 1e-9 for a, b in zip(few, many, strict=False))
