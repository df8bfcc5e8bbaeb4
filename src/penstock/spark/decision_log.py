"""Decisions as log lines that a person reads: news once, and a heartbeat when there is none."""

from __future__ import annotations

import logging
import re

from penstock.core.lag import lag_seconds
from penstock.core.loop import Decision
from penstock.core.model import Snapshot

log = logging.getLogger("penstock")

NOISE = ("tolerance",)  # guards that come and go around the present size: no news


class DecisionLog:
    """Every decision at level DEBUG; at INFO what is new, and one line per ``heartbeat`` seconds.

    New is a change of size, another target or another reason why the size stays; figures that
    move a little are not.
    """

    def __init__(self, heartbeat: float) -> None:
        self._heartbeat = heartbeat
        self._said: object = None
        self._when = float("-inf")

    def say(self, decision: Decision) -> None:
        """Log one decision."""
        now, gist = decision.seen.time, gist_of(decision)
        if decision.applied or gist != self._said:
            level, line = logging.INFO, line_of(decision)
        elif now - self._when >= self._heartbeat:
            level, line = logging.INFO, f"{line_of(decision)} · {situation(decision.seen)}"
        else:
            log.debug("%s", line_of(decision))
            return
        self._said, self._when = gist, now
        log.log(level, "%s", line)


def line_of(decision: Decision) -> str:
    """``would do: executors 12→8: CPU 41 % of a 70 % target (raw 7.10); step-limit 7→8: …``"""
    prefix = "" if decision.applied or not decision.changes else "would do: "
    return prefix + decision.explain()


def gist_of(decision: Decision) -> object:
    """What of a decision is news, without the figures that move at every tick."""
    sizes = tuple((pool, c.before, c.slots) for pool, c in decision.targets.items())
    guards = frozenset(e.guard for e in decision.effects if e.guard not in NOISE)
    reason = decision.proposal.reason
    held = re.sub(r"[\d.,]+", "#", reason) if reason.startswith("no change") else ""
    notes = tuple(n for n in decision.notes if n.startswith(("frozen", "not done")))
    return sizes, guards, held, notes


def situation(seen: Snapshot) -> str:
    """How the pipeline is doing: ``load 41 %, lag 3,200 records (2 s of input), 1,600 records/s``.

    What was not measured is left out.
    """
    sources = [seen.operators[n] for n in seen.pipeline.sources if n in seen.operators]
    busy = [o.busy for o in seen.operators.values() if o.busy is not None]
    lags = [o.lag for o in sources if o.lag is not None]
    rates = [o.offered_rate for o in sources if o.offered_rate is not None]
    words = []
    if busy:
        words.append(f"load {max(busy):.0%}".replace("%", " %"))
    if lags:
        waiting = lag_seconds(seen)
        worth = "" if waiting is None else f" ({waiting:.0f} s of input)"
        words.append(f"lag {sum(lags):,.0f} records{worth}")
    if rates:
        words.append(f"{sum(rates):,.0f} records/s offered")
    return ", ".join(words) or "nothing measured"
