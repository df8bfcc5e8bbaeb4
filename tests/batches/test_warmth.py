"""Cold executors: since when each is warm, and what batches on cold ones are worth."""

from __future__ import annotations

import random

import pytest

from penstock.batches.batch_cost import Cost, fit
from penstock.batches.stage_work import BatchWork
from penstock.batches.values import Executor
from penstock.batches.warmth import WARM_AFTER, Warmth, is_cold, weight_of
from tests.fakes.spark import executor

TRUE = Cost(fixed=0.5, per_record=1e-3)


def worker(id: int, worked: float, *, added: float = 0.0, removed: float | None = None) -> Executor:
    return executor(id, added=added, task_seconds=worked, alive=removed is None, removed=removed)


def test_an_executor_is_cold_until_it_has_worked_for_a_while_whatever_its_age() -> None:
    assert is_cold(worker(1, 0.0, added=-1e6))
    assert is_cold(worker(1, WARM_AFTER - 0.1))
    assert not is_cold(worker(1, WARM_AFTER))


def test_the_share_that_is_cold_is_by_time_and_executor() -> None:
    warmth = Warmth()
    warmth.look([worker(1, 50.0), worker(2, 0.0, added=90.0)], 100.0)
    # The first was warm after a fifth of its 100 s; the second came at 90 s and did nothing yet.
    assert warmth.cold_share(0.0, 20.0) == pytest.approx(1.0)
    assert warmth.cold_share(20.0, 90.0) == 0.0
    assert warmth.cold_share(90.0, 100.0) == pytest.approx(0.5)
    assert warmth.cold_share(80.0, 100.0) == pytest.approx(10.0 / 30.0)


def test_when_it_became_warm_is_told_from_the_work_between_two_looks() -> None:
    warmth = Warmth()
    warmth.look([worker(1, 4.0)], 100.0)
    warmth.look([worker(1, 28.0)], 112.0)  # 2 s of work a second: warm at 103
    assert warmth.cold_share(102.0, 103.0) == pytest.approx(1.0)
    assert warmth.cold_share(103.0, 112.0) == 0.0
    warmth.look([worker(1, 40.0)], 115.0)
    assert warmth.cold_share(100.0, 106.0) == pytest.approx(0.5)


def test_one_that_is_gone_counts_for_its_time_and_one_that_is_forgotten_not_at_all() -> None:
    warmth = Warmth()
    warmth.look([worker(1, 50.0), worker(2, 1.0, added=0.0, removed=60.0)], 100.0)
    assert warmth.cold_share(50.0, 60.0) == pytest.approx(0.5)
    assert warmth.cold_share(60.0, 100.0) == 0.0
    warmth.look([worker(1, 60.0)], 110.0)
    assert warmth.cold_share(50.0, 60.0) == 0.0


def test_nobody_there_is_not_cold() -> None:
    assert Warmth().cold_share(0.0, 10.0) == 0.0
    warmth = Warmth()
    warmth.look([], 5.0)
    assert warmth.cold_share(0.0, 10.0) == 0.0


@pytest.mark.parametrize("shares", [[1.0] * 20, [0.4] * 20])
def test_where_all_are_alike_weights_change_nothing(shares: list[float]) -> None:
    """At the start all executors are cold, and what they cost is all there is."""
    sizes = [1000 + 100 * (i % 7) for i in range(20)]
    busy = [TRUE.of(n) for n in sizes]
    plain = fit(sizes, busy)
    weighed = fit(sizes, busy, [weight_of(c) for c in shares])
    assert plain is not None and weighed is not None
    assert weighed.of(2000) == pytest.approx(plain.of(2000))
    work = BatchWork(rows=[1000] * 3, busy=[5.0] * 3, recent=3, cold=[1.0] * 3)
    assert work.service_rate(1000.0, 1.0) == pytest.approx(200.0)


def grown(cold_factor: float, *, sizes_differ: bool) -> BatchWork:
    """40 batches on one warm executor, then 3 while the other half is cold and takes longer."""
    rows = [1000 + (200 * (i % 5) if sizes_differ else 0) for i in range(43)]
    busy = [TRUE.of(n) for n in rows]
    busy[-3:] = [cold_factor * y for y in busy[-3:]]
    return BatchWork(rows=rows, busy=busy, recent=3, cold=[0.0] * 40 + [0.5] * 3)


@pytest.mark.parametrize("factor", [2.0, 4.0])
def test_a_fit_of_warm_batches_outlasts_a_window_on_cold_executors(factor: float) -> None:
    work = grown(factor, sizes_differ=True)
    cost = work.cost()
    assert cost is not None
    assert cost.of(3000) == pytest.approx(TRUE.of(3000), rel=0.05)
    assert work.service_rate(2000.0, 1.0) == pytest.approx(2000 / TRUE.of(2000), rel=0.05)
    blind = BatchWork(rows=work.rows, busy=work.busy, recent=3)
    assert blind.cost() is None  # as before they were told apart


@pytest.mark.parametrize("factor", [2.0, 4.0])
def test_without_a_fit_the_last_warm_batches_are_asked(factor: float) -> None:
    work = grown(factor, sizes_differ=False)
    assert work.cost() is None
    assert work.service_rate(1000.0, 1.0) == pytest.approx(1000 / TRUE.of(1000))


def test_what_cold_executors_do_faster_is_believed() -> None:
    """Their cost is an upper bound: larger batches are cheaper a record even there."""
    work = BatchWork(
        rows=[100] * 5 + [10_000] * 2,
        busy=[TRUE.of(100)] * 5 + [1.3 * TRUE.of(10_000)] * 2,
        recent=2,
        cold=[0.0] * 5 + [0.5] * 2,
    )
    assert work.service_rate(0.0, 1.0) == pytest.approx(10_000 / (1.3 * TRUE.of(10_000)))


def test_a_warm_batch_of_the_window_outweighs_a_cold_one() -> None:
    work = BatchWork(rows=[1000, 1000], busy=[15.0, 1.5], recent=2, cold=[1.0, 0.0])
    plain = 2000 / 16.5
    found = work.service_rate(0.0, 1.0)
    assert found is not None
    assert found == pytest.approx(1100 / 3.0)
    assert found > 3 * plain


def test_a_cost_that_changed_on_warm_executors_is_still_noticed() -> None:
    work = grown(3.0, sizes_differ=True)
    warm = BatchWork(rows=work.rows, busy=work.busy, recent=3, cold=[0.0] * 43)
    assert warm.cost() is None


def test_cold_batches_in_between_do_not_turn_the_line() -> None:
    noise = random.Random(4)
    rows = [noise.randint(1000, 3000) for _ in range(40)]
    cold = [1.0 if 20 <= i < 32 else 0.0 for i in range(40)]
    factors = [4.0 if c else noise.gauss(1.0, 0.02) for c in cold]
    busy = [factor * TRUE.of(n) for factor, n in zip(factors, rows, strict=True)]
    cost = BatchWork(rows=rows, busy=busy, recent=3, cold=cold).cost()
    assert cost is not None
    assert cost.of(5000) == pytest.approx(TRUE.of(5000), rel=0.15)
