"""The scaling protocol as a pure state machine. [belkhiria19, §4.2]

An instance and what happens to it in, the instance afterwards and what it sends out. Nothing here
decides *when* to scale; that is the business of a policy.

The fields of ``ScalingProtocol`` are the places where the pseudo-code cannot stay as it is printed.
Their defaults repair it; ``literal.py`` has what is printed, so that the checker can show of every
single one what goes wrong. See docs/policies/decentralized.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.decentralized.instance import Instance, Phase
from penstock.decentralized.messages import (
    DELETION_ACK,
    DUPLICATION_ACK,
    NOBODY,
    Address,
    Addresses,
    Deletion,
    DeletionAck,
    Duplication,
    DuplicationAck,
    Message,
    Role,
    Sends,
    Start,
)

Step = tuple[Instance, Sends]
"""The instance afterwards, and what it sends."""


def is_free(me: Instance) -> bool:
    """Only an active instance without an action under way may begin one."""
    return me.phase == "active"


def as_stated(me: Instance, sender: Address, message: Duplication | Deletion) -> Role | None:
    """The sender's role is what the message says."""
    return message.role


def safe_targets(me: Instance) -> Addresses:
    """Who may get records: successors; of a leaving instance only keepers, which never leave.

    A successor that has acknowledged a deletion forgets the leaving instance, so it would leave
    later without telling it. An instance that has not started sends nothing.
    """
    if me.phase in ("active", "duplicating"):
        return me.succs
    if me.phase == "leaving":
        return frozenset(s for s in me.succs if s.keeper)
    return NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingProtocol:
    """How an instance begins an action, and what it does with a message.

    ``free`` whether it may begin now · ``role`` what a sender is to it, ``None`` if it cannot
    tell · ``targets`` whom it may send records to · ``hands_down`` whether new siblings start with
    neighbours that left knowing them · ``alone`` whether an action of an instance without
    neighbours, which has no acknowledgement to wait for, ends at once.
    """

    free: Callable[[Instance], bool] = is_free
    role: Callable[[Instance, Address, Duplication | Deletion], Role | None] = as_stated
    targets: Callable[[Instance], Addresses] = safe_targets
    hands_down: bool = True
    alone: bool = True

    def duplicate(self, me: Instance, new: Sequence[Address]) -> Step:
        """Announce new siblings; they are started when all neighbours know them. [Alg. 4]"""
        if not self.free(me):
            raise InputError(f"{me.address} is {me.phase} and cannot begin a duplication")
        if not new:
            return me, ()
        me = Instance(
            address=me.address,
            phase="duplicating",
            succs=me.succs,
            preds=me.preds,
            awaited=me.neighbours,
            newborn=tuple(new),
            start=Start(succs=me.succs, preds=me.preds),
            unaware=me.succs | me.preds,
        )
        if self.alone and not me.neighbours:
            return _started(me)
        siblings = frozenset(new)
        return me, _told(
            me,
            to_succs=Duplication(role="predecessor", new=siblings),
            to_preds=Duplication(role="successor", new=siblings),
        )

    def leave(self, me: Instance) -> Step:
        """Tell all neighbours; terminate when they all know. A keeper stays. [Alg. 8 and 11]"""
        if not self.free(me):
            raise InputError(f"{me.address} is {me.phase} and cannot begin to leave")
        if me.address.keeper:
            return me, ()
        if self.alone and not me.neighbours:
            return _terminated(me), ()
        me = Instance(
            address=me.address,
            phase="leaving",
            succs=me.succs,
            preds=me.preds,
            awaited=me.neighbours,
            newborn=me.newborn,
            start=me.start,
            unaware=me.unaware,
        )
        return me, _told(
            me, to_succs=Deletion(role="predecessor"), to_preds=Deletion(role="successor")
        )

    def receive(self, me: Instance, sender: Address, message: Message) -> Step:
        """What a message does. A terminated instance hears nothing any more."""
        if me.phase == "terminated":
            return me, ()
        match message:
            case Duplication():
                return self._grown(me, sender, message), ((sender, DUPLICATION_ACK),)
            case Deletion():
                return self._shrunk(me, sender, message), ((sender, DELETION_ACK),)
            case DuplicationAck():
                me = _acknowledged(me, sender)
                return (me, ()) if me.awaited else _started(me)
            case DeletionAck():
                me = _acknowledged(me, sender)
                return (me if me.awaited else _terminated(me)), ()
            case Start():
                return _begun(me, message), ()

    def _grown(self, me: Instance, sender: Address, message: Duplication) -> Instance:
        """The new ones are known; an inactive instance keeps them until it starts. [Alg. 5]"""
        role, new = self.role(me, sender, message), message.new
        if role is None:
            return me
        succs, preds = (new, NOBODY) if role == "successor" else (NOBODY, new)
        start = me.start
        if start is not None:
            start = Start(succs=start.succs | succs, preds=start.preds | preds)
        return Instance(
            address=me.address,
            phase=me.phase,
            succs=me.succs | succs,
            preds=me.preds | preds,
            gone=me.gone,
            awaited=me.awaited,
            newborn=me.newborn,
            start=start,
            unaware=me.unaware,
        )

    def _shrunk(self, me: Instance, sender: Address, message: Deletion) -> Instance:
        """The sender is forgotten; an inactive instance notes it for its start. [Alg. 9]

        A neighbour that left after it had acknowledged the newborn tells them as well, and waits
        for their answer. They start with it: if they did not know it, they could leave without a
        word to it, and it would wait for ever.
        """
        if self.role(me, sender, message) is None:
            return me
        left, start = {sender}, me.start
        if start is not None and (sender in me.unaware or not self.hands_down):
            start = Start(succs=start.succs - left, preds=start.preds - left)
        return Instance(
            address=me.address,
            phase=me.phase,
            succs=me.succs - left,
            preds=me.preds - left,
            gone=me.gone | left if me.phase == "inactive" else me.gone,
            awaited=me.awaited,
            newborn=me.newborn,
            start=start,
            unaware=me.unaware,
        )


def _told(me: Instance, *, to_succs: Message, to_preds: Message) -> Sends:
    """Every neighbour is told. [Alg. 1]"""
    return (
        *((succ, to_succs) for succ in sorted(me.succs)),
        *((pred, to_preds) for pred in sorted(me.preds)),
    )


def _acknowledged(me: Instance, sender: Address) -> Instance:
    """One acknowledgement less is missing."""
    return Instance(
        address=me.address,
        phase=me.phase,
        succs=me.succs,
        preds=me.preds,
        awaited=me.awaited - 1,
        newborn=me.newborn,
        start=me.start,
        unaware=me.unaware - {sender},
    )


def _started(me: Instance) -> Step:
    """All neighbours know the new siblings: they begin. [Alg. 6]"""
    sends = () if me.start is None else tuple((sibling, me.start) for sibling in me.newborn)
    phase: Phase = "active" if me.phase == "duplicating" else me.phase
    return Instance(address=me.address, phase=phase, succs=me.succs, preds=me.preds), sends


def _begun(me: Instance, message: Start) -> Instance:
    """A new instance knows what its creator hands down and what it heard itself. [Alg. 7]"""
    return Instance(
        address=me.address,
        phase="active",
        succs=(message.succs | me.succs) - me.gone,
        preds=(message.preds | me.preds) - me.gone,
    )


def _terminated(me: Instance) -> Instance:
    """The end. What was in its queue has gone to its targets before. [Alg. 10]"""
    return Instance(address=me.address, phase="terminated")
