"""The agent beside one executor: it decides on that executor's own load. Nobody else decides."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.core.errors import EngineError, InputError, PenstockError
from penstock.lab.agents.executors.load import LoadMeter, account_of
from penstock.lab.agents.executors.setup import ExecutorAgentSetup
from penstock.lab.agents.processes.agent import dialler, main
from penstock.lab.agents.processes.lines import tell
from penstock.lab.agents.protocol.peers import Peers, Tell
from penstock.lab.agents.protocol.trial import Trials
from penstock.lab.agents.transport.channel import Done, RecordBatch
from penstock.lab.agents.transport.link import Dial
from penstock.lab.agents.transport.wire import Places, read_place
from penstock.spark.split.wire import ADD, REMOVE, Address, Document, ask

Expect = Callable[[], None]
"""Tells the host that an executor will come which this agent has asked for."""


TRIES = 3  # of a wish to leave that gets no answer; all neighbours know already
PAUSE = 1.0  # seconds between two


class ExecutorAgent:
    """An instance of an operator is an executor of its application; this speaks for it.

    Records go through Kafka; between agents there are only messages.
    """

    siblings = 1  # it knows of none, and needs not: their number cancels out of the decision

    def __init__(
        self,
        setup: ExecutorAgentSetup,
        *,
        meter: LoadMeter,
        driver: ApplicationDriver,
        dial: Dial,
        expect: Expect,
        tell: Tell,
    ) -> None:
        self.setup = setup
        self.meter = meter
        self.counts: Counter[str] = Counter()
        self._driver = driver
        self._expect = expect
        self._tell = tell
        self._expected = 0  # executors that were granted and have not come
        self._arrived: Places = {}  # agents of new executors, not announced yet
        self._waiting = asyncio.get_running_loop().call_later(0.0, self._wait_no_more)
        self.peers = Peers(setup.me, self, dial=dial, tell=tell, counts=self.counts)
        self.membership, self.reception = self.peers.membership, self.peers.reception
        chance = random.Random(f"{setup.settings.seed} {setup.me.address} {setup.me.life}")
        self._trials = Trials(self, setup.settings.policy, setup.settings.period, chance)
        self.peers.join()
        if setup.me.address.keeper:  # it knows the keepers next to it, which are always there
            self.peers.begin(dict(setup.me.succs), dict(setup.me.preds))

    async def run(self) -> str:
        """Work until it has left or has to end; returns the reason."""
        return await self.peers.run(self._sample(), self._trials.run(), self._depart())

    def came(self, new: Places, *, asked: bool) -> None:
        """Agents stand beside new executors: those it ``asked`` for, or some that nobody did."""
        self._arrived.update(new)
        if asked:
            self._expected = max(0, self._expected - len(new))
        self._announce()

    def rest(self) -> None:
        """Decide nothing any more; an action that is under way goes on."""
        self._trials.rest()

    def report(self) -> dict[str, Any]:
        """How it is, for those who watch."""
        load = self.meter.load()
        return {
            "phase": self.membership.me.phase,
            "load": None if load is None else round(load, 3),
            "resting": self._trials.resting and not self._expected and not self._arrived,
            "neighbours": len(self.membership.neighbours),
            "counts": dict(self.counts),
        }

    # What it decides by, and what it can do.

    @property
    def free(self) -> bool:
        """Whether it may begin an action; not while executors that it asked for are to come."""
        return self.membership.free and not self._expected and not self._arrived

    @property
    def may_leave(self) -> bool:
        """Kafka takes everything, so nobody is held back: a low load is a low load."""
        return not self.setup.me.address.keeper

    def load(self) -> float | None:
        """The share of its quota that its executor used."""
        load = self.meter.load()
        self.counts["trials"] += 1
        self.counts["trials without a load"] += load is None
        return load

    async def duplicate(self, count: int) -> int:
        """Ask for executors; siblings are announced when they have come. How many were granted."""
        granted = 0
        for _ in range(count):
            self.counts["wishes"] += 1
            try:
                await self._driver.add(str(self.setup.me.address))
            except PenstockError as refusal:
                self._refused("additions", refusal)
                continue
            granted += 1
            self._expected += 1
            self._expect()
        if granted:
            self._tell({"event": f"is granted {granted}"})
            self._waiting.cancel()
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(self.setup.settings.arrival, self._wait_no_more)
        return granted

    def leave(self) -> None:
        """Begin to leave; its executor goes when all neighbours know."""
        self.peers.leave()

    # What its peers do to it.

    @property
    def stranded(self) -> bool:
        """Whether nobody is left before or after it where there must be somebody."""
        me = self.membership.me
        return (self.setup.above and not me.preds) or (self.setup.below and not me.succs)

    def settled(self) -> None:
        """An action may have ended, so that the next can begin."""
        self._announce()

    def answered(self) -> None:
        """Do nothing: no work waits for an answer."""

    def received(self, siblings: int, ids: bytes, done: Done) -> None:
        """No records go this way; whoever sends some is rid of them."""
        self.counts["records dropped"] += len(ids) // 8
        done()

    def returned(self, batches: list[RecordBatch]) -> None:
        """No records were sent, so none come back."""

    # Inside.

    def _refused(self, wishes: str, refusal: PenstockError) -> None:
        self.counts[f"refused {wishes}"] += 1
        self._tell({"event": "refused", "why": str(refusal)})

    def _announce(self) -> None:
        """All that were asked for are announced together, when all have come."""
        if self._arrived and not self._expected and self.membership.free:
            new, self._arrived = self._arrived, {}
            self.peers.announce(new)

    def _wait_no_more(self) -> None:
        """Some have not come; if they come later, the keeper announces them."""
        if self._expected:
            self.counts["executors that did not come in time"] += self._expected
            self._expected = 0
            self._announce()

    async def _sample(self) -> None:
        while True:
            self.meter.sample()
            await asyncio.sleep(self.meter.every)

    async def _depart(self) -> None:
        """When all neighbours know that it leaves, its executor is decommissioned."""
        await self.peers.all_know.wait()
        try:
            await self._driver.remove(str(self.setup.me.address), self.setup.executor)
        except PenstockError as refusal:  # the executor stays, and gets another agent
            self._refused("departures", refusal)
            self.peers.end("its executor stays")
            return
        while not self.peers.quiet:
            await asyncio.sleep(0.01)
        await self.reception.farewell(self.setup.me.patience)
        self.peers.end("left")


class ApplicationDriver(Protocol):
    """Carries out ±1, or raises with the reason."""

    async def add(self, who: str) -> None:
        """Start one executor more."""

    async def remove(self, who: str, executor: str) -> None:
        """This very executor leaves when its tasks are done, and is not replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredDriver:
    """A driver at the other end of a socket (``penstock.spark.split.member``).

    ``key`` what both sides know, where others can reach the address.
    """

    address: Address
    key: str | None = None

    async def add(self, who: str) -> None:
        """Ask once: an answer that is lost must not become two executors."""
        await self._ask({"ask": ADD, "who": who})

    async def remove(self, who: str, executor: str) -> None:
        """Ask until there is an answer: asked twice it is done once."""
        for left in reversed(range(TRIES)):
            try:
                await self._ask({"ask": REMOVE, "who": who, "executor": executor})
                return
            except EngineError:
                if not left:
                    raise
                await asyncio.sleep(PAUSE)

    async def _ask(self, question: Document) -> None:
        try:
            await asyncio.to_thread(ask, self.address, question, key=self.key)
        except PenstockError:
            raise
        except Exception as error:  # whatever it is, it is no yes
            raise InputError(f"no wish could be made at {self.address}: {error}") from error


class ExecutorAgentProcess:
    """The process of one agent: takes orders, and tells the host which executors will come.

    ``python -m penstock.lab.agents.executors.agent``, started by a host.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        setup = ExecutorAgentSetup.of(document)
        clock = asyncio.get_running_loop().time
        self.agent = ExecutorAgent(
            setup,
            meter=LoadMeter(account_of(setup.account), setup.settings.window, clock),
            driver=WiredDriver(address=Address.parse(setup.driver), key=setup.key),
            dial=dialler(setup.me.place),
            expect=lambda: tell({"expect": 1}),
            tell=tell,
        )

    def follow(self, order: dict[str, Any]) -> None:
        """Do what the host says."""
        match order:
            case {"came": list(places), "asked": bool(asked)}:
                self.agent.came(dict(map(read_place, places)), asked=asked)


if __name__ == "__main__":
    main(ExecutorAgentProcess)
