"""A run of a cell in thesis time, on Spark or on its twin: the loop, what it leaves, its scores.

Either gives an engine on a clock, and afterwards its batches and executors; everything that a
policy sees and everything that is scored is made from these by the same code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.batches.snapshot import POOL
from penstock.batches.values import Batch, Executor
from penstock.bench.compressed.load import Load
from penstock.bench.compressed.thesis_time import Scale, ThesisTime
from penstock.capacity.curve import PowerCurve
from penstock.comparison import oracle
from penstock.comparison.batch_series import Observed, series_of
from penstock.comparison.cell import Cell, CellRun
from penstock.comparison.oracle import Demand
from penstock.comparison.recording import Recording, Watched
from penstock.comparison.scores import Actions, Stage, series_scores
from penstock.comparison.trace import trace_of
from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.loop import Decision, Loop, Mode, State
from penstock.core.ports import Engine, figures_of
from penstock.lab.rig.allocation import actions_seen
from penstock.lab.rig.capacity_file import Capacity
from penstock.lab.rig.settings import SparkSettings
from penstock.simulator.series import Series

WINDOW_TRIGGERS = 3.0  # an observation covers at least so many triggers
MOST_FAULTS = 40  # observations in a row that fail before a run does


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """Where a run is: minutes of thesis time, executors, and records waiting on Spark."""

    cell: Cell
    seed: int
    minute: float
    executors: int
    lag: float


Watch = Callable[[RunProgress], None]


class RunRecord:
    """What is written down during a run; ``batches`` by their start."""

    def __init__(
        self,
        cell: Cell,
        seed: int,
        scale: Scale,
        *,
        journal: Path | None = None,
        watch: Watch = lambda moment: None,
    ) -> None:
        self.cell, self.seed, self.scale = cell, seed, scale
        self.policy = cell.create_policy()
        self.allocated = cell.allocated  # Spark acts, the loop only looks
        self.recording = Recording(journal, cell.header(self.policy, seed))
        self.figures: Mapping[str, float] = {}
        self.cpu: list[tuple[float, float]] = []
        self.batches: dict[float, Batch] = {}
        self.executors: Sequence[Executor] = ()
        self.faults = 0  # observations in a row that failed
        self._watch = watch

    def record(self, decision: Decision, state: State) -> None:
        """Write a decision down."""
        self.recording(decision, state)
        seen = decision.seen
        shares = [slot.cpu for slot in seen.pools[POOL] if slot.cpu is not None]
        if shares:
            self.cpu.append((seen.time, sum(shares) / len(shares)))
        lag = sum(o.lag or 0.0 for o in seen.operators.values())
        self._watch(
            RunProgress(
                cell=self.cell,
                seed=self.seed,
                minute=seen.time / 60.0,
                executors=seen.slots(POOL),
                lag=lag / self.scale.weight,
            )
        )

    def collect(self, batches: Iterable[Batch]) -> None:
        """Keep batches that have ended."""
        self.batches |= {b.start: b for b in batches}


def window_of(cell: Cell, settings: SparkSettings) -> float:
    """Seconds on the clock that an observation covers."""
    return max(settings.clock(cell.period), WINDOW_TRIGGERS * settings.trigger)


def act(
    engine: Engine,
    run: RunRecord,
    *,
    now: Callable[[], float] = time.time,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Let the policy act, or watch Spark act, until the end of the load.

    ``now`` the engine's clock · ``before`` and ``after`` are called around each decision.
    """
    cell, watched = run.cell, Watched(run.policy)
    compressed = ThesisTime(engine, run.scale, now=now)
    mode: Mode = "advise" if run.allocated else "act"
    loop = Loop(compressed, watched, cell.guards, mode=mode, seed=run.seed, record=run.record)
    for _ in range(cell.ticks):
        compressed.advance(cell.period)
        if compressed.late < cell.period:  # else the clock has overtaken this decision
            before()
            _tick(loop, run)
            after()
    compressed.advance(cell.seconds - cell.ticks * cell.period)
    watched.check(f"{cell.key}, seed {run.seed}")
    run.figures = figures_of(run.policy, loop.state.memory)


def _tick(loop: Loop, run: RunRecord) -> None:
    """One decision; what cannot be measured now may be at the next."""
    try:
        loop.tick()
        run.faults = 0
    except NotReady:
        return
    except (EngineError, InputError) as error:  # an executor may leave while it is looked at
        run.faults += 1
        if run.faults > MOST_FAULTS:
            raise EngineError(f"{run.cell.key}: no observation any more: {error}") from error


def scored(load: Load, capacity: Capacity, run: RunRecord) -> CellRun:
    """Scores and trace, all in thesis time."""
    cell, scale = run.cell, run.scale
    observed = Observed(
        batches=sorted(run.batches.values(), key=lambda b: b.start),
        executors=run.executors,
        cpu=run.cpu,
    )
    if not any(b.rows for b in observed.batches):
        raise EngineError(f"{cell.key}: the query finished no batch")
    series = series_of(load.thesis, cell.seconds, scale, observed)
    curve, actions = capacity.curve, run.recording.actions
    if run.allocated:
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
        figures=run.figures,
        measured_cpu=bool(run.cpu),
    )
    scores["peak_rate"] = load.peak
    trace = trace_of(series, oracle.total(demand), cell.period, actions.times)
    return CellRun(scores=scores, trace=trace)


ON_THE_CLOCK = ("latency_mean", "latency_p95", "latency_p99", "e2e_mean", "e2e_p95", "e2e_p99")
"""Scores that are also given in seconds on the clock, as ``<name>_real``."""


def demand_of(curve: PowerCurve, series: Series, scale: Scale, most: int) -> Demand:
    """The fewest executors whose measured throughput covers the offered rate."""
    return {POOL: oracle.demand_on(curve, series.offered * scale.rate, most)}


def spark_scores(
    series: Series,
    demand: Demand,
    actions: Actions,
    *,
    scale: Scale,
    curve: PowerCurve,
    stages: Sequence[Stage] = (),
    slo: float = 60.0,
    figures: Mapping[str, float] | None = None,
    measured_cpu: bool = True,
) -> dict[str, float | None]:
    """All scores, in thesis time but for those that end in ``_real``.

    ``expired`` is not measured: the source keeps every record.
    """
    last = float(series.slots[POOL][-1])
    left = float(series.offered.sum() - series.delivered.sum())
    capacity = curve.at(max(last, 1.0)) / scale.rate
    scores = series_scores(
        series,
        demand,
        actions,
        drain=left / capacity,
        stages=stages,
        slo=slo,
        figures=figures,
    )
    scores["expired"] = None
    if not measured_cpu:
        scores["cpu_mean"] = None
    for name in ON_THE_CLOCK:
        value = scores[name]
        scores[f"{name}_real"] = None if value is None else value / scale.speed
    return scores
