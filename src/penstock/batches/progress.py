"""Spark's progress document of a micro-batch (``StreamingQueryProgress``) as plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from penstock.batches.values import Batch, Source, total_count


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """A progress document (``StreamingQueryProgress.json``) as a ``Batch``."""
    run_id = str(progress["runId"])
    sources = tuple(_source(s) for s in progress.get("sources", []))
    # An event log has no sum of them.
    rows = int(progress.get("numInputRows", sum(s.rows for s in sources)))
    if len(sources) == 1:
        sources = (replace(sources[0], rows=rows),)
    operators = progress.get("stateOperators", [])
    return Batch(
        query=progress.get("name") or f"query-{run_id[:8]}",
        run_id=run_id,
        id=int(progress["batchId"]),
        start=datetime.fromisoformat(progress["timestamp"]).timestamp(),
        duration=float(progress.get("batchDuration", 0)) / 1e3,
        rows=rows,
        available=total_count([s.available for s in sources]),
        taken=total_count([s.taken for s in sources]),
        sources=sources,
        # Spark lists them from the sink upwards.
        state=tuple(str(o["operatorName"]) for o in reversed(operators)),
        state_rows=sum(int(o.get("numRowsTotal", 0)) for o in operators),
        state_bytes=sum(int(o.get("memoryUsedBytes", 0)) for o in operators),
        written=_written(progress.get("sink")),
        phases=_phases(progress.get("durationMs")),
        sink=_sink(progress.get("sink")),
    )


def watermark_of(progress: Mapping[str, Any] | None) -> float | None:
    """The watermark of a batch in epoch seconds; ``None`` without a batch or an event so far."""
    text = (progress or {}).get("eventTime", {}).get("watermark")
    seconds = datetime.fromisoformat(text).timestamp() if text else 0.0
    return seconds or None


def _source(document: Mapping[str, Any]) -> Source:
    return Source(
        rows=int(document.get("numInputRows", 0)),
        available=count_of(document.get("latestOffset")),
        taken=count_of(document.get("endOffset")),
        name=str(document.get("description", "")),
        waiting=waiting_of(document.get("latestOffset"), document.get("endOffset")),
    )


def _written(sink: Any) -> int | None:
    """Files and ``foreachBatch`` say −1."""
    rows = sink.get("numOutputRows") if isinstance(sink, Mapping) else None
    return rows if isinstance(rows, int) and rows >= 0 else None


def _phases(durations: Any) -> dict[str, float]:
    """Seconds by phase, without the sum of them."""
    known = durations.items() if isinstance(durations, Mapping) else ()
    return {
        str(name): millis / 1e3
        for name, millis in known
        if isinstance(millis, int) and name != "triggerExecution"
    }


def _sink(sink: Any) -> str:
    """``NoopTable`` of ``org.apache…NoopTable$@4277f1dc``."""
    said = str(sink.get("description", "")) if isinstance(sink, Mapping) else ""
    return said.split("@")[0].rstrip("$").rpartition(".")[2] if "@" in said else said


def count_of(offset: Any) -> int | None:
    """Records before an offset: the sum of all numbers in it; ``None`` if there are none.

    Offsets differ by source: ``{"offset": 42}``, Kafka's ``{"topic": {"0": 7, "1": 9}}``.
    """
    numbers = list(_numbers(_parsed(offset)))
    return sum(numbers) if numbers else None


def waiting_of(latest: Any, end: Any) -> dict[str, int]:
    """Records behind by partition, of offsets such as Kafka's; else none."""
    ends = dict(_partitions(_parsed(end)))
    return {
        name: max(0, offset - ends[name])
        for name, offset in _partitions(_parsed(latest))
        if name in ends
    }


def partitions_of(offset: Any) -> dict[str, tuple[str, ...]]:
    """The numbers of the partitions in an offset such as Kafka's, by topic; else none."""
    parsed = _parsed(offset)
    return {
        topic: tuple(partitions)
        for topic, partitions in (parsed.items() if isinstance(parsed, Mapping) else ())
        if isinstance(partitions, Mapping)
    }


def _partitions(offset: Any) -> Iterable[tuple[str, int]]:
    for topic, partitions in offset.items() if isinstance(offset, Mapping) else ():
        for number, at in partitions.items() if isinstance(partitions, Mapping) else ():
            if isinstance(at, int):
                yield f"{topic}-{number}", at


def _parsed(offset: Any) -> Any:
    if not isinstance(offset, str):
        return offset
    try:
        return json.loads(offset)
    except ValueError:
        return None


def _numbers(value: Any) -> Iterable[int]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _numbers(inner)
