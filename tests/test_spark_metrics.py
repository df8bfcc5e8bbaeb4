"""Batches, stages and executors become a Snapshot: figures computed by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from penstock.core.errors import NotReady
from penstock.core.model import Slot, Snapshot
from penstock.policies import DS2
from penstock.spark.metrics import POOL, query_window, snapshot
from penstock.spark.progress import Batch, ProgressLog, batch_of
from penstock.spark.rest import Executor, Stage

PROGRESS = {
    "id": "6dc2d6a9", "runId": "run-1", "name": "demo", "timestamp": "2026-11-15T20:33:28.500Z",
    "batchId": 4, "batchDuration": 1500, "numInputRows": 2000,
    "stateOperators": [
        {"operatorName": "stateStoreSave", "numRowsTotal": 14, "numShufflePartitions": 4},
        {"operatorName": "dedupe", "numRowsTotal": 6, "numShufflePartitions": 4},
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


def test_offsets_of_kafka_are_summed_and_other_sources_tell_nothing() -> None:
    kafka = {"endOffset": {"t": {"0": 5, "1": 6}}, "latestOffset": {"t": {"0": 9, "1": 9}}}
    assert batch_of({**PROGRESS, "sources": [kafka]}).lag == 7
    rate = {"endOffset": 17, "latestOffset": None}
    assert batch_of({**PROGRESS, "sources": [rate]}).lag is None


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
    # 4 executor-seconds of work per 4 s on two executors.
    assert read.busy == pytest.approx(0.5)
    assert read.idle == pytest.approx(0.5)
    assert read.backpressured == 0
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
    read = seen(batches, now=1019.0).operators["read"]
    assert read.lag == 1200
    assert read.offered_rate == pytest.approx(575.0)
    assert read.idle == 0
    assert read.backpressured == pytest.approx(0.5)


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
    assert s.operators["read"].busy == pytest.approx(16 / 24)


def test_two_queries_share_the_pool_under_their_names() -> None:
    batches = [batch(i) for i in range(5)]
    all_stages = [s for b in batches for s in stages(b.id)]
    one = query_window(batches, all_stages, now=1019.0, window=15.0, cores=1)
    assert one is not None
    two = replace(one, name="other")
    s = snapshot([one, two], executors(4), now=1019.0,
                 slots={e.id: Slot(id=e.id) for e in executors(4)})  # fmt: skip
    assert set(s.operators) == {"demo/read", "demo/aggregate", "other/read", "other/aggregate"}
    assert sum(o.parallelism for o in s.operators.values()) == pytest.approx(4.0)
    assert s.pipeline.useful_slots(POOL) == 16


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
