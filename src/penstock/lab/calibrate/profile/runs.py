"""One run of a query, watched: how long it goes on, and all that is known of it then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from penstock.batches.snapshot import POOL
from penstock.batches.values import Stage
from penstock.core.errors import EngineError
from penstock.core.model import Change, Slot
from penstock.lab.calibrate.profile.experiment import Experiment, detail_of
from penstock.lab.calibrate.profile.plan import BATCHES, LEAST_BATCHES, Step
from penstock.lab.calibrate.saturation import full_batches
from penstock.lab.queries.running import consumed_of
from penstock.lab.rig.rig import Rig
from penstock.spark.engine import SparkEngine
from penstock.spark.read.progress import batch_of
from penstock.spark.read.rest import Rest

LOOK = 0.5  # seconds between two looks at a run
BEFORE = 2.0  # seconds of a run before its resize
PAUSE = 3.0  # seconds to wait for a moment between two batches
AFTER = 4.0  # seconds that a run goes on after a resize has taken effect
WARMING = 45.0  # seconds that it may go on until new executors are warm
GIVE_UP = 180.0


class Watch:
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


def some_batches(watch: Watch, running: Any, seconds: float) -> None:
    """Eight batches after the first, or as many as end in time, but at least three."""
    while not (full := full_batches(running)[1:]):
        watch.wait(running)
    watch.cpu()  # from here on
    while len(full) < BATCHES:
        if len(full) >= LEAST_BATCHES and full[-1].end - full[0].start >= seconds:
            break
        watch.wait(running)
        full = full_batches(running)[1:]
    watch.cpu()


def resize(watch: Watch, running: Any, step: Step, *, warm: Callable[[], bool]) -> None:
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


def until_the_end(watch: Watch, running: Any, wanted: tuple[int, ...], *, quiet: float) -> None:
    """All data, ``wanted`` rows of each source, and ``quiet`` seconds after them."""
    while consumed_of(running.lastProgress) != wanted:
        watch.wait(running)
    watch.cpu()
    watch.wait(running, quiet)
    watch.cpu()
