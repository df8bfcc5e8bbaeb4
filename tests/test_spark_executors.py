"""Growing and shrinking against a fake Spark context; real executors are in tests/spark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change
from penstock.spark.executors import GIVE_UP, ExecutorPool, victims
from penstock.spark.rest import Executor


@dataclass
class FakeSpark:
    """The few methods of a SparkContext and its JVM that resizing uses."""

    conf: dict[str, str] = field(default_factory=dict)
    master: str = "spark://127.0.0.1:7077"
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    accepts: bool = True

    def __getattr__(self, name: str) -> Any:
        # sc._jvm.org.apache…, sc._jsc.sc().schedulerBackend(): every step leads back here.
        return self

    def __call__(self, *args: Any) -> Any:
        return self

    def getConf(self) -> dict[str, str]:  # noqa: N802
        return self.conf

    def requestTotalExecutors(self, *args: Any) -> bool:  # noqa: N802
        self.calls.append(("request", args[0]))
        return self.accepts

    def decommissionExecutor(self, *args: Any) -> bool:  # noqa: N802
        self.calls.append(("decommission", args[0], args[2]))
        return True


def executor(id: int, *, added: float = 0.0, **kw: Any) -> Executor:
    base = Executor(id=str(id), host="h", cores=1, alive=True, added=added, removed=None,
                    task_seconds=1.0, completed_tasks=0, active_tasks=0)  # fmt: skip
    return replace(base, **kw)


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


def test_shrinking_decommissions_and_lowers_sparks_target() -> None:
    spark = FakeSpark()
    pool = ExecutorPool(spark)
    alive = [executor(0), executor(1, added=50.0), executor(2, added=51.0, task_seconds=9.0)]
    pool.resize(change(3, 1), alive, now=100.0)
    assert spark.calls == [("decommission", "1", True), ("decommission", "2", True)]
    gone = [alive[0], *(replace(e, alive=False, removed=105.0) for e in alive[1:])]
    pool.track(gone, now=105.2)
    assert not pool.acting
    assert pool.past[0].registered == 5.0


def test_one_action_at_a_time() -> None:
    pool = ExecutorPool(FakeSpark())
    pool.resize(change(1, 2), [executor(0)], now=0.0)
    with pytest.raises(EngineError, match="still in flight"):
        pool.resize(change(1, 3), [executor(0)], now=1.0)


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
