"""The batches of several runs with their stages side by side, each in its role."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from penstock.batches.stages import Role, names_of, roles_of, upstream_of
from penstock.batches.values import Batch, Stage, Task
from penstock.core.errors import InputError
from penstock.history.profiling.experiment import Detail, Experiment

COLD = 10.0  # seconds of work after which a new executor counts as warm
LEAST_BATCHES = 12  # settled ones, to make a profile of
FEW_BATCHES = 5  # with data, to make one of a recording: batches of jobs as they are may take long


@dataclass(frozen=True, slots=True, kw_only=True)
class LinedUpBatch:
    """One batch: by role its stage, the records that it read and its tasks (none: not read).

    executors: how many there were while it ran
    slots: how many tasks they worked on at once
    times: of how many batches it is the mean
    settled: whether they were all warm and none came or went
    before: the batch before it in the same run, ``None`` if that is not known
    first: whether it is the first of its query
    run: the place of its experiment
    detail: what its progress document tells more, where known
    state: rows before it by role, once they have been told apart
    """

    run: int
    batch: Batch
    executors: int
    settled: bool
    first: bool
    before: Batch | None
    before_detail: Detail | None
    detail: Detail | None
    stages: tuple[Stage, ...]
    records: tuple[float, ...]
    tasks: tuple[Sequence[Task], ...]
    slots: int
    times: int = 1
    state: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineup:
    """All complete batches. ``names``, ``sources`` (index, else ``None``) and ``upstream`` by
    role · ``state`` the stateful operators · ``incomplete`` batches that lacked a stage ·
    ``restless`` whether batches count as settled that were not.
    """

    names: tuple[str, ...]
    sources: tuple[int | None, ...]
    upstream: tuple[tuple[int, ...], ...]
    state: tuple[str, ...]
    rows: tuple[LinedUpBatch, ...]
    incomplete: int
    restless: bool = False

    @property
    def few(self) -> bool:
        """Whether it has fewer batches than a profile that is to be trusted takes."""
        return len(self.settled) < LEAST_BATCHES

    @property
    def settled(self) -> list[LinedUpBatch]:
        """Batches on warm executors that stayed, with data."""
        return [r for r in self.rows if r.settled and r.batch.rows]

    def tasks(self, role: int) -> int:
        """How many tasks a stage usually has."""
        return Counter(r.stages[role].tasks for r in self.rows).most_common(1)[0][0]


def line_up(experiments: Sequence[Experiment], *, lenient: bool = False) -> Lineup:
    """The batches of all experiments; their ids may be the same in several.

    lenient: where executors came and went all the time, so that hardly any batch was settled, take
        all of them as settled
    """
    inputs = max((e.inputs for e in experiments), default=1)
    ids = count()
    numbers = [{b.id: next(ids) for b in e.batches if not b.idle} for e in experiments]
    batches: list[Batch] = []
    stages: dict[int, Sequence[Stage]] = {}
    for experiment, number in zip(experiments, numbers, strict=True):
        batches += [
            replace(b, id=number[b.id])
            for b in experiment.batches
            if not b.idle and len(b.inputs) == inputs
        ]
        stages |= {number[id]: some for id, some in experiment.stages.items() if id in number}
    roles = roles_of(batches, stages)
    if not roles:
        raise InputError("no batch with stages was observed; let the query run for longer")
    alone = sum(r.source is not None for r in roles) == inputs
    rows: list[LinedUpBatch] = []
    wanted = 0
    for run, experiment in enumerate(experiments):
        found = _rows(run, experiment, numbers[run], roles, inputs, alone=alone)
        wanted += sum(not b.idle and b.rows > 0 for b in experiment.batches)
        rows += found
    state = next((b.state for b in reversed(batches) if b.state), ())
    names = names_of(roles, state)
    lineup = Lineup(
        names=tuple(names),
        sources=tuple(r.source for r in roles),
        upstream=_upstream(roles, names, rows),
        state=state,
        rows=tuple(rows),
        incomplete=max(0, wanted - sum(r.batch.rows > 0 for r in rows)),
    )
    if lenient and lineup.few:
        restless = tuple(replace(row, settled=True) for row in lineup.rows)
        lineup = replace(lineup, rows=restless, restless=True)
    least, which = LEAST_BATCHES, " on warm executors that stayed"
    if lenient:
        least, which = FEW_BATCHES, ""
    if len(lineup.settled) < least:
        raise InputError(
            f"{len(lineup.settled)} batches with data ran{which}; at least {least} are needed to "
            "make a profile. Let the query run for longer"
        )
    return lineup


def _rows(
    run: int, experiment: Experiment, number: Mapping[int, int], roles: Sequence[Role],
    inputs: int, *, alone: bool,
) -> list[LinedUpBatch]:  # fmt: skip
    rows = []
    before: Batch | None = None
    unsettled = _unsettled(experiment)
    for batch in experiment.batches:
        if batch.idle:
            continue
        some = [role.stages.get(number[batch.id], ()) for role in roles]
        slots = experiment.slots_at(batch.start)
        times = experiment.means.get(batch.id, 1)
        if before is not None and before.id != batch.id - times:
            before = None  # one between them is not known
        if slots and len(batch.inputs) == inputs and all(len(s) == 1 for s in some):
            mine = tuple(s[0] for s in some)
            rows.append(
                LinedUpBatch(
                    run=run,
                    batch=batch,
                    executors=experiment.executors_at(batch.start),
                    settled=batch.id not in unsettled,
                    first=batch.id == 0,
                    before=before,
                    before_detail=experiment.details.get(before.id) if before else None,
                    detail=experiment.details.get(batch.id),
                    stages=mine,
                    records=tuple(
                        _records(batch, role, stage, alone=alone)
                        for role, stage in zip(roles, mine, strict=True)
                    ),
                    tasks=tuple(experiment.tasks.get(s.id, ()) for s in mine),
                    slots=slots,
                    times=times,
                )
            )
        before = batch
    return rows


def _records(batch: Batch, role: Role, stage: Stage, *, alone: bool) -> float:
    """That a stage read: the rows of its source, where it alone reads that, else of all."""
    if role.source is None:
        return float(stage.read_records)
    return float(batch.inputs[role.source].rows if alone else batch.rows)


def _upstream(
    roles: Sequence[Role], names: Sequence[str], rows: Sequence[LinedUpBatch]
) -> tuple[tuple[int, ...], ...]:
    found: list[tuple[int, ...]] = []
    unread: dict[str, float] = {}
    earlier: dict[str, float] = {}
    for place, (role, name) in enumerate(zip(roles, names, strict=True)):
        read = sum(r.records[place] for r in rows)
        mine = upstream_of(read, unread, earlier) if role.source is None else ()
        unread = {u: n for u, n in unread.items() if u not in mine}
        unread[name] = earlier[name] = float(sum(r.stages[place].write_records for r in rows))
        found.append(tuple(names.index(u) for u in mine))
    return tuple(found)


def _unsettled(experiment: Experiment) -> set[int]:
    """Batches during which executors came, went or were not warm yet, and the first of a run.

    In its first batch a query is compiled and its state is created. Where the tasks of a batch
    were not read, all executors are taken to have done as much of it.
    """
    changes = [(e.added, e.added) for e in experiment.executors]
    changes += [(e.removed, e.removed) for e in experiment.executors if e.removed is not None]
    changes += [(r.time, r.time + (r.registered or 0.0)) for r in experiment.rescales]
    changes.sort()
    longest = max((end - start for start, end in changes), default=0.0)
    begins = [start for start, _ in changes]
    new = {e.id: e for e in experiment.executors if e.added > experiment.start}
    worked = dict.fromkeys(new, 0.0)
    ran = [b for b in experiment.batches if not b.idle]
    found = {b.id for b in ran[:1]}
    for batch in ran:
        here = [
            e
            for e in new.values()
            if e.added <= batch.end and (e.removed is None or e.removed > batch.start)
        ]
        cold = any(_cold(e.id, batch.start, worked, experiment.warm) for e in here)
        near = bisect_left(begins, batch.start - longest), bisect_right(begins, batch.end)
        if cold or any(s < batch.end and e > batch.start for s, e in changes[slice(*near)]):
            found.add(batch.id)
        waiting = [e.id for e in here if worked[e.id] < COLD]
        for stage in experiment.stages.get(batch.id, ()) if waiting else ():
            tasks = experiment.tasks.get(stage.id, ())
            for task in tasks:
                if task.executor in worked:
                    worked[task.executor] += task.busy
            if not any(task.executor for task in tasks):
                share = stage.busy / max(1, experiment.executors_at(batch.start))
                for id in waiting:
                    worked[id] += share * experiment.means.get(batch.id, 1)
    return found


def _cold(id: str, moment: float, worked: Mapping[str, float], warm: Mapping[str, float]) -> bool:
    return moment < warm[id] if id in warm else worked[id] < COLD
