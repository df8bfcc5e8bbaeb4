"""The profile of a Nexmark query, measured on a local cluster as the bench uses it."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.batches.progress import batch_of
from penstock.batches.snapshot import POOL
from penstock.batches.values import Batch, Stage
from penstock.core.errors import EngineError
from penstock.core.model import Change, Slot
from penstock.history.profiling.experiment import Experiment, detail_of
from penstock.history.profiling.fit import Fit, fit
from penstock.lab.calibrate.profile.steps import (
    BATCHES,
    LEAST_BATCHES,
    ProfileRun,
    ProfileSpec,
    seconds_of_events,
    steps_of,
)
from penstock.lab.queries import nexmark
from penstock.lab.queries.running import consumed_of
from penstock.lab.rig import capacity as capacities
from penstock.lab.rig.capacity_file import Capacity
from penstock.lab.rig.rig import Rig
from penstock.lab.rig.saturation import (
    Counting,
    counted_batches,
    full_batches,
    lasted,
    stopping,
)
from penstock.simulator.microbatch.profile import VERSION as PROFILE_VERSION
from penstock.simulator.microbatch.profile import Profile, SourceProfile
from penstock.spark.engine import SparkEngine
from penstock.spark.read.rest import Rest
from penstock.workloads.nexmark import NexmarkStream
from penstock.workloads.patterns import Constant

QUIET = 4.0  # triggers after the last data in which an empty batch shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A profile, how it was fitted, and what the query could do.

    ``limited`` whether the executors had a CPU quota · ``runs`` with their ``batches`` in all.
    """

    profile: Profile
    fit: Fit
    capacity: Capacity
    limited: bool
    runs: int
    batches: int


def measure(
    spec: ProfileSpec,
    *,
    servers: str | None = None,
    say: Callable[[str], None],
    begun: Callable[[int, int], None],
) -> Measured:
    """Run all steps and fit; ``begun`` is told each step and how many there are.

    ``servers`` of Kafka, if the events come from there and not from a broker of ours.
    """
    with Rig(spec.settings, servers=servers, say=say) as rig:
        capacity = capacities.measure(rig, spec.query)
        steps = steps_of(spec, capacity)
        found = []
        for number, step in enumerate(steps):
            begun(number, len(steps))
            say(f"{spec.query}, run {number + 1} of {len(steps)}: {step}")
            found.append(_run(rig, spec, step))
        facts = _provenance(spec, rig, capacity)
        limited = rig.cluster.limited
    events = _events(spec, capacity.rows, capacity.all, time.time(), 1.0)
    sources = [
        SourceProfile(name=table, max_rows=events.limit(table))
        for table in nexmark.QUERIES[spec.query].tables
    ]
    made = fit(spec.query, found, sources, trigger=spec.settings.trigger)
    return Measured(
        profile=Profile(
            version=PROFILE_VERSION,
            queries=(made.query,),
            executor=made.executor,
            measured=f"Nexmark {spec.query} on a local cluster, by penstock calibrate --profile",
            provenance=facts,
        ),
        fit=made,
        capacity=capacity,
        limited=limited,
        runs=len(found),
        batches=sum(not b.idle for e in found for b in e.batches),
    )


def _events(
    spec: ProfileSpec, rows: int, density: float, start: float, seconds: float
) -> NexmarkStream:
    return capacities.events_of(
        spec.query,
        spec.settings,
        seed=spec.seed,
        rows=rows,
        pattern=Constant(rps=density),
        start=start,
        seconds=seconds,
    )


def _run(rig: Rig, spec: ProfileSpec, step: ProfileRun) -> Experiment:
    """One run of a fresh query."""
    query = nexmark.QUERIES[spec.query]
    waiting, seconds = seconds_of_events(step, spec.settings)
    events = _events(spec, step.rows, step.density, time.time() - waiting, seconds)
    with (
        rig.folder() as folder,
        rig.feed.topics(query, events, backlog=True) as topics,
        closing(RunWatch(rig)) as watch,
    ):
        running: Any = nexmark.start(
            rig.session(),
            query,
            events,
            capacities.query_settings(spec.settings),
            folder=folder,
            trigger=spec.settings.trigger,
            name=f"profile-{spec.query}",
            topics=topics,
        )
        with stopping(running):
            if step.last:
                wanted = tuple(events.total(t) for t in query.tables)
                until_the_end(watch, running, wanted, quiet=QUIET * spec.settings.trigger)
            elif step.resizes:
                resize(watch, running, step, warm=lambda: rig.warm)
            else:
                some_batches(watch, running, spec.seconds)
            return watch.seen(running, ended=step.last)


def _provenance(spec: ProfileSpec, rig: Rig, capacity: Capacity) -> dict[str, str]:
    from penstock import __version__

    settings = spec.settings
    share = settings.cpu_share if rig.cluster.limited else None
    return {
        "penstock": __version__,
        "spark": str(rig.session().version),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "query": spec.query,
        "seed": str(spec.seed),
        "cpu_share": "not limited" if share is None else f"{share:g}",
        "executors": ",".join(map(str, spec.sizes)),
        "partitions": str(settings.partitions),
        "source": settings.source,
        "trigger": f"{settings.trigger:g}",
        "minute": f"{settings.minute:g}",
        "records_per_second": f"{capacity.one:.0f} on one executor, {capacity.all:.0f} on all",
        "quick": str(spec.quick).lower(),
    }


LOOK = 0.5  # seconds between two looks at a run
BEFORE = 2.0  # seconds of a run before its resize
PAUSE = 3.0  # seconds to wait for a moment between two batches
AFTER = 4.0  # seconds that a run goes on after a resize has taken effect
WARMING = 45.0  # seconds that it may go on until new executors are warm
GIVE_UP = 180.0


class RunWatch:
    """Looks at one run: its engine times actions, the driver tells of stages and tasks."""

    def __init__(self, rig: Rig) -> None:
        spark = rig.session()
        context: Any = spark.sparkContext
        self.rest = Rest(context.uiWebUrl, context.applicationId)
        self.rest.new_stages()  # from now on
        self.engine = SparkEngine(spark, cluster=rig.cluster)
        self.engine.attach()
        self._deadline = time.monotonic() + GIVE_UP
        self._cpu: list[tuple[float, float]] = []

    def close(self) -> None:
        """Look no more."""
        self.engine.detach()

    def wait(self, running: Any, seconds: float = LOOK) -> None:
        """Wait, time the action in flight, and fail if the query did or takes too long."""
        self.engine.advance(seconds)
        if not running.isActive:
            raise EngineError(f"{running.name} stopped while it was measured")
        if time.monotonic() > self._deadline:
            raise EngineError(
                f"{running.name} did not get far enough within {GIVE_UP:.0f} s; raise --cpu-share"
            )

    def cpu(self) -> None:
        """What each executor used since the last call."""
        slots: tuple[Slot, ...] = self.engine.slots()
        self._cpu += [(s.load, s.cpu) for s in slots if s.load is not None and s.cpu is not None]

    def seen(self, running: Any, *, ended: bool) -> Experiment:
        """All that there is to know of a run, before it is stopped."""
        documents = [json.loads(progress.json) for progress in running.recentProgress]
        batches = [batch_of(document) for document in documents]
        if ended and batches:
            batches.append(batches[-1].idle_at(time.time()))
        known = {b.id for b in batches}
        stages: dict[int, list[Stage]] = {}
        for stage in self.rest.new_stages():
            if stage.run_id == str(running.runId) and stage.batch in known:
                stages.setdefault(stage.batch, []).append(stage)
        return Experiment(
            batches=tuple(batches),
            stages=stages,
            executors=tuple(self.rest.executors()),
            tasks={s.id: self.rest.tasks(s) for some in stages.values() for s in some if s.tasks},
            rescales=tuple(self.engine.pool.past),
            cpu=tuple(self._cpu),
            details={int(d["batchId"]): detail_of(d) for d in documents},
        )


def some_batches(watch: RunWatch, running: Any, seconds: float) -> None:
    """Eight batches after the first, or as many as end in time, but at least three."""
    begun = False

    def enough(batches: Sequence[Batch]) -> bool:
        nonlocal begun
        if not begun:
            watch.cpu()  # from here on
            begun = True
        some = len(batches) >= LEAST_BATCHES and lasted(batches) >= seconds
        return some or len(batches) >= BATCHES

    counting = Counting(
        enough=enough, skip=1, within=GIVE_UP, hint="raise --cpu-share", wait=watch.wait
    )
    counted_batches(running, counting)
    watch.cpu()


def resize(watch: RunWatch, running: Any, step: ProfileRun, *, warm: Callable[[], bool]) -> None:
    """Another number of executors. They come during a large batch, which may last, and go between
    two small ones, if there is such a moment.
    """
    watch.wait(running, BEFORE)
    if step.executors < step.before:
        while len(full_batches(running)) < 2:
            watch.wait(running)
        deadline = time.monotonic() + PAUSE
        while running.status["isTriggerActive"] and time.monotonic() < deadline:
            watch.wait(running, 0.02)
    change = Change(before=step.before, slots=step.executors, raw=float(step.executors))
    watch.engine.apply({POOL: change})
    while watch.engine.pool.acting:
        watch.wait(running)
    acted = time.time()
    watch.wait(running, AFTER)
    while not any(batch.end > acted for batch in full_batches(running)[1:]):
        watch.wait(running)
    deadline = time.monotonic() + WARMING
    while step.warm and not warm() and time.monotonic() < deadline:
        watch.wait(running)


def until_the_end(watch: RunWatch, running: Any, wanted: tuple[int, ...], *, quiet: float) -> None:
    """All data, ``wanted`` rows of each source, and ``quiet`` seconds after them."""
    while consumed_of(running.lastProgress) != wanted:
        watch.wait(running)
    watch.cpu()
    watch.wait(running, quiet)
    watch.cpu()
