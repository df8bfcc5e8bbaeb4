"""The profile of a Nexmark query, measured on a local cluster as the bench uses it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.lab.calibrate.profile.experiment import Experiment
from penstock.lab.calibrate.profile.fit import Fit, fit
from penstock.lab.calibrate.profile.plan import ProfileSpec, Step, seconds_of_events, steps_of
from penstock.lab.calibrate.profile.runs import Watch, resize, some_batches, until_the_end
from penstock.lab.queries import nexmark
from penstock.lab.rig import capacity as capacities
from penstock.lab.rig.capacity_file import Capacity
from penstock.lab.rig.ending import stopping
from penstock.lab.rig.rig import Rig
from penstock.simulator.microbatch.profile import VERSION as PROFILE_VERSION
from penstock.simulator.microbatch.profile import Profile, SourceProfile
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


def _run(rig: Rig, spec: ProfileSpec, step: Step) -> Experiment:
    """One run of a fresh query."""
    query = nexmark.QUERIES[spec.query]
    waiting, seconds = seconds_of_events(step, spec.settings)
    events = _events(spec, step.rows, step.density, time.time() - waiting, seconds)
    with (
        rig.folder() as folder,
        rig.feed.topics(query, events, backlog=True) as topics,
        closing(Watch(rig)) as watch,
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
