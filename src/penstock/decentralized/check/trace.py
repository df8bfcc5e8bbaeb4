"""A path through the states, told so that a person can follow it."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.decentralized.check.explore import Exploration, enabled
from penstock.decentralized.check.model import Local, Model, Move, State
from penstock.decentralized.check.scenarios import Duplicate
from penstock.decentralized.instance import Instance
from penstock.decentralized.messages import (
    Address,
    Deletion,
    DeletionAck,
    Duplication,
    DuplicationAck,
    Message,
    Start,
)


def told(found: Exploration) -> list[str]:
    """A sentence for every step to the state that is broken."""
    steps = zip(found.path, found.path[1:], strict=False)
    return [_step(found.model, before, after) for before, after in steps]


def names(addresses: Iterable[Address]) -> str:
    """Addresses in order, or that there is none.

    >>> names({Address("B", 1), Address("B", 0)}), names(())
    ('B0 B1', 'nobody')
    """
    return " ".join(map(str, sorted(addresses))) or "nobody"


def _step(model: Model, before: State, after: State) -> str:
    for number, move in enabled(model, before):
        if model.after(before, number, move) == after:
            if number < model.width:
                return _beginning(model, before[number], move)
            return _receipt(model, before, number, move)
    raise AssertionError("no transition leads from one state of the path to the next")


def _beginning(model: Model, number: int, move: Move) -> str:
    local = _local(model, number)
    who, action = local.instance.address, local.program[0]
    tells = f"tells {names(model.channels[c - model.width][1] for c, _ in move.sends)}"
    if isinstance(action, Duplicate):
        return f"{who} creates {names(a for a, _ in action.new)} and {tells}"
    return f"{who} decides to leave and {tells}"


def _receipt(model: Model, state: State, channel: int, move: Move) -> str:
    sender = model.channels[channel - model.width][0]
    message = model.messages[model.contents[state[channel]][0]][0]
    before = _local(model, state[model.receivers[channel]]).instance
    after = _local(model, move.local).instance
    if before.phase == "terminated":
        return f"{before.address} has terminated and misses the {_noun(message)} of {sender}"
    return f"{before.address} {_reaction(before, after, sender, message, bool(move.sends))}"


def _reaction(
    before: Instance, after: Instance, sender: Address, message: Message, answers: bool
) -> str:
    if isinstance(message, Start):
        return f"is started by {sender}: successors {names(after.succs)}, " + (
            f"predecessors {names(after.preds)}"
        )
    if isinstance(message, Duplication | Deletion):
        asleep = " before its start" if before.phase == "inactive" else ""
        news = names(message.new) if isinstance(message, Duplication) else "its end"
        does = "acknowledges" if after != before else "makes nothing of it and acknowledges"
        return f"hears{asleep} from its {message.role} {sender} of {news}; {does}"
    has = f"has the {_noun(message)} of {sender}"
    if after.phase == "terminated":
        return f"{has} and terminates"
    if answers:
        return f"{has} and starts {names(before.newborn)}"
    return f"{has}, {after.awaited} to come" if after.awaited > 0 else has


def _noun(message: Message) -> str:
    return {
        Duplication: "duplication",
        Deletion: "deletion",
        DuplicationAck: "acknowledgement",
        DeletionAck: "acknowledgement",
        Start: "start",
    }[type(message)]


def _local(model: Model, number: int) -> Local:
    local = model.locals[number]
    if local is None:
        raise AssertionError("an instance that does not exist cannot act")
    return local
