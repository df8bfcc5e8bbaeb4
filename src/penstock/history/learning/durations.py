"""Batches of which only the duration is known: one stage that explains it.

A batch of n records took a + b·n seconds on so many slots. What grows with the records is taken as
the work of one stage on all partitions, spread evenly; what a batch takes whatever its size as time
of the driver, which no executor shortens. Neither is told by a progress document.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penstock.batches.batch_cost import LEAST_SPREAD
from penstock.batches.values import Batch, Executor, Stage
from penstock.core.errors import InputError
from penstock.history.profiling import lines
from penstock.history.recording import RecordedApplication, RecordedQuery

MOST_EXECUTORS = 100_000
SEEN = 2.0  # standard errors above 0 that a cost per record must be
NOTE = (
    "only durations of batches are known: one stage stands for all of them; what a batch takes "
    "whatever its size counts as driver time, which executors do not shorten. An event log "
    "(spark.eventLog.enabled true), or penstock advise for an hour, tells stages apart"
)


def with_stages(
    application: RecordedApplication,
    *,
    executors: int | None,
    cores: int | None,
    partitions: int | None,
) -> RecordedApplication:
    """The application as if it had run all the time on so many ``executors`` of ``cores`` each."""
    if executors is None:
        raise InputError(
            f"{application.source}: tells of batches only, not of the executors that they ran on; "
            "say how many there were: --executors N (and --cores, --partitions where these are "
            "not 1 and all cores)"
        )
    cores = 1 if cores is None else cores
    for option, value in (("--executors", executors), ("--cores", cores)):
        if not 1 <= value <= MOST_EXECUTORS:
            raise InputError(f"{option} {value} must be from 1 to {MOST_EXECUTORS:,}")
    slots = executors * cores
    if partitions is not None and not 1 <= partitions <= MOST_EXECUTORS:
        raise InputError(f"--partitions {partitions} must be from 1 to {MOST_EXECUTORS:,}")
    batches = [b for q in application.queries for b in q.batches]
    begin = min(b.start for b in batches) - 1.0
    remarks = [f"taken as run on {executors} executors with {cores} cores each, as told"]
    if partitions is None:
        remarks.append(f"partitions are not known: taken as one per core, {slots} (--partitions)")
    return replace(
        application,
        executors=tuple(
            Executor(
                id=str(number),
                host="",
                cores=cores,
                alive=True,
                added=begin,
                removed=None,
                task_seconds=0.0,
                completed_tasks=0,
                active_tasks=0,
            )
            for number in range(executors)
        ),
        queries=tuple(_staged(q, slots, partitions or slots) for q in application.queries),
        remarks=(*application.remarks, *remarks, NOTE),
    )


def refuse_sizes(
    source: object, *, executors: int | None, cores: int | None, partitions: int | None
) -> None:
    """Refuse sizes for a source that tells them itself."""
    given = {"--executors": executors, "--cores": cores, "--partitions": partitions}
    for option, value in given.items():
        if value is not None:
            raise InputError(
                f"{option} {value} is for files of progress documents only; {source} tells its "
                "executors itself: leave it out"
            )


def _staged(query: RecordedQuery, slots: int, tasks: int) -> RecordedQuery:
    ran = [b for b in query.batches if not b.idle and b.rows > 0 and b.duration > 0]
    fixed = _fixed(ran)
    turns = math.ceil(tasks / slots)
    return replace(
        query,
        stages={
            b.id: (
                Stage(
                    id=b.id,
                    run_id=query.run_id,
                    batch=b.id,
                    done=True,
                    tasks=tasks,
                    run_time=max(0.0, b.duration - fixed) * tasks / turns,
                    cpu_time=0.0,
                    fetch_wait=0.0,
                    input_records=b.rows,
                    read_records=0,
                    write_records=0,
                    completed=tasks,
                ),
            )
            for b in ran
        },
    )


def _fixed(batches: Sequence[Batch]) -> float:
    """Seconds of a batch whatever its size: by the line through all, where they grow with the
    records; else what Spark says passed outside of its work.
    """
    rows = np.array([float(b.rows) for b in batches])
    seconds = np.array([b.duration for b in batches])
    if len(batches) > 2 and rows.std() > LEAST_SPREAD * rows.mean():
        line = lines.fit([np.ones(len(rows)), rows], seconds, relative=False)
        if line.clear(1, SEEN):
            return line.values[0]
    outside = [b.duration - b.phases["addBatch"] for b in batches if "addBatch" in b.phases]
    return max(0.0, float(np.median(outside))) if outside else 0.0
