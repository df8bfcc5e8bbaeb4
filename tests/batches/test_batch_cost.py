"""What batches cost: two numbers found again, and the need at a load that was not there yet."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.batch_cost import HISTORY, LEAST_BATCHES, Cost, fit
from penstock.batches.snapshot import query_window, snapshot
from penstock.batches.values import Batch, Stage
from penstock.core.model import Slot, Snapshot
from penstock.policies import DS2

READ, AGGREGATE = Cost(fixed=0.6, per_record=4e-4), Cost(fixed=0.9, per_record=5e-3)
KEYS = 0.1  # records after the partial aggregation, per row
TRIGGER = 2.0


def batches_of(rows: list[int], available: list[int]) -> list[Batch]:
    taken, batches = 0, []
    for i, n in enumerate(rows):
        taken += n
        batches.append(
            Batch(
                query="q",
                run_id="r",
                id=i,
                start=1000.0 + TRIGGER * i,
                duration=1.0,
                rows=n,
                available=available[i],
                taken=taken,
                state=("stateStoreSave",),
            )
        )
    return batches


def stages_of(batches: list[Batch], noise: random.Random | None = None) -> list[Stage]:
    stages = []
    for b in batches:
        written = round(KEYS * b.rows)
        jitter = [1.0 if noise is None else noise.gauss(1.0, 0.05) for _ in range(2)]
        read = Stage(
            id=2 * b.id,
            run_id="r",
            batch=b.id,
            done=True,
            tasks=8,
            run_time=READ.of(b.rows) * jitter[0],
            cpu_time=0.1,
            fetch_wait=0.0,
            input_records=b.rows,
            read_records=0,
            write_records=written,
        )
        later = replace(
            read,
            id=read.id + 1,
            run_time=AGGREGATE.of(written) * jitter[1],
            input_records=0,
            read_records=written,
            write_records=0,
        )
        stages += [read, later]
    return stages


def seen(batches: list[Batch], stages: list[Stage], window: float = 10.0) -> Snapshot:
    found = query_window(batches, stages, now=batches[-1].end, window=window, cores=1)
    assert found is not None
    return snapshot([found], [], now=batches[-1].end, slots={i: Slot(id=i) for i in "abcd"})


def need(s: Snapshot) -> float:
    proposal, _ = DS2(over_provisioning=1.0).decide(s, None)
    return sum(n.slots for n in proposal.needs.values())


def load(factor: float) -> list[Batch]:
    """40 batches of changing size, then 5 of 1,000 rows while ``factor`` times that is offered.

    A backlog of 20,000 rows lies in front of them all.
    """
    sizes = [1000 + 300 * (i % 5) for i in range(40)] + [1000] * 5
    available, had = [], 20_000
    for i, n in enumerate(sizes):
        had += n if i < 40 else round(factor * n)
        available.append(had)
    return batches_of(sizes, available)


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_the_need_at_another_load_is_right_where_the_plain_ratio_is_not(factor: float) -> None:
    batches = load(factor)
    rows = factor * 1000  # of a batch, if the query takes what is offered
    true = (READ.of(rows) + AGGREGATE.of(KEYS * rows)) / TRIGGER
    plain = factor * (READ.of(1000) + AGGREGATE.of(KEYS * 1000)) / TRIGGER
    found = need(seen(batches, stages_of(batches, random.Random(1))))
    assert found == pytest.approx(true, rel=0.05)
    assert factor == 1.0 or abs(plain - true) > 0.2 * true


def test_a_stage_that_reads_as_much_of_any_batch_does_not_grow_with_the_load() -> None:
    """After a partial aggregation of few keys, a batch of any size has the same few records."""
    batches = load(3.0)
    stages = [
        replace(s, write_records=200)
        if s.input_records
        else replace(s, read_records=200, run_time=1.5)
        for s in stages_of(batches)
    ]
    proposal, _ = DS2(over_provisioning=1.0).decide(seen(batches, stages), None)
    assert proposal.needs["aggregate"].slots == pytest.approx(1.5 / TRIGGER, rel=0.02)


def test_batches_of_one_size_do_not_tell_and_the_plain_ratio_is_used() -> None:
    batches = batches_of([1000] * 20, [1000 * (i + 1) for i in range(20)])
    s = seen(batches, stages_of(batches))
    assert s.operators["read"].service_rate == pytest.approx(1000 / READ.of(1000))
    (query,) = s.queries.values()
    assert query.cost_fixed is None
    assert query.cost_per_record is None
    both = READ.of(1000) + AGGREGATE.of(100)
    assert query.busy_per_record == pytest.approx(both / 1000)


def test_the_whole_query_costs_the_sum_of_its_stages() -> None:
    batches = load(1.0)
    (query,) = seen(batches, stages_of(batches)).queries.values()
    assert query.cost_fixed == pytest.approx(READ.fixed + AGGREGATE.fixed)
    per_record = READ.per_record + KEYS * AGGREGATE.per_record
    assert query.cost_per_record == pytest.approx(per_record)
    # The ratio holds the fixed cost too: batches of 1,000 rows.
    assert query.busy_per_record == pytest.approx(
        per_record + (READ.fixed + AGGREGATE.fixed) / 1000
    )


def test_a_cost_that_has_changed_is_not_believed_any_longer() -> None:
    batches = load(1.0)
    stages = [
        replace(s, run_time=3 * s.run_time) if (s.batch or 0) >= 42 else s
        for s in stages_of(batches)
    ]
    s = seen(batches, stages, window=5.0)  # three batches
    assert s.operators["read"].service_rate == pytest.approx(1000 / (3 * READ.of(1000)), rel=0.01)
    (query,) = s.queries.values()
    assert query.cost_fixed is None


positive = st.floats(0.01, 10.0)


@given(positive, st.floats(1e-6, 1e-2), st.lists(st.integers(100, 20_000), min_size=8, max_size=80))
def test_two_numbers_are_found_again_if_the_sizes_differ(
    fixed: float, per_record: float, sizes: list[int]
) -> None:
    true = Cost(fixed=fixed, per_record=per_record)
    found = fit(sizes, [true.of(n) for n in sizes])
    if found is not None:
        for n in (min(sizes[-HISTORY:]), max(sizes[-HISTORY:])):
            assert found.of(n) == pytest.approx(true.of(n), rel=1e-3)
    alternating = [100, 200] * LEAST_BATCHES
    exact = fit(alternating, [true.of(n) for n in alternating])
    assert exact is not None
    assert exact.fixed == pytest.approx(fixed, rel=1e-3)
    assert exact.per_record == pytest.approx(per_record, rel=1e-3)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.floats(0, 100)), max_size=60))
def test_neither_number_is_ever_negative(batches: list[tuple[int, float]]) -> None:
    found = fit([n for n, _ in batches], [y for _, y in batches])
    assert found is None or (found.fixed >= 0 and found.per_record >= 0)


def test_a_few_batches_on_a_cold_executor_do_not_turn_the_line() -> None:
    random_sizes = random.Random(3)
    sizes = [random_sizes.randint(1000, 3000) for _ in range(50)]
    busy = [READ.of(n) * random_sizes.gauss(1.0, 0.05) for n in sizes]
    for i in (1, 12, 30, 44):
        busy[i] *= 10
    found = fit(sizes, busy)
    assert found is not None
    assert found.of(5000) == pytest.approx(READ.of(5000), rel=0.1)
    assert found.of(500) == pytest.approx(READ.of(500), rel=0.1)


def test_pure_noise_is_not_a_cost() -> None:
    noise = random.Random(5)
    sizes = [noise.randint(1000, 3000) for _ in range(50)]
    assert fit(sizes, [noise.expovariate(1.0) for _ in sizes]) is None
    assert fit([], []) is None
    assert fit([0] * 20, [1.0] * 20) is None
