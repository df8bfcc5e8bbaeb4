"""Batches, stages and executors become a Snapshot: figures computed by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from penstock.batches.partitions import busiest_stage, partitions_of
from penstock.batches.progress import batch_of
from penstock.batches.snapshot import POOL, QueryWindow, query_window, snapshot
from penstock.batches.stages import upstream_of
from penstock.batches.values import Batch, Executor, Source, Stage, Task
from penstock.core.codec import from_json, to_json
from penstock.core.errors import NotReady
from penstock.core.model import QuerySeen, Slot, Snapshot
from penstock.core.sanity import believable, idle_for_sure
from penstock.policies import DS2
from penstock.policies.signals.demand import demand_of
from penstock.spark.read.progress import ProgressLog

PROGRESS = {
    "id": "6dc2d6a9", "runId": "run-1", "name": "demo", "timestamp": "2026-11-15T20:33:28.500Z",
    "batchId": 4, "batchDuration": 1500, "numInputRows": 2000,
    "stateOperators": [
        {"operatorName": "stateStoreSave", "numRowsTotal": 14, "memoryUsedBytes": 900},
        {"operatorName": "dedupe", "numRowsTotal": 6, "memoryUsedBytes": 100},
    ],
    "sources": [{"endOffset": {"offset": 9000}, "latestOffset": {"offset": 9700}}],
}  # fmt: skip


def batch(i: int, *, rows: int = 2000, behind: int = 0) -> Batch:
    """One batch of 2 s every 4 s."""
    return Batch(
        query="demo",
        run_id="run-1",
        id=i,
        start=1000.0 + 4 * i,
        duration=2.0,
        rows=rows,
        available=rows * (i + 1) + behind,
        taken=rows * (i + 1),
        state=("stateStoreSave",),
    )


def stages(i: int) -> list[Stage]:
    """2,000 records read in 3 executor-seconds, 20 aggregated in 1."""
    read = Stage(
        id=2 * i, run_id="run-1", batch=i, done=True, tasks=8, run_time=3.0, cpu_time=0.6,
        fetch_wait=0.0, input_records=2000, read_records=0, write_records=20,
    )  # fmt: skip
    aggregate = replace(
        read, id=2 * i + 1, tasks=4, run_time=1.2, fetch_wait=0.2, input_records=0,
        read_records=20, write_records=0,
    )  # fmt: skip
    return [read, aggregate]


def executors(n: int, added: float = 0.0) -> list[Executor]:
    return [
        Executor(id=str(i), host="h", cores=1, alive=True, added=added, removed=None,
                 task_seconds=5.0, completed_tasks=3, active_tasks=0)
        for i in range(n)
    ]  # fmt: skip


def seen(batches: list[Batch], *, now: float, n: int = 2) -> Snapshot:
    all_stages = [s for b in batches for s in stages(b.id)]
    window = query_window(batches, all_stages, now=now, window=15.0, cores=1)
    assert window is not None
    slots = {e.id: Slot(id=e.id, cpu=0.5) for e in executors(n)}
    return snapshot([window], executors(n), now=now, slots=slots)


def test_a_progress_document_is_read_whole() -> None:
    b = batch_of(json.loads(json.dumps(PROGRESS)))
    assert (b.query, b.id, b.rows, b.duration) == ("demo", 4, 2000, 1.5)
    assert (b.available, b.taken, b.lag) == (9700, 9000, 700)
    assert b.state == ("dedupe", "stateStoreSave")  # the order of the flow
    assert b.end - b.start == 1.5
    assert (b.state_rows, b.state_bytes) == (20, 1000)


def test_offsets_of_kafka_are_summed_and_other_sources_tell_nothing() -> None:
    kafka = {"endOffset": {"t": {"0": 5, "1": 6}}, "latestOffset": {"t": {"0": 9, "1": 9}}}
    assert batch_of({**PROGRESS, "sources": [kafka]}).lag == 7
    rate = {"endOffset": 17, "latestOffset": None}
    assert batch_of({**PROGRESS, "sources": [rate]}).lag is None
    both = batch_of({**PROGRESS, "sources": [{**kafka, "numInputRows": 3}, rate]})
    assert both.lag is None
    assert both.sources == (
        Source(rows=3, available=18, taken=11, waiting={"t-0": 4, "t-1": 3}),
        Source(rows=0, taken=17),
    )


def test_rates_shares_and_parallelism_of_a_steady_query() -> None:
    s = seen([batch(i) for i in range(5)], now=1019.0)
    read, aggregate = s.operators["read"], s.operators["aggregate"]
    # Window: batches ending after 1004, from the end of the one before: 1002 to 1018, 4 batches.
    assert s.window == 16.0
    assert s.age == pytest.approx(1.0)
    assert read.offered_rate == 500.0
    assert read.arrival_rate == 500.0
    assert read.output_rate == 5.0
    assert read.service_rate == pytest.approx(2000 / 3)
    assert aggregate.service_rate == pytest.approx(20.0)
    assert read.lag == 0
    # 3 and 1 executor-seconds of work per 4 s on two executors.
    assert (read.busy, aggregate.busy) == pytest.approx((0.375, 0.125))
    assert (read.idle, aggregate.idle) == pytest.approx((0.625, 0.875))
    assert (read.backpressured, aggregate.backpressured) == (0, 0)
    assert s.queries["demo"].busy == pytest.approx(0.5)
    assert read.parallelism == pytest.approx(1.5)
    assert aggregate.parallelism == pytest.approx(0.5)
    assert s.pipeline.edges == (("read", "aggregate"),)
    assert s.pipeline.operators["aggregate"].stateful
    assert s.pipeline.useful_slots(POOL) == 8
    assert read.cpu == 0.5


def test_ds2_on_spark_stages_asks_for_the_busy_executors() -> None:
    s = seen([batch(i) for i in range(5)], now=1019.0)
    proposal, _ = DS2(over_provisioning=1.0).decide(s, None)
    assert sum(n.slots for n in proposal.needs.values()) == pytest.approx(1.0)


def test_a_backlog_turns_idle_time_into_back_pressure() -> None:
    batches = [batch(i, behind=300 * i) for i in range(5)]
    s = seen(batches, now=1019.0)
    read, aggregate = s.operators["read"], s.operators["aggregate"]
    assert read.lag == 1200
    assert read.offered_rate == pytest.approx(575.0)
    # The first batch left nothing behind: the 2 s after it, of 16, were idle.
    assert read.idle == pytest.approx(0.125)
    # The 2 s after the others, and the last quarter of every batch, in which others aggregated.
    assert read.backpressured == pytest.approx((3 * 2.0 + 4 * 0.5) / 16)
    # Nothing follows the last stage, so nothing holds it up.
    assert (aggregate.backpressured, aggregate.idle) == pytest.approx((0.0, 0.875))


def test_a_source_without_offsets_offers_what_was_taken() -> None:
    blind = [replace(batch(i), available=None, taken=None) for i in range(5)]
    read = seen(blind, now=1019.0).operators["read"]
    assert read.offered_rate == 500.0
    assert read.lag is None


def test_offsets_that_do_not_count_records_are_not_trusted() -> None:
    versions = [replace(batch(i), available=i, taken=i) for i in range(5)]
    read = seen(versions, now=1019.0).operators["read"]
    assert read.lag is None
    assert read.offered_rate == 500.0


def test_a_retried_or_late_batch_ages_the_snapshot() -> None:
    s = seen([batch(i) for i in range(3)], now=1500.0)
    assert s.age == pytest.approx(1500.0 - 1010.0)


def test_executors_that_came_in_the_middle_count_for_their_time() -> None:
    batches = [batch(i) for i in range(5)]
    window = query_window(
        batches, [s for b in batches for s in stages(b.id)], now=1019.0, window=15.0, cores=1
    )
    assert window is not None
    late = [*executors(1), *executors(1, added=1010.0)]
    s = snapshot([window], late, now=1019.0, slots={"0": Slot(id="0")})
    assert s.operators["read"].busy == pytest.approx(12 / 24)
    assert s.operators["aggregate"].busy == pytest.approx(4 / 24)


def window_of(batches: list[Batch], found: list[Stage], *, now: float) -> QueryWindow:
    window = query_window(batches, found, now=now, window=15.0, cores=1)
    assert window is not None
    return window


def steady() -> QueryWindow:
    batches = [batch(i) for i in range(5)]
    return window_of(batches, [s for b in batches for s in stages(b.id)], now=1019.0)


def together(*windows: QueryWindow, n: int = 4) -> Snapshot:
    slots = {e.id: Slot(id=e.id) for e in executors(n)}
    return snapshot(windows, executors(n), now=1019.0, slots=slots)


def test_two_queries_share_the_pool_under_their_names() -> None:
    s = together(steady(), replace(steady(), name="other"))
    assert set(s.operators) == {"demo/read", "demo/aggregate", "other/read", "other/aggregate"}
    assert sum(o.parallelism for o in s.operators.values()) == pytest.approx(4.0)
    assert s.pipeline.useful_slots(POOL) == 16
    # Each keeps one of four executors busy, three quarters of that with reading.
    assert [q.busy for q in s.queries.values()] == pytest.approx([0.25, 0.25])
    assert [o.busy for o in s.operators.values()] == pytest.approx([0.1875, 0.0625] * 2)
    proposal, _ = DS2(over_provisioning=1.0).decide(s, None)
    assert sum(need.slots for need in proposal.needs.values()) == pytest.approx(2.0)


def test_queries_of_one_name_are_kept_apart() -> None:
    """A query that was started again before Spark told of the end of the first."""
    s = together(steady(), replace(steady(), run_id="another-run"))
    assert set(s.queries) == {"demo-run-1", "demo-another-"}
    assert len(s.operators) == 4


def idle_log() -> ProgressLog:
    """Five batches, then nothing to do for 40 s."""
    log = ProgressLog()
    for i in range(5):
        log.add(batch(i))
    for second in (30, 40, 50, 59):
        log.idle("run-1", f"1970-01-01T00:17:{second}.000Z")  # 1,020 s are 17 minutes
    return log


def test_a_query_without_data_is_idle_however_busy_its_last_batch_was() -> None:
    batches = idle_log().queries()["run-1"]
    found = [s for i in range(5) for s in stages(i)]
    s = together(window_of(batches, found, now=1080.0), n=2)
    read = s.operators["read"]
    assert (read.offered_rate, read.arrival_rate, read.lag, read.busy) == (0, 0, 0, 0)
    assert idle_for_sure(s, "read")
    assert (s.queries["demo"].batches, s.queries["demo"].rows) == (0, 0)


def test_a_query_that_idles_does_not_disturb_one_that_runs() -> None:
    idle = window_of(
        idle_log().queries()["run-1"], [s for i in range(5) for s in stages(i)], now=1080.0
    )
    busy = replace(steady(), name="busy", start=1064.0, end=1080.0)
    busy = replace(
        busy, phases=tuple(replace(p, start=p.start + 62, end=p.end + 62) for p in busy.phases)
    )
    s = together(idle, busy, n=2)
    assert s.queries["busy"].busy == pytest.approx(0.5)
    assert s.queries["demo"].busy == 0
    assert s.operators["busy/read"].parallelism == pytest.approx(1.5)
    assert s.operators["demo/read"].parallelism == 0
    assert s.operators["demo/read"].idle == 1.0


def test_shares_of_time_sum_to_one_and_only_batches_that_left_records_press_back() -> None:
    """Three of five batches leave 300 of 2,000 rows behind, or more."""
    behind = [0, 0, 300, 600, 900]
    batches = [batch(i, behind=behind[i]) for i in range(5)]
    s = seen(batches, now=1019.0)
    read = s.operators["read"]
    assert read.busy is not None
    assert read.idle is not None
    assert read.backpressured is not None
    assert read.busy + read.idle + read.backpressured == pytest.approx(1.0)
    # Not busy: every batch is 2 s, all of it work on two executors, and every gap 2 s.
    # The gaps after batches 2 and 3, and what aggregating took of 2, 3 and 4.
    assert read.backpressured == pytest.approx((4 + 3 * 0.5) / 16)
    (query,) = s.queries.values()
    assert (query.busy, query.backpressured) == pytest.approx((0.5, 0.25))


def test_what_comes_while_a_batch_is_planned_is_no_back_pressure() -> None:
    batches = [batch(i, behind=3) for i in range(5)]
    assert seen(batches, now=1019.0).operators["read"].backpressured == 0


def test_figures_of_the_query_as_a_whole() -> None:
    batches = [replace(batch(i), state_rows=70 + i, state_bytes=9000) for i in range(5)]
    (q,) = seen(batches, now=1019.0).queries.values()
    assert (q.batches, q.rows) == (4, 8000)
    assert (q.batch_duration, q.batch_interval) == (2.0, 4.0)
    assert (q.offered_rate, q.processed_rate) == (500.0, 500.0)
    assert (q.lag, q.lag_seconds) == (0, 0)
    assert (q.state_rows, q.state_bytes) == (74, 9000)
    # Released evenly in the 4 s before the planning, committed 2 s after it.
    assert (q.latency_p50, q.latency_p99) == pytest.approx((4.0, 5.96))


def test_a_query_without_state_has_none() -> None:
    batches = [replace(batch(i), state=()) for i in range(5)]
    (q,) = seen(batches, now=1019.0).queries.values()
    assert (q.state_rows, q.state_bytes) == (None, None)


def joined(i: int, *, swap: bool = False) -> tuple[Batch, list[Stage]]:
    """A join: 1,000 rows of the first source, 5,000 of the second; Spark numbers either first."""
    n = i + 1
    sources = (
        Source(rows=1000, available=1000 * n, taken=1000 * n),
        Source(rows=5000, available=6000 * n, taken=5000 * n),
    )
    b = replace(
        batch(i), rows=6000, available=7000 * n, taken=6000 * n, sources=sources,
        state=("symmetricHashJoin",),
    )  # fmt: skip
    template = stages(i)[0]
    few = replace(template, id=3 * i + swap, input_records=1000, write_records=1000, run_time=1.0)
    many = replace(
        template, id=3 * i + 1 - swap, input_records=5000, write_records=500, run_time=2.0
    )
    join = replace(
        template, id=3 * i + 2, input_records=0, read_records=1500, write_records=0, run_time=3.0
    )
    return b, [few, many, join]


def test_the_sides_of_a_join_are_told_apart_by_what_they_read() -> None:
    pairs = [joined(i, swap=i % 2 == 1) for i in range(5)]
    window = window_of([b for b, _ in pairs], [s for _, found in pairs for s in found], now=1019.0)
    s = together(window)
    one, two, join = (s.operators[name] for name in ("read-1", "read-2", "join"))
    assert (one.arrival_rate, two.arrival_rate) == (250.0, 1250.0)
    assert (one.offered_rate, two.offered_rate) == (250.0, 1500.0)
    assert (one.lag, two.lag) == (0, 5000)
    assert one.service_rate == pytest.approx(1000.0)
    assert two.service_rate == pytest.approx(2500.0)
    assert set(s.pipeline.edges) == {("read-1", "join"), ("read-2", "join")}
    assert join.arrival_rate == pytest.approx(375.0)
    (query,) = s.queries.values()
    assert (query.lag, query.offered_rate) == (5000, 1750.0)


def test_a_batch_without_data_has_no_reading_stage() -> None:
    """Spark runs one to close windows when the watermark has moved."""
    batches = [batch(0), batch(1), replace(batch(2), rows=0), batch(3), batch(4)]
    found = [s for b in batches for s in stages(b.id) if b.rows or not s.input_records]
    window = window_of(batches, found, now=1019.0)
    assert [w.name for w in window.works] == ["read", "aggregate"]
    assert [w.busy for w in window.works] == pytest.approx([9.0, 4.0])


def test_stages_that_read_only_some_of_the_earlier_ones() -> None:
    written = {"read-1": 100.0, "read-2": 40.0}
    assert upstream_of(140.0, written, {}) == ("read-1", "read-2")
    assert upstream_of(40.0, written, {}) == ("read-2",)
    assert upstream_of(77.0, written, {}) == ("read-1", "read-2")
    assert upstream_of(0.0, dict.fromkeys(written, 0.0), {}) == ("read-1", "read-2")


def test_a_sort_reads_again_what_its_sample_read() -> None:
    """Spark's windowed word count: read, a sample of the counts, the counts themselves, sorted."""
    batches = [batch(i) for i in range(5)]
    found = []
    for b in batches:
        template = stages(b.id)[0]
        read = replace(template, id=4 * b.id, input_records=b.rows, write_records=600)
        sample = replace(template, id=4 * b.id + 1, input_records=0, read_records=600,
                         write_records=0)  # fmt: skip
        counted = replace(sample, id=4 * b.id + 2, write_records=2400)
        sort = replace(sample, id=4 * b.id + 3, read_records=2400)
        found += [read, sample, counted, sort]
    s = together(window_of(batches, found, now=1019.0))
    first, second, third, last = s.pipeline.order
    assert set(s.pipeline.edges) == {(first, second), (first, third), (third, last)}
    assert set(demand_of(s)) == set(s.operators)


def test_a_batch_counts_when_all_its_stages_are_known() -> None:
    batches = [batch(i) for i in range(6)]
    found = [s for b in batches for s in stages(b.id)]
    late = window_of(batches, found[:-1], now=1023.0)
    assert late.end == 1018.0
    assert window_of(batches, found, now=1023.0).end == 1022.0


def test_batches_from_before_we_watched_are_not_work_that_cost_nothing() -> None:
    batches = [batch(i) for i in range(5)]
    window = window_of(batches, [*stages(3), *stages(4)], now=1019.0)
    assert (window.start, window.seen.batches, window.seen.rows) == (1010.0, 2, 4000)
    assert together(window, n=2).operators["read"].busy == pytest.approx(0.375)


def test_skew_is_the_busiest_partition_over_the_mean() -> None:
    batches = [batch(i) for i in range(5)]
    by_batch = {b.id: stages(b.id) for b in batches}
    stage = busiest_stage(batches, by_batch)
    assert stage is not None
    assert stage.id == 8  # the reading one of the last batch: 3 s on 8 tasks
    listed = [(1, 1.5), (0, 0.5), (0, 0.25)]  # partition 0 was tried twice
    tasks = [Task(partition=p, executor="0", busy=busy, records=9) for p, busy in listed]
    found = partitions_of(stage, tasks)
    assert found is not None
    assert found.skew == pytest.approx(1.5 / (3.0 / 8))
    window = query_window(batches, by_batch, now=1019.0, window=15.0, cores=1, partitions=found)
    assert window is not None
    assert window.seen.partitions == (0.75, 1.5)
    assert partitions_of(stage, []) is None


def test_a_snapshot_with_queries_survives_the_journal() -> None:
    s = together(steady(), replace(steady(), name="other"))
    full = replace(s.queries["demo"], skew=1.5, partitions=(0.1, 0.25))
    s = replace(s, queries={**s.queries, "demo": full})
    again = from_json(Snapshot, json.loads(json.dumps(to_json(s))))
    assert again == s
    assert again.queries["demo"].partitions == (0.1, 0.25)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lag", -1.0),
        ("offered_rate", float("nan")),
        ("latency_p99", float("inf")),
        ("busy", 1.5),
        ("state_bytes", -5),
        ("partitions", (0.1, float("nan"))),
    ],
)
def test_figures_of_a_query_that_cannot_be_true_are_dropped(field: str, value: object) -> None:
    s = together(steady())
    assert believable(s) == (s, ())
    broken = replace(s.queries["demo"], **{field: value})  # type: ignore[arg-type]
    believed, notes = believable(replace(s, queries={"demo": broken}))
    assert believed == replace(s, queries={"demo": replace(broken, **{field: None})})  # type: ignore[arg-type]
    assert len(notes) == 1
    assert field in notes[0]


def test_the_least_that_is_known_of_a_query_is_believed() -> None:
    s = replace(together(steady()), queries={"demo": QuerySeen(batches=0, rows=0)})
    assert believable(s) == (s, ())


def test_nothing_finished_yet_is_not_ready() -> None:
    with pytest.raises(NotReady):
        snapshot([], executors(1), now=1.0, slots={"0": Slot(id="0")})


def test_the_log_keeps_order_and_forgets_ended_queries() -> None:
    log = ProgressLog()
    for b in (batch(1), batch(2), batch(2), batch(1)):
        log.add(b)
    assert [b.id for b in log.queries()["run-1"]] == [1, 2]
    log.idle("run-1", "1970-01-01T00:20:00.000Z")
    assert log.queries()["run-1"][-1].rows == 0
    assert log.queries()["run-1"][-1].start == 1200.0
    log.forget("run-1")
    assert log.queries() == {}


def adapted(*counts: int, state: tuple[str, ...] = ()) -> int | None:
    """Partitions of the later stage of batches in which it had so many tasks."""
    some = [
        replace(stage, tasks=tasks if stage.read_records else stage.tasks)
        for i, tasks in enumerate(counts)
        for stage in stages(i)
    ]
    batches = [replace(batch(i), state=state) for i in range(len(counts))]
    found = query_window(batches, some, now=1020.0, window=100.0, cores=1)
    assert found is not None
    slots = {"0": Slot(id="0")}
    seen = snapshot([found], executors(1), now=1020.0, slots=slots)
    return seen.pipeline.useful_slots(POOL)


def test_partitions_that_spark_adapts_to_a_batch_are_no_limit() -> None:
    assert adapted(4, 4, 4) == 8  # what the source has
    assert adapted(40, 40, 40) == 40
    assert adapted(4, 7, 4) is None
    assert adapted(4, 7, 4, state=("dedupe",)) == 8  # of state Spark adapts nothing
