"""What ails a query: batches and stages made up by hand, each figure worked out beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.diagnosis import QueryFacts, TaskLists, diagnose, no_query
from penstock.batches.presence import Presence
from penstock.batches.running import RunningBatch, Underway
from penstock.batches.values import Batch, Stage, Task
from penstock.core.findings import Finding, TriggerKind

START = 1000.0
EVERY = 20.0  # seconds from one batch to the next


def batch(i: int, *, duration: float = 20.0, sink: str = "NoopTable", **phases: float) -> Batch:
    return Batch(
        query="q", run_id="run", id=i, start=START + EVERY * i, duration=duration, rows=1000,
        phases=phases or {"addBatch": duration}, sink=sink,
    )  # fmt: skip


def stage(
    i: int, number: int = 0, *, at: float = 0.0, span: float = 18.0, tasks: int = 4,
    busy: float | None = None, cpu: float | None = None,
) -> Stage:  # fmt: skip
    """A stage of batch ``i`` that begins ``at`` seconds into it; all its tasks busy, on the CPU."""
    run_time = span * tasks if busy is None else busy
    begun = START + EVERY * i + at
    return Stage(
        id=10 * i + number, run_id="run", batch=i, done=True, tasks=tasks, run_time=run_time,
        cpu_time=run_time if cpu is None else cpu, fetch_wait=0.0,
        input_records=1000, read_records=0, write_records=0, completed=tasks,
        submitted=begun, ended=begun + span,
    )  # fmt: skip


def facts(
    *pairs: tuple[Batch, Sequence[Stage]], kind: TriggerKind | None = "asap", trigger: float = 0.0
) -> QueryFacts:
    return QueryFacts(
        name="q",
        batches=[b for b, _ in pairs],
        stages={b.id: some for b, some in pairs},
        underway=Underway(query="q", run_id="run", kind=kind, trigger=trigger),
    )


def found(
    known: QueryFacts,
    *,
    now: float = START + 100.0,
    cores: int = 4,
    cpu: float | None = None,
    tasks: Sequence[Task] = (),
) -> tuple[Finding, ...]:
    return diagnose(known, now=now, cores=cores, cpu=cpu, tasks=lambda _: tasks)


def three(**kw: object) -> QueryFacts:
    """Three batches alike, the first of which starts everything."""
    sink = str(kw.pop("sink", "NoopTable"))
    phases = kw.pop("phases", {})
    assert isinstance(phases, dict)
    return facts(*((batch(i, sink=sink, **phases), [stage(i, **kw)]) for i in range(3)))  # type: ignore[arg-type]


def test_a_query_that_is_well_has_nothing() -> None:
    assert found(three()) == ()


@pytest.mark.parametrize(
    ("sink", "phases", "kind", "place"),
    [
        ("ForeachBatchSink", {"addBatch": 19.0, "walCommit": 1.0}, "driver", "foreachBatch"),
        ("FileSink", {"addBatch": 19.0, "walCommit": 1.0}, "slow-sink", "FileSink"),
        ("", {"addBatch": 20.0}, "slow-sink", "the sink"),
        ("FileSink", {"addBatch": 6.0, "latestOffset": 12.0, "walCommit": 2.0}, "driver",
         "latestOffset"),
        ("FileSink", {"addBatch": 6.0, "queryPlanning": 3.0, "commitOffsets": 11.0}, "driver",
         "commitOffsets"),
    ],
)  # fmt: skip
def test_a_batch_that_passes_without_tasks(
    sink: str, phases: dict[str, float], kind: str, place: str
) -> None:
    """Its stage takes 5 of 20 s, so 15 s pass without any task."""
    (told,) = found(three(sink=sink, phases=phases, span=5.0))
    assert (told.kind, told.place) == (kind, place)
    assert told.seconds == pytest.approx(15.0)
    assert told.whole == pytest.approx(20.0)


def test_stages_side_by_side_count_once() -> None:
    """Two stages from 0 to 8 s, one from 6 to 12 s: 12 s with tasks, 8 s of 20 without."""
    spans = ((0.0, 8.0), (0.0, 8.0), (6.0, 6.0))
    known = facts(
        *(
            (batch(i), [stage(i, n, at=at, span=s) for n, (at, s) in enumerate(spans)])
            for i in range(3)
        )
    )
    assert found(known) == ()
    without = replace(known, stages={i: some[:2] for i, some in known.stages.items()})
    (told,) = found(without)
    assert told.seconds == pytest.approx(12.0)


@pytest.mark.parametrize(
    ("trigger", "duration", "is_long"),
    [(0.0, 9.0, False), (0.0, 11.0, True), (1.0, 3.0, True), (30.0, 29.0, False)],
)
def test_only_a_batch_that_is_too_long_is_worth_a_word(
    trigger: float, duration: float, is_long: bool
) -> None:
    pairs = [(batch(i, duration=duration), [stage(i, span=0.1)]) for i in range(3)]
    assert bool(found(facts(*pairs, kind="interval", trigger=trigger))) is is_long


def test_one_slow_batch_is_chance_and_the_first_one_does_not_count() -> None:
    slow = [(batch(i), [stage(i, span=1.0)]) for i in range(4)]
    well = [(batch(i), [stage(i)]) for i in range(4)]
    assert found(facts(*slow[:2])) == ()
    assert found(facts(*well[:3], slow[3])) == ()
    assert found(facts(*slow[:3], well[3])) == ()
    assert len(found(facts(*well[:2], *slow[2:]))) == 1


@pytest.mark.parametrize("kind", ["real-time", "continuous"])
def test_long_lived_tasks_are_meant_to_wait(kind: TriggerKind) -> None:
    known = three(span=1.0, cpu=0.0)
    assert known.underway is not None
    known = replace(known, underway=replace(known.underway, kind=kind))
    assert [f.kind for f in found(known)] == [kind]


@pytest.mark.parametrize(
    ("cpu_time", "executors", "share"),
    [(3.6, None, 0.05), (3.6, 0.2, 0.05), (3.6, 0.9, None), (14.4, None, None)],
)
def test_tasks_that_hardly_use_a_cpu_wait_for_the_sink(
    cpu_time: float, executors: float | None, share: float | None
) -> None:
    """72 s of tasks; 3.6 s of CPU are 5 %. Busy executors mean busy Python workers."""
    told = found(three(sink="Jdbc", cpu=cpu_time), cpu=executors)
    if share is None:
        assert told == ()
    else:
        assert [(f.kind, f.place) for f in told] == [("slow-sink", "Jdbc")]
        assert told[0].share == pytest.approx(share)


TASKS = [
    Task(partition=2, executor="1", busy=17.0, records=900),
    Task(partition=0, executor="2", busy=1.0, records=40),
]


def test_a_hot_partition_is_named() -> None:
    """Of four tasks one takes 17 of the stage's 18 s, the others one each: 5 s in the mean."""
    (told,) = found(three(busy=20.0), tasks=TASKS)
    assert (told.kind, told.stage, told.partition, told.tasks) == ("hot-partition", "read", 2, 4)
    assert told.seconds == pytest.approx(17.0)
    assert told.whole == pytest.approx(5.0)
    assert told.share == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("case", "busy", "count", "cores", "longest"),
    [
        ("all cores are busy", 72.0, 4, 4, 18.0),
        ("one core has all of it to do", 18.0, 4, 1, 9.0),
        ("there is one task only", 18.0, 1, 4, 18.0),
        ("tasks are alike, and wait for something else", 20.0, 4, 4, 5.0),
        ("the longest is no half of the stage", 16.0, 4, 4, 8.5),
    ],
)
def test_no_hot_partition_where(
    case: str, busy: float, count: int, cores: int, longest: float
) -> None:
    tasks = [Task(partition=0, executor="1", busy=longest, records=1)]
    assert found(three(busy=busy, tasks=count), cores=cores, tasks=tasks) == (), case


def test_the_tasks_of_a_stage_are_asked_for_once() -> None:
    asked: list[int] = []

    def ask(some: Stage) -> Sequence[Task]:
        asked.append(some.id)
        return TASKS

    lists = TaskLists(ask)
    for _ in range(3):
        diagnose(three(busy=20.0), now=START + 100.0, cores=4, tasks=lists.of)
        diagnose(three(), now=START + 100.0, cores=4, tasks=lists.of)  # nothing suspicious
    assert asked == [20]


@pytest.mark.parametrize(("age", "said"), [(59.0, False), (60.0, True), (600.0, True)])
def test_how_far_the_first_batch_is(age: float, said: bool) -> None:
    at = Underway(query="q", run_id="run", batch=RunningBatch(id=0, start=START))
    going = replace(stage(0, tasks=200), done=False, completed=34, active=4, ended=None)
    known = QueryFacts(name="q", stages={0: [going]}, underway=at)
    expected = Finding(
        kind="first-batch", query="q", batch=0, seconds=age, tasks=200, tasks_ended=34
    )
    assert found(known, now=START + age) == ((expected,) if said else ())
    assert found(replace(known, batches=[batch(0)]), now=START + age) == ()


@pytest.mark.parametrize(
    ("kind", "told"),
    [("available-now", "backfill"), ("once", "backfill"), ("asap", None), (None, None)],
)
def test_a_trigger_that_ends_by_itself(kind: TriggerKind | None, told: str | None) -> None:
    kinds = [f.kind for f in found(facts(kind=kind))]
    assert kinds == ([] if told is None else [told])


@given(
    st.lists(
        st.tuples(
            st.floats(-5.0, 50.0), st.floats(0.0, 50.0), st.integers(0, 5),
            st.booleans(), st.floats(0.0, 100.0),
        ),
        max_size=4,
    ),
    st.dictionaries(st.sampled_from(["addBatch", "walCommit"]), st.floats(0.0, 100.0)),
    st.integers(0, 8),
)  # fmt: skip
def test_whatever_spark_tells_no_figure_is_absurd(
    shapes: list[tuple[float, float, int, bool, float]], phases: dict[str, float], cores: int
) -> None:
    def some(i: int) -> list[Stage]:
        made = []
        for number, (at, span, tasks, timed, busy) in enumerate(shapes):
            one = stage(i, number, at=at, span=span, tasks=tasks, busy=busy)
            made.append(one if timed else replace(one, submitted=None, ended=None))
        return made

    known = facts(*((replace(batch(i), phases=phases), some(i)) for i in range(3)))
    for told in found(known, cores=cores, tasks=TASKS):
        assert told.kind in ("driver", "slow-sink", "hot-partition")
        assert told.seconds is None or told.seconds >= 0.0
        assert told.share is None or 0.0 <= told.share <= 1.0


def test_no_query_is_said_after_a_minute() -> None:
    assert no_query(START, START + 59.9) == ()
    assert no_query(START, START + 60.0) == (Finding(kind="no-query", seconds=60.0),)


def at(run: str, *, id: str = "", batch: bool = False, kind: TriggerKind = "asap") -> Underway:
    runs = RunningBatch(id=0, start=START) if batch else None
    return Underway(query=f"name of {run}", run_id=run, query_id=id or run, batch=runs, kind=kind)


def test_since_when_there_is_no_query() -> None:
    presence = Presence()
    presence.look({}, START)
    presence.look({}, START + 5.0)
    assert presence.without_since == START
    presence.look({"a": at("a")}, START + 10.0)
    presence.look({}, START + 15.0)
    assert presence.without_since == START + 15.0


def test_a_run_that_follows_another_of_its_query_is_new_for_a_minute() -> None:
    presence = Presence()
    presence.look({"a": at("a", id="1"), "x": at("x")}, START)
    presence.look({"x": at("x")}, START + 5.0)
    presence.look({"b": at("b", id="1"), "x": at("x")}, START + 10.0)
    for now in (START + 10.0, START + 69.0):
        assert [presence.again(run, now) for run in ("b", "x")] == [True, False]
    assert not presence.again("b", START + 70.0)


def test_who_is_unmeasured() -> None:
    """One that waits for records is not, once it was there for a minute; others are."""
    running = {
        "waits": at("waits"),
        "works": at("works", batch=True),
        "flows": at("flows", kind="continuous"),
        "known": at("known", batch=True),
    }
    presence = Presence()
    presence.look(running, START)
    names = ("name of waits", "name of works", "name of flows")
    assert presence.unmeasured(running, {"known"}, START + 59.0) == names
    presence.look(running, START + 60.0)
    assert presence.unmeasured(running, {"known"}, START + 60.0) == names[1:]


def test_runs_without_end_are_forgotten() -> None:
    presence = Presence()
    for i in range(5000):
        presence.look({f"run-{i}": at(f"run-{i}")}, START + i)
    assert not presence.again("run-4999", START + 4999)
    assert len(presence._runs) <= 1000


def test_a_run_that_is_gone_is_remembered_while_something_is_told_of_it() -> None:
    presence = Presence()
    presence.look({"a": at("a"), "b": at("b")}, START)
    presence.look({"b": at("b")}, START + 5.0)
    presence.forget(["a", "b", "never seen to run"])
    assert presence.gone == {"a"}
    presence.forget(["b"])
    assert presence.gone == set()
