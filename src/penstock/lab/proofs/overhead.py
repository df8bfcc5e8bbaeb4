"""What being watched costs a query: its throughput, and the CPU of its driver's Python.

One saturated query on a fixed number of executors. Penstock in mode ``advise`` is attached and
detached in turn. A pair is two equal times, one with and one without it: one of them in the
middle, the other half before and half after it, which of them at random. So a machine that grows
steadily slower or faster meanwhile is slower or faster for both alike. A stretch of time begins
when the first observation is over, and batches that reach beyond it do not count.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.batches.values import Batch
from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.proofs import setting
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.lab.queries import nexmark
from penstock.report.statistics import estimate
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.read.progress import recent_batches

QUERY = "q1"
EXECUTORS = 2
BATCH = 1.0  # seconds that a batch takes, about
DEFAULT_PERIOD = 15.0  # seconds between two decisions unless told otherwise
LEAST_RATIO = 0.97
MOST_CPU = 0.02  # of a core
THREAD = "penstock"
SETTLE = 1.0  # seconds that the first observation may take


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadSettings:
    """How many pairs, seconds of each of the two times, seconds between decisions, a seed."""

    pairs: int = 30
    seconds: float = 12.0
    period: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.pairs <= 1000:
            raise InputError(f"--pairs {self.pairs} must lie between 2 and 1000")
        if not 0.5 <= self.period <= DEFAULT_PERIOD:
            raise InputError(
                f"--period {self.period:g} must lie between 0.5 and {DEFAULT_PERIOD:g} seconds"
            )
        if not 4 * self.period <= self.seconds <= 600:
            raise InputError(
                f"--seconds {self.seconds:g} must lie between {4 * self.period:g}, two decisions "
                "in each half, and 600"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Records and the seconds they took; CPU seconds of Python and of Penstock's thread.

    ``thread`` is 0 without Penstock; ``seconds`` is how long the CPU was watched.
    """

    records: int
    took: float
    process: float
    thread: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One time: records/s, and shares of a core used by Python as a whole and by Penstock's thread.

    ``thread`` is 0 without Penstock.
    """

    throughput: float
    process: float
    thread: float


def joined(stretches: Sequence[Stretch]) -> Segment:
    """One time out of its parts."""
    seconds = sum(part.seconds for part in stretches)
    return Segment(
        throughput=sum(part.records for part in stretches) / sum(part.took for part in stretches),
        process=sum(part.process for part in stretches) / seconds,
        thread=sum(part.thread for part in stretches) / seconds,
    )


def order_of(watched_inside: bool, seconds: float) -> tuple[tuple[bool, float], ...]:
    """The stretches of a pair: whether watched, and seconds.

    >>> order_of(True, 12.0)
    ((False, 6.0), (True, 12.0), (False, 6.0))
    """
    outside = (not watched_inside, seconds / 2)
    return outside, (watched_inside, seconds), outside


def work_within(batches: Sequence[Batch], begin: float, end: float) -> tuple[int, float] | None:
    """Records, and seconds, of the batches wholly within a time; ``None`` if fewer than two are."""
    inside = [b for b in batches if b.start >= begin and b.end <= end]
    if len(inside) < 2:
        return None
    return sum(b.rows for b in inside), inside[-1].end - inside[0].start


def own_cpu(watched: Segment, alone: Segment, period: float) -> float:
    """Penstock's share of a core at the default period.

    Its thread works once per period; what else Python does for it (listening to the query's
    progress) goes with the batches, whatever the period is.

    >>> alone = Segment(throughput=1.0, process=0.010, thread=0.0)
    >>> own_cpu(Segment(throughput=1.0, process=0.045, thread=0.030), alone, period=5.0)
    0.015
    """
    listening = watched.process - alone.process - watched.thread
    return round(watched.thread * period / DEFAULT_PERIOD + listening, 9)


def prove(spec: OverheadSettings, *, folder: Path, say: Say) -> Proof:
    """Run it; the journal of the watched times goes to the cluster's folder and is thrown away."""
    query = nexmark.QUERIES[QUERY]
    order = random.Random(spec.seed)
    with LocalCluster(ClusterSpec(slots=EXECUTORS, cpu_share=setting.SHARE), say=say) as cluster:
        conf = {"spark.sql.shuffle.partitions": str(EXECUTORS)}
        spark = cluster.session("penstock lab prove overhead", start_with=EXECUTORS, conf=conf)
        say(f"measuring what {EXECUTORS} executors take…")
        rate = setting.capacity(
            spark,
            query,
            folder=cluster.folder,
            slots=EXECUTORS,
            ready=lambda: cluster.warm,
        )
        running = setting.saturated(
            spark,
            query,
            folder=cluster.folder / "query",
            slots=EXECUTORS,
            rows=int(rate * BATCH),
            hours=24.0,
        )
        pairs = []
        for number in range(1, spec.pairs + 1):
            parts: dict[bool, list[Stretch]] = {True: [], False: []}
            for watched, seconds in order_of(order.random() < 0.5, spec.seconds):
                parts[watched].append(_stretch(spec, spark, cluster, running, watched, seconds))
            pairs.append((joined(parts[True]), joined(parts[False])))
            ratio = pairs[-1][0].throughput / pairs[-1][1].throughput
            left = (spec.pairs - number) * (2 * spec.seconds + 3 * (spec.period + SETTLE))
            say(f"pair {number} of {spec.pairs}: ratio {ratio:.3f}; {left / 60:.0f} min to go")
        nexmark.stop(running)
    return judge(spec, pairs)


def _stretch(
    spec: OverheadSettings,
    spark: Any,
    cluster: LocalCluster,
    running: Any,
    watched: bool,
    seconds: float,
) -> Stretch:
    journal = cluster.folder / "overhead.jsonl"
    journal.unlink(missing_ok=True)
    scaler = (
        Autoscaler(spark, period=spec.period, cluster=cluster, journal=journal)
        if watched
        else nullcontext()
    )
    with scaler:
        _wait(running, spec.period + SETTLE)  # the first observation reads more than later ones
        begin, process, thread = time.time(), time.process_time(), _thread_seconds()
        _wait(running, seconds)
        end, process_end, thread_end = time.time(), time.process_time(), _thread_seconds()
    done = work_within(recent_batches(running), begin, end)
    if done is None:
        raise EngineError(f"fewer than two batches fell into {seconds:g} s; use more --seconds")
    records, took = done
    return Stretch(
        records=records,
        took=took,
        process=process_end - process,
        thread=thread_end - thread,
        seconds=end - begin,
    )


def _wait(running: Any, seconds: float) -> None:
    threading.Event().wait(seconds)  # costs no CPU, unlike asking the JVM to wait
    if not running.isActive:
        raise EngineError("the query stopped by itself")


def _thread_seconds() -> float:
    """CPU seconds that Penstock's thread has used; 0 if it does not run."""
    for thread in threading.enumerate():
        if thread.name == THREAD and thread.ident is not None:
            return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    return 0.0


def judge(spec: OverheadSettings, pairs: Sequence[tuple[Segment, Segment]]) -> Proof:
    """The verdict over pairs of (watched, alone)."""
    ratios = [watched.throughput / alone.throughput for watched, alone in pairs]
    cpu = [own_cpu(watched, alone, spec.period) for watched, alone in pairs]
    thread = estimate([watched.thread for watched, _ in pairs])
    now = estimate([watched.process - alone.process for watched, alone in pairs])
    checks = (
        Check.of("throughput, with ÷ without", estimate(ratios), LEAST_RATIO,
                 at_most=False, by="low"),
        Check.of(f"CPU at a period of {DEFAULT_PERIOD:g} s, of a core", estimate(cpu), MOST_CPU,
                 by="high", unit="%"),
    )  # fmt: skip
    rows = [
        {
            "pair": number,
            "without, records/s": round(alone.throughput),
            "with, records/s": round(watched.throughput),
            "ratio": round(ratio, 3),
            "CPU %": round((watched.process - alone.process) * 100, 2),
        }
        for number, ((watched, alone), ratio) in enumerate(zip(pairs, ratios, strict=True), 1)
    ]
    return Proof(
        name="overhead",
        title=f"Overhead of mode advise: {QUERY} at saturation on {EXECUTORS} executors, "
        f"{spec.seconds:g} s each",
        checks=checks,
        details=tuple(rows),
        notes=(
            f"measured with a decision every {spec.period:g} s: {now.mean * 100:.2f} % of a core, "
            f"of which {thread.mean * 100:.2f} % in Penstock's thread; that part shrinks with a "
            f"longer period",
            "the driver's JVM answers Penstock's questions; what that costs is in the throughput",
        ),
    )
