"""Agents on a local cluster: a host in a thread of its own, for a program that runs Spark."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from penstock.core.errors import EngineError
from penstock.decentralized.messages import Address
from penstock.lab.agents.executors.host import Applications, ExecutorAgentHost, Look
from penstock.lab.agents.executors.load import GroupAccount, ProcessAccount
from penstock.lab.agents.executors.setup import AgentSettings
from penstock.lab.agents.processes.host import AgentAction
from penstock.lab.clusters.standalone.cluster import LocalCluster

END_SECONDS = 10.0
T = TypeVar("T")


def executors_of(cluster: LocalCluster, applications: Mapping[str, str]) -> Look:
    """What executors a local cluster has; ``applications`` by operator, as Spark names them."""

    def look() -> dict[str, dict[str, dict[str, Any]]]:
        groups, found = cluster.groups, {}
        for operator, app in applications.items():
            found[operator] = {
                id: ProcessAccount(pid=pid).document()
                if groups is None
                else GroupAccount(groups=groups, key=f"{app}.{id}").document()
                for id, pid in cluster.executors(app).items()
            }
        return found

    return look


class LocalAgents:
    """A context manager: agents beside all executors, and none afterwards."""

    def __init__(self, applications: Applications, settings: AgentSettings, look: Look) -> None:
        self._applications, self._settings, self._look = applications, settings, look
        self._host: ExecutorAgentHost | None = None
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-agents", daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(END_SECONDS)

    def agents(self) -> dict[Address, dict[str, Any]]:
        """The agents that live, and what each reported last."""
        return self._asked(lambda host: host.agents)

    def counts(self) -> Counter[str]:
        """What all agents that there were have counted, together."""
        return self._asked(lambda host: host.counts)

    def actions(self) -> list[AgentAction]:
        """What agents did and what happened to them so far; times are epoch seconds."""
        return self._asked(lambda host: list(host.actions))

    def rest(self) -> None:
        """Nobody decides any more; what is under way ends."""
        self._asked(lambda host: host.rest())

    def kill(self, address: Address) -> None:
        """Kill an agent, as a crash would."""
        self._asked(lambda host: host.kill(address))

    def _asked(self, question: Callable[[ExecutorAgentHost], T]) -> T:
        async def answer() -> T:
            assert self._host is not None
            return question(self._host)

        if self._problem is not None or not self._thread.is_alive():
            raise EngineError(f"the host of the agents has ended: {self._problem}")
        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(END_SECONDS)

    def _run(self) -> None:
        async def host() -> None:
            self._host = ExecutorAgentHost(self._applications, self._settings, self._look)
            self._task = asyncio.current_task()
            self._ready.set()
            await self._host.run()

        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(host())
        except asyncio.CancelledError:
            pass
        except BaseException as problem:  # said to whoever asks next
            self._problem = problem
        finally:
            self._ready.set()
