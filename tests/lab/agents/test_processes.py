"""Agents as real processes on this machine: small runs, exact counts, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from penstock.decentralized import Address
from penstock.lab.agents.pipeline.operators import Operator, Pipeline
from penstock.lab.agents.pipeline.result import PipelineRunResult
from penstock.lab.agents.pipeline.run import PipelineRunSettings, Running, started
from penstock.lab.agents.pipeline.sites import AgentSite
from tests.fakes.waiting import until

pytestmark = pytest.mark.alone

B0, B1, B2 = (Address("B", serial) for serial in range(3))
WITHIN = 30.0
PIPELINE = Pipeline(
    operators=(
        Operator(name="A", capacity=4000.0, instances=1),
        Operator(name="B", capacity=2000.0, instances=2, selectivity=0.75),
    ),
    low=1500.0,
    high=1500.0,
    seconds=2.0,
    period=None,
)


def exists(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def played(
    plan: PipelineRunSettings, action: Callable[[Running], Awaitable[None]]
) -> tuple[PipelineRunResult, list[int]]:
    """A whole run in which something is done; and the processes that it had."""

    async def work() -> tuple[PipelineRunResult, list[int]]:
        async with started(plan) as running:
            running.go()
            await action(running)
            await running.until(lambda: running.drained, WITHIN, "all records are done")
            return await running.reckon(), list(running.pids.values())

    return asyncio.run(work())


def test_a_duplication_and_a_deletion_lose_no_record_and_repeat_none() -> None:
    async def action(running: Running) -> None:
        running.order(B0, {"duplicate": 1})
        await running.until(lambda: running.phase(B2) == "active", WITHIN, "B2 works")
        running.order(B1, {"leave": True})
        await running.until(lambda: running.living("B") == [B0, B2], WITHIN, "B1 has left")

    sites = (AgentSite(address="127.0.0.1"), AgentSite(address="127.0.0.2"))
    outcome, pids = played(PipelineRunSettings(pipeline=PIPELINE, sites=sites), action)
    assert outcome.emitted == 3000
    assert outcome.expected == outcome.delivered == pytest.approx(3000 * 0.75, rel=0.1)
    assert outcome.lost == outcome.duplicated == outcome.unexpected == 0
    # 2 · (|succs| + |preds|) + k to duplicate, 2 · (|succs| + |preds|) to leave
    assert outcome.counts["messages"] == 2 * 2 + 1 + 2 * 2
    assert outcome.counts.get("peers lost", 0) == 0
    assert outcome.duplications == outcome.deletions == 1
    assert len(pids) == 6 and not any(map(exists, pids))


@pytest.mark.parametrize("who", [B1, Address("A", 0)])
def test_a_killed_instance_costs_no_record(who: Address) -> None:
    """B1 is not replaced; A0 is a keeper, the only instance of its operator, and comes back."""

    async def action(running: Running) -> None:
        running.kill(who)
        if who.keeper:
            await running.until(lambda: "started again" in whats(running), WITHIN, "it is back")
        else:
            await running.until(lambda: "lost B1" in whats(running), WITHIN, "it is missed")

    outcome, pids = played(PipelineRunSettings(pipeline=PIPELINE), action)
    assert outcome.emitted == 3000
    assert outcome.lost == outcome.unexpected == 0
    assert outcome.delivered == outcome.expected
    assert outcome.duplicated <= outcome.counts["records rerouted"]
    assert not any(map(exists, pids))


def whats(running: Running) -> list[str]:
    return [action.what for action in running.actions]


RUNNER = """
import asyncio
from penstock.lab.agents.pipeline.run import PipelineRunSettings
from penstock.lab.agents.pipeline.run import started
from tests.lab.agents.test_processes import PIPELINE

async def work():
    async with started(PipelineRunSettings(pipeline=PIPELINE)) as running:
        print(*running.pids.values(), flush=True)
        running.go()
        await asyncio.Event().wait()

asyncio.run(work())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_runner_is_killed(how: signal.Signals) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert runner.stdout is not None
    try:
        pids = [int(pid) for pid in runner.stdout.readline().split()]
        assert len(pids) == 5 and all(map(exists, pids))
        runner.send_signal(how)
        until("all processes have ended", lambda: not any(map(exists, pids)), WITHIN)
    finally:
        runner.kill()
        runner.wait()
        runner.stdout.close()
