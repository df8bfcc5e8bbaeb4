"""The batches that a profile is made of: few enough to fit, with stages that can be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penstock.batches.values import Stage
from penstock.core.errors import InputError
from penstock.history.learning.notes import Notes
from penstock.history.profiling.experiment import Experiment
from penstock.history.profiling.lineup import Lineup, line_up

BLOCK = 12  # batches in a row that are kept together, so that each has its forerunner
MOST_FITTED, LEAST_FITTED = 800, 120  # batches of a query that are fitted
TASKS_FITTED = 200_000  # of all stages of those batches together
AFTER_CHANGE = 30  # batches that are kept after an executor came
TOO_MANY = 0.5  # of the batches lack a stage: they are no longer told apart


def lined_up(experiments: Sequence[Experiment], name: str, notes: Notes) -> Lineup:
    """The batches with their stages; all stages as one where they cannot be told apart."""
    problem: InputError | None = None
    try:
        found = line_up(experiments, lenient=True)
        complete = sum(row.batch.rows > 0 for row in found.rows)
        if found.incomplete <= TOO_MANY * (complete + found.incomplete):
            if found.few:
                notes.add(
                    f"only {len(found.settled)} batches ran: all numbers are rough. A longer "
                    "recording tells more",
                    name,
                )
            if found.restless:
                notes.add(
                    "executors came and went all the time: batches count that met some coming, "
                    "going or warming up, which cost more. A run on a fixed size tells more",
                    name,
                )
            return found
    except InputError as error:
        problem = error
    try:
        found = line_up([_merged(e) for e in experiments], lenient=True)
    except InputError as error:
        raise (problem or error) from None
    notes.add(
        "batches run different stages from one to the next (several jobs, or adaptive execution): "
        "taken together as one",
        name,
    )
    return found


def _merged(experiment: Experiment) -> Experiment:
    """The same with all stages of a batch as one."""
    widths = [
        max(1, max((s.tasks for s in some), default=1)) for some in experiment.stages.values()
    ]
    usual = round(float(np.median(widths))) if widths else 1
    rows = {b.id: b.rows for b in experiment.batches}
    stages = {
        id: (_sum_of(some, usual, rows.get(id, 0)),)
        for id, some in experiment.stages.items()
        if some
    }
    return replace(experiment, stages=stages, tasks={})


def _sum_of(stages: Sequence[Stage], tasks: int, rows: int) -> Stage:
    return replace(
        stages[0],
        tasks=tasks,
        run_time=sum(s.run_time for s in stages),
        cpu_time=sum(s.cpu_time for s in stages),
        fetch_wait=sum(s.fetch_wait for s in stages),
        input_records=max(1, rows),
        read_records=0,
        write_records=0,
        submitted=None,
        ended=None,
    )


def thinned(experiment: Experiment) -> Experiment:
    """At most so many batches as can be fitted in seconds: blocks of some in a row, evenly spread,
    and those after an executor came. Batches of which no stage is known say nothing.
    """
    ran = [
        b for b in experiment.batches if not b.idle and (experiment.stages.get(b.id) or not b.rows)
    ]
    if any(experiment.stages.values()):
        known = {b.id for b in ran}
        experiment = replace(
            experiment, batches=tuple(b for b in experiment.batches if b.idle or b.id in known)
        )
    widths = [sum(s.tasks for s in some) for some in experiment.stages.values()] or [1]
    most = TASKS_FITTED // max(1, round(float(np.median(widths))))
    most = min(MOST_FITTED, max(LEAST_FITTED, most))
    if len(ran) <= most:
        return experiment
    every = math.ceil(len(ran) / most)
    kept = {b.id for place, b in enumerate(ran) if place // BLOCK % every == 0}
    starts = np.array([b.start for b in ran])
    came = [e.added for e in experiment.executors if e.added > experiment.start]
    for moment in came[: most // AFTER_CHANGE]:
        at = max(0, int(np.searchsorted(starts, moment)) - 2)
        kept |= {b.id for b in ran[at : at + AFTER_CHANGE]}
    return replace(
        experiment, batches=tuple(b for b in experiment.batches if b.idle or b.id in kept)
    )


def say_tasks(lineup: Lineup, name: str, notes: Notes) -> None:
    """Note the stages whose number of tasks changes from batch to batch."""
    for role, stage in enumerate(lineup.names):
        counts = {row.stages[role].tasks for row in lineup.settled}
        if len(counts) > 1:
            notes.add(
                f"{stage} had {min(counts)} to {max(counts)} tasks: the profile has the most "
                f"common number, {lineup.tasks(role)}",
                name,
            )
