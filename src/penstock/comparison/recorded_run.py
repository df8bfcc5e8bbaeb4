"""What really ran: executors, lateness and cost of a recording, told as those of a played run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.batches.snapshot import POOL
from penstock.batches.values import Batch
from penstock.comparison import oracle
from penstock.comparison.batch_series import Observed, RealTime, series_of, together
from penstock.comparison.profiled import ProfileCell, offered_rates
from penstock.comparison.scores import Scores, latency_scores, slot_scores
from penstock.core.errors import PenstockError
from penstock.core.model import Need, Proposal, Snapshot, lag_seconds
from penstock.history.journal import Entry, Header, read, replay
from penstock.history.learning.executors import ExecutorsOverTime
from penstock.history.learning.learn import Learned
from penstock.history.recorded_journal import KIND, files_of
from penstock.history.recording import RecordedApplication
from penstock.policies import create as create_policy
from penstock.report import units
from penstock.simulator.series import Floats, Series
from penstock.workloads.pattern import Together


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What really ran.

    scores: as a played run has them, as far as they were recorded
    seconds: from the first planning to the last commit
    slots, behind: executors, and seconds that the oldest waiting record had waited, by second
    header, entries: of the journal, where that is what was read
    """

    scores: Scores
    seconds: float
    slots: Floats
    behind: Floats
    header: Header | None = None
    entries: Sequence[Entry] = ()

    @property
    def fixed(self) -> int | None:
        """The size, if it never changed."""
        return self.first if bool((self.slots == self.slots[0]).all()) else None

    @property
    def first(self) -> int:
        """Executors at the beginning."""
        return max(1, int(self.slots[0]))

    @property
    def largest(self) -> int:
        """Most executors at any time."""
        return max(1, int(self.slots.max()))

    def to_dict(self) -> dict[str, Any]:
        """A plain JSON value."""
        return {
            "seconds": self.seconds,
            "policy": None if self.header is None else self.header.policy,
            "mode": None if self.header is None else self.header.mode,
            "executors_first": self.first,
            "executors_most": self.largest,
            "scores": dict(self.scores),
        }


class Scheduled:
    """A policy that has the sizes of a recording at their times: the recorded run, played."""

    def __init__(self, slots: Floats) -> None:
        self._slots = slots

    def start(self, seed: int) -> None:
        """No memory."""
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        """The size that there was at this time."""
        place = min(int(seen.time), len(self._slots) - 1)
        size = max(1, int(self._slots[place]))
        return Proposal(reason="as recorded", pool_needs={POOL: Need(slots=size)}), None


def recorded_run(
    application: RecordedApplication, learned: Learned, cell: ProfileCell
) -> RecordedRun:
    """What ran, judged as the played runs are.

    cell: any of those that play it: for the load, the objective and the oracle
    """
    header, entries = _journal(application)
    slots = _sizes(learned.executors, learned.start, cell.seconds)
    rates, late = offered_rates(cell, 0)
    capacity = cell.capacity()
    demand = {POOL: capacity.fewest(rates)}
    series = _series(application, learned, cell)
    if entries:
        behind = _behind(entries, learned.start, cell.seconds)
        unknown = np.zeros(cell.seconds)
        series = replace(series, queue_latency=behind, latency=unknown, delivered=unknown)
    series = replace(series, slots={POOL: slots})
    scores: dict[str, float | None] = {
        **slot_scores(series, demand),
        **latency_scores(series, cell.slo),
        **oracle.late_scores(demand, {POOL: capacity.fewest(late)}),
        "actions": float(np.count_nonzero(np.diff(slots))),
    }
    return RecordedRun(
        scores=scores,
        seconds=learned.seconds,
        slots=slots,
        behind=series.queue_latency,
        header=header,
        entries=entries,
    )


def _journal(application: RecordedApplication) -> tuple[Header | None, list[Entry]]:
    """The journal that was read, with those it was rotated from; nothing of another source."""
    if application.kind != KIND:
        return None, []
    found = [read(file, arrivals=False) for file in files_of(Path(application.source))]
    return found[-1][0], [entry for _, entries in found for entry in entries]


def _sizes(executors: ExecutorsOverTime, start: float, seconds: int) -> Floats:
    """Executors in each second after a moment; none before the first is known."""
    edges = executors.edges + (executors.start - start)
    places = np.searchsorted(edges, np.arange(seconds) + 0.5, side="right") - 1
    counts = np.array(executors.counts, dtype=float)
    return np.asarray(counts[np.clip(places, 0, len(counts) - 1)])


def _behind(entries: Sequence[Entry], start: float, seconds: int) -> Floats:
    """The lag in seconds at each second: that of the newest decision that tells."""
    told = [(e.decision.seen.time - start, lag_seconds(e.decision.seen)) for e in entries]
    known = [(time, lag) for time, lag in told if lag is not None]
    if not known:
        return np.zeros(seconds)
    times, lags = (np.array(values) for values in zip(*known, strict=True))
    places = np.searchsorted(times, np.arange(seconds) + 0.5, side="right") - 1
    return np.asarray(lags[np.maximum(places, 0)])


def _series(application: RecordedApplication, learned: Learned, cell: ProfileCell) -> Series:
    loads = cell.loads(0)
    return together(
        [
            series_of(
                Together(tuple(loads[name] for name in query.source_names)),
                cell.seconds,
                RealTime(start=learned.start),
                Observed(batches=_counted(application, query.name), executors=()),
            )
            for query in cell.application.queries
        ]
    )


def _counted(application: RecordedApplication, name: str) -> list[Batch]:
    """The batches of a query with what they took since the recording began.

    What the first batch took had come before.
    """
    batches = sorted(
        (b for q in application.queries if q.name == name for b in q.batches if not b.idle),
        key=lambda b: b.start,
    )
    taken = 0
    found = []
    for number, batch in enumerate(batches):
        taken += batch.rows if number else 0
        found.append(replace(batch, taken=taken))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far what was played agrees with what ran.

    decisions, same: recorded decisions that the recorded policy was asked for again, and those
        that it decided as before; ``None`` where no journal tells of a policy that is known here
    played, recorded: mean executors of the policy that acted, played on the profile and as
        recorded; ``None`` where none acted
    behind: seconds, p95 of the wait of the recorded sizes, played and as recorded
    batches: mean absolute deviation of batch durations from the profile, as a share
    """

    decisions: int | None = None
    same: int | None = None
    played: float | None = None
    recorded: float | None = None
    behind: tuple[float, float] | None = None
    batches: float = 0.0

    @property
    def executors_error(self) -> float | None:
        """How far the played mean is off the recorded one, as a share of it."""
        if self.played is None or not self.recorded:
            return None
        return self.played / self.recorded - 1.0

    def lines(self) -> list[str]:
        """Each as a sentence."""
        found = [f"batches took {units.share(self.batches)} more or less than the profile says"]
        if self.behind is not None:
            played, recorded = self.behind
            found.append(
                f"the recorded sizes, played: p95 of the wait {units.seconds(played)}, recorded "
                f"{units.seconds(recorded)}"
            )
        if self.decisions is not None:
            found.append(
                f"the recorded policy, asked again: {self.same} of {self.decisions} decisions are "
                "the same"
            )
        if (error := self.executors_error) is not None:
            found.append(
                f"the recorded policy, played: {self.played:.2f} executors in the mean, recorded "
                f"{self.recorded:.2f} ({100 * error:+.0f} %)".replace("-", "−")
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """A plain JSON value."""
        return {
            "decisions": self.decisions,
            "same_decisions": self.same,
            "executors_played": self.played,
            "executors_recorded": self.recorded,
            "executors_error": self.executors_error,
            "wait_p95_played_and_recorded": None if self.behind is None else list(self.behind),
            "batch_error": self.batches,
        }


def same_decisions(run: RecordedRun) -> tuple[int, int] | None:
    """How many decisions of a journal its policy makes again, and how many there are.

    ``None`` without a journal, or of a policy that is not known here.
    """
    if run.header is None or not run.entries:
        return None
    try:
        policy = create_policy(run.header.policy, run.header.parameters)
    except PenstockError:
        return None
    header = run.header
    again = replay(list(run.entries), policy, header.guards, header.seed, header.state)
    same = sum(
        {pool: change.slots for pool, change in a.targets.items()}
        == {pool: change.slots for pool, change in e.decision.targets.items()}
        for a, e in zip(again, run.entries, strict=True)
    )
    return same, len(again)


def acted(run: RecordedRun) -> Header | None:
    """Who sized the executors, where a journal tells and its policy is known here."""
    header = run.header
    if header is None or header.mode != "act":
        return None
    try:
        create_policy(header.policy, header.parameters)
    except PenstockError:
        return None
    return header
