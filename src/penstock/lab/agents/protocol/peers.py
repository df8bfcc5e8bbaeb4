"""An instance among its peers: the channels to them, the protocol with them, and who is gone.

What else its channels carry, records or nothing, is the business of its ``Carrier``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from penstock.decentralized.messages import Address, Message
from penstock.lab.agents.protocol.membership import Membership
from penstock.lab.agents.protocol.setup import AgentSetup
from penstock.lab.agents.transport.channel import Done, RecordBatch
from penstock.lab.agents.transport.handshake import Hello, Verdict
from penstock.lab.agents.transport.link import Dial, Link
from penstock.lab.agents.transport.reception import Reception
from penstock.lab.agents.transport.wire import Places, encode

Tell = Callable[[dict[str, Any]], None]
"""Says something that somebody may like to see; nobody decides by it."""


class Carrier(Protocol):
    """The instance itself: what its peers do to its work."""

    @property
    def stranded(self) -> bool:
        """Whether it can do nothing with the neighbours that it has left."""

    def settled(self) -> None:
        """Its view has changed; it has started."""

    def answered(self) -> None:
        """A peer is done with something."""

    def received(self, siblings: int, ids: bytes, done: Done) -> None:
        """Records came; ``done`` is to be called when they are."""

    def returned(self, batches: list[RecordBatch]) -> None:
        """Records whose receiver is gone: others are to get them."""


class Peers:
    """All that an instance has to do with others.

    ``all_know`` that it leaves · ``ended`` why it has to end, when it has to.
    """

    def __init__(
        self, setup: AgentSetup, carrier: Carrier, *, dial: Dial, tell: Tell, counts: Counter[str]
    ) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.all_know = asyncio.Event()
        self.links: dict[Address, Link] = {}
        self.counts = counts
        self.membership = Membership(setup.address, self._post, counts)
        self.reception = Reception(self, setup.secret, counts)
        self._setup = setup
        self._carrier = carrier
        self._dial = dial
        self._tell = tell
        self._places: Places = {setup.address: setup.place}
        self._channels: Counter[Address] = Counter()
        self._gone: dict[Address, int] = {}  # peers that were given up, and in which life

    # What the instance does.

    def join(self) -> None:
        """Listen to whoever will start it, to notice when it is gone."""
        if self._setup.creator is not None:
            self._places.update([self._setup.creator])
            self._link(self._setup.creator[0])

    def begin(self, succs: Places, preds: Places) -> None:
        """Start with a given view."""
        self._places.update(succs | preds)
        self.membership.begin(succs, preds)
        self._settle()

    def announce(self, new: Places) -> None:
        """Tell all neighbours of new siblings, which have been created, and then start them."""
        self._places.update(new)
        self.membership.duplicate(sorted(new))
        self._tell({"event": "duplicates", "count": len(new)})
        self._settle()

    def leave(self) -> None:
        """Begin to leave."""
        if self.membership.leave():
            self._tell({"event": "leaves"})
            self._settle()

    def targets(self) -> list[Link]:
        """The channels to those that may get records now."""
        return [self._link(address) for address in self.membership.targets]

    @property
    def quiet(self) -> bool:
        """Whether peers are done with all that they were sent."""
        return all(link.out.empty for link in self.links.values())

    async def run(self, *work: Coroutine[Any, Any, None]) -> str:
        """Do the agent's work until it has to end; returns the reason."""
        tasks = [asyncio.create_task(each) for each in work]
        for task in tasks:
            task.add_done_callback(self._fail)
        try:
            return await self.ended
        finally:
            for task in tasks:
                task.cancel()
            self.close()

    def end(self, why: str) -> None:
        """End it; the first reason counts."""
        if not self.ended.done():
            self.ended.set_result(why)

    def _fail(self, task: asyncio.Task[Any]) -> None:
        """A fault of ours must end the instance, not leave it half alive."""
        problem = None if task.cancelled() else task.exception()
        if problem is not None and not self.ended.done():
            self.ended.set_exception(problem)

    def close(self) -> None:
        """End all channels at once."""
        for link in self.links.values():
            link.close()
        self.reception.close()

    # What its links tell it.

    def hello(self, peer: Address) -> Hello:
        """Who it is to a peer."""
        return Hello(
            sender=self._setup.address,
            place=self._setup.place,
            life=self._setup.life,
            channel=self._channels[peer],
            role=self.membership.role_to(peer),
            receiver=peer,
        )

    def answered(self, peer: Address) -> None:
        """A peer is done with something."""
        self._carrier.answered()
        self._tidy(peer)

    def lost(self, peer: Address, life: int | None, batches: list[RecordBatch]) -> None:
        """A peer is gone: others get its records.

        An instance that has not started ends when its creator is gone. So does one that has nobody
        before or after it any more: it can do nothing, and as a rule it is itself that is cut off.
        """
        del self.links[peer]
        started, orphan = self._started, self._orphaned_by(peer)
        known = peer in self.membership.neighbours
        if known or batches or orphan:
            self.counts["peers lost"] += 1
            self._gone[peer] = life or 1
            self.reception.forget(peer)
            self._tell({"event": "lost a peer", "peer": list(peer)})
        self.membership.lost(peer)
        self._carrier.returned(batches)
        self._settle()
        if orphan:
            self.end("its creator is gone")
        elif started and known and self._carrier.stranded:
            self.end("cut off")

    def restarted(self, peer: Address, batches: list[RecordBatch]) -> None:
        """A new process is at a peer's address, and knows nothing of what it had created."""
        self._tell({"event": "met a new process", "peer": list(peer)})
        self.membership.restarted(peer)
        self._carrier.returned(batches)
        if self._orphaned_by(peer):
            self.end("its creator is gone")

    def fenced(self, by: Address) -> None:
        """A peer has given it up, and others may have got its records: it must not go on."""
        self.end(f"given up by {by}")

    # What its reception tells it.

    @property
    def life(self) -> int:
        """Which process at its address it is."""
        return self._setup.life

    def admit(self, hello: Hello) -> Verdict:
        """Whether a peer may come in; a keeper that is back and its neighbours meet by this."""
        if hello.receiver != self._setup.address:
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
        """Hand over records that came."""
        self._carrier.received(siblings, ids, done)

    def heard(self, sender: Address, message: Message, places: Places) -> None:
        """Take a message that came, and the places it names."""
        self._places.update(places)
        self.membership.heard(sender, message)
        self._settle()

    # Inside.

    @property
    def _started(self) -> bool:
        return self.membership.me.phase != "inactive"

    def _orphaned_by(self, peer: Address) -> bool:
        creator = self._setup.creator
        return not self._started and creator is not None and peer == creator[0]

    def _post(self, to: Address, message: Message) -> None:
        if to not in self._gone:
            self._link(to).message(encode(message, self._places))

    def _link(self, peer: Address) -> Link:
        if peer not in self.links:
            self._channels[peer] += 1
            self.links[peer] = Link(
                self,
                peer,
                self._places[peer],
                dial=self._dial,
                secret=self._setup.secret,
                patience=self._setup.patience,
                counts=self.counts,
            )
        return self.links[peer]

    def _settle(self) -> None:
        """After any change of the view: links to all neighbours, and to nobody else."""
        if self.membership.finished:
            self.all_know.set()
        if not self._started:
            return
        for peer in self.membership.neighbours:
            self._link(peer)
        for peer in list(self.links):
            self._tidy(peer)
        self._carrier.settled()

    def _tidy(self, peer: Address) -> None:
        """End a link that has nothing to carry and leads to nobody it needs to know of."""
        me, link = self.membership.me, self.links.get(peer)
        wanted = peer in self.membership.neighbours or peer in me.newborn
        if link is not None and link.out.empty and not wanted and self._started:
            del self.links[peer]
            link.close()
