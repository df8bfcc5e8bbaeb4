"""A real run second by second, and what a profile foretells of it under the load that it had."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from penstock.batches.snapshot import POOL
from penstock.comparison.profile_capacity import batch_seconds
from penstock.comparison.profiled import ProfileCell
from penstock.comparison.recorded_run import recorded_run
from penstock.comparison.replay import write_demand
from penstock.comparison.sources import read_source
from penstock.core.errors import InputError
from penstock.history import journal
from penstock.history.journal import Header
from penstock.history.learning.executors import over_time
from penstock.history.learning.learn import Learned, learn
from penstock.history.recording import RecordedApplication
from penstock.lab.proofs.examples_run import BATCH_TIME, journal_of
from penstock.lab.proofs.replay_run import Fed, event_log_of
from penstock.simulator.microbatch.profile import Profile
from penstock.simulator.series import Floats

EXECUTORS, WAIT = "executors", "p95 wait, s"
LATE = 30.0  # seconds; nothing here depends on it


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Course:
    """Executors, and seconds that the oldest record waits, in every second of a run.

    counted: the seconds that figures are about, from the first to before the last
    """

    executors: Floats
    waits: Floats
    counted: tuple[int, int]

    def figure(self, what: str) -> float:
        """The mean of the executors, or the 95th percentile of the waits, over what counts."""
        first, end = self.counted
        if what == EXECUTORS:
            return float(self.executors[first:end].mean())
        return float(np.quantile(self.waits[first:end], 0.95, method="inverted_cdf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """What was learnt of one run by its event log and by its journal.

    rows: of its batches, by the log
    problem: why nothing could be learnt of the journal, if so
    """

    log: Learned
    journal: Learned | None
    rows: tuple[int, ...]
    problem: str = ""

    @classmethod
    def read(cls, folder: Path) -> Profiles:
        """Those of a finished run."""
        found = read_source(event_log_of(folder))
        by_log, by_journal, problem = learn(found), None, ""
        if len(by_log.profile.sources) != 1:
            raise InputError(f"{found.source}: {len(by_log.profile.sources)} sources, one is known")
        try:
            by_journal = learn(read_source(journal_of(folder)))
        except InputError as error:
            problem = str(error)
        rows = tuple(b.rows for q in found.queries for b in q.batches if b.rows)
        return cls(log=by_log, journal=by_journal, rows=rows, problem=problem)

    @property
    def demand_off(self) -> float | None:
        """How far the journal's mean demand is off the event log's, as a share of it."""
        if self.journal is None:
            return None
        known, told = (
            sum(demand.mean for demand in learned.demand.values())
            for learned in (self.log, self.journal)
        )
        return abs(told / known - 1.0) if known else None

    def costs(self) -> list[Cost]:
        """A mean batch and the largest that was recorded, on one executor and on the most."""
        if self.journal is None:
            return []
        return [
            Cost(
                rows=rows,
                executors=executors,
                log=_seconds(self.log.profile, rows, executors),
                journal=_seconds(self.journal.profile, rows, executors),
            )
            for rows in (sum(self.rows) / len(self.rows), float(max(self.rows)))
            for executors in sorted({1, max(self.log.sizes)})
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of a batch of so many rows on so many executors, by both profiles."""

    rows: float
    executors: int
    log: float
    journal: float

    @property
    def off(self) -> float:
        """How far the journal's is off, as a share of the event log's."""
        return abs(self.journal / self.log - 1.0)

    def row(self) -> dict[str, Any]:
        """For the table."""
        return {
            "records of a batch": f"{self.rows:,.0f}",
            "executors": self.executors,
            "event log": f"{self.log:.1f} s",
            "journal": f"{self.journal:.1f} s",
            "off": f"{self.off:.0%}",
        }


def _seconds(profile: Profile, rows: float, executors: int) -> float:
    by_source = dict.fromkeys(profile.sources, rows)
    return sum(batch_seconds(profile, query, by_source, executors) for query in profile.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealRun:
    """What one real run did, and what has to be known to play it.

    learned: the profile of the recorded run, with this one's executors and the load it was fed
    header: of its journal
    """

    fed: Fed
    found: RecordedApplication
    learned: Learned
    header: Header

    @classmethod
    def read(cls, folder: Path, fed: Fed, recorded: Learned) -> RealRun:
        """A finished run of what was ``recorded``."""
        found = read_source(event_log_of(folder))
        if len(found.queries) != 1:
            raise InputError(f"{found.source}: {len(found.queries)} queries, one is known")
        (query,), (known,) = found.queries, recorded.profile.queries
        profile = replace(recorded.profile, queries=(replace(known, name=query.name),))
        start = min(b.start for b in query.batches)
        end = max(b.end for b in query.batches)
        learned = replace(
            recorded,
            profile=profile,
            demand={profile.sources[0]: fed.demand(start)},
            start=start,
            seconds=end - start,
            executors=over_time(found, start, end),
        )
        header, _ = journal.read(journal_of(folder))
        return cls(fed=fed, found=found, learned=learned, header=header)

    @property
    def seconds(self) -> int:
        """From the first planning to the end of the load."""
        return math.floor(self.fed.end - self.learned.start)

    @property
    def counted(self) -> tuple[int, int]:
        """The seconds that figures are about: of a batch that has not ended nothing is known."""
        first, end = (moment - self.learned.start for moment in self.fed.counted)
        return max(0, math.floor(first)), math.floor(min(end, self.learned.seconds))

    def measured(self) -> Course:
        """What it did, judged as a recorded run is by a replay."""
        with TemporaryDirectory(prefix="penstock-") as folder:
            cell = self._cell(self.learned.profile, Path(folder), start=None)
            ran = recorded_run(self.found, self.learned, cell)
        return Course(executors=ran.slots, waits=ran.behind, counted=self.counted)

    def foretold(self, profile: Profile, seeds: Sequence[int]) -> list[Course]:
        """What a profile says of its policy under its load, once for each seed."""
        first = max(1, self.learned.executors.counts[0])
        with TemporaryDirectory(prefix="penstock-") as folder:
            cell = self._cell(profile, Path(folder), start=first, uncertain=len(seeds) > 1)
            played = [cell.played(seed).series for seed in seeds]
        return [
            Course(executors=s.slots[POOL], waits=s.queue_latency, counted=self.counted)
            for s in played
        ]

    def _cell(
        self, profile: Profile, folder: Path, *, start: int | None, uncertain: bool = False
    ) -> ProfileCell:
        """Its policy on a profile, under the load that it was really fed."""
        file = folder / "fed.csv"
        (column,) = write_demand(self.learned, file, self.seconds).values()
        return ProfileCell(
            key="foretold",
            query=self.fed.example,
            workload="trace",
            workload_parameters={"file": str(file), "kind": "rate"},
            policy=self.header.policy,
            policy_parameters=dict(self.header.parameters),
            guards=self.header.guards,
            profile="live",
            minutes=self.seconds / 60.0,
            period=self.header.period or 15.0,
            start=start,
            slo=LATE,
            application=profile,
            columns=dict.fromkeys(profile.sources, column),
            uncertain=uncertain,
            batch_time=BATCH_TIME,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Foretold:
    """One real run, and what both profiles foretold of it, once for each seed.

    rates: lines/s that it was fed, by second
    by_journal: none where nothing could be learnt of it
    """

    name: str
    policy: str
    rates: Floats
    real: Course
    by_log: Sequence[Course]
    by_journal: Sequence[Course]

    def row(self) -> dict[str, Any]:
        """For the table."""
        found: dict[str, Any] = {"run": self.name}
        for what in (EXECUTORS, WAIT):
            found[what] = f"{self.real.figure(what):.2f}"
            found[f"{what}, foretold"] = f"{mean_of(self.by_log, what):.2f}"
        return found


def mean_of(courses: Sequence[Course], what: str) -> float:
    """A figure in the mean over the seeds, of which there is one at least."""
    return float(np.mean([course.figure(what) for course in courses]))


def foretell(folder: Path, fed: Fed, profiles: Profiles, seeds: Sequence[int]) -> Foretold:
    """A finished run and what was foretold of it."""
    real = RealRun.read(folder, fed, profiles.log)
    (demand,) = real.learned.demand.values()
    return Foretold(
        name=folder.name,
        policy=fed.setting.policy,
        rates=demand.even(1.0)[: real.seconds],
        real=real.measured(),
        by_log=real.foretold(profiles.log.profile, seeds),
        by_journal=[]
        if profiles.journal is None
        else real.foretold(profiles.journal.profile, seeds),
    )
