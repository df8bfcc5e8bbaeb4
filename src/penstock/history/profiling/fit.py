"""A profile from observations: pure, the same for Spark's runs and for simulated ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.errors import InputError
from penstock.history.profiling import fit_states
from penstock.history.profiling.experiment import Experiment
from penstock.history.profiling.fit_driver import (
    DriverCosts,
    driver_of,
    expected,
    first_of_stage,
    modelled,
    noise_of,
)
from penstock.history.profiling.fit_executors import NewTask, executor_of
from penstock.history.profiling.fit_stages import Costs, Output, costs_of, output_of
from penstock.history.profiling.lineup import Lineup, line_up
from penstock.simulator.microbatch.profile import (
    ExecutorProfile,
    QueryProfile,
    SourceProfile,
    StageProfile,
    StateProfile,
)

CLEAR = 4.0  # standard errors above 0 from which the first task of a stage is slower
LEAST_FIRST = 0.01  # seconds
SLOW_AND_FAST = 0.05  # of a run's length


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Batches on so many executors: mean seconds measured and as the profile has them.

    ``error`` the mean absolute deviation as a share of the measured mean · ``records`` that they
    read on average.
    """

    executors: int
    batches: int
    measured: float
    profile: float
    error: float
    records: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A profile of a query and its executors, and how far to trust it.

    ``errors`` standard errors, by ``stage.number`` or ``number`` · ``explained`` by executors:
    the same batches that the profile was made of · ``notes`` what could not be told.
    """

    query: QueryProfile
    executor: ExecutorProfile
    errors: Mapping[str, float]
    explained: tuple[Explained, ...]
    notes: tuple[str, ...]

    @property
    def error(self) -> float:
        """Mean absolute deviation of batch durations, as a share of their mean."""
        off = sum(e.error * e.measured * e.batches for e in self.explained)
        return off / sum(e.measured * e.batches for e in self.explained)


def fit(
    name: str,
    experiments: Sequence[Experiment],
    sources: Sequence[SourceProfile],
    *,
    trigger: float = 0.0,
) -> Fit:
    """The profile of a query from its runs.

    ``sources`` in the order of the plan and ``trigger`` are settings, not measured. Batches of
    different sizes on different numbers of executors tell most.
    """
    ran = [e for e in experiments if any(not b.idle for b in e.batches)]
    return fit_lineup(name, line_up(ran), experiments, sources, trigger=trigger)


def fit_lineup(
    name: str,
    batches: Lineup,
    experiments: Sequence[Experiment],
    sources: Sequence[SourceProfile],
    *,
    trigger: float = 0.0,
) -> Fit:
    """The same from batches that have been lined up. One source may be read by several stages."""
    ran = [e for e in experiments if any(not b.idle for b in e.batches)]
    lineup, held = fit_states.with_state(batches)
    _check_sources(lineup, sources)
    costs = [costs_of(lineup, role) for role in range(len(lineup.names))]
    said = [modelled(row, costs) for row in lineup.settled]
    noise = noise_of(lineup, said)
    driver = driver_of(lineup, said, noise.task or 0.0)
    executor = executor_of(experiments, _new_tasks(ran, lineup, costs))
    outputs = [output_of(lineup, role) for role in range(len(costs))]
    notes = _notes(lineup, costs, driver, held, outputs, tasks_read=noise.task is not None)
    first, error = first_of_stage(lineup, said)
    if first > max(CLEAR * error, LEAST_FIRST):
        notes.append(
            f"the first task of a stage takes {first * 1e3:.0f} ms more on each executor; the "
            "profile has the mean over the sizes in fixed"
        )
    if noise.run > SLOW_AND_FAST:
        notes.append(
            f"runs were {noise.run:.0%} slower or faster than the profile says, as a whole: the "
            "machine's speed changed meanwhile; batch_noise is within a run"
        )
    empty = _empty_batch(experiments, notes)
    final = [replace(c, fixed=c.fixed + driver.gap) for c in costs]
    query = QueryProfile(
        name=name,
        sources=tuple(sources),
        stages=tuple(
            _stage(lineup, role, sources, final[role], outputs[role],
                   held.get(role))
            for role in range(len(costs))
        ),
        trigger=trigger,
        planning=driver.planning,
        commit=driver.commit,
        no_data_batch=empty,
        batch_noise=noise.batch,
        task_noise=noise.task or 0.0,
    )  # fmt: skip
    return Fit(
        query=query,
        executor=executor.profile,
        errors={**_errors(lineup, costs, driver, outputs), **executor.errors},
        explained=_explained(lineup, final, driver, noise.task or 0.0),
        notes=(*notes, *executor.notes),
    )


def _check_sources(lineup: Lineup, sources: Sequence[SourceProfile]) -> None:
    reading = sum(source is not None for source in lineup.sources)
    if reading != len(sources) and len(sources) != 1:
        raise InputError(
            f"{reading} stages read sources, but {len(sources)} sources are named: "
            f"{', '.join(s.name for s in sources)}. Each source must be read by one stage"
        )


def _stage(
    lineup: Lineup,
    role: int,
    sources: Sequence[SourceProfile],
    costs: Costs,
    output: Output | None,
    state: StateProfile | None,
) -> StageProfile:
    source = lineup.sources[role]
    most = None if output is None or output.most is None else output.most / costs.tasks
    return StageProfile(
        name=lineup.names[role],
        tasks=costs.tasks,
        fixed=costs.fixed,
        per_record=costs.per_record,
        source=None if source is None else sources[min(source, len(sources) - 1)].name,
        upstream=tuple(lineup.names[u] for u in lineup.upstream[role]),
        shares=costs.shares,
        selectivity=1.0 if output is None else output.selectivity,
        most_out=most,
        state=None if state is None else replace(state, per_row=costs.per_row),
    )


def _new_tasks(
    ran: Sequence[Experiment], lineup: Lineup, costs: Sequence[Costs]
) -> dict[tuple[int, str], list[NewTask]]:
    """The tasks of executors that came during a run, by run and executor, in their order."""
    lives = {(run, e.id): e for run, x in enumerate(ran) for e in x.executors if e.added > x.start}
    found: dict[tuple[int, str], list[NewTask]] = {key: [] for key in sorted(lives)}
    worked = dict.fromkeys(found, 0.0)
    following = dict(lives)  # those of which no task was missed so far
    last: dict[int, int] = {}
    for row in lineup.rows:
        gap = row.batch.id - row.times > last.get(row.run, row.batch.id - row.times)
        last[row.run] = row.batch.id
        read = all(len(t) == s.tasks for t, s in zip(row.tasks, row.stages, strict=True))
        if gap or not read:
            following = {
                key: e
                for key, e in following.items()
                if key[0] != row.run or e.added > (row.batch.start if gap else row.batch.end)
            }
        for costs_said, tasks in zip(modelled(row, costs), row.tasks, strict=True):
            for task in sorted(tasks, key=lambda t: t.partition):
                key = (row.run, task.executor)
                if key not in following or not 0 <= task.partition < len(costs_said):
                    continue
                before, said = worked[key], costs_said[task.partition]
                if said > 0:
                    new_task = NewTask(busy=task.busy, said=said, worked=before, first=not before)
                    found[key].append(new_task)
                worked[key] += task.busy
    return found


def _empty_batch(experiments: Sequence[Experiment], notes: list[str]) -> bool:
    """Whether an empty batch follows the last one with data."""
    batches = [b for e in experiments for b in e.batches]
    if any(not b.rows and not b.idle for b in batches):
        return True
    if not any(b.idle for b in batches):
        notes.append("the data never ended: whether an empty batch follows them is not known")
    return False


def _notes(
    lineup: Lineup,
    costs: Sequence[Costs],
    driver: DriverCosts,
    held: Mapping[int, StateProfile],
    outputs: Sequence[Output | None],
    *,
    tasks_read: bool,
) -> list[str]:
    notes = []
    for name, c in zip(lineup.names, costs, strict=True):
        if not c.told:
            notes.append(
                f"{name}: batches read about equally much, so all cost is per record; batches of "
                "other sizes tell what is fixed"
            )
        if c.flat:
            notes.append(
                f"{name}: what it costs does not depend on records, as far as was seen; larger "
                "batches tell"
            )
    if driver.gap:
        notes.append(
            f"each task keeps its slot for {driver.gap * 1e3:.0f} ms beyond what it reports; "
            "that is in fixed"
        )
    if not any(r.detail for r in lineup.rows):
        notes.append("planning includes commit: their split was not told")
    if lineup.state and not held:
        notes.append("the state of several operators is not told apart: none in the profile")
    elif len(lineup.state) > 1 and not any(r.detail for r in lineup.rows):
        notes.append(
            f"the state of {', '.join(lineup.state)} is told as a sum: taken as that of "
            f"{lineup.names[next(iter(held))]}, which reads most"
        )
    elif lineup.state and len(lineup.state) not in (
        1,
        sum(source is None for source in lineup.sources),
    ):
        notes.append(f"{', '.join(lineup.state)}: taken together as one state")
    if outputs[-1] is None:
        notes.append("the sink does not tell what it took: the last stage's selectivity is 1")
    if not tasks_read:
        notes.append("no tasks were read: records lie evenly, tasks do not vary on their own")
    if lineup.incomplete:
        notes.append(f"{lineup.incomplete} batches lacked a stage and are left out")
    return notes


def _errors(
    lineup: Lineup, costs: Sequence[Costs], driver: DriverCosts, outputs: Sequence[Output | None]
) -> dict[str, float]:
    errors = {"planning": driver.error}
    for name, c, output in zip(lineup.names, costs, outputs, strict=True):
        errors[f"{name}.fixed"] = float(np.hypot(c.fixed_error, driver.gap_error))
        errors[f"{name}.per_record"] = c.per_record_error
        if output is not None:
            errors[f"{name}.selectivity"] = output.error
    return errors


def _explained(
    lineup: Lineup, costs: Sequence[Costs], driver: DriverCosts, noise: float
) -> tuple[Explained, ...]:
    draws = np.random.default_rng(0)
    groups: dict[int, list[tuple[float, float, float]]] = {}
    for row in lineup.settled:
        tasks = modelled(row, costs)
        seconds = expected(tasks, lineup.upstream, row.slots, noise=noise, draws=draws)
        said = driver.planning + driver.commit + seconds
        groups.setdefault(row.executors, []).append((row.batch.duration, said, row.batch.rows))
    found = []
    for executors, pairs in sorted(groups.items()):
        pair = np.array(pairs)
        mean = float(pair[:, 0].mean())
        found.append(
            Explained(
                executors=executors,
                batches=len(pairs),
                measured=mean,
                profile=float(pair[:, 1].mean()),
                error=float(np.abs(pair[:, 0] - pair[:, 1]).mean()) / mean,
                records=float(pair[:, 2].mean()),
            )
        )
    return tuple(found)
