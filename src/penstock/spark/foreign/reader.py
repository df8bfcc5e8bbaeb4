"""A foreign application's REST interface, read and never written: HTTP, clock, SQL executions."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from penstock.core.errors import EngineError
from penstock.spark.read.documents import epoch

LOOK_AHEAD = 3  # execution ids that may be missing before we believe that there are no newer ones
STATE_ROWS, STATE_BYTES = "number of total state rows", "memory used by state"
CLOCK_OFF = 2.0  # seconds between two clocks that are not worth a correction

Key = tuple[str, int]  # run id, batch


class RefusedError(EngineError):
    """Nothing listens at the address."""


class NotSparkError(EngineError):
    """Something answers at the address, but not with what Spark's interface says there."""


class Reader:
    """GETs below the address of a UI; ``timeout`` seconds for one answer."""

    def __init__(self, base: str, *, timeout: float = 20.0) -> None:
        self.base = base.rstrip("/")
        self._timeout = timeout
        self._ahead = 0.0

    def now(self) -> float:
        """The time on the server's clock, seconds since the epoch.

        All times of batches and executors are the driver's; an ``HTTP Date`` of every answer
        tells how far its clock is from ours. It counts whole seconds, so less is not corrected.
        """
        return time.time() + self._ahead

    def get(self, path: str) -> Any:
        """The JSON document at a path."""
        url = self.base + path
        try:
            with urllib.request.urlopen(url, timeout=self._timeout) as answer:
                self._set_clock(answer.headers.get("Date"))
                text = answer.read()
                html = answer.headers.get_content_type() == "text/html"
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise NotSparkError(f"404 at {url}") from error
            raise EngineError(f"{error.code} {error.reason} at {url}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ConnectionRefusedError | socket.gaierror):
                raise RefusedError(f"nothing listens at {url} ({reason})") from error
            raise EngineError(f"no answer at {url}: {reason}") from error
        if html:
            raise NotSparkError(f"a web page instead of JSON at {url}")
        try:
            return json.loads(text)
        except ValueError as error:
            raise EngineError(f"malformed JSON at {url}: {error}") from error

    def _set_clock(self, date: str | None) -> None:
        if date is None:
            return
        try:
            ahead = parsedate_to_datetime(date).timestamp() + 0.5 - time.time()
        except ValueError:
            return
        if abs(ahead - self._ahead) > CLOCK_OFF:
            self._ahead = ahead if abs(ahead) > CLOCK_OFF else 0.0


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
    next ones are asked for until there are none, as ``Rest`` does with stages.
    """

    def __init__(self, reader: Reader, application: str) -> None:
        self._reader = reader
        self._base = f"/api/v1/applications/{application}/sql"
        self._next = 0
        self._open: dict[int, Execution] = {}

    def begin(self) -> list[Execution]:
        """What has run so far, ended or not; none of it is reported again."""
        query = "?details=false&planDescription=false&offset=0&length=100000"
        past = [execution_of(e) for e in self._reader.get(self._base + query)]
        self._next = max((e.id for e in past), default=-1) + 1
        self._open = {}
        return past

    def ended(self) -> list[Execution]:
        """Executions that ended since the last call."""
        done = [found for id in sorted(self._open) if (found := self._look(id)) is not None]
        missing = 0
        while missing < LOOK_AHEAD:
            found = self._look(self._next + missing)
            if found is None and self._next + missing not in self._open:
                missing += 1
                continue
            self._next, missing = self._next + missing + 1, 0
            if found is not None:
                done.append(found)
        if not done and not self._open:
            self._check_that_none_was_dropped()
        return done

    def _check_that_none_was_dropped(self) -> None:
        """Spark keeps only so many executions: those between two looks may be gone already."""
        query = "?details=false&planDescription=false&offset=0&length=1"
        oldest = self._reader.get(self._base + query)
        if oldest and int(oldest[0]["id"]) > self._next:
            raise EngineError(
                f"Spark dropped execution {self._next} before it could be read; shorten the "
                "period or raise spark.sql.ui.retainedExecutions"
            )

    def running(self) -> set[Key]:
        """The batches of which some execution still ran at the last look."""
        return {e.key for e in self._open.values() if e.key is not None}

    def _look(self, id: int) -> Execution | None:
        """One execution if it has ended; one that runs is remembered."""
        try:
            document = self._reader.get(f"{self._base}/{id}?details=true&planDescription=false")
        except NotSparkError:
            self._open.pop(id, None)
            return None
        found = execution_of(document)
        if found.running:
            self._open[id] = found
            return None
        self._open.pop(id, None)
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
