"""Where records wait: by source and by partition, in snapshots, journals and for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.batches.progress import batch_of
from penstock.batches.snapshot import query_window
from penstock.batches.values import Batch, Source
from penstock.core.codec import from_json, to_json
from penstock.core.loop import Decision
from penstock.core.model import OperatorSeen, Proposal, QuerySeen, Slot, Snapshot, SourceSeen
from penstock.core.pipeline import Operator, Pipeline
from penstock.spark.exporter import Exporter
from penstock.spark.settings.settings import load


def progress(source: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "runId": "0a", "name": "q", "batchId": 0, "timestamp": "2026-01-01T00:00:00.000Z",
        "batchDuration": 1000, "numInputRows": 200, "sources": [source],
    }  # fmt: skip


def test_what_waits_is_told_by_source_and_partition() -> None:
    def at(number: int, latest: Mapping[str, int]) -> Batch:
        taken = {"0": 100 * number, "1": 100 * number}
        source = {"endOffset": {"t": taken}, "latestOffset": {"t": latest},
                  "description": "KafkaV2[Subscribe[t]]"}  # fmt: skip
        return replace(batch_of(progress(source)), id=number, start=10.0 * number, duration=5.0)

    wide = {str(p): 1000 + p for p in range(2, 100)}
    batches = [at(1, {"0": 200, "1": 300}), at(2, {"0": 207, "1": 1200} | wide)]
    seen = query_window(batches, [], now=30.0, window=100.0, cores=1)
    assert seen is not None
    (source,) = seen.seen.sources
    assert (source.name, source.lag) == ("KafkaV2[Subscribe[t]]", seen.seen.lag)
    assert source.partitions == {"t-0": 7, "t-1": 1000}  # what it never took from is not known


def test_each_source_says_how_long_its_oldest_record_waits() -> None:
    """The first left 30 of 50 that came in 10 s, the second nothing."""

    def at(number: int, came: int, took: int) -> Batch:
        first = Source(rows=20, available=came, taken=took, name="behind")
        second = Source(rows=20, available=took, taken=took, name="prompt")
        return Batch(
            query="q", run_id="0a", id=number, start=10.0 * number, duration=5.0, rows=40,
            sources=(first, second),
        )  # fmt: skip

    batches = [at(1, 20, 20), at(2, 70, 40)]
    seen = query_window(batches, [], now=25.0, window=100.0, cores=1)
    assert seen is not None
    behind, prompt = seen.seen.sources
    assert behind.lag == 30.0
    assert behind.lag_seconds == pytest.approx(6.0)
    assert (prompt.lag, prompt.lag_seconds) == (0.0, 0.0)
    assert seen.seen.lag_seconds == behind.lag_seconds


def test_of_many_partitions_those_with_most_waiting_are_kept() -> None:
    ends = {str(p): 0 for p in range(100)}
    latest = {str(p): p for p in range(100)}
    source = {"endOffset": {"t": ends}, "latestOffset": {"t": latest}}
    one = batch_of(progress(source))
    seen = query_window([one], [], now=one.end, window=100.0, cores=1)
    assert seen is not None
    kept = seen.seen.sources[0].partitions
    assert len(kept) == 64 and min(kept.values()) == 36


def seen(sources: tuple[SourceSeen, ...]) -> Snapshot:
    return Snapshot(
        time=10.0,
        window=10.0,
        pipeline=Pipeline(operators={"read": Operator(pool="executors")}),
        operators={"read": OperatorSeen(parallelism=1.0)},
        pools={"executors": (Slot(id="0"),)},
        queries={"q": QuerySeen(batches=1, rows=200, lag=9.0, sources=sources)},
        execution="micro-batch",
    )


KAFKA = SourceSeen(name="KafkaV2[Subscribe[t]]", lag=9.0, partitions={"t-0": 4.0, "t-1": 5.0})


def test_sources_survive_the_journal() -> None:
    snapshot = seen((KAFKA, SourceSeen(name="rate")))
    assert from_json(Snapshot, to_json(snapshot)) == snapshot


def test_prometheus_shows_sources_and_partitions_and_forgets_those_that_are_gone() -> None:
    exporter = Exporter(load(environment={}))

    def shown(name: str) -> dict[tuple[str, ...], float]:
        return {
            tuple(v for k, v in sorted(s.labels.items()) if k != "query"): s.value
            for family in exporter.registry.collect()
            for s in family.samples
            if s.name == name
        }

    def show(*sources: SourceSeen) -> None:
        exporter.show(Decision(seen=seen(sources), proposal=Proposal(reason=""), targets={}))

    show(KAFKA, SourceSeen(name="rate"))
    assert shown("penstock_source_backlog_records") == {(KAFKA.name,): 9.0}
    both = {("t-0", KAFKA.name): 4.0, ("t-1", KAFKA.name): 5.0}
    assert shown("penstock_partition_backlog_records") == both
    show(replace(KAFKA, partitions={"t-1": 0.0}))
    assert shown("penstock_partition_backlog_records") == {("t-1", KAFKA.name): 0.0}
    show()
    assert shown("penstock_partition_backlog_records") == {}
