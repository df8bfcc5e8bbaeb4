"""What a query says of its micro-batches: the progress listener, as typed values."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

KEPT = 500  # batches per query; at one per second more than any window needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch; seconds and records.

    ``start`` when it was planned · ``available`` records that existed then, ``taken`` those
    that it and its forerunners took (both counted from the beginning of the source, ``None``
    where the source does not tell) · ``state`` its stateful operators, in the order of the flow.
    """

    query: str
    run_id: str
    id: int
    start: float
    duration: float
    rows: int
    available: int | None
    taken: int | None
    state: tuple[str, ...] = ()
    state_rows: int = 0

    @property
    def end(self) -> float:
        """When it was committed."""
        return self.start + self.duration

    @property
    def lag(self) -> int | None:
        """Records that existed when it was planned and that it did not take."""
        if self.available is None or self.taken is None:
            return None
        return max(0, self.available - self.taken)


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """A progress document (``StreamingQueryProgress.json``) as a ``Batch``."""
    run_id = str(progress["runId"])
    sources = progress.get("sources", [])
    available = [_count(s.get("latestOffset")) for s in sources]
    taken = [_count(s.get("endOffset")) for s in sources]
    operators = progress.get("stateOperators", [])
    known = None not in available and None not in taken and bool(sources)
    return Batch(
        query=progress.get("name") or f"query-{run_id[:8]}",
        run_id=run_id,
        id=int(progress["batchId"]),
        start=datetime.fromisoformat(progress["timestamp"]).timestamp(),
        duration=float(progress.get("batchDuration", 0)) / 1e3,
        rows=int(progress.get("numInputRows", 0)),
        available=sum(a for a in available if a is not None) if known else None,
        taken=sum(t for t in taken if t is not None) if known else None,
        # Spark lists them from the sink upwards.
        state=tuple(str(o["operatorName"]) for o in reversed(operators)),
        state_rows=sum(int(o.get("numRowsTotal", 0)) for o in operators),
    )


class ProgressLog:
    """Collects the batches of all queries of a session; thread-safe.

    ``attach`` registers a listener with a session. Listener calls come from Spark's own thread
    and only append to a bounded queue, so they cost the query nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches: dict[str, deque[Batch]] = {}
        self._listener: Any = None

    def attach(self, spark: Any) -> None:
        """Start listening; batches that the running queries remember come first."""
        from pyspark.sql.streaming.listener import StreamingQueryListener

        log = self

        class Listener(StreamingQueryListener):
            def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's names)
                pass

            def onQueryProgress(self, event: Any) -> None:  # noqa: N802
                log.add(batch_of(json.loads(event.progress.json)))

            def onQueryIdle(self, event: Any) -> None:  # noqa: N802
                log.idle(str(event.runId), str(event.timestamp))

            def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
                log.forget(str(event.runId))

        self._listener = Listener()
        spark.streams.addListener(self._listener)
        for query in spark.streams.active:
            for progress in query.recentProgress:
                self.add(batch_of(json.loads(progress.json)))

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

    def idle(self, run_id: str, timestamp: str) -> None:
        """Note that a query had nothing to do: as good as an empty batch."""
        last = self.queries().get(run_id, [None])[-1]
        if last is not None:
            now = datetime.fromisoformat(timestamp).timestamp()
            self.add(replace(last, start=now, duration=0.0, rows=0))

    def forget(self, run_id: str) -> None:
        """Drop a query that has ended."""
        with self._lock:
            self._batches.pop(run_id, None)

    def queries(self) -> dict[str, list[Batch]]:
        """The batches of every running query by run id, oldest first."""
        with self._lock:
            return {run: list(kept) for run, kept in self._batches.items() if kept}


def _count(offset: Any) -> int | None:
    """Records before an offset: the sum of all numbers in it; ``None`` if there are none.

    Offsets differ by source: ``{"offset": 42}``, Kafka's ``{"topic": {"0": 7, "1": 9}}``.
    """
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    numbers = list(_numbers(offset))
    return sum(numbers) if numbers else None


def _numbers(value: Any) -> Iterable[int]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _numbers(inner)
