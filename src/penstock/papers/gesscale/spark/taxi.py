"""One run: the taxi operator on executors at sites, a policy that scales it, a day in minutes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.batches.values import Batch
from penstock.core.errors import EngineError, NotReady
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.ports import figures_of
from penstock.lab.queries import geo
from penstock.lab.queries.running import consumed_of
from penstock.lab.rig.saturation import fresh_folder, stopping
from penstock.lab.sites.cluster import SiteCluster
from penstock.lab.sites.engine import SiteEngine
from penstock.papers.geo.spark.levels import begin_watching
from penstock.papers.geo.spark.measure import PARTITIONS, session_conf
from penstock.papers.gesscale.simulated.experiment import provisioning
from penstock.papers.gesscale.spark import setup
from penstock.papers.gesscale.spark.setup import LEAD, LONGEST_DRAIN, PERIOD, SECONDS
from penstock.papers.running import Outcomes, Say
from penstock.policies import create
from penstock.simulator.series import Floats
from penstock.spark.read.progress import recent_batches
from penstock.spark.read.rest import Rest
from penstock.workloads.timed_rows import TimedRows

SAMPLE = 1.0  # seconds between two counts of the executors

Point = tuple[float, float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxiOutcome:
    """The figures of Table III, as in ``penstock.papers.gesscale.simulated.experiment``.

    cost: executor-minutes
    lag: mean seconds of input that waited
    records: that were sent
    missing: of them, those that had not been read when the run was over
    course: by second offered and processed records/s, executors, ideal executors, records that wait
    """

    key: str
    seed: int
    accuracy_o: float
    accuracy_u: float
    timeshare_o: float
    timeshare_u: float
    excess_time: float
    reconfigurations: float
    cost: float
    lag: float
    records: int
    missing: int
    model_error: float | None = None
    course: tuple[Point, ...] = ()

    @property
    def ups(self) -> int:
        """Executors that came while the load lasted."""
        return int(np.maximum(0.0, self._changes).sum())

    @property
    def catch_up(self) -> int:
        """Executors that came while those in use carried the load."""
        before = np.array([point[2] for point in self.course[:-1]])
        ideal = np.array([point[3] for point in self.course[1:]])
        return int(np.maximum(0.0, self._changes)[ideal <= before].sum())

    @property
    def downs(self) -> int:
        """Executors that went."""
        return int(np.maximum(0.0, -self._changes).sum())

    @property
    def executors(self) -> float:
        """Executors in the mean."""
        return float(np.mean([point[2] for point in self.course]))

    @property
    def ideal(self) -> float:
        """Executors of the ideal auto-scaler in the mean."""
        return float(np.mean([point[3] for point in self.course]))

    @property
    def most(self) -> int:
        """The most executors at a time."""
        return int(max(point[2] for point in self.course))

    @property
    def behind(self) -> float:
        """Seconds of mean input that waited when the load ended."""
        offered = [point[0] for point in self.course]
        return self.course[-1][4] * len(offered) / sum(offered)

    @property
    def _changes(self) -> Floats:
        return np.diff([point[2] for point in self.course])


TaxiOutcomes = Outcomes[TaxiOutcome]


@dataclass(slots=True)
class _Watch:
    """Executors over time, as counted; epoch seconds."""

    times: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def count(self, rest: Rest) -> None:
        """Not by the engine: what it tells of CPU is since it was last asked."""
        try:
            slots = sum(executor.alive for executor in rest.executors())
        except EngineError:  # Spark did not answer: it has as many as before
            return
        self.times.append(time.time())
        self.counts.append(slots)

    def at(self, moments: Floats) -> Floats:
        """How many there were, by the last count before each moment."""
        places = np.searchsorted(self.times, moments, side="right") - 1
        return np.array(self.counts, dtype=np.float64)[np.maximum(places, 0)]


def run(policy: str, seed: int, carried: Sequence[float], *, say: Say) -> TaxiOutcome:
    """A policy under the load; ``carried`` as in ``setup.load``."""
    pattern, sites, job = setup.load(carried), setup.fog(), setup.taxi(seed)
    chosen = create(policy, {"period": PERIOD})
    with SiteCluster(sites, start_on=sites.nearest(setup.START)) as cluster:
        spark: Any = cluster.session("taxi", conf=session_conf())
        engine = SiteEngine(spark, cluster, window=PERIOD)
        rest = Rest(spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId)
        begin_watching(engine)
        loop = Loop(engine, chosen, Guards(maximum=setup.NODES), mode="act", seed=seed)
        (events,) = job.events(
            start=time.time(),
            seconds=LEAD + SECONDS,
            partitions=PARTITIONS,
            max_rows=setup.ROWS,
            pattern=pattern,
        )
        watch = _Watch()
        batches: dict[int, Batch] = {}
        with fresh_folder(cluster.folder) as folder:
            running = geo.start(
                spark, job, [events], folder=folder, trigger=setup.TRIGGER, sink="noop"
            )
            with stopping(running):
                changes, drained = _scaled(engine, rest, loop, running, events, watch, batches, say)
        engine.detach()
    figures = figures_of(chosen, loop.state.memory)
    begin = events.start + LEAD
    moments = begin + np.arange(SECONDS, dtype=np.float64)
    rates = setup.offered(pattern)
    supply, demand = watch.at(moments), setup.ideal(carried, rates)
    waiting = _waiting(events, batches.values(), moments)
    found = provisioning(supply, demand)
    processed = _processed(batches.values(), moments)
    rows = (rates, processed, supply, demand, waiting)
    read = sum(batch.rows for batch in batches.values())
    return TaxiOutcome(
        key=policy,
        seed=seed,
        accuracy_o=found.accuracy_o,
        accuracy_u=found.accuracy_u,
        timeshare_o=found.timeshare_o,
        timeshare_u=found.timeshare_u,
        excess_time=drained / SECONDS,
        reconfigurations=float(changes),
        cost=float(supply.sum() / 60.0),
        lag=float(waiting.mean() / rates.mean()),
        records=events.total,
        missing=events.total - read,
        model_error=figures.get("model_error"),
        course=tuple(zip(*(row.round(2).tolist() for row in rows), strict=True)),
    )


def _scaled(
    engine: SiteEngine,
    rest: Rest,
    loop: Loop,
    running: Any,
    events: TimedRows,
    watch: _Watch,
    batches: dict[int, Batch],
    say: Say,
) -> tuple[int, float]:
    """Scale until all is read; changes while the load lasted, and seconds after its end."""
    changes = 0
    begin = events.start + LEAD
    look = begin - PERIOD  # the first one only begins what the next looks back on
    while True:
        engine.advance(SAMPLE)
        now = time.time()
        watch.count(rest)
        batches.update((batch.id, batch) for batch in recent_batches(running) if batch.rows)
        if not running.isActive:
            raise EngineError(f"query {running.name} stopped during the load")
        late = now - events.end
        if late > 0 and sum(consumed_of(running.lastProgress)) >= events.total:
            return changes, max(0.0, max(b.end for b in batches.values()) - events.end)
        if late > LONGEST_DRAIN:
            return changes, LONGEST_DRAIN
        if now < look:
            continue
        look = now + PERIOD
        try:
            if now < begin:
                engine.observe()
                continue
            decision = loop.tick()
        except (NotReady, EngineError) as problem:
            say(f"no look: {problem}")
            continue
        if decision.applied:
            changes += late <= 0
            say(f"{now - events.start - LEAD:4.0f} s: {decision.explain()}")


def _processed(batches: Any, moments: Floats) -> Floats:
    """Records/s of every second: a batch's evenly over its time."""
    found = np.zeros(len(moments))
    for batch in batches:
        inside = np.minimum(batch.end, moments + 1.0) - np.maximum(batch.start, moments)
        found += np.maximum(0.0, inside) * batch.rows / max(batch.duration, 1e-3)
    return found


def _waiting(events: TimedRows, batches: Any, moments: Floats) -> Floats:
    """Records that were released and are in no finished batch."""
    ends = sorted((batch.end, batch.rows) for batch in batches)
    read = np.concatenate([[0.0], np.cumsum([rows for _, rows in ends])])
    places = np.searchsorted([end for end, _ in ends], moments, side="right")
    released = np.array([events.released(t) for t in moments.tolist()], dtype=np.float64)
    return np.asarray(released - read[places], dtype=np.float64)
