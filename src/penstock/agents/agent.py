"""One instance: its neighbours, its records, its trials. It knows nothing of the rest."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.agents.channel import Done, Parcel
from penstock.agents.handshake import Hello, Verdict
from penstock.agents.link import Dial, Link
from penstock.agents.membership import Membership
from penstock.agents.outbox import Clock, Outbox
from penstock.agents.reception import Reception
from penstock.agents.setup import Setup
from penstock.agents.source import Source
from penstock.agents.stage import made_stage
from penstock.agents.trial import MEASURED, Trials
from penstock.agents.wire import Places, encode
from penstock.agents.worker import Meter, Sleep
from penstock.decentralized.messages import Address, Message

Spawn = Callable[[int], Awaitable[Places]]
"""Asks the host for so many new instances of this operator; it may give fewer."""
Tell = Callable[[dict[str, Any]], None]
"""Says something that somebody may like to see; nobody decides by it."""
DRAIN_LOOK = 0.01  # seconds between two looks whether a leaving instance has nothing left


class Agent:
    """An instance of an operator, of the source or of the sink."""

    def __init__(
        self,
        setup: Setup,
        *,
        dial: Dial,
        spawn: Spawn,
        tell: Tell,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.setup = setup
        self.counts: Counter[str] = Counter()
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._dial = dial
        self._spawn = spawn
        self._tell = tell
        self._places: Places = {setup.address: setup.place}
        self._links: dict[Address, Link] = {}
        self._channels: Counter[Address] = Counter()
        self._gone: dict[Address, int] = {}  # peers that were given up, and in which life
        self._all_know = asyncio.Event()  # that this instance leaves
        address, pipeline = setup.address, setup.pipeline
        self.membership = Membership(address, self._post, self.counts)
        self.reception = Reception(self, setup.secret, self.counts)
        chance = random.Random(f"{setup.seed} {address} {setup.life}")
        self.outbox = Outbox(
            self._targets,
            self._window,
            lambda: len(self.membership.me.succs),
            clock,
            turn=chance.randrange(1 << 16),
        )
        self.meter = Meter(MEASURED * (pipeline.period or 1.0), clock)
        self.siblings = 1
        self._operator = pipeline.operator(address.operator)
        self.stage = made_stage(address, pipeline, self.outbox, clock, sleep)
        self._trials = Trials(self, self._operator, pipeline.period, chance, sleep)
        if setup.creator is not None:
            self._places.update([setup.creator])
            self._link(setup.creator[0])  # to notice when it is gone
        if setup.life > 1:
            self.begin(dict(setup.succs), dict(setup.preds))

    async def run(self) -> str:
        """Work until it has left or has to end; the reason."""
        tasks = [
            asyncio.create_task(self._work(), name="work"),
            asyncio.create_task(self._trials.run(), name="trials"),
            asyncio.create_task(self._drained(), name="drained"),
        ]
        for task in tasks:
            task.add_done_callback(self._failed)
        try:
            return await self.ended
        finally:
            for task in tasks:
                task.cancel()
            for link in self._links.values():
                link.close()
            self.reception.close()

    def begin(self, succs: Places, preds: Places) -> None:
        """Start with a given view."""
        self._places.update(succs | preds)
        self.membership.begin(succs, preds)
        self._settle()

    async def duplicate(self, count: int) -> int:
        """Create new siblings and announce them; how many."""
        new = await self._spawn(count)
        if new and self.membership.free:  # else they end with this one, which has begun to leave
            self._places.update(new)
            self.membership.duplicate(sorted(new))
            self._tell({"event": "duplicates", "count": len(new)})
            self._settle()
        return len(new)

    def leave(self) -> None:
        """Begin to leave."""
        if self.membership.leave():
            self._tell({"event": "leaves"})
            self._settle()

    async def trial(self) -> int:
        """Look at its own load and decide; what."""
        return await self._trials.once()

    def rest(self) -> None:
        """Decide nothing any more; an action that is under way goes on."""
        self._trials.rest()

    def report(self) -> dict[str, Any]:
        """How it is, for those who watch."""
        return {
            "phase": self.membership.me.phase,
            "load": round(self.meter.rate(), 1),
            "waiting": self.stage.waiting,
            "processed": self.stage.processed,
            "emitted": self.stage.emitted if isinstance(self.stage, Source) else 0,
            "resting": self._trials.resting,
            "blocked": round(self.outbox.blocked, 3),
            "siblings": self.siblings,
            "neighbours": len(self.membership.neighbours),
            "counts": dict(self.counts),
        }

    # What its links tell it.

    def hello(self, peer: Address) -> Hello:
        """Who it is to a peer."""
        return Hello(
            sender=self.setup.address,
            place=self.setup.place,
            life=self.setup.life,
            channel=self._channels[peer],
            role=self.membership.role_to(peer),
            receiver=peer,
        )

    def answered(self, peer: Address) -> None:
        """A peer is done with something."""
        self.outbox.flush()
        self._tidy(peer)

    def lost(self, peer: Address, life: int | None, parcels: list[Parcel]) -> None:
        """A peer is gone: others get its records.

        An instance that has not started ends when its creator is gone. So does one that has nobody
        before or after it any more: it can do nothing, and as a rule it is itself that is cut off.
        """
        del self._links[peer]
        creator, started = self.setup.creator, self.membership.me.phase != "inactive"
        orphan = not started and creator is not None and peer == creator[0]
        known = peer in self.membership.neighbours
        if known or parcels or orphan:
            self.counts["peers lost"] += 1
            self._gone[peer] = life or 1
            self.reception.forget(peer)
            self._tell({"event": "lost a peer", "peer": list(peer)})
        self.counts["records rerouted"] += sum(parcel.records for parcel in parcels)
        self.membership.lost(peer)
        self.outbox.put_back(parcels)
        self._settle()
        me = self.membership.me
        if orphan:
            self._end("its creator is gone")
        elif started and known and self._operator and not (me.succs and me.preds):
            self._end("cut off")

    def restarted(self, peer: Address, parcels: list[Parcel]) -> None:
        """A new process is at a peer's address."""
        self._tell({"event": "met a new process", "peer": list(peer)})
        self.counts["records rerouted"] += sum(parcel.records for parcel in parcels)
        self.membership.restarted(peer)
        self.outbox.put_back(parcels)

    def fenced(self, by: Address) -> None:
        """A peer has given it up, and others may have got its records: it must not go on."""
        self._end(f"given up by {by}")

    # What its reception tells it.

    @property
    def life(self) -> int:
        """Which process at its address it is."""
        return self.setup.life

    def admit(self, hello: Hello) -> Verdict:
        """Whether a peer may come in; a keeper that is back and its neighbours meet by this."""
        if hello.receiver != self.setup.address:
            return "stranger"
        if self._gone.get(hello.sender, 0) >= hello.life:
            return "gone"
        self._gone.pop(hello.sender, None)
        self._places[hello.sender] = hello.place
        if hello.role is not None and (self.life > 1 or hello.life > 1):
            self.membership.introduced(hello.sender, hello.role)
            self._settle()
        return "welcome"

    def received(self, sender: Address, siblings: int, ids: bytes, done: Done) -> None:
        """Records came."""
        self.siblings = max(1, siblings)
        self.meter.note(len(ids) // 8)
        self.stage.put(ids, done)

    def heard(self, sender: Address, message: Message, places: Places) -> None:
        """A message came."""
        self._places.update(places)
        self.membership.heard(sender, message)
        self._settle()

    # Inside.

    async def _work(self) -> None:
        await self.stage.run()
        if isinstance(self.stage, Source):
            self._tell({"event": "drained", "emitted": self.stage.emitted})

    def _targets(self) -> list[Link]:
        return [self._link(address) for address in self.membership.targets]

    def _window(self, receivers: int) -> float:
        """Records that a receiver may have that are not done."""
        pipeline, operator = self.setup.pipeline, self._operator
        if operator is None:
            return pipeline.in_flight * pipeline.operators[0].capacity
        return pipeline.in_flight * operator.capacity * operator.selectivity / max(1, receivers)

    def _post(self, to: Address, message: Message) -> None:
        if to not in self._gone:
            self._link(to).message(encode(message, self._places))

    def _link(self, peer: Address) -> Link:
        if peer not in self._links:
            self._channels[peer] += 1
            self._links[peer] = Link(
                self,
                peer,
                self._places[peer],
                dial=self._dial,
                secret=self.setup.secret,
                patience=self.setup.patience,
                counts=self.counts,
            )
        return self._links[peer]

    def _settle(self) -> None:
        """After any change of the view: links to all neighbours, and to nobody else."""
        if self.membership.finished:
            self._all_know.set()
        if self.membership.me.phase == "inactive":
            return
        self.stage.start()
        for peer in self.membership.neighbours:
            self._link(peer)
        for peer in list(self._links):
            self._tidy(peer)
        self.outbox.flush()

    def _tidy(self, peer: Address) -> None:
        """End a link that has nothing to carry and leads to nobody it needs to know of."""
        me, link = self.membership.me, self._links.get(peer)
        wanted = peer in self.membership.neighbours or peer in me.newborn
        if link is not None and link.out.empty and not wanted and me.phase != "inactive":
            del self._links[peer]
            link.close()

    async def _drained(self) -> None:
        """When all neighbours know that it leaves, wait until it has nothing left, and end."""
        await self._all_know.wait()
        while not (self.stage.idle and all(link.out.empty for link in self._links.values())):
            await asyncio.sleep(DRAIN_LOOK)
        await self.reception.farewell(self.setup.patience)
        self._end("left")

    def _end(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_result(why)

    def _failed(self, task: asyncio.Task[None]) -> None:
        """A fault of ours must end the instance, not leave it half alive."""
        problem = None if task.cancelled() else task.exception()
        if problem is not None and not self.ended.done():
            self.ended.set_exception(problem)
