"""What ails a query, from its batches and stages: findings, as values. Pure.

Nothing here sizes anything. Each rule says when it speaks, and its bound follows from what is said,
not from any query that was tried:

- A batch is **long** if it takes longer than its trigger's interval; without one, than the 10 s for
  which a query is sized. What is short enough needs no cure.
- What takes **at least half** of a batch is what it waits for: with all the rest for nothing the
  batch would not be twice as fast. Once may be chance, or the start of a JVM; **twice in a row**,
  in batches that were not a query's first, is a finding.
- Tasks that use **a tenth of a core or less** wait for something else than a CPU.
- After **a minute** without a query or a finished batch, a person should know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.batches.running import BATCH_TIME, Underway, tasks_of
from penstock.batches.stages import names_of, roles_of
from penstock.batches.values import Batch, Stage, Task
from penstock.core.findings import ENDING, LONG_LIVED, Finding

MINUTE = 60.0
MOST = 0.5  # of a batch: what it mainly waits for
IN_A_ROW = 2  # batches that have to agree
WAITING = 0.1  # of a core: tasks that use less wait
OTHER_TASKS = 2.0  # times as long as a task in the mean: a hot partition
MOST_LISTS = 100  # of tasks, kept
FOREACH_BATCH = "ForeachBatchSink"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """What is known of one query.

    batches: that have ended, oldest first, and the ``stages`` of each
    underway: what it is at
    again: whether this run follows another one of the same query
    held_slots: that its long-lived tasks hold
    """

    name: str
    batches: Sequence[Batch] = ()
    stages: Mapping[int, Sequence[Stage]]
    underway: Underway | None = None
    again: bool = False
    held_slots: float | None = None


class TaskLists:
    """The tasks of stages that seem to wait for one of them, each asked for once."""

    def __init__(self, ask: Callable[[Stage], Sequence[Task]]) -> None:
        self._ask = ask
        self._known: dict[int, Sequence[Task]] = {}

    def of(self, stage: Stage) -> Sequence[Task]:
        """The longest tasks of a stage."""
        if stage.id not in self._known:
            self._known[stage.id] = self._ask(stage)
            while len(self._known) > MOST_LISTS:
                del self._known[next(iter(self._known))]
        return self._known[stage.id]


def diagnose(
    facts: QueryFacts,
    *,
    now: float,
    cores: float,
    cpu: float | None = None,
    tasks: Callable[[Stage], Sequence[Task]] | None = None,
) -> tuple[Finding, ...]:
    """What ails one query.

    ``cores`` of all executors · ``cpu`` share of their CPU that they used, with all processes, if
    that is measured · ``tasks`` of a stage that seems to wait for one of them.
    """
    found = [_restarted(facts), _mode(facts), _first_batch(facts, now)]
    kind = facts.underway.kind if facts.underway is not None else None
    if kind not in LONG_LIVED:
        last = _worth_a_look(facts)
        found += [_without_tasks(facts.name, last, facts.stages)]
        found += [_waiting_tasks(facts.name, last, facts.stages, cpu)]
        found += [_hot_partition(facts, last, cores, tasks)]
    return tuple(f for f in found if f is not None)


def no_query(since: float, now: float) -> tuple[Finding, ...]:
    """That no query has run for a minute, if so; ``since`` when."""
    if now - since < MINUTE:
        return ()
    return (Finding(kind="no-query", seconds=now - since),)


def _restarted(facts: QueryFacts) -> Finding | None:
    return Finding(kind="restarted", query=facts.name) if facts.again else None


def _mode(facts: QueryFacts) -> Finding | None:
    kind = facts.underway.kind if facts.underway is not None else None
    if kind in ENDING:
        return Finding(kind="backfill", query=facts.name)
    if kind == "continuous":
        return Finding(kind="continuous", query=facts.name)
    if kind == "real-time":
        return Finding(kind="real-time", query=facts.name, slots=facts.held_slots)
    return None


def _first_batch(facts: QueryFacts, now: float) -> Finding | None:
    """That the first batch has run for a minute, and how far it is."""
    batch = facts.underway.batch if facts.underway is not None else None
    if batch is None or any(not b.idle for b in facts.batches) or now - batch.start < MINUTE:
        return None
    ended, known = tasks_of(facts.stages.get(batch.id, ()))
    return Finding(
        kind="first-batch",
        query=facts.name,
        batch=batch.id,
        seconds=now - batch.start,
        tasks=known,
        tasks_ended=ended,
    )


def _worth_a_look(facts: QueryFacts) -> Sequence[Batch]:
    """The last batches, if each is long, read anything and was watched; else none."""
    ran = [b for b in facts.batches if not b.idle][1:]  # the first one starts everything
    last = [b for b in ran if b.rows and facts.stages.get(b.id)][-IN_A_ROW:]
    at = facts.underway
    allowed = BATCH_TIME if at is None else at.trigger or at.batch_time
    long = len(last) == IN_A_ROW and all(b.duration > allowed for b in last)
    return last if long else ()


def _without_tasks(
    name: str, last: Sequence[Batch], stages: Mapping[int, Sequence[Stage]]
) -> Finding | None:
    """That most of a batch passes while no task runs, and where."""
    parts = [_idle_parts(b, stages[b.id]) for b in last]
    if not parts or any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    idle = [sum(p.values()) for p in known]
    if any(seconds < MOST * b.duration for seconds, b in zip(idle, last, strict=True)):
        return None
    phase = max(known[-1], key=lambda key: sum(p.get(key, 0.0) for p in known))
    sink = last[-1].sink or "the sink"
    commits = phase == "addBatch" and sink != FOREACH_BATCH
    place = sink if commits else "foreachBatch" if phase == "addBatch" else phase
    return Finding(
        kind="slow-sink" if commits else "driver",
        query=name,
        seconds=sum(idle) / len(idle),
        whole=sum(b.duration for b in last) / len(last),
        place=place,
    )


def _idle_parts(batch: Batch, stages: Sequence[Stage]) -> dict[str, float] | None:
    """Seconds of a batch without any stage, by phase; ``None`` where that is not known.

    Stages run in ``addBatch``; what of it is left is planning, the commit, a program's own code.
    """
    ran = [s for s in stages if s.tasks]
    if not ran or not batch.phases or any(s.submitted is None or s.ended is None for s in ran):
        return None
    spans = sorted(
        (max(batch.start, s.submitted or 0.0), min(batch.end, s.ended or 0.0)) for s in ran
    )
    covered, until = 0.0, batch.start
    for start, end in spans:
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    others = {name: seconds for name, seconds in batch.phases.items() if name != "addBatch"}
    left = max(0.0, batch.duration - covered - sum(others.values()))
    return {**others, "addBatch": left}


def _waiting_tasks(
    name: str,
    last: Sequence[Batch],
    stages: Mapping[int, Sequence[Stage]],
    cpu: float | None,
) -> Finding | None:
    """That the tasks that write take most of the time, and hardly any CPU.

    A Python worker's CPU is only known where the executors' own is; a finding then needs both.
    """
    if not last or (cpu is not None and cpu > MOST):
        return None
    writing = [max((s for s in stages[b.id] if s.tasks), key=_id, default=None) for b in last]
    ran = [s for s in writing if s is not None and s.run_time > 0]
    if len(ran) < len(last):
        return None
    spans = [(s.ended or 0.0) - (s.submitted or 0.0) for s in ran]
    if any(span < MOST * b.duration for span, b in zip(spans, last, strict=True)):
        return None
    share = max(s.cpu_time / s.run_time for s in ran)
    if share > WAITING:
        return None
    sink = last[-1].sink
    place = "foreachBatch" if sink == FOREACH_BATCH else sink or "the sink"
    return Finding(kind="slow-sink", query=name, share=share, place=place)


def _hot_partition(
    facts: QueryFacts,
    last: Sequence[Batch],
    cores: float,
    tasks: Callable[[Stage], Sequence[Task]] | None,
) -> Finding | None:
    """That most of a batch passes in a stage that waits for one of its tasks, and for which."""
    waits = [_waiting_stage(b, facts.stages[b.id], cores) for b in last]
    if tasks is None or not waits or any(stage is None for stage in waits):
        return None
    stage = waits[-1]
    assert stage is not None and stage.submitted is not None and stage.ended is not None
    longest = max(tasks(stage), key=lambda t: t.busy, default=None)
    mean = stage.busy / stage.tasks
    if longest is None or longest.busy < OTHER_TASKS * mean:
        return None
    if longest.busy < MOST * (stage.ended - stage.submitted):
        return None
    records = stage.read_records or stage.input_records
    return Finding(
        kind="hot-partition",
        query=facts.name,
        stage=_name_of(stage, facts),
        partition=longest.partition,
        tasks=stage.tasks,
        seconds=longest.busy,
        whole=mean,
        share=min(1.0, longest.records / records) if records and longest.records else None,
    )


def _waiting_stage(batch: Batch, stages: Sequence[Stage], cores: float) -> Stage | None:
    """The stage that takes most of a batch while at least half of the cores that it could use rest.

    Those are as many as it has tasks; a stage of one task has nothing to share out.
    """
    for stage in stages:
        if stage.tasks < 2 or stage.submitted is None or stage.ended is None:
            continue
        span = stage.ended - stage.submitted
        usable = span * min(cores, stage.tasks)
        if span >= MOST * batch.duration and stage.busy <= MOST * usable:
            return stage
    return None


def _name_of(stage: Stage, facts: QueryFacts) -> str:
    ran = [b for b in facts.batches if not b.idle]
    roles = roles_of(ran, facts.stages)
    state = next((b.state for b in reversed(ran) if b.state), ())
    for role, name in zip(roles, names_of(roles, state), strict=True):
        if any(s.id == stage.id for some in role.stages.values() for s in some):
            return name
    return "a stage"


def _id(stage: Stage) -> int:
    return stage.id
