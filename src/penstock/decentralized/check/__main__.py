"""Prints the report of the checker; a path to a broken state is told step by step."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

from penstock.decentralized.check import Refutation, Report, Sweep, check
from penstock.decentralized.check.explore import Exploration, enabled
from penstock.decentralized.check.model import Local, Model, Move, State
from penstock.decentralized.check.properties import PROPERTIES
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


def lines(report: Report) -> Iterator[str]:
    """The report as text."""
    yield "The protocol. Chains of one to three operators, one or two instances each:"
    yield from (f"  {name}" for name in PROPERTIES)
    yield ""
    for sweep in report.sweeps:
        yield from _sweep(sweep)
    added = "all hold" if report.deviation is None else f"BROKEN: {report.deviation}"
    yield f"  decisions add up to what is missing, on a grid of loads: {added}"
    yield ""
    yield "The pseudo-code. One place as printed at a time, everything else repaired."
    for refutation in report.refutations:
        yield from _refutation(refutation)
    for fault, wrong in report.wrong_decisions:
        yield ""
        yield f"{fault.where}: {fault.says}"
        yield f"  {wrong if wrong is not None else 'NOT REFUTED'}"
    yield ""
    yield "passed" if report.holds else "FAILED"


def _sweep(sweep: Sweep) -> Iterator[str]:
    verdict = "all hold" if sweep.broken is None else "BROKEN"
    yield (
        f"  {sweep.title}: {sweep.scenarios:,} scenarios, {sweep.states:,} states, "
        f"{sweep.ends:,} ends: {verdict}"
    )
    if sweep.broken is not None:
        yield from _trace(sweep.broken)


def _refutation(found: Refutation) -> Iterator[str]:
    yield ""
    yield f"{found.fault.where}: {found.fault.says}"
    if found.shortest is None:
        yield f"  NOT REFUTED by {found.fault.actions} actions, {found.states:,} states"
        return
    steps = len(found.shortest.path) - 1
    yield f"  shortest of all traces: {steps} steps, {found.states:,} states searched"
    yield from _trace(found.shortest)


def _trace(found: Exploration) -> Iterator[str]:
    yield f"  {found.model.scenario}"
    for number, sentence in enumerate(told(found), 1):
        yield f"  {number:4}  {sentence}"
    if found.broken is not None:
        name, why = found.broken
        yield f"     ⇒  broken: {name}: {why}"


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


def main() -> int:
    """Exit code 0 when the protocol passes and the pseudo-code is refuted, 1 otherwise."""
    begun = time.process_time()
    report = check()
    text = "\n".join(lines(report))
    sys.stdout.write(f"{text} in {time.process_time() - begun:.0f} s of CPU\n")
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
