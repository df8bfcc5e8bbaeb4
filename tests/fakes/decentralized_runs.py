"""Random runs of the scaling protocol with real records, message by message."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from penstock.decentralized import Address, Instance, ScalingProtocol, wired
from penstock.decentralized.messages import Message

Edges = Sequence[tuple[str, str]]
Record = int


class Run:
    """Instances, first-in-first-out channels, and records that pass through them.

    Every record goes from an instance to one instance of each successor operator.
    """

    def __init__(
        self, sizes: Mapping[str, int], edges: Edges, seed: int, protocol: ScalingProtocol
    ) -> None:
        self.protocol = protocol
        self.edges = edges
        self.instances = wired(sizes, edges)
        self.serials = dict(sizes)
        self.channels: dict[tuple[Address, Address], deque[Message | Record]] = {}
        self.random = random.Random(seed)
        self.messages = 0
        self.expected_messages = 0
        self.begun = 0
        self.records = 0
        self.stored: dict[Address, list[Record]] = {}  # by instances that have not started
        self.arrived: Counter[tuple[str, Record]] = Counter()  # at operators without successors
        self.lost: list[str] = []

    # ---- what can happen ---------------------------------------------------------------------

    def free(self) -> list[Address]:
        return [a for a, i in self.instances.items() if self.protocol.free(i)]

    def duplicate(self, who: Address, count: int) -> None:
        me = self.instances[who]
        new = []
        for _ in range(count):
            new.append(Address(who.operator, self.serials[who.operator]))
            self.serials[who.operator] += 1
        self.expected_messages += 2 * me.neighbours + count
        for address in new:
            self.instances[address] = Instance(address=address, phase="inactive")
        self._take(who, *self.protocol.duplicate(me, new))
        self.begun += 1

    def leave(self, who: Address) -> None:
        me = self.instances[who]
        self.expected_messages += 0 if who.keeper else 2 * me.neighbours
        self._take(who, *self.protocol.leave(me))
        self.begun += 1

    def deliver(self) -> None:
        sender, who = self.random.choice(sorted(p for p, q in self.channels.items() if q))
        item = self.channels[sender, who].popleft()
        me = self.instances[who]
        if me.phase == "terminated":
            self.lost.append(f"{item} of {sender} for {who}")
        elif isinstance(item, int):
            self._process(who, item)
        else:
            self.messages += 1
            self._take(who, *self.protocol.receive(me, sender, item))

    def emit(self) -> None:
        """A record comes into the pipeline, at an instance of every source that may send."""
        self.records += 1
        targets = {b for _, b in self.edges}
        for operator in self.serials:
            if operator not in targets:
                ready = [
                    a
                    for a, i in self.instances.items()
                    if a.operator == operator and i.phase in ("active", "duplicating")
                ]
                self._process(self.random.choice(sorted(ready)), self.records)

    @property
    def busy(self) -> bool:
        return any(self.channels.values())

    def drain(self) -> None:
        while self.busy:
            self.deliver()

    # ---- what must be ------------------------------------------------------------------------

    def paths(self) -> dict[str, int]:
        """How often every record comes to each operator without successors."""
        sources = set(self.serials) - {b for _, b in self.edges}
        counts = {name: int(name in sources) for name in self.serials}
        for name in sorted(self.serials):  # names are in topological order
            counts[name] += sum(counts[a] for a, b in self.edges if b == name)
        ends = set(self.serials) - {a for a, _ in self.edges}
        return {name: counts[name] for name in ends}

    # ---- inside ------------------------------------------------------------------------------

    def _take(self, who: Address, me: Instance, sends: Sequence[tuple[Address, Message]]) -> None:
        started = self.instances[who].phase == "inactive" and me.phase == "active"
        self.instances[who] = me
        for to, message in sends:
            self.channels.setdefault((who, to), deque()).append(message)
        if started:
            for record in self.stored.pop(who, []):
                self._process(who, record)

    def _process(self, who: Address, record: Record) -> None:
        me = self.instances[who]
        if me.phase == "inactive":
            self.stored.setdefault(who, []).append(record)
            return
        targets = self.protocol.targets(me)
        below = [b for a, b in self.edges if a == who.operator]
        if not below:
            self.arrived[who.operator, record] += 1
        for operator in below:
            to = self.random.choice(sorted(t for t in targets if t.operator == operator))
            self.channels.setdefault((who, to), deque()).append(record)


def random_run(
    sizes: Mapping[str, int],
    edges: Edges,
    seed: int,
    *,
    actions: int,
    protocol: ScalingProtocol | None = None,
) -> Run:
    """So many actions, at random moments of a random schedule; then all that is under way."""
    run = Run(sizes, edges, seed, protocol or ScalingProtocol())
    eager = run.random.random()  # how often something new happens while messages are under way
    while run.begun < actions:
        free = run.free()
        if run.busy and (not free or run.random.random() > eager):
            run.deliver()
            continue
        run.emit()
        who = run.random.choice(sorted(free))
        if run.random.random() < 0.5 and not who.keeper:
            run.leave(who)
        else:
            run.duplicate(who, run.random.randint(1, 3))
    run.emit()
    run.drain()
    return run
