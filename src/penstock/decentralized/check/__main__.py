"""Prints the report of the checker."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from penstock.decentralized.check import Refutation, Report, Sweep, check
from penstock.decentralized.check.explore import Exploration
from penstock.decentralized.check.properties import PROPERTIES
from penstock.decentralized.check.trace import told


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


def main() -> int:
    """Exit code 0 when the protocol passes and the pseudo-code is refuted, 1 otherwise."""
    begun = time.process_time()
    report = check()
    text = "\n".join(lines(report))
    sys.stdout.write(f"{text} in {time.process_time() - begun:.0f} s of CPU\n")
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
