"""The protocol in one instance, also when neighbours crash. [belkhiria19, §4.2]

The paper's nodes do not fail. Here a neighbour that is gone counts as one that has left and has
acknowledged what it was asked; one that came back as a new process, which knows nothing, is asked
again. Nothing here sends or waits; an instance does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from penstock.decentralized import Address, Instance, ScalingProtocol
from penstock.decentralized.messages import (
    DELETION_ACK,
    DUPLICATION_ACK,
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


class Membership:
    """What an instance knows of its neighbours, and the action that it has under way.

    ``send`` gives a message to a channel. It begins as an instance that has not started.
    """

    def __init__(
        self,
        address: Address,
        send: Callable[[Address, Message], None],
        counts: Counter[str],
    ) -> None:
        self.me = Instance(address=address, phase="inactive")
        self.finished = False  # all neighbours know that it leaves
        self._protocol = ScalingProtocol()
        self._send = send
        self._counts = counts
        self._asked: dict[Address, Message] = {}

    @property
    def free(self) -> bool:
        """Whether it may begin an action."""
        return self._protocol.free(self.me)

    @property
    def targets(self) -> list[Address]:
        """Who may get records now.

        Where no keeper is left, a leaving instance sends to whom it knows. One of them may leave
        without a word to it; then it is lost, and others get its records.
        """
        found = self._protocol.targets(self.me)
        return sorted(found or (self.me.succs if self.me.phase == "leaving" else found))

    @property
    def neighbours(self) -> Addresses:
        """All it knows; of an instance that has not started, those announced so far."""
        return self.me.succs | self.me.preds

    def role_to(self, peer: Address) -> Role | None:
        """What it is to a peer; ``None`` if nothing, or if the peer knows that it leaves."""
        if self.me.phase == "leaving" and peer not in self._asked:
            return None
        if peer in self.me.succs:
            return "predecessor"
        return "successor" if peer in self.me.preds else None

    def begin(self, succs: Iterable[Address], preds: Iterable[Address]) -> None:
        """Start with a given view, as first instances do, and keepers that are back."""
        self.me = Instance(address=self.me.address, succs=frozenset(succs), preds=frozenset(preds))

    def duplicate(self, new: Sequence[Address]) -> None:
        """Announce new siblings, which have been created."""
        self._counts["messages by the formula"] += 2 * self.me.neighbours + len(new)
        self._act(*self._protocol.duplicate(self.me, new))

    def leave(self) -> bool:
        """Begin to leave; a keeper does not."""
        if self.me.address.keeper:
            return False
        self._counts["messages by the formula"] += 2 * self.me.neighbours
        self._act(*self._protocol.leave(self.me))
        return True

    def heard(self, sender: Address, message: Message) -> None:
        """Take a message that has come."""
        match message:
            case DuplicationAck() | DeletionAck():
                if self._asked.pop(sender, None) is None:
                    self._counts["stale messages"] += 1  # of a process that was given up
                    return
            case Start() if self.me.phase != "inactive":
                self._counts["stale messages"] += 1
                return
        self._take(*self._protocol.receive(self.me, sender, message))

    def lost(self, peer: Address) -> None:
        """A peer is gone: as if it had left, and had acknowledged what it was asked."""
        if peer in self.neighbours or self.me.phase == "inactive":
            role: Role = "successor" if peer in self.me.succs else "predecessor"
            self.me, _ = self._protocol.receive(self.me, peer, Deletion(role=role))
        if peer in self._asked:
            self.heard(peer, DELETION_ACK if self.me.phase == "leaving" else DUPLICATION_ACK)

    def restarted(self, peer: Address) -> None:
        """A new process has taken a peer's place: ask it again what its predecessor owes."""
        if peer in self._asked:
            self._counts["messages repeated"] += 1
            self._send(peer, self._asked[peer])

    def introduced(self, peer: Address, role: Role) -> None:
        """A neighbour tells this new process of itself."""
        message = Duplication(role=role, new=frozenset({peer}))
        self.me, _ = self._protocol.receive(self.me, peer, message)

    def _act(self, me: Instance, sends: Sends) -> None:
        self._asked = {
            to: message for to, message in sends if isinstance(message, Duplication | Deletion)
        }
        self._take(me, sends)

    def _take(self, me: Instance, sends: Sends) -> None:
        if me.phase == "terminated":
            self.finished = True  # what is in its queue still goes to keepers, as while it leaves
        else:
            self.me = me
        for to, message in sends:
            self._counts["messages"] += 1
            self._send(to, message)
