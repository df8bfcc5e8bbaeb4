"""The demo: a real query under a load that rises and falls, scaled while it runs, then checked."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.core.errors import EngineError, InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, State
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.clusters.standalone.full_speed import full_speed
from penstock.lab.queries import nexmark
from penstock.report import runs
from penstock.report.build import Finished, finish
from penstock.spark.autoscaler import Autoscaler
from penstock.workloads.nexmark import PRESETS, NexmarkStream
from penstock.workloads.patterns import Constant, Cosine, describe

QUERY = nexmark.QUERIES["q5"]
SETTINGS = nexmark.Settings(minute=3.0)  # a window of 15 s every 3 s
SLIDE = SETTINGS.scaled(60.0)  # seconds
LOW, HIGH = 2_000.0, 60_000.0  # records/s
UNLIMITED = 4  # times that load for executors of a whole core
TRIGGER = 5.0  # seconds; a batch costs some 3 executor-seconds whatever it reads
LARGEST = 4  # times what a trigger brings at most: a batch has fixed costs, large ones catch up
CATCH_UP = 120.0  # most seconds after the load until the last window has closed
WARM_ROWS, WARM_BATCHES = 5_000, 10
NAME = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSpec:
    """What the demo runs: the load in records/s, the cluster, the policy and its limits.

    ``fit`` lets the load be higher where executors cannot be limited to a share of a core, so
    that one of them does not carry it all.
    """

    policy: str = "ds2"
    parameters: dict[str, str] = dataclasses.field(default_factory=dict)
    seconds: float = 150.0
    low: float = LOW
    high: float = HIGH
    fit: bool = True
    slots: int = 4
    cpu_share: float | None = 0.35
    period: float = 3.0
    seed: int = 0
    out: Path = Path("runs")

    def __post_init__(self) -> None:
        if not 30 <= self.seconds <= 3600:
            raise InputError(f"--seconds {self.seconds:g} must lie between 30 and 3600")

    @property
    def pattern(self) -> Cosine:
        """One period of a cosine, then on at its low point."""
        return Cosine(low=self.low, high=self.high, period=self.seconds)

    @property
    def guards(self) -> Guards:
        """Limits for a load that changes within seconds."""
        return Guards(
            minimum=1,
            maximum=self.slots,
            step_up=2,  # starting an executor costs several CPU-seconds of this machine
            step_down=2,
            tolerance=0.1,
            cool_down=6 * self.period,  # a new executor is slow at first
            drain=2 * TRIGGER,  # what came since the last batch waits too
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What happened, and whether the result of the query is right."""

    finished: Finished
    comparison: nexmark.Comparison


def run_demo(
    spec: DemoSpec,
    *,
    say: Callable[[str], None],
    watch: Callable[[Decision, float], None],
) -> DemoResult:
    """Start a cluster, run the query under load with the policy acting, check its result.

    ``watch`` is called with every decision and the seconds since the load began. What Ctrl-C
    leaves behind is a valid run up to there.
    """
    cluster_spec = ClusterSpec(slots=spec.slots, cpu_share=spec.cpu_share)
    with LocalCluster(cluster_spec, say=say) as cluster:
        if spec.fit and not cluster.limited:
            spec = dataclasses.replace(spec, low=UNLIMITED * spec.low, high=UNLIMITED * spec.high)
            say(f"executors are not limited: the load goes up to {spec.high:,.0f} records/s")
        conf = {"spark.sql.shuffle.partitions": str(spec.slots)}
        spark = cluster.session("penstock demo", start_with=1, conf=conf)
        say("warming up the first executor…")
        with full_speed(cluster):
            _warm_up(spark, spec, cluster.folder / "warm-up")
        events = _events(spec)
        result = cluster.folder / NAME
        query = _start(spark, events, result)
        folder = _scale(spec, spark, cluster, query, events, say, watch)
        say("comparing the streamed result with a batch run over the same events…")
        comparison = _check(spec, spark, cluster, events, result)
        say("stopping the cluster…")
    return DemoResult(finished=finish(folder), comparison=comparison)


def _events(spec: DemoSpec) -> NexmarkStream:
    """The bids; windows are aligned to the epoch, so the load starts with one."""
    return NexmarkStream(
        events=dataclasses.replace(PRESETS["nexmark"], seed=spec.seed),
        pattern=spec.pattern,
        start=math.ceil((time.time() + 2) / SLIDE) * SLIDE,
        seconds=spec.seconds + CATCH_UP + 60,
        partitions=spec.slots,
        max_rows=int(LARGEST * TRIGGER * spec.high),
    )


def _scale(
    spec: DemoSpec,
    spark: Any,
    cluster: LocalCluster,
    query: Any,
    events: NexmarkStream,
    say: Callable[[str], None],
    watch: Callable[[Decision, float], None],
) -> Path:
    """Let the policy act until the query has seen the whole load; returns the run's folder."""

    def record(decision: Decision, state: State) -> None:
        if kept is not None:
            kept.record(decision, state)
        watch(decision, decision.seen.time - events.start)

    autoscaler = Autoscaler(
        spark,
        spec.policy,
        parameters=spec.parameters,
        mode="act",
        period=spec.period,
        window=3 * spec.period,
        guards=spec.guards,
        cluster=cluster,
        seed=spec.seed,
        record=record,
    )
    kept: runs.Recording | None = None
    try:
        with runs.recording(spec.out, NAME, _config(spec, cluster), autoscaler.header) as kept:
            begins = max(0.0, events.start - time.time())
            say(f"load begins in {begins:.0f} s")
            with autoscaler:
                nexmark.wait_until_final(
                    query,
                    QUERY,
                    events,
                    _end(spec, events),
                    within=begins + spec.seconds + CATCH_UP,
                )
            nexmark.stop(query)
    except KeyboardInterrupt:
        if kept is not None and kept.ticks:
            say(f"interrupted; the first {kept.ticks} decisions are in {kept.folder}")
            finish(kept.folder)
        raise
    return kept.folder


def _check(
    spec: DemoSpec, spark: Any, cluster: LocalCluster, events: NexmarkStream, result: Path
) -> nexmark.Comparison:
    """The streamed result beside a batch run over the same events, at full speed."""
    until = _end(spec, events)
    with full_speed(cluster):
        return nexmark.compare(spark, QUERY, events, SETTINGS, folder=result, until=until)


def _end(spec: DemoSpec, events: NexmarkStream) -> float:
    """The end of the last window that lies within the load."""
    return events.start + spec.seconds // SLIDE * SLIDE


def _warm_up(spark: Any, spec: DemoSpec, folder: Path) -> None:
    """Let the first executor load its classes and compile its code on a query of the same kind."""
    past = NexmarkStream(
        pattern=Constant(rps=WARM_ROWS),
        start=time.time() - 2 * WARM_BATCHES,
        seconds=WARM_BATCHES,
        partitions=spec.slots,
        max_rows=WARM_ROWS,
    )
    query = _start(spark, past, folder, trigger=0.0)
    while sum(p["numInputRows"] for p in query.recentProgress) < past.total("bid"):
        if query.awaitTermination(1):
            raise EngineError("the query for warming up stopped by itself")
    nexmark.stop(query)


def _start(spark: Any, events: NexmarkStream, folder: Path, *, trigger: float = TRIGGER) -> Any:
    return nexmark.start(spark, QUERY, events, SETTINGS, folder=folder, trigger=trigger, name=NAME)


def _config(spec: DemoSpec, cluster: LocalCluster) -> dict[str, Any]:
    return {
        "penstock": __version__,
        "command": "demo",
        "policy": {"name": spec.policy, **spec.parameters},
        "workload": describe(spec.pattern),
        "engine": {
            "name": "Spark",
            "executors": spec.slots,
            "cpu_share": spec.cpu_share,
            "limited": cluster.limited,
        },
        "query": f"Nexmark {QUERY.name}, a minute in {SETTINGS.minute:g} s, trigger {TRIGGER:g} s",
        "guards": dataclasses.asdict(spec.guards),
        "seconds": spec.seconds,
        "period": spec.period,
        "seed": spec.seed,
    }
