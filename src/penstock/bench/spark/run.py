"""One run of a cell on Spark: a fresh query under the workload, with the policy acting.

If the policy is Spark's own allocation, Spark acts and what it did is seen in its executors.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.bench import oracle
from penstock.bench.cell import Cell, Outcome, figures_of
from penstock.bench.recording import Recording, Watched
from penstock.bench.spark.allocation import actions_seen
from penstock.bench.spark.capacity import events_of, query_settings
from penstock.bench.spark.capacity_file import Capacity
from penstock.bench.spark.ending import final_moment, stopping
from penstock.bench.spark.load import Load, load_of
from penstock.bench.spark.rig import Rig
from penstock.bench.spark.scoring import demand_of, spark_scores
from penstock.bench.spark.series import Observed, series_of
from penstock.bench.spark.thesis_time import Scale, ThesisTime
from penstock.bench.trace import trace_of
from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.loop import Decision, Loop, Mode, State
from penstock.measure.metrics import POOL
from penstock.measure.values import Batch, Executor
from penstock.policies import SparkDra
from penstock.spark.engine import SparkEngine
from penstock.spark.measure.progress import ProgressLog
from penstock.spark.pipelines import nexmark

LEAD = 5.0  # seconds from the start of a query to that of its load
WINDOW_TRIGGERS = 3.0  # an observation covers at least so many triggers
LAST_BATCH = 60.0  # seconds that the batch under way at the end may take
LOOK = 0.3  # seconds between two looks at the last batch
MOST_FAULTS = 40  # observations in a row that fail before a run does


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Where a run is: minutes of thesis time, executors, and records waiting on Spark."""

    cell: Cell
    seed: int
    minute: float
    executors: int
    lag: float


Watch = Callable[[Moment], None]


def run_on_spark(
    rig: Rig,
    cell: Cell,
    seed: int,
    capacity: Capacity,
    *,
    journal: Path | None,
    check: bool,
    watch: Watch,
) -> Outcome:
    """Run a cell once: scores and trace in thesis time.

    ``check`` whether to compare the streamed result with a batch run over the same events.
    """
    settings = rig.settings
    load = load_of(cell, settings, seed, capacity.all)
    rig.resize(cell.start_sizes()[POOL])
    start = math.ceil((time.time() + LEAD) / settings.minute) * settings.minute
    scale = Scale(start=start, speed=settings.speed, rate=load.rate)
    events = events_of(
        cell.query,
        settings,
        seed=seed,
        rows=capacity.rows,
        pattern=load.pattern,
        start=start,
        seconds=settings.clock(cell.seconds),
    )
    notes = _Notes(cell, seed, scale, journal, watch)
    query, times = nexmark.QUERIES[cell.query], query_settings(settings)
    answer: nexmark.Comparison | None = None
    with rig.folder() as folder:
        running = nexmark.start(
            rig.session(),
            query,
            events,
            times,
            folder=folder,
            trigger=settings.trigger,
            name=cell.key,
        )
        with stopping(running), contextlib.closing(notes.recording):
            _act(rig, running, notes)
            if check:
                rig.say(f"{cell.key}: waiting until its result is complete…")
                with rig.full_speed():
                    until = final_moment(running, query, events)
        if check:
            rig.say(f"{cell.key}: comparing its result with a batch run…")
            with rig.full_speed():
                answer = nexmark.compare(
                    rig.session(), query, events, times, folder=folder, until=until
                )
    notes.recording.keep()
    return _outcome(load, scale, capacity, notes, answer)


class _Notes:
    """What is written down during a run."""

    def __init__(
        self, cell: Cell, seed: int, scale: Scale, journal: Path | None, watch: Watch
    ) -> None:
        self.cell, self.seed, self.scale = cell, seed, scale
        self.policy = cell.create_policy()
        self.allocated = isinstance(self.policy, SparkDra)  # Spark acts, the loop only looks
        self.recording = Recording(journal, cell.header(self.policy, seed))
        self.figures: Mapping[str, float] = {}
        self.cpu: list[tuple[float, float]] = []
        self.batches: dict[float, Batch] = {}
        self.executors: list[Executor] = []
        self.faults = 0  # observations in a row that failed
        self._watch = watch

    def record(self, decision: Decision, state: State) -> None:
        """One decision."""
        self.recording(decision, state)
        seen = decision.seen
        shares = [slot.cpu for slot in seen.pools[POOL] if slot.cpu is not None]
        if shares:
            self.cpu.append((seen.time, sum(shares) / len(shares)))
        lag = sum(o.lag or 0.0 for o in seen.operators.values())
        self._watch(
            Moment(
                cell=self.cell,
                seed=self.seed,
                minute=seen.time / 60.0,
                executors=seen.slots(POOL),
                lag=lag / self.scale.weight,
            )
        )

    def collect(self, log: ProgressLog) -> None:
        """The batches that have ended since the last call."""
        for batches in log.queries().values():
            self.batches |= {b.start: b for b in batches if b.query == self.cell.key}


def _act(rig: Rig, running: Any, notes: _Notes) -> None:
    """Let the policy act, or watch Spark act, until the end of the load."""
    spark, settings, cell = rig.session(), rig.settings, notes.cell
    window = max(settings.clock(cell.period), WINDOW_TRIGGERS * settings.trigger)
    engine = SparkEngine(spark, window=window, cluster=rig.cluster)
    log, watched = ProgressLog(), Watched(notes.policy)
    compressed = ThesisTime(engine, notes.scale)
    mode: Mode = "advise" if notes.allocated else "act"
    loop = Loop(compressed, watched, cell.guards, mode=mode, seed=notes.seed, record=notes.record)
    engine.attach()
    log.attach(spark)
    try:
        for _ in range(cell.ticks):
            compressed.advance(cell.period)
            if compressed.late < cell.period:  # else the clock has overtaken this decision
                _tick(loop, running, notes)
                notes.collect(log)
        compressed.advance(cell.seconds - cell.ticks * cell.period)
        notes.executors = rig.executors()
        _finish_batch(running, log, notes)
    finally:
        log.detach(spark)
        engine.detach()
    watched.check(f"{cell.key}, seed {notes.seed}")
    notes.figures = figures_of(notes.policy, loop.state.memory)


def _tick(loop: Loop, running: Any, notes: _Notes) -> None:
    """One decision; what cannot be measured now may be at the next."""
    if not running.isActive:
        raise EngineError(f"{notes.cell.key}: the query stopped: {running.exception()}")
    try:
        loop.tick()
        notes.faults = 0
    except NotReady:
        return
    except (EngineError, InputError) as error:  # an executor may leave while it is looked at
        notes.faults += 1
        if notes.faults > MOST_FAULTS:
            raise EngineError(f"{notes.cell.key}: no observation any more: {error}") from error


def _finish_batch(running: Any, log: ProgressLog, notes: _Notes) -> None:
    """Wait until every batch that was planned during the load has said what it took."""
    end = notes.scale.start + notes.cell.seconds / notes.scale.speed
    deadline = time.monotonic() + LAST_BATCH
    while time.monotonic() < deadline:
        idle = not running.status["isTriggerActive"]
        running.awaitTermination(LOOK)
        notes.collect(log)
        if idle or any(start >= end for start in notes.batches):
            return
    raise EngineError(
        f"{notes.cell.key}: the last batch took more than {LAST_BATCH:.0f} s; the load is too "
        "high for so few executors. Set a lower peak"
    )


def _outcome(
    load: Load, scale: Scale, capacity: Capacity, notes: _Notes, answer: nexmark.Comparison | None
) -> Outcome:
    cell = notes.cell
    observed = Observed(
        batches=sorted(notes.batches.values(), key=lambda b: b.start),
        executors=notes.executors,
        cpu=notes.cpu,
    )
    if not any(b.rows for b in observed.batches):
        raise EngineError(f"{cell.key}: the query finished no batch")
    series = series_of(load.thesis, cell.seconds, scale, observed)
    curve, actions = capacity.curve, notes.recording.actions
    if notes.allocated:
        actions = actions_seen(series.slots[POOL], scale.speed)
    demand = demand_of(curve, series, scale, capacity.slots)
    scores = spark_scores(
        series,
        demand,
        actions,
        scale=scale,
        curve=curve,
        stages=getattr(load.thesis, "stages", ()),
        slo=cell.slo,
        figures=notes.figures,
        measured_cpu=bool(notes.cpu),
    )
    scores["peak_rate"] = load.peak
    scores["missing"] = None if answer is None else float(answer.missing)
    scores["surplus"] = None if answer is None else float(answer.surplus)
    trace = trace_of(series, oracle.total(demand), cell.period, actions.times)
    return Outcome(scores=scores, trace=trace)
