"""What must hold, said of a state of the model; each gives a sentence about what does not."""

from __future__ import annotations

from penstock.decentralized.check.model import Local, Model, State
from penstock.decentralized.instance import Instance
from penstock.decentralized.messages import Address

RECORDS = "no record is sent to a terminated instance"
VIEWS = "neighbours agree when all is quiet"
ENDS = "every action ends"
KEEPS = "no operator loses its last instance"
HEARD = "no message is for a terminated instance"
PROPERTIES = (RECORDS, VIEWS, ENDS, KEEPS, HEARD)

Broken = tuple[str, str]
"""A property, and how it is broken."""


def broken_now(model: Model, state: State) -> Broken | None:
    """What is broken in any state: something is sent to a terminated instance, or none is left."""
    seen = model.seen(state)
    dead = {s.instance.address for s in seen if s.instance.phase == "terminated"}
    if not dead:
        return None
    for s in seen:
        me = s.instance.address
        if s.missed:
            return HEARD, f"{me} had terminated when the message came"
        if lost := model.protocol.targets(s.instance) & dead:
            return RECORDS, f"{me} still sends records to {min(lost)}, which has terminated"
    living = {s.instance.address.operator for s in seen if s.instance.address not in dead}
    if gone := sorted(model.scenario.sizes.keys() - living):
        return KEEPS, f"no instance of {gone[0]} is left"
    return None


def broken_when_quiet(model: Model, state: State) -> Broken | None:
    """What is broken in a state in which no message is under way."""
    seen = model.seen(state)
    for s in seen:
        me = s.instance
        if me.phase == "inactive":
            return ENDS, f"{me.address} was never started, and nothing is under way"
        if me.phase in ("duplicating", "leaving"):
            return ENDS, f"{me.address} is {me.phase} for ever: nothing is under way"
    return _unheard(seen) or _disagreement(model, [s.instance for s in seen])


def broken_at_the_end(model: Model, state: State) -> Broken | None:
    """What is broken in a state in which nothing can happen any more, or was before."""
    return broken_now(model, state) or broken_when_quiet(model, state)


def _unheard(seen: list[Local]) -> Broken | None:
    """An instance terminated before all that could send it a record had told it that none comes."""
    for s in seen:
        if s.instance.phase != "terminated":
            continue
        me = s.instance.address
        for other in seen:
            sender = other.instance.address
            if me in other.ever and sender not in s.told:
                return RECORDS, f"{me} terminated while a record of {sender} could be on its way"
    return None


def _disagreement(model: Model, instances: list[Instance]) -> Broken | None:
    """Every live instance knows all live instances of its neighbours, and nobody else."""
    live = [i for i in instances if i.phase != "terminated"]
    members: dict[str, set[Address]] = {name: set() for name in model.scenario.sizes}
    for i in live:
        members[i.address.operator].add(i.address)
    for i in live:
        here = i.address.operator
        succs = set().union(*(members[b] for a, b in model.scenario.edges if a == here))
        preds = set().union(*(members[a] for a, b in model.scenario.edges if b == here))
        if i.succs != succs:
            return VIEWS, _differs(i.address, "successors", set(i.succs), succs)
        if i.preds != preds:
            return VIEWS, _differs(i.address, "predecessors", set(i.preds), preds)
    return None


def _differs(who: Address, what: str, seen: set[Address], there: set[Address]) -> str:
    names = " ".join(map(str, sorted(seen))) or "nobody"
    return f"{who} knows {names} as its {what}, there are {' '.join(map(str, sorted(there)))}"
