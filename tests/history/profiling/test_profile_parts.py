"""The parts of a fit, each alone: lines, makespans, the growth of state, progress documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.history.profiling import lines
from penstock.history.profiling.experiment import Detail, detail_of
from penstock.history.profiling.fit_driver import makespan, modelled, noise_of
from penstock.history.profiling.fit_stages import costs_of
from penstock.history.profiling.fit_states import StateStep, growth, with_state
from penstock.history.profiling.lineup import line_up
from penstock.simulator.microbatch import Profile, StateProfile
from penstock.simulator.microbatch.profile import VERSION
from penstock.simulator.microbatch.query import grown
from tests.fakes.microbatch_examples import EXECUTOR, counting
from tests.fakes.profile_experiments import saturated


def test_progress_documents_tell_the_commit_and_each_state() -> None:
    document = {
        "durationMs": {"addBatch": 900, "commitOffsets": 40, "commitBatch": 2, "walCommit": 30},
        "stateOperators": [
            {"operatorName": "stateStoreSave", "numRowsTotal": 7, "memoryUsedBytes": 70},
            {"operatorName": "dedupe", "numRowsTotal": 5, "memoryUsedBytes": 50},
        ],
    }
    assert detail_of(document) == Detail(commit=0.042, state=((5, 50), (7, 70)))
    assert detail_of({}) == Detail(commit=0.0)


numbers = st.floats(0.0, 10.0)


@given(
    coefficients=st.tuples(numbers, numbers),
    sizes=st.lists(st.integers(1, 1000), min_size=3, max_size=5, unique=True),
    outlier=st.floats(2.0, 50.0),
    place=st.integers(0, 1000),
)
def test_a_line_is_exact_and_one_outlier_does_not_turn_it(
    coefficients: tuple[float, float], sizes: list[int], outlier: float, place: int
) -> None:
    """Of eight batches of each size, as they are measured; alone at its size it would."""
    x = np.repeat(np.array(sizes, dtype=float), 8)
    right = coefficients[0] + coefficients[1] * x
    y = right.copy()
    for _ in range(2):
        got = lines.fit([np.ones(len(x)), x], y)
        assert min(got.values) >= 0.0
        said = got.values[0] + got.values[1] * x
        assert np.abs(said - right).max() <= 0.02 * right.max() + 1e-6
        y[place % len(y)] *= outlier


@given(
    seconds=st.lists(st.floats(0.01, 5.0), min_size=1, max_size=30),
    later=st.lists(st.floats(0.01, 5.0), min_size=1, max_size=30),
    slots=st.integers(1, 10),
)
def test_makespans_lie_between_the_bounds_of_any_list_schedule(
    seconds: list[float], later: list[float], slots: int
) -> None:
    """No idle slot while a task waits [graham69]: ≤ sum ÷ n + (1 − 1 ÷ n)·longest."""
    total = 0.0
    for some in (seconds, later):
        span = makespan([some], [()], slots)
        assert max(max(some), sum(some) / slots) <= span + 1e-9
        assert span <= sum(some) / slots + (1 - 1 / slots) * max(some) + 1e-9
        total += span
    assert makespan([seconds, later], [(), (0,)], slots) == pytest.approx(total)
    beside = makespan([seconds, later], [(), ()], slots)
    assert beside <= total + 1e-9
    assert beside == pytest.approx(makespan([seconds + later], [()], slots))


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_makespans_are_those_of_the_simulator(slots: int) -> None:
    query = replace(counting(), batch_noise=0.0, task_noise=0.0, planning=0.0, commit=0.0)
    alone = Profile(version=VERSION, queries=(query,), executor=EXECUTOR)
    run = saturated(alone, slots, 1.0, seconds=30.0, seed=0)
    for batch in run.batches[:3]:
        some = sorted(run.stages[batch.id], key=lambda s: s.id)
        tasks = [[t.busy for t in sorted(run.tasks[s.id], key=lambda t: t.partition)] for s in some]
        assert makespan(tasks, [(), (0,)], slots) == pytest.approx(batch.duration)


@settings(max_examples=20, deadline=None)
@given(
    rate=st.floats(0.05, 1.0),
    most=st.one_of(st.none(), st.floats(2e3, 2e4)),
    records=st.lists(st.integers(100, 2000), min_size=60, max_size=90),
)
def test_growth_of_a_state_is_found_again(
    rate: float, most: float | None, records: list[int]
) -> None:
    state = StateProfile(operator="dedupe", rows_per_record=rate, most_rows=most)
    rows, steps = 0.0, []
    for n in records:
        after = grown(state, rows, rate * n, 1.0)
        steps.append(StateStep(before=round(rows), after=round(after), records=n, seconds=1.0))
        rows = after
    got, limit, seconds = growth(steps)
    assert seconds is None and got == pytest.approx(rate, rel=0.05)
    reached = most is not None and rows > 0.7 * most
    if reached:
        assert limit == pytest.approx(most, rel=0.05)


def test_a_machine_that_is_slower_in_some_runs_is_no_noise_between_batches() -> None:
    true = Profile(version=VERSION, queries=(counting(),), executor=EXECUTOR)
    runs = [saturated(true, 2, 0.5, seconds=40.0, seed=seed) for seed in range(6)]
    lineup, _ = with_state(line_up(runs))
    costs = [costs_of(lineup, role) for role in range(len(lineup.names))]
    said = [modelled(row, costs) for row in lineup.settled]
    speed = [0.7, 0.8, 0.9, 1.1, 1.2, 1.3]
    uneven = [
        [[seconds * speed[row.run] for seconds in stage] for stage in stages]
        for row, stages in zip(lineup.settled, said, strict=True)
    ]
    even, found = noise_of(lineup, said), noise_of(lineup, uneven)
    assert found.batch == pytest.approx(even.batch, rel=1e-6)
    assert even.run < 0.05
    assert found.run == pytest.approx(np.log(speed).std(ddof=1), rel=0.3)
