"""An application as a member of a split pipeline: it answers to the controller, or to agents."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.batches.progress import watermark_of
from penstock.batches.snapshot import POOL
from penstock.batches.values import Executor
from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError, NotReady, PenstockError
from penstock.core.model import Change
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.engine import SparkEngine
from penstock.spark.split.wire import ADD, REMOVE, ROSTER, Address, Document, Server

LOOK = 0.5  # seconds between looks at an action in flight


def offsets_of(offset: Any) -> dict[str, int]:
    """Records before an offset of Kafka's, by topic.

    >>> offsets_of('{"bid": {"0": 3, "1": 4}}')
    {'bid': 7}
    """
    document = json.loads(offset) if isinstance(offset, str) else offset or {}
    return {topic: sum(ends.values()) for topic, ends in document.items()}


class Member:
    """Lets the controller of a split pipeline observe and resize this application.

    ::

        with Member(spark, listen="/run/penstock/map.sock", max_executors=8):
            query.awaitTermination()

    listen: the path of a socket, or host:port
    key: the secret of a host:port; if not given, ``PENSTOCK_KEY`` of the environment
    min_executors, max_executors: the last gate, whatever the controller decides
    window: seconds of finished batches that an observation covers
    most_rows: rows that a batch may take, if they are limited: what waits beyond them counts as a
        full buffer
    agents: whether agents beside the executors decide (docs/agents.md): then a wish for one
        executor more or one fewer is carried out, and a controller's are refused; else the
        opposite
    """

    def __init__(
        self,
        spark: Any,
        *,
        listen: str | Path,
        key: str | None = None,
        min_executors: int = 1,
        max_executors: int | None = None,
        window: float = 15.0,
        most_rows: int | None = None,
        agents: bool = False,
    ) -> None:
        if max_executors is not None and not 1 <= min_executors <= max_executors:
            raise InputError(
                f"min_executors = {min_executors} must be at least 1 and at most "
                f"max_executors = {max_executors}"
            )
        self._spark = spark
        self._engine = SparkEngine(spark, window=window)
        if max_executors is not None:
            self._engine.pool.limits = (min_executors, max_executors)
        self._address = Address.parse(listen)
        self._key = key
        self._most_rows = most_rows
        self._wishes = Wishes(self._engine.pool, self._engine.executors) if agents else None
        self._lock = threading.Lock()  # the engine is asked by one at a time
        self._server: Server | None = None
        self._timer: threading.Thread | None = None

    def __enter__(self) -> Member:
        self._engine.pool.refuse_if_not_ours()
        self._engine.stopped.clear()
        self._engine.attach()
        self._server = Server(self._address, self._answer, key=self._key)
        self._timer = threading.Thread(target=self._time, name="penstock-timer", daemon=True)
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        self._engine.detach()
        if self._timer is not None:
            self._timer.join(2 * LOOK)

    def _answer(self, question: Document) -> Document:
        with self._lock:
            match question.get("ask"):
                case "observe":
                    return self._observe()
                case "status":
                    return self._status()
                case "apply":
                    if self._wishes is not None:
                        raise InputError("agents size this application; a controller may not")
                    self._engine.apply({POOL: from_json(Change, question["change"])})
                    return {}
                case wish if wish in (ADD, REMOVE, ROSTER):
                    if self._wishes is None:
                        raise InputError(
                            "no agents size this application: make its Member with agents=True"
                        )
                    return self._wishes.answer(question)
                case other:
                    raise InputError(f"cannot answer {other!r}; is the controller newer than this?")

    def _observe(self) -> Document:
        why, seen = "", None
        try:
            seen = self._engine.observe()
        except NotReady as error:
            why = str(error)
        slots = seen.pools[POOL] if seen is not None else self._engine.slots()
        return {
            "penstock": __version__,
            "application": self._spark.sparkContext.applicationId,
            "time": time.time(),
            "seen": None if seen is None else to_json(seen),
            "why": why,
            "slots": to_json(slots),
            "most_rows": self._most_rows,
        }

    def _status(self) -> Document:
        """How far the queries are: rows taken by topic, and the lowest watermark."""
        taken: dict[str, int] = {}
        watermarks = []
        for query in self._spark.streams.active:
            progress: Any = query.lastProgress or {}
            watermarks.append(watermark_of(progress))
            for source in progress.get("sources", ()):
                for topic, rows in offsets_of(source.get("endOffset")).items():
                    taken[topic] = max(taken.get(topic, 0), rows)
        known = [w for w in watermarks if w is not None]
        return {
            "application": self._spark.sparkContext.applicationId,
            "taken": taken,
            "watermark": min(known) if len(known) == len(watermarks) else None,
        }

    def _time(self) -> None:
        """Look at an action in flight, so that its cost is known to half a second."""
        stopped = self._engine.stopped
        while not stopped.wait(LOOK):
            if self._engine.pool.watching:
                with self._lock:
                    self._engine.look()


class Wishes:
    """Carries out ±1 and nothing else: who wants it, and why, is not its business.

    Refused is what would go beyond the pool's limits, and an executor that is not there. Asked
    twice for the same executor to leave, it says yes twice: an answer may have been lost.
    """

    def __init__(self, pool: ExecutorPool, executors: Callable[[], Sequence[Executor]]) -> None:
        self._pool = pool
        self._executors = executors
        self._added = 0
        self._removed: list[str] = []
        self._refused = 0

    def answer(self, question: Document) -> Document:
        """The new total; or how many wishes there were, and which executors came and went."""
        if question["ask"] == ROSTER:
            return self._roster()
        try:
            return {"total": self._carried_out(question)}
        except PenstockError:
            self._refused += 1
            raise

    def _carried_out(self, question: Document) -> int | None:
        match question:
            case {"ask": "add"}:
                total = self._pool.one_more(self._executors())
                self._added += 1
                return total
            case {"ask": "remove", "executor": str(leaving)}:
                if leaving in self._removed:
                    return None
                total = self._pool.one_fewer(leaving, self._executors())
                self._removed.append(leaving)
                return total
        raise InputError(f"{question!r:.80} is no wish; ask for add, or remove an executor")

    def _roster(self) -> Document:
        executors = self._executors()
        return {
            "added": self._added,
            "removed": list(self._removed),
            "refused": self._refused,
            "alive": [e.id for e in executors if e.alive],
            "gone": [e.id for e in executors if not e.alive],
            "failed_tasks": sum(e.failed_tasks for e in executors),
        }
