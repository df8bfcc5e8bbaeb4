"""Whole runs of agents in memory, in which something is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.lab.agents.pipeline.operators import Operator, Pipeline
from tests.fakes.agents_memory import System, run


def pipeline(**values: object) -> Pipeline:
    """Three operators of which the middle one has two instances; nobody decides by itself."""
    operators = (
        Operator(name="A", capacity=2000.0, instances=1),
        Operator(name="B", capacity=1000.0, instances=2),
        Operator(name="C", capacity=1500.0, instances=2),
    )
    given = {"operators": operators, "low": 1500.0, "high": 1500.0, "seconds": 4.0, "period": None}
    return Pipeline(**{**given, **values})  # type: ignore[arg-type]


Action = Callable[[System], Awaitable[None]]


def played(action: Action, setup: Pipeline | None = None, at: float = 2.0) -> System:
    """A whole run in which something is done after some seconds."""
    system = System(setup or pipeline())

    async def work() -> None:
        await system.start()
        system.go()
        await asyncio.sleep(at)
        await action(system)
        await system.drained()
        await system.quiet()
        system.result = system.audit()
        await system.stop()

    run(work())
    return system


def check_exact(system: System, *, duplicated: bool = False) -> None:
    found = system.result
    assert found["lost"] == found["unexpected"] == 0
    assert found["delivered"] == found["expected"] > 0
    assert duplicated or found["duplicated"] == 0
    assert found["duplicated"] <= system.count("records rerouted")  # selectivity is 1 where any is
