"""What the queries of a session say of their micro-batches, heard and kept."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.batches.progress import batch_of
from penstock.batches.values import Batch

log = logging.getLogger("penstock")

KEPT = 500  # batches per query; at one per second more than any window needs
MOST_QUERIES = 100  # running at once in a session


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
