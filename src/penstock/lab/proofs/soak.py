"""Hours of acting: does anything grow that should not?

A Nexmark query under a load that rises and falls every few minutes, with the auto-scaler acting,
its journal rotated and its metrics scraped. Twice a minute the driver's Python and JVM are sampled
for memory, threads and open files, and the disk for what is written there. The driver's heap is
committed from the start, so that its memory shows what comes on top. Every sample is written down
at once: a run that is ended early keeps what it has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from penstock.core.errors import EngineError, InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, State
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.proofs import setting
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.lab.proofs.soak_samples import SoakSample, SoakSampler, append
from penstock.lab.proofs.statistics import drift, growth
from penstock.lab.queries import nexmark
from penstock.report import units
from penstock.report.figure import (
    BLUE,
    DPI,
    GREY,
    HEIGHT,
    INK,
    ORANGE,
    PURPLE,
    STYLE,
    WIDTH,
    new_figure,
    save_figure,
)
from penstock.report.runs import JOURNAL, PICTURE
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.settings import settings
from penstock.workloads.patterns import Cosine

QUERY = "q11"
SLOTS = 3
LOW, HIGH, CYCLE = 0.3, 12.0, 240.0  # of what one executor takes in small batches; seconds
PERIOD = 5.0  # seconds between decisions: three times as many as by default
EVERY = 30.0  # seconds between samples
COLLECT = 4  # samples from one forced collection to the next
SCRAPE = 2  # samples from one scrape to the next
WARM_UP = 0.2  # of the samples: caches and bookkeeping fill
LEAST, LEAST_SECONDS = 8, 900.0  # samples after the warm-up that can be judged, and their span
JOURNAL_BYTES, JOURNALS = 200_000, 3  # of one file, and how many old ones stay
DEAD = 20  # executors that Spark remembers after their end
MOST_MEMORY, MOST_DISK = 0.03, 0.10  # growth per hour
MOST_MORE = 2  # threads, open files
SAMPLES = "samples.jsonl"
CONF = {
    "spark.sql.shuffle.partitions": str(SLOTS),
    # What Spark keeps for its own pages is full after a few minutes instead of hours.
    "spark.driver.memory": "1g",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "2000",
    "spark.ui.retainedDeadExecutors": str(DEAD),
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.streaming.ui.retainedProgressUpdates": "50",
    "spark.sql.streaming.minBatchesToRetain": "20",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakSettings:
    """How long, in seconds, and how many seconds between two samples."""

    seconds: float = 7200.0
    every: float = EVERY

    def __post_init__(self) -> None:
        if not 60 <= self.seconds <= 7 * 86400:
            raise InputError(
                f"a soak of {self.seconds / 60:g} minutes must last from a minute to a week"
            )
        if not 1 <= self.every <= 600:
            raise InputError(f"every {self.every:g} s must lie between 1 and 600")

    @property
    def guards(self) -> Guards:
        """Limits for a load that changes within minutes."""
        return Guards(
            minimum=1,
            maximum=SLOTS,
            step_up=2,
            step_down=2,
            tolerance=0.1,
            cool_down=3 * PERIOD,
            drain=setting.TRIGGER,
        )


def prove(spec: SoakSettings, *, folder: Path, say: Say) -> Proof:
    """Run it; samples and journals go to ``folder`` as they come, in the end a picture."""
    journal = folder / JOURNAL
    actions = 0

    def record(decision: Decision, state: State) -> None:
        nonlocal actions
        actions += decision.applied

    with LocalCluster(ClusterSpec(slots=SLOTS, cpu_share=setting.SHARE), say=say) as cluster:
        spark = cluster.session("penstock lab prove soak", start_with=1, conf=_conf(cluster))
        running = _start(spec, spark, cluster, say)
        sampler = SoakSampler(
            spark,
            cluster,
            journal=journal,
            checkpoint=cluster.folder / "query" / "checkpoint",
            batch=lambda: getattr(setting.last_batch(running), "id", -1),
        )
        scaler = Autoscaler.from_settings(
            spark, _settings(spec, journal), cluster=cluster, record=record
        )
        with scaler:
            samples, interrupted = _sample(
                spec, sampler, running, scaler, folder / SAMPLES, lambda: actions, say
            )
        if not interrupted:
            nexmark.stop(running)
    proof = judge(samples, actions, interrupted)
    if len(samples) >= 3:
        draw(samples, folder)
    return proof


def _conf(cluster: LocalCluster) -> dict[str, str]:
    """The heap is committed and touched at the start."""
    key = "spark.driver.extraJavaOptions"
    return CONF | {key: f"{cluster.conf()[key]} -Xms1g -XX:+AlwaysPreTouch"}


def _start(spec: SoakSettings, spark: Any, cluster: LocalCluster, say: Say) -> Any:
    query = nexmark.QUERIES[QUERY]
    say("measuring what one executor takes…")
    rate = setting.capacity(
        spark,
        query,
        folder=cluster.folder,
        slots=SLOTS,
        ready=lambda: cluster.warm,
    )
    events = setting.stream_of(
        query,
        Cosine(low=LOW * rate, high=HIGH * rate, period=CYCLE),
        start=time.time(),
        seconds=spec.seconds + 3600.0,
        slots=SLOTS,
        max_rows=int(2 * setting.TRIGGER * HIGH * rate),
    )
    say(f"load between {units.count(LOW * rate)} and {units.count(HIGH * rate)} records/s, "
        f"up and down in {CYCLE / 60:g} minutes")  # fmt: skip
    return nexmark.start(
        spark, query, events, setting.SETTINGS, folder=cluster.folder / "query",
        trigger=setting.TRIGGER, sink="noop",
    )  # fmt: skip


def _settings(spec: SoakSettings, journal: Path) -> settings.Settings:
    return settings.load(
        environment={},
        given={
            "policy": "ds2",
            "parameters": {"over_provisioning": 1.2},
            "mode": "act",
            "period": PERIOD,
            "window": 2 * PERIOD,
            "guards": spec.guards,
            "journal": journal,
            "journal_max_bytes": JOURNAL_BYTES,
            "journal_keep": JOURNALS,
            "metrics_port": 0,
        },
    )


def _sample(
    spec: SoakSettings,
    sampler: SoakSampler,
    running: Any,
    scaler: Autoscaler,
    file: Path,
    actions: Callable[[], int],
    say: Say,
) -> tuple[list[SoakSample], bool]:
    """Samples until the time is over or Ctrl-C; says which."""
    samples: list[SoakSample] = []
    begin = time.monotonic()
    try:
        while (now := time.monotonic() - begin) < spec.seconds:
            number = len(samples)
            sample = sampler.take(
                now,
                collect=number % COLLECT == 0,
                url=scaler.metrics_url if number % SCRAPE == 0 else None,
            )
            append(sample, file)
            samples.append(sample)
            if number % SCRAPE == 0:
                say(_line(sample, spec, actions()))
            wake = begin + spec.every * len(samples)
            while (left := min(wake, begin + spec.seconds) - time.monotonic()) > 0:
                time.sleep(min(left, 1.0))
                if not running.isActive:
                    raise EngineError(f"the query stopped by itself: {running.exception()}")
    except KeyboardInterrupt:
        return samples, True
    return samples, False


def _line(sample: SoakSample, spec: SoakSettings, actions: int) -> str:
    return (
        f"{units.clock(sample.seconds)} of {units.clock(spec.seconds)}: "
        f"python {sample.python_rss >> 20} MB, jvm {sample.jvm_rss >> 20} MB, "
        f"executors {sample.executors}, {actions} actions"
    )


def judge(samples: Sequence[SoakSample], actions: int, interrupted: bool = False) -> Proof:
    """The verdict over the samples after the warm-up."""
    settled = samples[int(len(samples) * WARM_UP) :]
    span = settled[-1].seconds - settled[0].seconds if settled else 0.0
    long_enough = len(settled) >= LEAST and span >= LEAST_SECONDS
    checks: list[Check] = []
    if long_enough:
        checks += [
            _no_growth("Python memory", settled, lambda s: s.python_rss, MOST_MEMORY),
            _no_growth("JVM memory", settled, lambda s: s.jvm_rss, MOST_MEMORY),
            _no_growth("JVM heap after collection", settled, lambda s: s.heap, MOST_MEMORY),
            _no_growth("checkpoint on disk", settled, lambda s: s.checkpoint, MOST_DISK),
            _no_more("Python threads", settled, lambda s: s.python_threads),
            _no_more("Python open files", settled, lambda s: s.python_files),
            _no_more("JVM threads", settled, lambda s: s.jvm_threads),
            _no_more("JVM open files", settled, lambda s: s.jvm_files),
        ]
    scrapes = [s.scrape for s in samples[::SCRAPE]]
    last = samples[-1] if samples else None
    seconds = last.seconds if last else 0.0
    checks += [
        Check(figure="journal on disk, most", value=max((s.journal for s in samples), default=None),
              bound=JOURNAL_BYTES * (JOURNALS + 1), unit="bytes"),
        Check(figure="dead executors kept, most", value=max((s.dead or 0 for s in samples),
              default=None), bound=DEAD + SLOTS),
        Check(figure="scrapes without an answer", value=scrapes.count(None), bound=0),
        Check(figure="actions, at least one per cycle", value=actions,
              bound=int(seconds / CYCLE), at_most=False),
    ]  # fmt: skip
    notes = [
        f"{len(samples)} samples, the first {units.share(WARM_UP)} left out; {actions} actions, "
        f"{last.batch + 1 if last else 0} batches, {units.clock(seconds)}",
        "growth is absent where its interval reaches 0 or it keeps the bound per hour; threads and "
        "files: last quarter less first quarter, medians",
    ]
    if not long_enough:
        notes.append(
            f"too short to judge growth: {len(settled)} samples over {units.seconds(span)} after "
            f"the warm-up, at least {LEAST} over {units.seconds(LEAST_SECONDS)} are needed"
        )
    return Proof(
        name="soak",
        title=f"Soak: {QUERY} under a cosine of {CYCLE / 60:g} minutes, acting every {PERIOD:g} s",
        checks=tuple(checks),
        notes=tuple(notes),
        interrupted=interrupted,
    )


def _no_growth(
    figure: str,
    samples: Sequence[SoakSample],
    of: Callable[[SoakSample], float | None],
    most: float,
) -> Check:
    points = [(s.seconds, value) for s in samples if (value := of(s)) is not None]
    label = f"{figure}, growth per hour"
    if len(points) < 3:
        return Check(figure=label, value=None, bound=most, unit="%")
    found = growth([t for t, _ in points], [v for _, v in points])
    return Check(
        figure=label,
        value=found.per_hour,
        low=found.low,
        high=found.high,
        bound=most,
        by="low" if found.low <= 0.0 else "value",
        unit="%",
    )


def _no_more(
    figure: str, samples: Sequence[SoakSample], of: Callable[[SoakSample], float]
) -> Check:
    return Check(figure=f"{figure}, more", value=drift([of(s) for s in samples]), bound=MOST_MORE)


MB = float(1 << 20)
_Lines = Mapping[str, tuple[str, Callable[[SoakSample], float | None]]]


def draw(samples: Sequence[SoakSample], folder: Path) -> Path:
    """Draw the samples as ``report.png`` in a folder."""
    hours = samples[-1].seconds > 7200
    times = [s.seconds / (3600.0 if hours else 60.0) for s in samples]
    panels: Sequence[tuple[str, str, _Lines]] = (
        ("Memory", "MB", {
            "JVM": (BLUE, lambda s: s.jvm_rss / MB),
            "JVM heap after collection": (PURPLE, lambda s: _mb(s.heap)),
            "executor": (GREY, lambda s: _mb(s.executor_rss)),
            "Python": (ORANGE, lambda s: s.python_rss / MB),
        }),
        ("Threads and open files", "", {
            "JVM threads": (BLUE, lambda s: s.jvm_threads),
            "JVM files": (PURPLE, lambda s: s.jvm_files),
            "Python threads": (ORANGE, lambda s: s.python_threads),
            "Python files": (INK, lambda s: s.python_files),
        }),
        ("On disk", "MB", {
            "checkpoint": (BLUE, lambda s: s.checkpoint / MB),
            "journal": (ORANGE, lambda s: s.journal / MB),
        }),
        ("Executors", "", {
            "alive": (INK, lambda s: s.executors),
            "dead, remembered": (GREY, lambda s: s.dead),
        }),
    )  # fmt: skip
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        for axes, (name, unit, lines) in zip(figure.subplots(2, 2).flat, panels, strict=True):
            _panel(axes, name, unit, times, samples, lines)
            axes.set_xlabel("time (hours)" if hours else "time (minutes)")
        figure.tight_layout()
    return save_figure(figure, folder / PICTURE)


def _panel(
    axes: Axes,
    name: str,
    unit: str,
    times: Sequence[float],
    samples: Sequence[SoakSample],
    lines: _Lines,
) -> None:
    for label, (color, of) in lines.items():
        points = [(t, v) for t, s in zip(times, samples, strict=True) if (v := of(s)) is not None]
        axes.plot([t for t, _ in points], [v for _, v in points], color=color, lw=2.0, label=label)
    axes.set_title(f"{name} ({unit})" if unit else name, loc="left", fontweight="bold")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best")


def _mb(value: float | None) -> float | None:
    return None if value is None else value / MB
