"""A run of agents from start to end, and what was seen of it.

The runner starts hosts and first instances, says when the load begins, watches, and counts at the
end. It takes no part in any decision: what instances report to it is for the eye.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.core.errors import EngineError, InputError
from penstock.decentralized import Address, wired
from penstock.lab.agents.pipeline.operators import SINK, SOURCE, Pipeline
from penstock.lab.agents.pipeline.result import PipelineRunResult, PipelineSample
from penstock.lab.agents.pipeline.sites import HOST_ENDED, AgentSite, HostConnection, opened
from penstock.lab.agents.processes.host import AgentAction
from penstock.lab.agents.transport.wire import read_address
from penstock.workloads.cosine import Cosine

SAMPLE_SECONDS = 1.0
START_SECONDS = 60.0
QUIET_SECONDS = 20.0
GRACE = 120.0  # seconds after the load within which everything must be done
COUNTED_PER_SECOND = 200_000  # records that the sink accounts for at the end, at the very least
Watch = Callable[[PipelineSample], None]
Say = Callable[[str], None]


async def run(
    plan: PipelineRunSettings, watch: Watch = lambda _: None, say: Say = lambda _: None
) -> PipelineRunResult:
    """Run it all; whatever happens, no process is left."""
    async with started(plan, say) as running:
        await running.load(watch)
        return await running.reckon()


@asynccontextmanager
async def started(plan: PipelineRunSettings, say: Say = lambda _: None) -> AsyncIterator[Running]:
    """All first instances at work, the load not begun."""
    running = Running(plan, say)
    setup = {
        "pipeline": plan.pipeline.document(),
        "secret": secrets.token_bytes(32).hex(),
        "seed": plan.seed,
        "patience": plan.patience,
        "most": plan.most,
    }
    async with opened(plan.sites, setup, running.told) as hosts:
        await running.begin(hosts)
        yield running


class Running:
    """A run under way."""

    def __init__(self, plan: PipelineRunSettings, say: Say) -> None:
        self._plan = plan
        self._say = say
        self._hosts: list[HostConnection] = []
        self._clock = asyncio.get_running_loop().time
        self._begun: float | None = None
        self._sites: dict[Address, int] = {}  # of the instances that live
        self.pids: dict[Address, int] = {}  # the latest process of every instance there was
        self._places: dict[Address, list[Any]] = {}
        self._reports: dict[tuple[Address, int], dict[str, Any]] = {}
        self._drained: dict[int, int] = {}
        self._audit: dict[str, int] | None = None
        self._rested: set[Address] = set()
        self._problem: str | None = None
        self._changed = asyncio.Event()
        self._samples: list[PipelineSample] = []
        self.actions: list[AgentAction] = []  # what happened so far
        self._ending = False
        self._sink = 0, self._clock()
        self._rate = 0.0

    # ---- what can be done to it --------------------------------------------------------------

    async def begin(self, hosts: list[HostConnection]) -> None:
        """Start the first instances and give each its view."""
        self._hosts = hosts
        instances = wired(self._plan.pipeline.sizes, self._plan.pipeline.edges)
        names = self._plan.pipeline.names
        at: dict[int, list[list[Any]]] = {}
        for address in instances:
            place = (names.index(address.operator) + address.serial) % len(hosts)
            at.setdefault(place, []).append(list(address))
        for number, addresses in at.items():
            hosts[number].order({"start": addresses})
        await self.until(lambda: len(self._places) == len(instances), START_SECONDS, "all started")
        for address, me in instances.items():
            views = [[self._document(a) for a in sorted(view)] for view in (me.succs, me.preds)]
            self.order(address, {"begin": views})
        await self.until(lambda: len(self._reports) == len(instances), START_SECONDS, "all work")

    def order(self, who: Address, what: dict[str, Any]) -> None:
        """Tell an instance to do something; what a user of the protocol may do, for tests."""
        if who in self._sites:
            self._hosts[self._sites[who]].order({"to": list(who), "order": what})

    def kill(self, who: Address) -> None:
        """Kill an instance, as a crash would."""
        self._note(who, "killed")
        self._hosts[self._sites[who]].order({"kill": list(who)})

    def go(self) -> None:
        """Begin the load."""
        self._begun = self._clock()
        for serial in range(self._plan.pipeline.sources):
            self.order(Address(SOURCE, serial), {"go": True})

    async def load(self, watch: Watch) -> None:
        """The whole load, until the last record is done."""
        plan = self._plan
        self.go()
        limit = plan.pipeline.seconds + GRACE
        shape = Cosine(low=plan.pipeline.low, high=plan.pipeline.high, period=plan.pipeline.seconds)
        to_kill = plan.kill
        next_sample = 0.0
        while not self.drained:
            await self._wait(SAMPLE_SECONDS)
            now = self.now
            if now > limit:
                self._say(f"not all records are done {GRACE:.0f} s after the load")
                break
            if now >= next_sample:
                next_sample += SAMPLE_SECONDS
                offered = shape.rate(now) if now < plan.pipeline.seconds else 0.0
                watch(self._sample(now, offered))
            if to_kill and now >= plan.pipeline.seconds / 2 and (who := self._victim(to_kill)):
                self.kill(who)
                to_kill = None

    async def reckon(self) -> PipelineRunResult:
        """Let actions end, and count."""
        seconds = self.now
        await self._rest()
        sent = {
            serial: self._drained.get(serial, self._latest(Address(SOURCE, serial), "emitted"))
            for serial in range(self._plan.pipeline.sources)
        }
        self.order(Address(SINK, 0), {"audit": sent})
        limit = QUIET_SECONDS + sum(sent.values()) / COUNTED_PER_SECOND
        await self.until(lambda: self._audit is not None, limit, "the sink has counted")
        self._ending = True
        assert self._audit is not None
        counts: Counter[str] = Counter()
        for report in self._reports.values():
            counts.update(report["counts"])
        return PipelineRunResult(
            emitted=sum(sent.values()),
            **self._audit,
            seconds=seconds,
            counts=dict(counts),
            samples=tuple(self._samples),
            actions=tuple(self.actions),
        )

    async def until(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for something that instances tell."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    await self._wait(seconds)
        except TimeoutError:
            raise EngineError(f"not within {seconds:.0f} s: {what}") from None

    # ---- what can be seen of it --------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the load began."""
        return 0.0 if self._begun is None else self._clock() - self._begun

    @property
    def drained(self) -> bool:
        """Whether all records are done."""
        return len(self._drained) == self._plan.pipeline.sources

    def phase(self, who: Address) -> str:
        """The phase that an instance reported last; empty if it has not."""
        lives = [life for address, life in self._reports if address == who]
        return str(self._reports[who, max(lives)]["phase"]) if lives else ""

    def living(self, operator: str) -> list[Address]:
        """The instances of an operator whose processes run."""
        return sorted(address for address in self._sites if address.operator == operator)

    def told(self, site: int, said: dict[str, Any]) -> None:
        """Something that a host or an instance says."""
        self._changed.set()
        if said.get("event") == HOST_ENDED:
            self._host_ended(site)
            return
        who, life = read_address(said["from"]), said.get("life", 1)
        match said:
            case {"report": dict(report)}:
                if who.operator == SINK:
                    self._delivered(report["processed"])
                self._reports[who, life] = report
                if report["resting"] and report["phase"] == "active":
                    self._rested.add(who)
            case {"event": "started", "place": place, "pid": int(pid)}:
                self._sites[who] = site
                self._places[who] = place
                self.pids[who] = pid
                if life > 1:
                    self._note(who, "started again")
            case {"event": "ended", "code": int(code)}:
                self._sites.pop(who, None)
                if who.operator in (SOURCE, SINK) and not self._ending:
                    self._problem = f"{who} ended with code {code}; it cannot be replaced"
            case {"event": "drained", "emitted": int(emitted)}:
                self._drained[who.serial] = emitted
            case {"event": "audited"}:
                names = ("expected", "delivered", "lost", "duplicated", "unexpected")
                self._audit = {name: said[name] for name in names}
            case {"event": "duplicates", "count": int(count)}:
                self._note(who, f"duplicates {count}")
            case {"event": "lost a peer", "peer": list(peer)}:
                self._note(who, f"lost {read_address(peer)}")
            case {"event": "ends", "why": str(why)}:
                self._note(who, f"ends: {why}")
            case {"event": str(event)}:
                self._note(who, event)

    # ---- inside ------------------------------------------------------------------------------

    def _host_ended(self, site: int) -> None:
        """All instances of a site are gone with their host."""
        if self._ending:
            return
        gone = [who for who, at in self._sites.items() if at == site]
        for who in gone:
            del self._sites[who]
            self._note(who, "gone with its host")
        address = self._plan.sites[site].address
        if self._begun is None or any(who.operator in (SOURCE, SINK) for who in gone):
            self._problem = f"the host at {address} has ended; what it said is above"

    async def _wait(self, seconds: float) -> None:
        """Until something is told, or so long."""
        self._changed.clear()
        deadline = self._clock() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                await self._changed.wait()
        except TimeoutError:
            pass
        if self._problem is not None:
            raise EngineError(self._problem)

    async def _rest(self) -> None:
        """Nobody decides any more; wait until what is under way has ended."""
        deadline = self._clock() + QUIET_SECONDS
        while set(self._sites) - self._rested and self._clock() < deadline:
            for who in self._sites:
                self.order(who, {"rest": True})
            await self._wait(0.2)

    def _victim(self, kind: Literal["any", "keeper"]) -> Address | None:
        names = [operator.name for operator in self._plan.pipeline.operators]
        found = [a for name in names for a in self.living(name) if a.keeper == (kind == "keeper")]
        return random.Random(self._plan.seed).choice(found) if found else None

    def _sample(self, now: float, offered: float) -> PipelineSample:
        sizes = {o.name: len(self.living(o.name)) for o in self._plan.pipeline.operators}
        sample = PipelineSample(time=now, offered=offered, delivered=self._rate, instances=sizes)
        self._samples.append(sample)
        return sample

    def _delivered(self, records: int) -> None:
        """The rate between two reports of the sink, by when they came."""
        before, at = self._sink
        now = self._clock()
        self._rate = (records - before) / (now - at) if now > at else self._rate
        self._sink = records, now

    def _latest(self, who: Address, name: str) -> int:
        return int(self._reports.get((who, 1), {}).get(name, 0))

    def _document(self, address: Address) -> list[Any]:
        return [*address, *self._places[address]]

    def _note(self, who: Address, what: str) -> None:
        self.actions.append(AgentAction(time=round(self.now, 3), instance=str(who), what=what))


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRunSettings:
    """A run of agents.

    ``most`` instances that a site can hold · ``patience`` seconds of silence after which a peer is
    dialled again · ``kill`` which instance is killed half-way: any but a keeper, a keeper, or none.
    """

    pipeline: Pipeline = field(default_factory=Pipeline)
    sites: tuple[AgentSite, ...] = (AgentSite(),)
    seed: int = 0
    most: int = 100
    patience: float = 5.0
    kill: Literal["any", "keeper"] | None = None

    def __post_init__(self) -> None:
        first = sum(self.pipeline.sizes.values())
        if not self.sites:
            raise InputError("a run needs a site; 127.0.0.1 is one")
        if self.most * len(self.sites) < first:
            raise InputError(
                f"{first} instances at the start, but room for {self.most} at each of "
                f"{len(self.sites)} sites; give --max"
            )
        if not self.patience > 0.0:
            raise InputError(f"patience {self.patience} must be above 0 seconds")
