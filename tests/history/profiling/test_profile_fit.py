"""A profile is found again: simulated with a known one, observed as on Spark, fitted.

The simulator is the oracle: its numbers are known, its noise is drawn, and what it tells is what
Spark tells. The tolerances are a little wider than the worst of 40 fits, those of eight seeds, each
of about 500 batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import mean

import numpy as np
import pytest

from penstock.batches.values import Stage, Task
from penstock.core.errors import InputError, NotReady
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.history.profiling.experiment import Detail, Experiment
from penstock.history.profiling.fit import Fit, fit
from penstock.policies import create
from penstock.simulator.microbatch import (
    ExecutorProfile,
    MicroBatchEngine,
    Profile,
    QueryProfile,
    SourceProfile,
    StageProfile,
    StateProfile,
)
from penstock.simulator.microbatch.pool import seconds_after
from penstock.simulator.microbatch.profile import VERSION
from penstock.simulator.microbatch.query import grown
from penstock.workloads.patterns import Cosine, Pattern
from tests.fakes.microbatch_examples import EXECUTOR, counting, joining, single
from tests.fakes.profile_experiments import experiments, resized, saturated


def skewed() -> Profile:
    """One partition has more than twice its share."""
    made = single(
        tasks=6,
        shares=(0.35, 0.13, 0.13, 0.13, 0.13, 0.13),
        max_rows=8000,
        trigger=1.0,
        planning=0.1,
        commit=0.05,
        task_noise=0.1,
        batch_noise=0.05,
    )
    return replace(made, executor=EXECUTOR)


def stateful() -> Profile:
    """A partial aggregation with a limit, a hot key, an empty batch at the end."""
    return _alone(counting())


def joined() -> Profile:
    """Two sources, forgetful state."""
    sources = (
        SourceProfile(name="bids", max_rows=6000),
        SourceProfile(name="people", max_rows=600),
    )
    return _alone(joining(sources=sources, trigger=1.0))


def noisy() -> Profile:
    """Tasks that vary by 40 %, batches by 15 %."""
    made = single(
        tasks=8, max_rows=8000, trigger=1.0, planning=0.3, task_noise=0.4, batch_noise=0.15
    )
    return replace(made, executor=EXECUTOR)


def weighty() -> Profile:
    """State whose rows cost something in every batch."""
    query = counting()
    read, count = query.stages
    assert count.state is not None
    state = replace(count.state, per_row=3e-4, most_rows=4000.0)
    return _alone(replace(query, stages=(read, replace(count, state=state))))


def _alone(query: QueryProfile) -> Profile:
    return Profile(version=VERSION, queries=(query,), executor=EXECUTOR)


PROFILES: Mapping[str, tuple[Callable[[], Profile], float]] = {
    "skewed": (skewed, 600.0),
    "stateful": (stateful, 1500.0),
    "joined": (joined, 400.0),
    "noisy": (noisy, 600.0),
    "weighty": (weighty, 1000.0),
}
ALL = pytest.mark.parametrize("name", sorted(PROFILES))


@cache
def observed(name: str) -> tuple[Profile, tuple[Experiment, ...]]:
    make, rate = PROFILES[name]
    return make(), tuple(experiments(make(), rate=rate, seed=40))


@cache
def found(name: str) -> tuple[QueryProfile, Fit]:
    true, runs = observed(name)
    (query,) = true.queries
    return query, fit(query.name, runs, query.sources, trigger=query.trigger)


def near(value: float, true: float, *, share: float, least: float = 0.0) -> bool:
    return abs(value - true) <= max(share * true, least)


@ALL
def test_costs_of_every_stage_are_found_again(name: str) -> None:
    true, got = found(name)
    assert len(got.query.stages) == len(true.stages)
    for mine, stage in zip(got.query.stages, true.stages, strict=True):
        assert mine.tasks == stage.tasks
        # What a batch of the usual size costs, better than what either number is.
        usual = 2000.0
        cost = stage.tasks * stage.fixed + stage.per_record * usual
        assert near(mine.tasks * mine.fixed + mine.per_record * usual, cost, share=0.05)
        assert near(mine.per_record, stage.per_record, share=0.07)
        assert near(mine.fixed, stage.fixed, share=0.25)
        for number in ("fixed", "per_record"):
            off = abs(getattr(mine, number) - getattr(stage, number))
            assert off <= 5.0 * got.errors[f"{mine.name}.{number}"] + 1e-9


@ALL
def test_the_shape_of_the_query_is_found_again(name: str) -> None:
    true, got = found(name)
    renamed = {s.name: m.name for s, m in zip(true.stages, got.query.stages, strict=True)}
    for mine, stage in zip(got.query.stages, true.stages, strict=True):
        assert mine.source == stage.source
        assert mine.upstream == tuple(renamed[u] for u in stage.upstream)
        assert near(mine.selectivity, stage.selectivity, share=0.01)
        assert (mine.most_out is None) == (stage.most_out is None)
        if stage.most_out is not None:
            assert mine.most_out == pytest.approx(stage.most_out, rel=0.02)
        assert bool(mine.shares) == bool(stage.shares)
        assert mine.shares == pytest.approx(stage.shares, abs=0.01)
    assert got.query.sources == true.sources
    assert got.query.no_data_batch == true.no_data_batch


@ALL
def test_driver_time_and_noise_are_found_again(name: str) -> None:
    true, got = found(name)
    assert near(got.query.planning, true.planning, share=0.03)
    assert near(got.query.commit, true.commit, share=0.01)
    assert near(got.query.task_noise, true.task_noise, share=0.05)
    assert near(got.query.batch_noise, true.batch_noise, share=0.25, least=0.03)


def cold_seconds(executor: ExecutorProfile) -> float:
    """That the first 100 tasks of 0.2 s take longer on a cold executor."""
    worked = extra = 0.0
    for _ in range(100):
        taken = seconds_after(executor, 0.2, worked)
        taken += executor.first_task if not worked else 0.0
        worked, extra = worked + taken, extra + taken - 0.2
    return extra


@ALL
def test_the_executor_is_found_again(name: str) -> None:
    _, got = found(name)
    mine = got.executor
    assert near(mine.start, EXECUTOR.start, share=0.07)
    assert near(mine.start_each, EXECUTOR.start_each, share=0.2)
    assert near(mine.leave, EXECUTOR.leave, share=0.05)
    assert near(mine.noise, EXECUTOR.noise, share=0.35)
    assert near(mine.first_task, EXECUTOR.first_task, share=0.35)
    # What being cold costs is known better than how it goes over.
    assert near(cold_seconds(mine), cold_seconds(EXECUTOR), share=0.2)
    assert near(mine.slowdown, EXECUTOR.slowdown, share=0.5)
    assert near(mine.warm_up, EXECUTOR.warm_up, share=0.9)
    assert near(mine.cpu_idle, EXECUTOR.cpu_idle, share=0.0, least=0.02)
    assert near(mine.cpu_busy, EXECUTOR.cpu_busy, share=0.02)
    assert mine.share == 1.0


@pytest.mark.parametrize("make", [skewed, joined])
def test_new_executors_that_are_faster_at_first_are_found_again(
    make: Callable[[], Profile],
) -> None:
    fast = replace(EXECUTOR, slowdown=1.0, warm_up=0.0, boost=0.3, boost_for=4.0)
    true = replace(make(), executor=fast)
    (query,) = true.queries
    runs = experiments(true, rate=600.0, seed=40)
    mine = fit(query.name, runs, query.sources, trigger=query.trigger).executor
    assert near(mine.boost, fast.boost, share=0.15)
    assert near(mine.boost_for, fast.boost_for, share=0.3)
    assert near(mine.first_task, fast.first_task, share=0.35)
    assert mine.slowdown == 1.0


@pytest.mark.parametrize("name", ["stateful", "joined", "weighty"])
def test_the_state_is_found_again(name: str) -> None:
    true, got = found(name)
    mine, state = got.query.stages[-1].state, true.stages[-1].state
    assert mine is not None and state is not None
    assert mine.operator == state.operator
    assert near(mine.rows_per_record, state.rows_per_record, share=0.02)
    assert (mine.most_rows is None) == (state.most_rows is None)
    assert (mine.seconds is None) == (state.seconds is None)
    assert near(mine.most_rows or 0.0, state.most_rows or 0.0, share=0.05)
    assert near(mine.seconds or 0.0, state.seconds or 0.0, share=0.05)
    assert near(mine.bytes_per_row, state.bytes_per_row, share=0.01)


def test_rows_of_state_cost_something_only_where_that_is_clear() -> None:
    costs = {name: found(name)[1].query.stages[-1].state for name in ("stateful", "weighty")}
    assert costs["stateful"] is not None and costs["stateful"].per_row == 0.0
    assert costs["weighty"] is not None
    assert near(costs["weighty"].per_row, 3e-4, share=0.1)


def played(profile: Profile, loads: dict[str, Pattern], seed: int) -> tuple[float, float]:
    """Mean executors under DS2, and the 95th percentile of the latency."""
    engine = MicroBatchEngine(profile, loads, seconds=900.0, start=2, limits=(1, 12), seed=seed)
    loop = Loop(engine, create("ds2"), Guards(minimum=1, maximum=12), seed=seed)
    while engine.advance(15.0):
        try:
            loop.tick()
        except NotReady:
            continue
        if engine.now >= engine.seconds:
            break
    engine.finish()
    record = engine.record()
    latency = record.latency(profile.queries[0].name)
    assert latency is not None
    return record.slot_seconds() / record.seconds, latency.p95


@ALL
def test_a_run_that_the_fit_has_not_seen_goes_the_same(name: str) -> None:
    true, _ = observed(name)
    _, got = found(name)
    loads: dict[str, Pattern] = {
        s.name: Cosine(low=100.0, high=(s.max_rows or 1000) / 5.0, period=300.0)
        for s in true.queries[0].sources
    }
    made = Profile(version=VERSION, queries=(got.query,), executor=got.executor)
    runs = [(played(true, loads, seed), played(made, loads, seed)) for seed in (1, 2, 3, 4)]
    assert near(mean(b[0] for _, b in runs), mean(a[0] for a, _ in runs), share=0.05)
    assert near(mean(b[1] for _, b in runs), mean(a[1] for a, _ in runs), share=0.1)


@ALL
def test_it_says_how_well_it_explains_the_batches_it_was_made_of(name: str) -> None:
    true, got = found(name)
    assert {1, 2, 4, 8} <= {e.executors for e in got.explained}
    often = [e for e in got.explained if e.batches >= 30]
    for group in often:
        assert near(group.profile, group.measured, share=0.08)
    # A batch deviates by its own noise and by that of the tasks that it waits for, not by more.
    assert got.error <= 0.7 * np.hypot(true.batch_noise, true.task_noise)


def test_what_was_not_observed_keeps_its_default_and_is_said() -> None:
    profile = skewed()
    runs = [
        replace(run, tasks={}, details={}, cpu=())
        for run in (
            saturated(profile, n, s, seconds=40.0, seed=5) for n in (1, 4) for s in (0.2, 1)
        )
    ]
    got = fit("q", runs, profile.queries[0].sources, trigger=1.0)
    assert got.executor == ExecutorProfile()
    assert got.query.stages[0].shares == () and got.query.task_noise == 0.0
    assert got.query.commit == 0.0
    said = "\n".join(got.notes)
    assert "no executor was added" in said and "no executor left" in said
    assert "CPU of executors was not seen" in said and "no tasks were read" in said
    assert "planning includes commit" in said and "data never ended" in said


def test_batches_of_one_size_do_not_tell_what_a_task_costs() -> None:
    profile = skewed()
    runs = [saturated(profile, n, 1.0, seconds=60.0, seed=n) for n in (2, 8)]
    got = fit("q", runs, profile.queries[0].sources)
    (read,) = got.query.stages
    assert read.fixed == 0.0 and read.per_record * 8000 == pytest.approx(8.6, rel=0.05)
    assert any("all cost is per record" in note for note in got.notes)


def test_a_cost_per_record_that_is_not_seen_is_none() -> None:
    """A stage behind an aggregation reads a few records now and then: chance, not cost."""
    query = counting(batch_noise=0.2)
    read, count = query.stages
    rare = replace(count, fixed=0.3, per_record=0.0, shares=())
    profile = _alone(replace(query, stages=(read, rare)))
    runs = [saturated(profile, n, s, seconds=40.0, seed=n) for n in (2, 4) for s in (0.1, 1.0)]
    got = fit("q", runs, profile.queries[0].sources)
    assert got.query.stages[1].per_record == 0.0
    assert near(got.query.stages[1].fixed, 0.3, share=0.07)
    assert any("does not depend on records" in note for note in got.notes)


def test_time_between_tasks_is_found_and_counted_as_theirs() -> None:
    """Spark does not count all the time for which a task keeps its slot."""
    hidden = 0.04
    true, runs = observed("skewed")

    def quiet(task: Task) -> Task:
        return replace(task, busy=task.busy - hidden)

    def quieter(stage: Stage) -> Stage:
        return replace(stage, run_time=stage.run_time - hidden * stage.tasks)

    told = [
        replace(
            run,
            tasks={id: [quiet(t) for t in some] for id, some in run.tasks.items()},
            stages={id: [quieter(s) for s in some] for id, some in run.stages.items()},
        )
        for run in runs
    ]
    got = fit("q", told, true.queries[0].sources, trigger=1.0)
    (read,) = got.query.stages
    assert near(read.fixed, 0.1, share=0.1)
    assert near(got.query.planning, 0.1, share=0.2)
    assert any("keeps its slot for" in note for note in got.notes)


def test_a_slow_first_task_of_every_stage_is_said() -> None:
    """On Spark each executor receives and compiles a stage before its first task of it."""
    true, runs = observed("skewed")
    assert not any("first task of a stage" in note for note in found("skewed")[1].notes)

    def slower(tasks: Sequence[Task]) -> list[Task]:
        first = {}
        for task in sorted(tasks, key=lambda t: -t.partition):
            first[task.executor] = task.partition
        return [replace(t, busy=t.busy + 0.2 * (first[t.executor] == t.partition)) for t in tasks]

    told = [replace(r, tasks={id: slower(some) for id, some in r.tasks.items()}) for r in runs]
    got = fit("q", told, true.queries[0].sources, trigger=1.0)
    (note,) = [n for n in got.notes if "first task of a stage" in n]
    assert 170 <= int(note.split(" takes ")[1].split()[0]) <= 230


def test_states_of_several_operators_are_told_apart_by_the_progress() -> None:
    """The batch has only their sum; with the detail of each operator they come apart."""
    read, count = counting().stages
    assert count.state is not None
    top = StageProfile(
        name="top",
        upstream=("count",),
        tasks=4,
        fixed=0.05,
        per_record=1e-3,
        state=StateProfile(operator="dedupe", rows_per_record=0.5, seconds=20.0),
    )
    profile = _alone(counting(stages=(read, count, top)))
    runs = [saturated(profile, n, s, seconds=60.0, seed=n) for n in (2, 8) for s in (0.1, 0.5, 1.0)]
    together = fit("q", runs, profile.queries[0].sources)
    assert all(s.state is None for s in together.query.stages)
    assert any("not told apart" in note for note in together.notes)

    apart = []
    for run in runs:
        rows, details, before = [0.0, 0.0], {}, 0.0
        for batch in run.batches:
            some = sorted(run.stages[batch.id], key=lambda s: s.id)
            for place, (state, stage) in enumerate(
                zip((count.state, top.state), some[1:], strict=True)
            ):
                assert state is not None
                added = state.rows_per_record * stage.read_records
                rows[place] = grown(state, rows[place], added, batch.end - before)
            before = batch.end
            assert round(sum(rows)) == batch.state_rows
            details[batch.id] = Detail(commit=0.1, state=tuple((round(r), 0) for r in rows))
        apart.append(replace(run, details=details))
    got = fit("q", apart, profile.queries[0].sources)
    _, first, second = (s.state for s in got.query.stages)
    assert first is not None and second is not None
    assert near(first.rows_per_record, 0.2, share=0.05)
    assert near(second.rows_per_record, 0.5, share=0.1) and second.seconds is not None
    assert near(second.seconds, 20.0, share=0.1)


def test_too_little_is_refused() -> None:
    profile = skewed()
    sources = profile.queries[0].sources
    with pytest.raises(InputError, match="at least 12 are needed"):
        fit("q", [saturated(profile, 2, 1.0, seconds=10.0, seed=1)], sources)
    with pytest.raises(InputError, match="no batch with stages"):
        fit("q", [], sources)
    two = (*sources, SourceProfile(name="people"))
    with pytest.raises(InputError, match="1 stages read sources, but 2"):
        fit("q", [saturated(profile, 2, 0.1, seconds=30.0, seed=1)], two)


def test_batches_on_cold_executors_are_not_counted() -> None:
    """Executors that came during the only run: what they do at first would raise every cost."""
    profile = single(tasks=6, max_rows=4000, trigger=1.0, executor=EXECUTOR)
    got = fit("q", [resized(profile, 500.0, (1, 4, 1, 4), hold=60.0, seed=2),
                    saturated(profile, 2, 1.0, seconds=60.0, seed=1)],
              profile.queries[0].sources)  # fmt: skip
    (read,) = got.query.stages
    assert near(read.fixed, 0.1, share=0.01) and near(read.per_record, 1e-3, share=0.01)
