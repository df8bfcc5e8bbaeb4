"""A driver's UI on loopback that answers as a recorded application did, at any moment of it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs

from tests.fakes.hostile_server import Behaviour, misbehave
from tests.places import REFERENCE

RECORDED = REFERENCE / "foreign_application.json"
# Seconds after the recording's start: a query or two run, then some batches between any two.
EARLY, LOOKS = 0.0, (20.8, 26.8, 31.8, 35.0)
Document = dict[str, Any]
Ends = Literal["completed", "gone"] | None


def epoch(text: str) -> float:
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT")
    return moment.replace(tzinfo=UTC).timestamp()


class ForeignDriver:
    """Answers from ``tests/reference/foreign_application.json``.

    The file was recorded for these tests from a real application of Spark 4.3.0: two queries on
    two one-core executors of a busy machine, ``counts`` (``rate``, 2,000 rows/s, a windowed count)
    and ``clicks`` (a file stream, without duplicates, dry at its end), with the progress that both
    reported of themselves. It is trimmed: no plans, no unused metrics and settings, other host
    names and paths.

    ``moments`` are seconds after its start; each look at the application moves to the next of
    them, and what had not happened by then is not told. After the last one it stays there, or it
    is ``completed`` or ``gone`` if ``ends`` says so. ``broken`` maps a part of a path to answers
    (status, body) that are given first, ``hostile`` to behaviours of ``hostile_server``;
    ``spoilt`` is a part of a path, a key and the value that the documents there have under it,
    from the first look on.
    """

    def __init__(self, *moments: float, ends: Ends = None, prefix: str = "") -> None:
        recording: Document = json.loads(RECORDED.read_text(encoding="utf-8"))
        self.application: Document = recording["application"]
        self.sql: list[Document] = recording["sql"]
        self.stages: list[Document] = recording["stages"]
        self.executors: list[Document] = recording["executors"]
        self.properties: dict[str, str] = recording["properties"]
        self.progress: list[Document] = recording["progress"]
        self.others: list[Document] = []
        self.broken: dict[str, list[tuple[int, str]]] = {}
        self.hostile: dict[str, list[Behaviour]] = {}
        self.spoilt: tuple[str, str, Any] | None = None
        self.stopped = threading.Event()
        self.looks = 0
        self.asked: list[str] = []
        self.methods: set[str] = set()
        self.start = float(recording["start"])
        self.now = self.start + (moments[0] if moments else 0.0)
        self._moments = list(moments[1:])
        self._ends = ends
        self.prefix = prefix
        driver = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                driver.methods.add(self.command)
                driver.asked.append(self.path)
                if (behaviour := driver.misbehaviour(self.path)) is not None:
                    misbehave(behaviour, self, driver.stopped)
                    return
                status, kind, body = driver.answer(self.path)
                self.send_response_only(status)
                when = datetime.fromtimestamp(driver.now, UTC)
                self.send_header("Date", format_datetime(when, usegmt=True))
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 (the names of http.server)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.prefix}"

    @property
    def id(self) -> str:
        return str(self.application["id"])

    def misbehaviour(self, path: str) -> Behaviour | None:
        return next((b.pop(0) for part, b in self.hostile.items() if part in path and b), None)

    def close(self) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str) -> tuple[int, str, str]:
        for part, answers in self.broken.items():
            if part in path and answers:
                status, body = answers.pop(0)
                return status, "application/json", body
        inside = path.startswith(self.prefix)
        below, _, query = path.removeprefix(self.prefix).partition("?")
        found = self._document(below) if inside else None
        options = parse_qs(query)
        if found is not None and "status" in options:
            found = [d for d in found if d["status"].lower() in options["status"]]
        if found is not None and "length" in options:
            begin = int(options.get("offset", ["0"])[0])
            found = found[begin : begin + int(options["length"][0])]
        if found is None:
            return 404, "text/html", "<html>not found</html>"
        if self.spoilt is not None and self.looks and self.spoilt[0] in path:
            wrong = {self.spoilt[1]: self.spoilt[2]}
            found = [d | wrong for d in found] if isinstance(found, list) else found | wrong
        return 200, "application/json", json.dumps(found)

    def _document(self, path: str) -> Any:
        if path == "/api/v1/applications":
            return [self.application, *self.others]
        below = path.removeprefix(f"/api/v1/applications/{self.id}")
        if below == path:
            return None
        if below == "":
            return self._look()
        if below == "/environment":
            return {"sparkProperties": list(self.properties.items())}
        if below == "/allexecutors":
            return [e for e in self.executors if epoch(e["addTime"]) <= self.now]
        if below == "/sql":
            return [self._execution(e) for e in self.begun(self.sql)]
        if below == "/stages":
            return [self._stage(s) for s in self.begun(self.stages)]
        if match := re.fullmatch(r"/sql/(\d+)", below):
            return next(
                (self._execution(e) for e in self.begun(self.sql) if e["id"] == int(match[1])),
                None,
            )
        if match := re.fullmatch(r"/stages/(\d+)", below):
            found = [s for s in self.begun(self.stages) if s["stageId"] == int(match[1])]
            return [self._stage(s) for s in found] or None
        return None

    def _look(self) -> Document | None:
        self.looks += 1
        if self._moments:
            self.now = self.start + self._moments.pop(0)
        elif self._ends == "gone":
            return None
        elif self._ends == "completed":
            (attempt,) = self.application["attempts"]
            return {**self.application, "attempts": [{**attempt, "completed": True}]}
        return self.application

    def begun(self, documents: Sequence[Document]) -> list[Document]:
        begun = [d for d in documents if epoch(d.get("submissionTime", NEVER)) <= self.now]
        last = max((d.get("stageId", -1) for d in begun), default=-1)
        skipped = [d for d in documents if d.get("status") == "SKIPPED" and d["stageId"] < last]
        return begun + skipped

    def _execution(self, e: Document) -> Document:
        if epoch(e["submissionTime"]) + e["duration"] / 1e3 <= self.now:
            return e
        return {**e, "status": "RUNNING", "nodes": [{**n, "metrics": []} for n in e["nodes"]]}

    def _stage(self, s: Document) -> Document:
        if s["status"] == "SKIPPED" or epoch(s["completionTime"]) <= self.now:
            return s
        kept = ("stageId", "attemptId", "numTasks", "description", "submissionTime")
        return {**{key: s[key] for key in kept}, "status": "ACTIVE"}


NEVER = "9999-01-01T00:00:00.000GMT"
Driver = Callable[..., ForeignDriver]


@contextmanager
def drivers() -> Iterator[Driver]:
    """Starts drivers, and ends them all."""
    started: list[ForeignDriver] = []

    def start(*moments: float, **options: Any) -> ForeignDriver:
        started.append(ForeignDriver(*moments, **options))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            one.close()
