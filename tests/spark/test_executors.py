"""Growing and shrinking against a fake Spark context; real executors are in tests/live."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.batches.actions import GIVE_UP, victims
from penstock.batches.values import Executor
from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change
from penstock.spark.act.executors import ExecutorPool
from tests.fakes.spark import FakeSpark, executor


def change(before: int, slots: int, remove: tuple[str, ...] = ()) -> Change:
    return Change(before=before, slots=slots, raw=float(slots), remove=remove)


def state(pool: ExecutorPool) -> tuple[bool, bool]:
    return pool.acting, pool.watching


def test_growing_asks_for_the_absolute_total_and_is_timed() -> None:
    spark = FakeSpark()
    pool = ExecutorPool(spark)
    old = [executor(0), executor(1)]
    pool.resize(change(2, 4), old, now=100.0)
    assert spark.calls == [("request", 4)]
    pool.track([*old, executor(2, added=103.0)], now=103.5)
    assert state(pool) == (True, True)
    new = [executor(2, added=103.0), executor(3, added=104.0)]
    pool.track([*old, *new], now=104.5)
    assert state(pool) == (False, True)  # still watching for the first task
    pool.track([*old, new[0], replace(new[1], completed_tasks=1)], now=106.0)
    assert state(pool) == (False, False)
    pool.batch_ended(start=103.0, end=107.0)  # planned before the executors were there
    pool.batch_ended(start=107.0, end=109.0)
    (cost,) = pool.past
    assert (cost.before, cost.after) == (2, 4)
    assert (cost.registered, cost.first_task, cost.steady) == (4.0, 6.0, 9.0)
    assert cost.downtime == 0.0  # they joined a running query


def test_shrinking_tells_spark_the_total_and_decommissions() -> None:
    spark = FakeSpark()
    pool = ExecutorPool(spark)
    alive = [executor(0), executor(1, added=50.0), executor(2, added=51.0, task_seconds=9.0)]
    pool.resize(change(3, 1), alive, now=100.0)
    # The total first, then without touching it: of an application that was never told a total,
    # Spark would otherwise think that it wants none, and replace no executor that dies.
    left = [("decommission", "1", False), ("decommission", "2", False)]
    assert spark.calls == [("request", 1), *left]
    gone = [alive[0], *(replace(e, alive=False, removed=105.0) for e in alive[1:])]
    pool.track(gone, now=105.2)
    assert not pool.acting
    assert pool.past[0].registered == 5.0


def test_one_action_at_a_time() -> None:
    pool = ExecutorPool(FakeSpark())
    pool.resize(change(1, 2), [executor(0)], now=0.0)
    with pytest.raises(EngineError, match="still in flight"):
        pool.resize(change(1, 3), [executor(0)], now=1.0)


@pytest.mark.parametrize("slots", [0, 1, 6, 10**9, -3])
def test_nothing_outside_the_limits_leaves(slots: int, caplog: pytest.LogCaptureFixture) -> None:
    spark = FakeSpark()
    pool = ExecutorPool(spark, limits=(2, 5))
    with pytest.raises(EngineError, match=rf"{slots} executors are outside the limits of 2 to 5"):
        pool.resize(change(4, slots), [executor(i) for i in range(4)], now=0.0)
    assert spark.calls == [] and not pool.acting
    assert f"refused: {slots} executors" in caplog.text


def test_a_frozen_pool_does_nothing() -> None:
    spark = FakeSpark()
    pool = ExecutorPool(spark, frozen=lambda: "maintenance")
    with pytest.raises(EngineError, match="frozen: maintenance"):
        pool.resize(change(1, 2), [executor(0)], now=0.0)
    assert spark.calls == [] and not pool.acting


def test_lost_executors_are_left_to_spark_for_a_while() -> None:
    pool = ExecutorPool(FakeSpark())
    both = [executor(0), executor(1)]
    pool.track(both, now=0.0)
    assert state(pool) == (False, False)
    pool.track([executor(0)], now=10.0)
    assert state(pool) == (True, False)  # Spark replaces it
    pool.track([executor(0), executor(2)], now=17.0)
    assert state(pool) == (False, False)
    pool.track([executor(0)], now=20.0)
    pool.track([executor(0)], now=20.0 + GIVE_UP)
    assert state(pool) == (True, False)
    pool.track([executor(0)], now=21.0 + GIVE_UP)
    assert state(pool) == (False, False)  # it does not come back: decide on what there is


def test_beside_dynamic_allocation_one_that_goes_is_not_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = ExecutorPool(FakeSpark(conf={"spark.dynamicAllocation.enabled": "true"}))
    for now, alive in ((0.0, 3), (10.0, 1), (20.0 + GIVE_UP, 1)):
        pool.track([executor(n) for n in range(alive)], now=now)
        assert state(pool) == (False, False)  # advice goes on
    assert not caplog.records


def test_a_gateway_that_is_gone_is_an_engine_error() -> None:
    class Gone(FakeSpark):
        def requestTotalExecutors(self, *args: object) -> bool:  # noqa: N802
            raise ConnectionRefusedError("no JVM")

    with pytest.raises(EngineError, match="could not ask Spark for 2 executors: no JVM"):
        ExecutorPool(Gone()).resize(change(1, 2), [executor(0)], now=0.0)


def test_an_action_without_effect_is_given_up() -> None:
    pool = ExecutorPool(FakeSpark())
    pool.resize(change(1, 9), [executor(0)], now=0.0)
    pool.track([executor(0)], now=GIVE_UP - 1)
    assert state(pool) == (True, True)
    pool.track([executor(0)], now=GIVE_UP + 1)
    assert state(pool) == (False, False)
    assert pool.past[0].registered is None


def test_a_request_that_spark_refuses_is_an_error() -> None:
    with pytest.raises(EngineError, match="2 executors"):
        ExecutorPool(FakeSpark(accepts=False)).resize(change(1, 2), [executor(0)], now=0.0)


def test_the_same_size_is_no_action() -> None:
    spark = FakeSpark()
    pool = ExecutorPool(spark)
    pool.resize(change(1, 1), [executor(0)], now=0.0)
    assert spark.calls == []
    assert not pool.acting


@pytest.mark.parametrize(
    ("name", "alive", "count", "named", "leave"),
    [
        ("newest first", [executor(0), executor(1, added=99.0)], 1, (), ["1"]),
        ("of the same age the least loaded",
         [executor(0, added=91.0, task_seconds=9.0), executor(1, added=92.0)], 1, (), ["1"]),
        ("a busy one later", [executor(0, added=91.0, active_tasks=1),
                              executor(1, added=92.0, task_seconds=5.0)], 1, (), ["1"]),
        ("named ones win", [executor(0), executor(1, added=99.0)], 1, ("0",), ["0"]),
        ("names of the dead are ignored", [executor(0), executor(1, added=99.0)], 1, ("7",), ["1"]),
        ("named and more", [executor(0), executor(1, added=99.0), executor(2)], 2, ("0",),
         ["0", "1"]),
    ],
)  # fmt: skip
def test_who_leaves(
    name: str, alive: list[Executor], count: int, named: tuple[str, ...], leave: list[str]
) -> None:
    assert victims(alive, count, named) == leave, name


def test_dynamic_allocation_and_local_masters_are_refused_with_the_way_out() -> None:
    dynamic = FakeSpark(conf={"spark.dynamicAllocation.enabled": "true"})
    with pytest.raises(InputError, match=r"spark.dynamicAllocation.enabled is true.*advise"):
        ExecutorPool(dynamic).refuse_if_not_ours()
    with pytest.raises(InputError, match=r"master is local\[2\].*advise"):
        ExecutorPool(FakeSpark(master="local[2]")).refuse_if_not_ours()
    ExecutorPool(FakeSpark()).refuse_if_not_ours()
