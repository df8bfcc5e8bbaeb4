"""Cells that run a measured application: a user's own query, played by the micro-batch simulator.

A profile says what batches cost, a load says what comes in, and a policy sees what it would see
on Spark. What the profile does not know well may be drawn anew for every seed.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from penstock.batches.running import BATCH_TIME
from penstock.batches.snapshot import POOL
from penstock.comparison import oracle
from penstock.comparison.batch_series import Observed, RealTime, series_of, together
from penstock.comparison.cell import Cell, CellRun
from penstock.comparison.profile_capacity import ProfileCapacity, capacity_of
from penstock.comparison.recording import Recording, Watched
from penstock.comparison.scores import Actions, series_scores
from penstock.comparison.trace import trace_of
from penstock.core.errors import InputError, unknown
from penstock.core.loop import Decision, Loop, Mode, State
from penstock.core.ports import Policy, figures_of
from penstock.policies import create as create_policy
from penstock.policies import parameters_of
from penstock.policies.spark_dra import DynamicAllocation
from penstock.report import units
from penstock.simulator.microbatch import MicroBatchEngine
from penstock.simulator.microbatch.profile import Profile, QueryProfile, StageProfile
from penstock.simulator.series import Floats, Series
from penstock.spark.settings.settings import ON_SPARK
from penstock.workloads import patterns
from penstock.workloads.pattern import Pattern, Share, Together, per_second

LONG = 24 * 3600.0  # seconds
AT_LEAST = 0.1  # of what was measured: nothing is drawn below it
COVERED = {
    False: "± covers noise of batches and executors, no other traffic",
    True: "± covers what the profile does not know well, and noise, no other traffic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a run did in every second, when it acted, and what the policy kept of itself."""

    series: Series
    actions: Actions
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCell(Cell):
    """A policy on a measured application; ``query`` is how that is called.

    application: what its batches cost, and its executors
    shares: of the load, by source; the same for each if left out
    columns: of the file of a trace, by source, where each source has a load of its own
    uncertain: whether every seed draws what the profile does not know well
    batch_time: seconds that a batch may take of a query without a trigger
    """

    ENGINE: ClassVar[str] = "micro-batch"

    application: Profile
    shares: Mapping[str, float] = field(default_factory=dict, hash=False)
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    uncertain: bool = False
    batch_time: float = BATCH_TIME

    def __post_init__(self) -> None:
        Cell.__post_init__(self)
        if not (math.isfinite(self.batch_time) and self.batch_time > 0):
            raise InputError(f"batch_time = {self.batch_time} must be a finite number above 0")
        for what, given in (("shares", self.shares), ("columns", self.columns)):
            for name in given:
                if name not in self.application.sources:
                    raise unknown(f"source in {what}", name, self.application.sources)
        if self.shares and not abs(sum(self.shares.values()) - 1.0) < 1e-6:
            raise InputError(f"shares {dict(self.shares)} of the load must sum to 1")
        if self.columns and set(self.columns) != set(self.application.sources):
            raise InputError(
                f"columns are given for {', '.join(self.columns)}; the sources are "
                f"{', '.join(self.application.sources)}"
            )

    @property
    def slow(self) -> bool:
        """A run takes a second or more."""
        return True

    def start_sizes(self) -> Mapping[str, int]:
        """Executors at the beginning; the fewest allowed if none are given."""
        return {POOL: self.fixed.get(POOL) or self.start or self.guards.minimum}

    def loads(self, seed: int) -> dict[str, Pattern]:
        """What each source is offered."""
        names = self.application.sources
        if self.columns:
            return {name: self._made(seed, value_column=self.columns[name]) for name in names}
        whole = self._made(seed)
        return {name: Share(whole, self.shares.get(name, 1.0 / len(names))) for name in names}

    def pattern(self, seed: int) -> Pattern:
        """What all sources together are offered."""
        if not self.columns:
            return self._made(seed)
        return self._made(seed, value_column=",".join(dict.fromkeys(self.columns.values())))

    def _made(self, seed: int, **more: str) -> Pattern:
        return patterns.create(self.workload, {**self.workload_parameters, **more}, seed=seed)

    def create_policy(self) -> Policy:
        """The auto-scaler with its parameters, those that hold on Spark among them."""
        if self.own is not None:
            return self.own
        known = parameters_of(create_policy(self.policy))
        on_spark = {name: value for name, value in ON_SPARK.items() if name in known}
        return create_policy(self.policy, {**on_spark, **self.policy_parameters})

    def described(self) -> str:
        """How it runs, for the subtitle of a report."""
        return f"{self.query} as it was measured, batch by batch"

    def remarks(self) -> tuple[str, ...]:
        """What the intervals cover, and whether any number of executors keeps up."""
        rates, _ = offered_rates(self, 0)
        most, peak = self.capacity().most, float(rates.max())
        if peak <= most:
            return (COVERED[self.uncertain],)
        return (
            COVERED[self.uncertain],
            f"no size up to {self.guards.maximum} takes {units.count(peak)} records/s: "
            f"{units.count(most)} at most",
        )

    def capacity(self, seed: int = 0) -> ProfileCapacity:
        """What so many executors can take in batches that leave half of the objective."""
        loads = self.loads(seed)
        records = {name: load.offered(float(self.seconds)) for name, load in loads.items()}
        total = sum(records.values()) or 1.0
        return capacity_of(
            self.application,
            {name: some / total for name, some in records.items()},
            most=self.guards.maximum,
            longest=self.slo / 2,
        )

    def peak_sizes(self, seed: int) -> Mapping[str, int]:
        """The fewest executors that cover the highest rate, batch by batch."""
        rates, _ = offered_rates(self, seed)
        return {POOL: int(self.capacity(seed).fewest(rates).max())}

    def run(self, seed: int, *, journal: Path | None = None, trace: bool = False) -> CellRun:
        """Run it once: what it scored; see ``Cell.run``."""
        return self._scored(self.played(seed, journal=journal), seed, trace=trace)

    def played(self, seed: int, *, journal: Path | None = None) -> Played:
        """Run it once: every second of it."""
        profile = drawn(self.application, seed) if self.uncertain else self.application
        policy, loads = self.create_policy(), self.loads(seed)
        engine = MicroBatchEngine(
            profile,
            loads,
            seconds=self.seconds,
            start=self.start_sizes()[POOL],
            window=self.period,
            batch_time=self.batch_time,
            seed=seed,
            limits=(1, self.guards.maximum),
            allocation=policy if isinstance(policy, DynamicAllocation) else None,
        )
        header = self.header(policy, seed)
        recording = Recording(journal, header)
        cpu: list[tuple[float, float]] = []

        def record(decision: Decision, state: State) -> None:
            recording(decision, state)
            shares = [s.cpu for s in decision.seen.pools[POOL] if s.cpu is not None]
            if shares:
                cpu.append((decision.seen.time, sum(shares) / len(shares)))

        watched = Watched(policy)
        mode: Mode = "advise" if self.allocated else "act"
        loop = Loop(engine, watched, self.guards, mode=mode, seed=seed, record=record)
        try:
            if journal is not None or self._decides:
                loop.run(period=self.period, ticks=self.ticks)
            engine.advance(self.seconds - engine.now)
        finally:
            recording.close()
        watched.check(f"{self.key}, seed {seed}")
        recording.keep()
        executors = engine.record().executors  # those that leave from now on were paid for
        engine.finish()
        batches = engine.record().batches
        series = together(
            [
                series_of(
                    Together(tuple(loads[name] for name in query.source_names)),
                    self.seconds,
                    RealTime(),
                    Observed(batches=batches[query.name], executors=executors, cpu=cpu),
                )
                for query in profile.queries
            ]
        )
        figures = figures_of(policy, loop.state.memory)
        return Played(series=series, actions=recording.actions, figures=figures)

    @property
    def _decides(self) -> bool:
        """Whether anybody has to look: in long runs nobody looks where nothing is decided."""
        return self.seconds <= LONG or not (self.fixed or self.allocated)

    def _scored(self, done: Played, seed: int, *, trace: bool) -> CellRun:
        series, actions = done.series, done.actions
        if self.allocated:
            actions = _actions_of(series.slots[POOL])
        rates, behind = offered_rates(self, seed)
        capacity = self.capacity(seed)
        demand = {POOL: capacity.fewest(rates)}
        left = float(series.offered.sum() - series.delivered.sum())
        scores = series_scores(
            series,
            demand,
            actions,
            drain=left / max(capacity.at(int(series.slots[POOL][-1])), 1e-9),
            slo=self.slo,
            figures=done.figures,
        )
        scores |= oracle.late_scores(demand, {POOL: capacity.fewest(behind)})
        scores["expired"] = None
        if not self._decides:
            scores["cpu_mean"] = None
        if not trace:
            return CellRun(scores=scores)
        times = actions.times
        return CellRun(
            scores=scores, trace=trace_of(series, oracle.total(demand), self.period, times)
        )


def offered_rates(cell: ProfileCell, seed: int) -> tuple[Floats, Floats]:
    """The load of a cell in the mean over a batch, and if it may wait for as long again."""
    return _rates(cell.pattern(seed), cell.seconds, cell.slo / 2)


def _rates(pattern: Pattern, seconds: int, half: float) -> tuple[Floats, Floats]:
    """What is offered, in the mean over a batch, and the same if it may wait for as long again."""
    return _worked_out(cast(Hashable, pattern), seconds, half)


def read_cell(document: Mapping[str, Any]) -> Cell:
    """The cell that ``to_dict`` wrote, of a Nexmark query or of a measured application."""
    kind = ProfileCell if "application" in document else Cell
    return kind.from_dict(document)


@lru_cache(maxsize=4)
def _worked_out(pattern: Pattern, seconds: int, half: float) -> tuple[Floats, Floats]:
    rates = _averaged(per_second(pattern, seconds), half)
    return rates, oracle.smoothed(rates, half)


def _averaged(rates: Floats, seconds: float) -> Floats:
    """The mean rate over the seconds before each moment."""
    wide = max(1, int(seconds))
    done = np.concatenate((np.zeros(wide), np.cumsum(rates)))
    spans = np.minimum(np.arange(1, len(rates) + 1), wide)
    return np.asarray((done[wide:] - done[:-wide]) / spans)


def _actions_of(slots: Floats) -> Actions:
    """Every second in which Spark's own allocation changed the number of executors."""
    changed = (np.flatnonzero(np.diff(slots)) + 1.0).tolist()
    return Actions(times=changed, reconfigurations=len(changed))


def drawn(profile: Profile, seed: int) -> Profile:
    """A profile that could be the true one: every number that has an error is drawn around it."""
    draws = np.random.default_rng([seed, zlib.crc32(b"profile")])
    several = len(profile.queries) > 1

    def number(key: str, value: float) -> float:
        error = profile.errors.get(key, 0.0)
        sample = float(draws.normal())  # always drawn: one more error changes no other number
        return max(AT_LEAST * value, value + error * sample)

    def stage(prefix: str, s: StageProfile) -> StageProfile:
        fields = ("fixed", "per_record", "selectivity")
        changes: dict[str, Any] = {
            f: number(f"{prefix}{s.name}.{f}", getattr(s, f)) for f in fields
        }
        return replace(s, **changes)

    def query(q: QueryProfile) -> QueryProfile:
        prefix = f"{q.name}/" if several else ""
        return replace(
            q,
            planning=number(f"{prefix}planning", q.planning),
            stages=tuple(stage(prefix, s) for s in q.stages),
        )

    executor = profile.executor
    fields = ("start", "start_each", "leave")
    changes: dict[str, Any] = {f: number(f, getattr(executor, f)) for f in fields}
    return replace(
        profile,
        queries=tuple(query(q) for q in profile.queries),
        executor=replace(executor, **changes),
    )
