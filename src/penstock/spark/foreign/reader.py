"""The SQL executions of a foreign application, as its REST interface tells them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.errors import EngineError
from penstock.spark.read.documents import epoch
from penstock.spark.read.http import AbsentError, Endpoint

LOOK_AHEAD = 3  # execution ids that may be missing before we believe that there are no newer ones
STATE_ROWS, STATE_BYTES = "number of total state rows", "memory used by state"
DOUBTED = 8  # looks in a row without a new execution until the whole list is asked for
MOST_OPEN = 1000  # executions that run at once, as many as Spark keeps of those that have ended

Key = tuple[str, int]  # run id, batch


class DroppedError(EngineError):
    """Spark forgot something before it was read, so that the batches read so far have a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One SQL execution; what a streaming query runs per batch is one or several of them.

    query: the name of the query
    run_id, batch: which batch it belongs to; ``None`` if it is no part of a stream
    running, failed: how it stands
    start, end: seconds since the epoch
    rows: what each of the stream's scans read in it; ``None`` where its plan does not tell
    state: its stateful operators, in the order of the flow
    state_rows, state_bytes: what they hold together; the bytes are rounded by Spark
    """

    id: int
    query: str
    run_id: str | None
    batch: int | None
    running: bool
    failed: bool
    start: float
    end: float
    rows: tuple[int, ...] | None = None
    state: tuple[str, ...] = ()
    state_rows: int = 0
    state_bytes: int = 0

    @property
    def key(self) -> Key | None:
        """The run and the batch it belongs to; ``None`` if it is no part of a stream."""
        return None if self.run_id is None or self.batch is None else (self.run_id, self.batch)


class Executions:
    """The SQL executions of one application, each reported once, when it has ended.

    ``begin`` reads the whole list once, without plans; afterwards ids are consecutive, so the
    next ones are asked for until there are none, as ``Rest`` does with stages. One look takes at
    most half of what is left of the budget of its observation; the next look goes on there.
    """

    def __init__(self, endpoint: Endpoint, application: str) -> None:
        self._endpoint = endpoint
        self._base = f"/api/v1/applications/{application}/sql"
        self._next = 0
        self._open: dict[int, Execution] = {}  # the one looked at longest ago first
        self._behind: dict[str, int] = {}  # the newest batch of each run, while some are unread
        self._without = 0

    def begin(self) -> list[Execution]:
        """What has run so far, ended or not; none of it is reported again."""
        past = [execution_of(e) for e in self._listed()]
        self._next = max((e.id for e in past), default=-1) + 1
        self._open = {}
        self._behind = {}
        self._without = 0
        return past

    def ended(self) -> list[Execution]:
        """Executions that ended since the last call."""
        left, first = self._endpoint.left, self._next
        done = []
        for id in list(self._open):
            if self._endpoint.left <= 0.75 * left:
                break
            if (found := self._look(id)) is not None:
                done.append(found)
        missing = 0
        while missing < LOOK_AHEAD and self._endpoint.left > 0.5 * left:
            id = self._next + missing
            found = self._look(id)
            if found is None and id not in self._open:
                missing += 1
                continue
            self._next, missing = id + 1, 0
            if found is not None:
                done.append(found)
        caught_up = missing == LOOK_AHEAD
        if caught_up:
            self._behind = {}
        if len(self._open) > MOST_OPEN or len(self._behind) > MOST_OPEN:
            raise DroppedError(
                f"more than {MOST_OPEN} executions run at once at {self._endpoint.base}, too many "
                "to follow; begun afresh, with batches that begin from now on"
            )
        self._without = self._without + 1 if caught_up and self._next == first else 0
        if self._without:
            self._check_that_none_was_dropped()
        return done

    def running(self) -> set[Key]:
        """The batches of which some execution ran at the last look, or may not be read yet.

        A run has one batch at a time: where the newest one is being read, all before it are done.
        """
        return {e.key for e in self._open.values() if e.key is not None} | {*self._behind.items()}

    def _check_that_none_was_dropped(self) -> None:
        """Spark keeps only so many executions: those between two looks may be gone already.

        Mostly the oldest that it keeps tells. It does not where an old one still runs, which Spark
        keeps in any case; so now and then the whole list is read.
        """
        whole = self._without % DOUBTED == 0
        known = {int(e["id"]) for e in self._listed(None if whole else 1)}
        if max(known, default=-1) > self._next and self._next not in known:
            raise DroppedError(
                f"Spark dropped execution {self._next} before it could be read; begun afresh at "
                f"{max(known)}, with batches that begin from now on. Shorten the period or raise "
                "spark.sql.ui.retainedExecutions"
            )

    def _listed(self, length: int | None = None) -> Sequence[Mapping[str, Any]]:
        """The executions that Spark keeps, the oldest first, without plans."""
        query = f"?details=false&planDescription=false&offset=0&length={length or 100_000}"
        found = self._endpoint.get(self._base + query)
        if not isinstance(found, list):
            raise TypeError(f"a list of executions was expected, not {type(found).__name__}")
        return found

    def _look(self, id: int) -> Execution | None:
        """One execution if it has ended; one that runs is remembered."""
        self._open.pop(id, None)
        try:
            document = self._endpoint.get(f"{self._base}/{id}?details=true&planDescription=false")
        except AbsentError:
            return None
        found = execution_of(document)
        if found.run_id is not None and found.batch is not None:
            newest = self._behind.get(found.run_id, found.batch)
            self._behind[found.run_id] = max(newest, found.batch)
        if found.running:
            self._open[id] = found
            return None
        return found


def execution_of(document: Mapping[str, Any]) -> Execution:
    """An execution of ``/sql`` as a value."""
    description = str(document.get("description") or "")
    words = dict(line.split(" = ", 1) for line in description.split("\n") if " = " in line)
    first = description.split("\n", 1)[0].strip()
    run_id, batch = words.get("runId"), words.get("batch", "")
    start = epoch(document["submissionTime"])
    nodes = sorted(document.get("nodes", ()), key=lambda n: int(n["nodeId"]))
    stateful = [n for n in reversed(nodes) if _metric(n, STATE_ROWS) is not None]
    return Execution(
        id=int(document["id"]),
        query=first if first and " = " not in first else f"query-{(run_id or '')[:8]}",
        run_id=run_id,
        batch=int(batch) if batch.isdigit() else None,
        running=document["status"] == "RUNNING",
        failed=document["status"] == "FAILED",
        start=start,
        end=start + int(document["duration"]) / 1e3,
        rows=_rows(nodes),
        state=tuple(_OPERATORS.get(n["nodeName"], str(n["nodeName"])) for n in stateful),
        state_rows=sum(_count(_metric(n, STATE_ROWS)) or 0 for n in stateful),
        state_bytes=sum(_bytes(_metric(n, STATE_BYTES)) for n in stateful),
    )


# Plan nodes under the names that progress events have for their operators.
_OPERATORS = {
    "StateStoreSave": "stateStoreSave",
    "SessionWindowStateStoreSave": "sessionWindowStateStoreSaveExec",
    "StreamingSymmetricHashJoin": "symmetricHashJoin",
    "StreamingDeduplicate": "dedupe",
    "StreamingDeduplicateWithinWatermark": "dedupeWithinWatermark",
}


def _rows(nodes: Sequence[Mapping[str, Any]]) -> tuple[int, ...] | None:
    """Rows that each of the stream's own scans read, in the order of the plan.

    Kafka, ``rate``, Python and all other sources of the second interface are ``MicroBatchScan``.
    A file stream is an ordinary ``Scan csv``, like the scan of a static table beside it: with two
    of them we cannot tell which is the stream. A batch without data reads an empty local table.
    """
    scans = [n for n in nodes if str(n["nodeName"]).startswith("MicroBatchScan")]
    if not scans:
        scans = [n for n in nodes if _is_file_scan(str(n["nodeName"]))]
        if len(scans) > 1:
            return None
    if not scans:
        return (0,) if any(_is_empty(n) for n in nodes) else None
    counts = [_count(_metric(n, "number of output rows")) for n in scans]
    known = tuple(c for c in counts if c is not None)
    return known if len(known) == len(counts) else None


def _is_file_scan(name: str) -> bool:
    return name.startswith("Scan ") and not name.startswith(("Scan ExistingRDD", "Scan OneRow"))


def _is_empty(node: Mapping[str, Any]) -> bool:
    return "LocalTableScan" in str(node["nodeName"]) and "<empty>" in str(node.get("desc", ""))


def _metric(node: Mapping[str, Any], name: str) -> str | None:
    """A metric of a plan node, as Spark writes it for people."""
    return next((str(m["value"]) for m in node.get("metrics", ()) if m["name"] == name), None)


def _count(text: str | None) -> int | None:
    """``1,500`` as a number."""
    return None if text is None else int(text.replace(",", ""))


def _bytes(text: str | None) -> int:
    """``427.4 KiB``, or the total of ``total (min, …)\\n427.4 KiB (126.2 KiB, …)``."""
    found = re.match(r"([\d.,]+) (B|KiB|MiB|GiB|TiB)\b", (text or "").split("\n")[-1])
    if found is None:
        return 0
    return round(float(found[1].replace(",", "")) * 1024.0 ** _UNITS.index(found[2]))


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
