"""Steps message by message, with the protocol itself; for up to some thousand instances."""

from __future__ import annotations

from penstock.decentralized.draws import Floats, draw, salt
from penstock.decentralized.instance import Instance, siblings_of, wired
from penstock.decentralized.messages import (
    Address,
    DeletionAck,
    DuplicationAck,
    Message,
    Sends,
)
from penstock.decentralized.protocol import ScalingProtocol
from penstock.decentralized.steps import PLACES, Course, Recorder, Setup

WORKING = ("active", "duplicating", "leaving")
Messages = list[tuple[Address, Address, Message]]
"""Senders, receivers and messages, in the order of sending."""


def simulate(setup: Setup, load: Floats, seed: int) -> Course:
    """A course of as many steps as the load has; every message is sent and received."""
    engine = _Engine(setup, load, seed)
    for step in range(len(load)):
        engine.advance(step)
    return engine.recorder.course()


class _Engine:
    """All instances, and the messages under way."""

    def __init__(self, setup: Setup, load: Floats, seed: int) -> None:
        self.setup = setup
        self.protocol = ScalingProtocol()
        self.recorder = Recorder(setup, load)
        self.names = [f"O{number}." for number in range(1, setup.operators + 1)]
        self.number = {name: number for number, name in enumerate(self.names)}
        edges = list(zip(self.names, self.names[1:], strict=False))
        self.instances = wired(dict.fromkeys(self.names, setup.instances), edges)
        self.serials = dict.fromkeys(self.names, setup.instances)
        self.begun = {  # the step that trials are counted from
            address: setup.offset(seed, self.number[address.operator], address.serial)
            for address in self.instances
        }
        self.salts = {name: salt(seed, number) for name, number in self.number.items()}
        self.sent: Messages = []

    def advance(self, step: int) -> None:
        """One step, in the order that ``steps`` describes."""
        counts = self.recorder.counts
        arrived, self.sent = self.sent, []
        self._receive(arrived, step)
        known = [self._known(number) for number in range(self.setup.operators)]
        counts["known"][step] = known
        for instance in self.instances.values():
            if instance.phase in WORKING:
                counts["instances"][step, self.number[instance.address.operator]] += 1
        first: Messages = []
        for address, change in self._decisions(step, known):
            sends = self._begin(address, change, step)
            first += [(address, to, message) for to, message in sends]
        self._receive(first, step)

    def _known(self, number: int) -> int:
        """n_t: what a neighbour knows; the keeper before, or after the first operator."""
        neighbour = self.instances[Address(self.names[number - 1 if number else 1], 0)]
        return siblings_of(Address(self.names[number], 0), neighbour)

    def _decisions(self, step: int, known: list[int]) -> list[tuple[Address, int]]:
        """The decisions of all whose turn it is, on what they see before any has begun."""
        setup, found = self.setup, []
        for address in sorted(self.instances):
            since = step - self.begun.get(address, step)
            turn = since > 0 and since % setup.period == 0
            if not turn or not self.protocol.free(self.instances[address]):
                continue
            number = self.number[address.operator]
            self.recorder.counts["tried"][step, number] += 1
            share = float(self.recorder.load[step, number]) / known[number]
            luck = draw(self.salts[address.operator], step * PLACES + address.serial)
            policy = setup.policies[number]
            change = policy.decide(share, setup.capacity, known[number], luck)
            if change > 0 or (change < 0 and not address.keeper):
                found.append((address, change))
        return found

    def _begin(self, address: Address, change: int, step: int) -> Sends:
        name, number = address.operator, self.number[address.operator]
        me = self.instances[address]
        if change < 0:
            self.instances[address], sends = self.protocol.leave(me)
            self.recorder.counts["left"][step, number] += 1
            return sends
        new = [Address(name, self.serials[name] + i) for i in range(change)]
        self.serials[name] += change
        for born in new:
            self.instances[born] = Instance(address=born, phase="inactive")
        self.instances[address], sends = self.protocol.duplicate(me, new)
        self.recorder.counts["grown"][step, number] += change
        return sends

    def _receive(self, arrived: Messages, step: int) -> None:
        """Every message in order; each counts for the operator whose scaling it belongs to."""
        counts = self.recorder.counts["messages"][step]
        for sender, to, message in arrived:
            acted = to if isinstance(message, DuplicationAck | DeletionAck) else sender
            counts[self.number[acted.operator]] += 1
            before = self.instances[to]
            after, sends = self.protocol.receive(before, sender, message)
            self.instances[to] = after
            if after.phase == "terminated":
                del self.instances[to], self.begun[to]
            elif before.phase == "inactive" and after.phase == "active":
                self.begun[to] = step
            self.sent += [(to, receiver, answer) for receiver, answer in sends]
