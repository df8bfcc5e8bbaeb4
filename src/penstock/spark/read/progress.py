"""What a query says of its micro-batches: the progress listener, as typed values."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from penstock.batches.values import Batch, Source, total_count

log = logging.getLogger("penstock")

KEPT = 500  # batches per query; at one per second more than any window needs
MOST_QUERIES = 100  # running at once in a session


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """A progress document (``StreamingQueryProgress.json``) as a ``Batch``."""
    run_id = str(progress["runId"])
    sources = tuple(_source(s) for s in progress.get("sources", []))
    rows = int(progress.get("numInputRows", 0))
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


def recent_batches(query: Any) -> list[Batch]:
    """The batches that a running query remembers, oldest first."""
    return [batch_of(json.loads(progress.json)) for progress in query.recentProgress]


class ProgressLog:
    """Collects the batches of all queries of a session; thread-safe.

    ``attach`` registers a listener with a session. Listener calls come from Spark's own thread
    and only append to a bounded queue, so they cost the query nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches: dict[str, deque[Batch]] = {}
        self._names: dict[str, str] = {}
        self._listener: Any = None

    def attach(self, spark: Any) -> None:
        """Start listening; batches that the running queries remember come first."""
        self._listener = Listener(
            Callbacks(
                started=self.start,
                progress=lambda p: self.add(batch_of(p)),
                idle=self.idle,
                ended=self.end,
            )
        )
        spark.streams.addListener(self._listener)
        for query in spark.streams.active:
            for batch in recent_batches(query):
                self.add(batch)
            if not query.isActive:  # it ended meanwhile, perhaps before its batches were added
                self.forget(str(query.runId))

    def detach(self, spark: Any) -> None:
        """Stop listening."""
        if self._listener is not None:
            spark.streams.removeListener(self._listener)
            self._listener = None

    def add(self, batch: Batch) -> None:
        """Keep a batch; one that is known already is ignored."""
        with self._lock:
            kept = self._batches.setdefault(batch.run_id, deque(maxlen=KEPT))
            if not kept or batch.start > kept[-1].start:
                kept.append(batch)
            if len(self._batches) > MOST_QUERIES:
                oldest = min(self._batches, key=lambda run: self._batches[run][-1].start)
                del self._batches[oldest]

    def idle(self, run_id: str, timestamp: str) -> None:
        """Note that a query had nothing to do: as good as an empty batch."""
        with self._lock:
            kept = self._batches.get(run_id)
            last = kept[-1] if kept else None
        if last is not None:
            now = datetime.fromisoformat(timestamp).timestamp()
            self.add(last.idle_at(now))

    def start(self, run_id: str, name: str | None) -> None:
        """Note the name of a query, in case that it fails before its first batch has ended."""
        with self._lock:
            self._names[run_id] = name or f"query-{run_id[:8]}"
            while len(self._names) > MOST_QUERIES:
                del self._names[next(iter(self._names))]

    def end(self, run_id: str, error: str | None = None) -> None:
        """Drop a query that has ended; one that failed is mentioned."""
        with self._lock:
            kept, name = self._batches.get(run_id), self._names.pop(run_id, None)
            name = kept[-1].query if kept else name
        if error and name:
            log.warning("query %s failed: %s", name, error.strip().splitlines()[0])
        self.forget(run_id)

    def forget(self, run_id: str) -> None:
        """Drop a query that has ended."""
        with self._lock:
            self._batches.pop(run_id, None)

    def queries(self) -> dict[str, list[Batch]]:
        """The batches of every running query by run id, oldest first."""
        with self._lock:
            return {run: list(kept) for run, kept in self._batches.items() if kept}


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


# Spark's events about streaming queries, heard at little cost.
#
# PySpark's own listener copies every field of a progress event over the gateway to the JVM, one
# by one; we need only its JSON text.


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """What is called when a query has something to say.

    started: with a run id, and the name of the query, if it has one
    progress: with the document of a batch
    idle: with a run id and a time
    ended: with a run id, and what made it fail, if it did
    """

    started: Callable[[str, str | None], None]
    progress: Callable[[Mapping[str, Any]], None]
    idle: Callable[[str, str], None]
    ended: Callable[[str, str | None], None]


class Listener:
    """Passes events on to callbacks; give it to ``spark.streams.addListener``."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks
        self._java: Any = None

    @property
    def _jlistener(self) -> Any:
        """What ``addListener`` and ``removeListener`` ask for: the JVM's side of it."""
        if self._java is None:
            from pyspark import SparkContext

            jvm: Any = SparkContext._jvm
            wrapper = jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
            self._java = wrapper(_JavaListener(self.callbacks))
        return self._java


class _JavaListener:
    """The interface that the JVM calls, on a thread of py4j."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's names)
        self._callbacks.started(event.runId().toString(), event.name())

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._callbacks.progress(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        self._callbacks.idle(event.runId().toString(), event.timestamp())

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        error = event.exception()
        self._callbacks.ended(event.runId().toString(), error.get() if error.isDefined() else None)

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
