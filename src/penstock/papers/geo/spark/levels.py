"""One site more, level by level, on real Spark: what a job takes in, and what was foretold of it.

Gesscale and ``gesscale+`` look on. Before a level is reached each says what it will be; then an
executor starts on the nearest free site, the job runs with more records than it can take, and its
throughput is measured. The job begins anew at each level, as in the study. [arsalane24]
"""

from __future__ import annotations

import contextlib
import statistics
import time
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from penstock.batches.snapshot import POOL
from penstock.core.errors import EngineError, NotReady
from penstock.core.model import Change, Snapshot
from penstock.core.sanity import believable
from penstock.lab.queries.geo_jobs import GeoJob
from penstock.lab.rig.saturation import RESIZE_SECONDS
from penstock.lab.sites.cluster import SiteCluster
from penstock.lab.sites.engine import SiteEngine
from penstock.lab.sites.spec import SitesSpec
from penstock.papers.geo.simulated.onlookers import Onlookers
from penstock.papers.geo.spark.conditions import MOST, SparkCondition
from penstock.papers.geo.spark.measure import Course, Throughput, measure, session_conf
from penstock.papers.running import Say

WINDOWS, SECONDS, SKIP = 2, 12.0, 1
LOOK = 0.5  # seconds between two looks at what is coming


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What was measured with a number of executors, and what was foretold of it.

    site: where the last of them is
    delay: greatest round trip between their sites, as measured, seconds
    rate, least, most: records/s in the mean, of the slowest and of the fastest batch
    busy: least and most share of the time in which an executor ran a task and did not wait for
        others' data
    cpu: mean share of their quota that they used
    waits: share of the tasks' time that they waited for others' data
    skew: the busiest partition over the mean
    gesscale, plus, plus_width: records/s foretold, and half of the latter's 95 % interval
    """

    slots: int
    site: str
    delay: float
    rate: float
    least: float
    most: float
    batches: int
    busy: tuple[float, float]
    cpu: float | None
    waits: float
    skew: float | None
    gesscale: float | None = None
    plus: float | None = None
    plus_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """All levels in turn.

    off: the worst difference between a measured and a configured round trip, as a share of what it
        may be (the greater of 2 ms and 5 %, and the jitter)
    """

    levels: tuple[Level, ...]
    off: float


def climb(spec: SitesSpec, job: GeoJob, rows: int, *, most: int, seed: int, say: Say) -> Climb:
    """Measure from one executor at home up to ``most``, each on the nearest free site.

    ``rows`` of a micro-batch.
    """
    course = Course(rows=rows, windows=WINDOWS, seconds=SECONDS, skip=SKIP)
    onlookers = Onlookers(POOL, seed, period=0.0)
    with SiteCluster(spec) as cluster:
        off = _off(cluster)
        spark: Any = cluster.session("levels", conf=session_conf())
        engine = SiteEngine(spark, cluster, window=WINDOWS * SECONDS)
        begin_watching(engine)
        levels: list[Level] = []
        foretold: dict[str, Any] = {}
        site = spec.home
        for slots in range(1, most + 1):
            found, seen = _measured(spark, cluster, engine, job, course)
            onlookers.look(seen)
            level = replace(_level(found, seen, site), **foretold)
            levels.append(level)
            say(f"{found}{_words(level)}")
            if slots < most:
                more = onlookers.foretell(seen)
                foretold, site = more.figures, more.add_on[0]
                _add(engine, slots, site)
        engine.detach()
    return Climb(levels=tuple(levels), off=off)


def begin_watching(engine: SiteEngine) -> None:
    """Attach an engine: what it is to tell of a query it has to have seen begin."""
    engine.attach()
    with contextlib.suppress(NotReady):
        engine.observe()


def _measured(
    spark: Any, cluster: SiteCluster, engine: SiteEngine, job: GeoJob, course: Course
) -> tuple[Throughput, Snapshot]:
    """Throughput, and what a policy sees of the same time."""
    seen: list[Snapshot] = []

    def observe() -> None:
        cluster.sites.measure()
        seen.append(believable(engine.observe())[0])

    found = measure(spark, cluster.spark, job, course, at_end=observe)
    return found, seen[0]


def _level(found: Throughput, seen: Snapshot, site: str) -> Level:
    rates = [found.rows / seconds for seconds in found.durations]
    nodes = [slot.node for slot in seen.pools[POOL]]
    cpu = list(found.cpu.values())
    return Level(
        slots=found.executors,
        site=site,
        delay=seen.rtt.worst(nodes) if seen.rtt is not None else 0.0,
        rate=found.mean,
        least=min(rates),
        most=max(rates),
        batches=len(rates),
        busy=(min(found.busy.values()), max(found.busy.values())),
        cpu=sum(cpu) / len(cpu) if cpu else None,
        waits=found.fetch_wait,
        skew=found.skew,
    )


def _add(engine: SiteEngine, slots: int, site: str) -> None:
    """Add an executor at a site; returns when it is there."""
    engine.apply({POOL: Change(before=slots, slots=slots + 1, raw=slots + 1.0, add_on=(site,))})
    deadline = time.monotonic() + RESIZE_SECONDS
    while engine.acting or len(engine.slots()) <= slots:
        if time.monotonic() > deadline:
            raise EngineError(f"no executor came at {site} within {RESIZE_SECONDS:.0f} s")
        engine.advance(LOOK)


def _off(cluster: SiteCluster) -> float:
    """How far round trips are from what is configured, at the worst pair, of what is allowed."""
    rtt, spec = cluster.sites.rtt, cluster.spec
    worst = 0.0
    for one, other in combinations((site.name for site in spec.sites), 2):
        wanted = spec.rtt(one, other)
        allowed = max(0.002, 0.05 * wanted) + spec[one].jitter + spec[other].jitter
        worst = max(worst, abs(rtt.between(one, other) - wanted) / allowed)
    return worst


def _words(level: Level) -> str:
    if level.plus is None:
        return ""
    simple = "–" if level.gesscale is None else f"{level.gesscale / level.rate - 1.0:+.0%}"
    return f"; foretold {simple} by gesscale, {level.plus / level.rate - 1.0:+.0%} by gesscale+"


Scaler = Literal["gesscale", "gesscale+"]
SCALERS: tuple[Scaler, ...] = ("gesscale", "gesscale+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimbOutcome:
    """A condition that was measured with the rows of a seed."""

    key: str
    seed: int
    climb: Climb


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimbOutcomes:
    """All that a folder holds."""

    runs: tuple[ClimbOutcome, ...]

    def of(self, condition: SparkCondition) -> list[Climb]:
        """The climbs of a condition, by seed."""
        found = [run for run in self.runs if run.key == condition.key]
        return [run.climb for run in sorted(found, key=lambda run: run.seed)]

    def level(self, condition: SparkCondition, slots: int) -> list[Level]:
        """What was measured with so many executors, by seed."""
        return [climb.levels[slots - 1] for climb in self.of(condition)]

    def rate(self, condition: SparkCondition, slots: int) -> float:
        """Records/s in the mean."""
        return statistics.fmean(level.rate for level in self.level(condition, slots))

    def gain(self, condition: SparkCondition) -> float:
        """What an executor more adds, as a share of what the first one does; in the mean."""
        first = self.rate(condition, 1)
        return (self.rate(condition, MOST) - first) / (MOST - 1) / first

    def errors(
        self, condition: SparkCondition, scaler: Scaler, slots: int | None = None
    ) -> list[float]:
        """foretold / measured − 1, of one level or of all that were foretold."""
        levels = [level for climb in self.of(condition) for level in climb.levels]
        found = []
        for level in levels:
            value = level.plus if scaler == "gesscale+" else level.gesscale
            if value is not None and slots in (None, level.slots):
                found.append(value / level.rate - 1.0)
        return found

    def error(self, condition: SparkCondition, scaler: Scaler) -> float:
        """Mean size of all errors."""
        return statistics.fmean(abs(error) for error in self.errors(condition, scaler))

    def inside(self, condition: SparkCondition) -> float:
        """How often a level is within the 95 % interval of ``gesscale+``."""
        levels = [level for climb in self.of(condition) for level in climb.levels]
        return statistics.fmean(
            abs(level.plus - level.rate) <= level.plus_width
            for level in levels
            if level.plus is not None and level.plus_width is not None
        )
