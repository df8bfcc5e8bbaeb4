"""Who hears of every decision: the log, the journal, Prometheus and the program itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from penstock.core.findings import Finding, sentence_of
from penstock.core.loop import Decision, State
from penstock.core.model import Snapshot, lag_seconds
from penstock.history.journal import Header, Journal
from penstock.history.lock import only_writer
from penstock.history.resumption import resume
from penstock.policies.signals.turns import pooled
from penstock.spark.exporter import ErrorKind, Exporter
from penstock.spark.settings.settings import Settings

log = logging.getLogger("penstock")


class Reporter:
    """Tells each of them what happened; what goes wrong with one is its own affair.

    header: of the journal
    record: the program's own callback
    what: is decided on, for the next one that wants the same journal
    """

    def __init__(
        self,
        settings: Settings,
        header: Header,
        record: Callable[[Decision, State], None] | None,
        *,
        what: str = "",
    ) -> None:
        self._settings = settings
        self._header = header
        self._what = what
        self._record = record
        self._log = DecisionLog(settings.heartbeat)
        self._journal: Journal | None = None
        self._exporter: Exporter | None = None
        self._complained: set[ErrorKind] = set()
        self._found: dict[object, float] = {}  # when it was last found, by its gist
        self._frozen = False

    @property
    def url(self) -> str | None:
        """Where Prometheus finds the metrics; ``None`` if nowhere."""
        return self._exporter.url if self._exporter is not None else None

    def serve(self, opening: ExitStack) -> None:
        """Listen for Prometheus, if that is wanted."""
        if self._settings.metrics_port is None:
            return
        exporter = Exporter(self._settings)
        url = exporter.serve(self._settings.metrics_host, self._settings.metrics_port)
        opening.callback(self._close_exporter)
        self._exporter = exporter
        log.info("metrics at %s", url)

    def resume(self, opening: ExitStack) -> State | None:
        """Open the journal, if one is wanted; returns the state to go on from, if there is one.

        Raises InputError if another one writes it, or if the file is no journal.
        """
        path = self._settings.journal
        return self._resume(path, opening) if path is not None else None

    def report(self, decision: Decision, state: State) -> None:
        """Tell everyone of a decision and the state of the loop after it."""
        self._log.say(decision)
        self.found(decision.seen.findings, decision.seen.time)
        for fault in decision.faults:
            if fault == "engine-refused":
                self.complain("act", decision.notes[-1])
            else:
                self.complain("policy", decision.proposal.reason)
        if self._journal is not None:
            self._tell("journal", self._journal.record, decision, state)
        if self._exporter is not None:
            self._tell("metrics", self._exporter.show, decision)
        if self._record is not None:
            self._tell("record", self._record, decision, state)

    def found(self, findings: Sequence[Finding], now: float) -> None:
        """Say what was found, once; again only if it was gone for as long as a heartbeat."""
        for finding in findings:
            if finding.gist not in self._found:
                log.info("%s", sentence_of(finding))
            self._found[finding.gist] = now
        kept = now - self._settings.heartbeat
        self._found = {what: seen for what, seen in self._found.items() if seen >= kept}

    def switched(self, why: str | None) -> None:
        """Say once that the kill switch was put on or off; ``why`` it is on."""
        if why is not None and not self._frozen:
            log.warning("frozen: %s; observing goes on, nothing is done", why)
        elif why is None and self._frozen:
            log.warning("thawed: actions are allowed again")
        self._frozen = why is not None
        if self._exporter is not None:
            self._exporter.show_frozen(self._frozen)

    def complain(self, kind: ErrorKind, what: str) -> None:
        """Say once that something is wrong, not at every tick; count it every time."""
        log.log(logging.DEBUG if kind in self._complained else logging.WARNING, "%s", what)
        self._complained.add(kind)
        if self._exporter is not None:
            self._exporter.count_error(kind)

    def works_again(self, *kinds: ErrorKind) -> None:
        """Forget complaints of these kinds: the next one is news."""
        self._complained.difference_update(kinds)

    def _resume(self, path: Path, opening: ExitStack) -> State | None:
        opening.enter_context(only_writer(path, self._what))
        try:
            found = resume(
                path,
                self._header,
                now=time.time(),
                max_bytes=self._settings.journal_max_bytes,
                keep=self._settings.journal_keep,
            )
        except OSError as error:
            self.complain("journal", f"no journal, deciding goes on without: {error}")
            return None
        self._journal = found.journal
        opening.callback(self._close_journal)
        if found.why:
            log.info("%s: %s", path, found.why)
        return found.state

    def _tell(self, kind: ErrorKind, call: Callable[..., None], *values: Any) -> None:
        """A full disk or a broken callback costs its own line, nothing else."""
        try:
            call(*values)
            self.works_again(kind)
        except Exception as error:
            self.complain(kind, f"{kind}: {type(error).__name__}: {error}; deciding goes on")

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _close_exporter(self) -> None:
        if self._exporter is not None:
            self._exporter.close()
            self._exporter = None


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
    proposal = decision.proposal
    held = "" if proposal.needs or proposal.pool_needs else proposal.term
    frozen = decision.outcome == "frozen"
    return sizes, guards, held, decision.faults, frozen, decision.why


def situation(seen: Snapshot) -> str:
    """How the pipeline is doing: ``load 41 %, lag 3,200 records (2 s of input), 1,600 records/s``.

    What was not measured is left out.
    """
    sources = [seen.operators[n] for n in seen.pipeline.sources if n in seen.operators]
    busy = [o.busy for o in pooled(seen).operators.values() if o.busy is not None]
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
