"""One executor more or fewer: what a driver carries out for agents, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.batches.values import Executor
from penstock.core.errors import EngineError, InputError
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.split.member import Wishes
from tests.fakes.spark import FakeSpark, executor


class Application:
    """A driver with two executors that may have up to four."""

    def __init__(self, **conf: str) -> None:
        self.spark = FakeSpark(conf=conf)
        self.executors: list[Executor] = [executor(0), executor(1)]
        self.pool = ExecutorPool(self.spark, limits=(1, 4))
        self.wishes = Wishes(self.pool, lambda: self.executors)

    def ask(self, what: str, **more: Any) -> Any:
        return self.wishes.answer({"ask": what, "who": "map1", **more})


def test_wishes_add_up_before_the_first_has_taken_effect() -> None:
    application = Application()
    assert [application.ask("add")["total"] for _ in range(2)] == [3, 4]
    assert application.spark.calls == [("request", 3), ("request", 4)]


def test_the_maximum_refuses_and_says_why() -> None:
    application = Application()
    for _ in range(2):
        application.ask("add")
    with pytest.raises(EngineError, match="5 executors are outside the limits of 1 to 4"):
        application.ask("add")
    assert application.ask("roster")["refused"] == 1
    application.ask("remove", executor="1")
    assert application.ask("add")["total"] == 4


def test_that_very_executor_leaves_and_is_not_replaced() -> None:
    application = Application()
    assert application.ask("remove", executor="1")["total"] == 1
    assert application.spark.calls == [("request", 1), ("decommission", "1", False)]
    application.ask("remove", executor="1")  # the answer was lost
    assert len(application.spark.calls) == 2
    assert application.ask("roster")["removed"] == ["1"]


def test_the_last_executor_stays() -> None:
    application = Application()
    application.ask("remove", executor="0")
    with pytest.raises(EngineError, match="0 executors are outside the limits"):
        application.ask("remove", executor="1")


def test_one_that_is_not_there_cannot_leave() -> None:
    application = Application()
    application.executors[1] = replace(executor(1), alive=False)
    with pytest.raises(EngineError, match="no executor '1'; there are 0"):
        application.ask("remove", executor="1")
    with pytest.raises(InputError, match="no wish"):
        application.ask("remove")
    assert application.spark.calls == []


def test_what_spark_does_not_take_is_no_wish_that_was_carried_out() -> None:
    application = Application()
    application.spark.accepts = False
    with pytest.raises(EngineError, match="did not take the request"):
        application.ask("add")
    application.spark.accepts = True
    assert application.ask("add")["total"] == 3


def test_a_roster_tells_who_came_who_went_and_what_failed() -> None:
    application = Application()
    application.executors.append(replace(executor(2), alive=False, failed_tasks=3))
    application.ask("add")
    assert application.ask("roster") == {
        "added": 1, "removed": [], "refused": 0, "alive": ["0", "1"], "gone": ["2"],
        "failed_tasks": 3,
    }  # fmt: skip
