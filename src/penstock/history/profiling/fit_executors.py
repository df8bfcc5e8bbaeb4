"""What an executor is like: how it starts, warms up, uses its CPU and leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.history.profiling import lines
from penstock.history.profiling.experiment import Experiment
from penstock.history.profiling.lines import Floats
from penstock.simulator.microbatch.profile import ExecutorProfile

WARM_UPS = np.geomspace(0.2, 20.0, 25)  # seconds of work that are tried
BOOSTS = np.geomspace(0.5, 40.0, 40)
LEAST_NEW = 2  # executors that must have been seen warming up
LEAST_SIDE = 5  # tasks before and after the end of a boost
TINY = 1e-3  # seconds
LEAST_LOAD = 0.2  # difference of the loads at which CPU was seen


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task of an executor that came during a run, and after how much work there.

    ``said`` what it would take on a warm one; ``first`` its first task.
    """

    busy: float
    said: float
    worked: float
    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorFit:
    """The executor, standard errors by name, and what could not be told."""

    profile: ExecutorProfile
    errors: Mapping[str, float]
    notes: tuple[str, ...]


def executor_of(
    experiments: Sequence[Experiment], tasks: Mapping[tuple[int, str], Sequence[NewTask]]
) -> ExecutorFit:
    """The executor that fits the actions of all runs, and the tasks of each new one in order."""
    values: dict[str, float] = {}
    errors: dict[str, float] = {}
    notes: list[str] = []
    starts = _starts(experiments)
    leaves, busy_leaves = _leaves(experiments)
    spread: list[Floats] = []
    if starts:
        spread.append(_add_start(starts, values, errors, notes))
    else:
        came = any(e.added > x.start for x in experiments if x.batches for e in x.executors)
        notes.append(
            "when executors were asked for is not known: start and start_each keep their defaults"
            if came
            else "no executor was added: start, start_each and warm-up keep their defaults"
        )
    if leaves or busy_leaves:
        if not leaves:
            notes.append("executors left during batches only: leave is an upper bound")
        gone = np.array(leaves or [min(busy_leaves)])
        values["leave"], errors["leave"] = lines.centre(gone.tolist())
        spread.append(_logs(gone, values["leave"]))
    else:
        notes.append("no executor left: leave keeps its default")
    if (deviations := np.concatenate([np.empty(0), *spread])).size > 2:
        values["noise"] = lines.deviation(deviations)
    if starts or any(tasks.values()):
        _add_warm_up(tasks, values, errors, notes)
    _add_cpu([pair for e in experiments for pair in e.cpu], values, notes)
    cores = max((e.tasks_at_once for x in experiments for e in x.executors), default=1)
    return ExecutorFit(
        profile=ExecutorProfile(cores=cores, **values), errors=errors, notes=tuple(notes)
    )


def _starts(experiments: Sequence[Experiment]) -> list[tuple[int, float]]:
    """The place of each executor among those that an action brought, and seconds until it came."""
    found = []
    for experiment in experiments:
        for action in experiment.rescales:
            if action.after > action.before and action.registered is not None:
                until = action.time + action.registered
                added = [e.added for e in experiment.executors]
                came = sorted(a for a in added if action.time < a <= until + 1e-3)
                # Where only the last ones were seen to come, those before them came earlier.
                first = max(0, action.after - action.before - len(came))
                found += [(place, moment - action.time) for place, moment in enumerate(came, first)]
    return found


def _leaves(experiments: Sequence[Experiment]) -> tuple[list[float], list[float]]:
    """Seconds until executors were gone: of those told between batches, and of the others."""
    idle: list[float] = []
    busy: list[float] = []
    for experiment in experiments:
        for action in experiment.rescales:
            if action.after >= action.before or action.registered is None:
                continue
            until = action.time + action.registered
            removed = [e.removed for e in experiment.executors if e.removed is not None]
            gone = [r - action.time for r in removed if action.time < r <= until + 1e-3]
            during = any(b.start <= action.time < b.end for b in experiment.batches)
            (busy if during else idle).extend(gone)
    return idle, busy


def _add_start(
    starts: Sequence[tuple[int, float]],
    values: dict[str, float],
    errors: dict[str, float],
    notes: list[str],
) -> Floats:
    """The deviations of the logarithm."""
    places = np.array([float(place) for place, _ in starts])
    delays = np.array([delay for _, delay in starts])
    columns = [np.ones(len(delays)), places]
    if not places.any():
        columns.pop()
        notes.append("executors were added one at a time: start_each keeps its default")
    line = lines.fit(columns, delays)
    for name, value, error in zip(("start", "start_each"), line.values, line.errors, strict=False):
        values[name], errors[name] = value, error
    return _logs(delays, sum(v * c for v, c in zip(line.values, columns, strict=True)))


def _logs(values: Floats, said: Floats | float) -> Floats:
    logs: Floats = np.log(np.maximum(values, TINY) / np.maximum(said, TINY))
    return logs


def _add_warm_up(
    tasks: Mapping[tuple[int, str], Sequence[NewTask]],
    values: dict[str, float],
    errors: dict[str, float],
    notes: list[str],
) -> None:
    """The simplest of three: as fast as the others, slower at first, faster at first.

    In all of them the very first task takes ``first_task`` longer. What the batches in which they
    came have in common is left out.
    """
    new = [task for some in tasks.values() for task in some]
    if len([some for some in tasks.values() if some]) < LEAST_NEW:
        notes.append("too few tasks of new executors were read: no warm-up")
        return
    said = np.array([t.said for t in new])
    worked = np.array([t.worked for t in new])
    busy = np.array([t.busy for t in new])
    times = busy / said
    first = np.array([float(t.first) for t in new]) / said
    plain = lines.fit([first, np.ones(len(new))], times)
    others = [*_slow_downs(first, worked, busy, times), *_boosts(first, worked, times)]
    best = min(others, key=lambda other: other.line.left, default=None)
    line = plain
    if best is not None and lines.clearly(best.line.left, plain.left, len(new)):
        line = best.line
        values |= best.values
        errors |= best.errors
    else:
        notes.append("new executors were no slower after their first task: no slow-down")
    values["first_task"], errors["first_task"] = line.values[0], line.errors[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpModel:
    """A way in which new executors differ from the others after their first task."""

    line: lines.Line
    values: Mapping[str, float]
    errors: Mapping[str, float]


def _slow_downs(
    first: Floats, worked: Floats, busy: Floats, times: Floats
) -> Iterator[WarmUpModel]:
    """busy ÷ said = first_task ÷ said + usual·(1 + (slowdown − 1)·e^(−w ÷ warm_up)).

    w is the work done by then; of the exponential its mean over the task's own time is taken.
    """
    warm = np.ones(len(times))
    for warm_up in WARM_UPS:
        lasts = np.maximum(busy, TINY) / warm_up
        decay = np.exp(-worked / warm_up) * -np.expm1(-lasts) / lasts
        line = lines.fit([first, warm, decay], times)
        _, usual, more = line.values
        if usual > 0 and more > 0:
            yield WarmUpModel(
                line=line,
                values={"slowdown": 1.0 + more / usual, "warm_up": float(warm_up)},
                errors={"slowdown": line.errors[2] / usual},
            )


def _boosts(first: Floats, worked: Floats, times: Floats) -> Iterator[WarmUpModel]:
    """busy ÷ said = first_task ÷ said + usual·(boost while worked < boost_for, else 1)."""
    for end in BOOSTS:
        early = worked < end
        if min(early.sum(), (~early).sum()) < LEAST_SIDE:
            continue
        line = lines.fit([first, (~early).astype(float), early.astype(float)], times)
        _, usual, boosted = line.values
        if 0 < boosted < usual:
            yield WarmUpModel(
                line=line,
                values={"boost": boosted / usual, "boost_for": float(end)},
                errors={"boost": line.errors[2] / usual},
            )


def _add_cpu(
    pairs: Sequence[tuple[float, float]], values: dict[str, float], notes: list[str]
) -> None:
    """cpu = idle·(1 − load) + busy·load."""
    load = np.array([min(1.0, pair[0]) for pair in pairs])
    cpu = np.array([pair[1] for pair in pairs])
    if len(pairs) < 3:
        notes.append("the CPU of executors was not seen: cpu_idle and cpu_busy keep their defaults")
        return
    if np.ptp(load) < LEAST_LOAD:
        notes.append("executors were about equally busy all the time: cpu_idle keeps its default")
        busy = lines.fit([load], cpu, relative=False).values[0]
        values["cpu_busy"] = min(1.0, busy)
        return
    idle, busy = lines.fit([1.0 - load, load], cpu, relative=False).values
    values["cpu_busy"] = min(1.0, busy)
    values["cpu_idle"] = min(idle, values["cpu_busy"])
