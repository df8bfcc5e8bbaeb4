"""What one observation costs, by the size of the application: ``python -m benchmarks.observation``.

Inside the driver: CPU of Penstock's thread and of the driver's whole JVM while it answers. By REST:
CPU of Penstock's thread, requests and bytes. In every round one batch of each query has ended and
the next one runs. Stores are synthetic (``synthetic_store``): filled by Spark's own listener, and
the documents are written by Spark's own writer. Each query is a real one, too, that rests.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.synthetic_store import (
    BATCH_SECONDS,
    ROWS,
    Shape,
    SyntheticApplication,
    description,
    executor_events,
    first_stage,
    round_events,
)
from penstock.batches.values import Batch, Source
from penstock.report.table import plain_table
from penstock.spark.engine import SparkEngine
from penstock.spark.foreign.address import Application
from penstock.spark.foreign.engine import ForeignEngine
from penstock.spark.read.store import Store

SMALL = Shape(tasks=200, executors=10, queries=1)
BUDGET = Shape(tasks=2_000, executors=1_000, queries=5)
CPU_MS, BYTES = 250.0, 8e6  # at the size of BUDGET: inside the driver; by REST
SHAPES = (
    SMALL,
    Shape(tasks=2_000, executors=10, queries=1),
    Shape(tasks=10_000, executors=10, queries=1),
    Shape(tasks=200, executors=100, queries=1),
    Shape(tasks=200, executors=1_000, queries=1),
    Shape(tasks=200, executors=10, queries=5),
    Shape(tasks=200, executors=10, queries=20),
    BUDGET,
)
ROUNDS = 4  # that are measured; the first ones warm up
WARM_UP = 2
LINEAR = 1.5  # growth of a cost over that of what it depends on, at most
NODES = 24  # of a query's plan, in the documents of its executions


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one observation cost at a size: milliseconds of CPU, requests and bytes."""

    shape: Shape
    jvm_ms: float
    own_ms: float
    rest_ms: float
    requests: int
    bytes: int

    @property
    def inside_ms(self) -> float:
        """CPU inside the driver, of Penstock and of the JVM."""
        return self.jvm_ms + self.own_ms


def main() -> int:
    """Measure all sizes, print them and say which budgets were missed."""
    console = Console()
    with driver() as spark:
        observed = [measure(spark, shape) for shape in SHAPES]
    console.print(table(observed))
    missed = misses(observed)
    for line in missed:
        console.print(f"[red]missed: {line}")
    return 1 if missed else 0


@contextmanager
def driver() -> Iterator[Any]:
    """A real driver without executors."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[2]").appName("observation").config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "2g")
        .getOrCreate()
    )  # fmt: skip
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


class _Synthetic(Store):
    """Reads another store than the driver's own."""

    def __init__(self, context: Any, store: Any) -> None:
        super().__init__(context)
        self._other = store

    def _connect(self) -> None:
        super()._connect()
        self._as_rest = (
            self._context._jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        )
        self._store = self._other

    def texts(self, shape: Shape, number: int) -> dict[str, str]:
        """The documents by path, as Spark's REST interface writes them, of two rounds."""
        found = {
            "/allexecutors": self._text(lambda store: store.executorList(False)),
            "/stages?active": self._text(
                lambda store: store.stageList(
                    self._unfinished, False, False, self._quantiles, self._all
                )
            ),
            "/stages": self._text(
                lambda store: store.stageList(None, False, False, self._quantiles, self._all)
            ),
        }
        for id in range(first_stage(shape, number), first_stage(shape, number + 2)):
            text = self._text(
                lambda store, id=id: store.stageData(id, False, self._all, False, self._quantiles)
            )
            if json.loads(text):
                found[f"/stages/{id}"] = text
        return found

    def _text(self, ask: Any) -> str:
        return str(self._ask(lambda store: self._as_rest.writeValueAsString(ask(store))))


def measure(spark: Any, shape: Shape) -> Observed:
    """One size: rounds of batches, and an observation after each, both ways."""
    pid = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    jvm: list[float] = []
    own: list[float] = []
    rest: list[tuple[float, int, int]] = []
    with tempfile.TemporaryDirectory() as temporary, resting(spark, shape.queries) as runs:
        made = SyntheticApplication(spark.sparkContext, Path(temporary))
        reader = _Synthetic(spark.sparkContext, made.store)
        engine = SparkEngine(spark, window=BATCH_SECONDS, status=reader)
        made.replay(executor_events(shape, time.time()))
        with FakeUi() as ui:
            outside = ForeignEngine(ui.application, window=BATCH_SECONDS)
            for number in range(WARM_UP + ROUNDS):
                now = time.time()
                made.replay(round_events(shape, runs, number, now))
                ui.show(_documents(reader, shape, runs, number, now))
                for run in runs:
                    engine._log.add(_batch(shape, run, number, now))
                if number == 0:
                    engine._status.new_stages()
                    outside.begin()
                    continue
                before, mine = process_seconds(pid), time.thread_time()
                seen = engine.observe()
                jvm.append(process_seconds(pid) - before)
                own.append(time.thread_time() - mine)
                ui.forget()
                mine = time.thread_time()
                seen_outside = outside.observe() if number > 1 else None
                rest.append((time.thread_time() - mine, ui.requests, ui.sent))
                if number == 1:
                    outside_first(outside)
                _check(shape, seen, seen_outside)
        made.close()
    quiet = slice(WARM_UP - 1, None)
    return Observed(
        shape=shape,
        jvm_ms=1e3 * min(jvm[quiet]),
        own_ms=1e3 * min(own[quiet]),
        rest_ms=1e3 * min(r[0] for r in rest[quiet]),
        requests=max(r[1] for r in rest[quiet]),
        bytes=max(r[2] for r in rest[quiet]),
    )


def outside_first(engine: ForeignEngine) -> None:
    """Let it take the first batches; they count from the next round on."""
    from penstock.core.errors import NotReady

    try:
        engine.observe()
    except NotReady:
        return


def _check(shape: Shape, inside: Any, outside: Any) -> None:
    """Both saw every query and every executor: else they were cheap for a wrong reason."""
    for seen in (inside, outside):
        if seen is None:
            continue
        found = (len(seen.queries), len(seen.pools["executors"]))
        if found != (shape.queries, shape.executors):
            raise RuntimeError(f"{found} queries and executors were seen of {shape}")


def process_seconds(pid: int) -> float:
    """CPU seconds of all threads of another process."""
    return time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives on Linux


@contextmanager
def resting(spark: Any, count: int) -> Iterator[list[str]]:
    """The run ids of real queries that have run their first batch and wait for an hour."""
    started = []
    try:
        for _ in range(count):
            rows = spark.readStream.format("rate").load()
            writer = rows.writeStream.format("noop").trigger(processingTime="1 hour")
            started.append(writer.start())
        for query in started:
            while not query.recentProgress:
                if not query.isActive:
                    raise RuntimeError(f"a query ended: {query.exception()}")
                time.sleep(0.05)
        yield [str(query.runId) for query in started]
    finally:
        for query in started:
            query.stop()


def _batch(shape: Shape, run: str, number: int, now: float) -> Batch:
    rows = ROWS * shape.tasks
    return Batch(
        query=f"query-{run[:8]}",
        run_id=run,
        id=number + 1,  # the first one was real
        start=now - BATCH_SECONDS,
        duration=BATCH_SECONDS,
        rows=rows,
        sources=(Source(rows=rows, available=rows * (number + 1), taken=rows * (number + 1)),),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """What an application's REST interface answers at a moment, by the end of the path."""

    by_path: Mapping[str, bytes]


def _documents(
    reader: _Synthetic, shape: Shape, runs: Sequence[str], number: int, now: float
) -> Documents:
    """The documents of the synthetic store, and those of the SQL executions of its batches."""
    found = reader.texts(shape, number)
    executions = [
        execution(shape, run, query, batch, now, ended=batch == number)
        for batch in (number, number + 1)
        for query, run in enumerate(runs)
    ]
    found["/sql"] = json.dumps(executions)
    found |= {f"/sql/{e['id']}": json.dumps(e) for e in executions}
    return Documents(by_path={path: text.encode() for path, text in found.items()})


def execution(
    shape: Shape, run: str, query: int, batch: int, now: float, *, ended: bool
) -> dict[str, Any]:
    """The document of what Spark runs for a batch, with a plan of 24 nodes."""
    began = datetime.fromtimestamp(now - BATCH_SECONDS if ended else now, UTC)
    rows = f"{ROWS * shape.tasks:,}" if ended else "0"
    metrics = [{"name": f"metric {n}", "value": f"total (min, med, max)\n{rows}"} for n in range(6)]
    names = ["MicroBatchScan", *(f"WholeStageCodegen ({n})" for n in range(1, NODES))]
    return {
        "id": batch * shape.queries + query,
        "status": "COMPLETED" if ended else "RUNNING",
        "description": description(run, batch),
        "planDescription": "",
        "submissionTime": began.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "GMT",
        "duration": int(1e3 * BATCH_SECONDS) if ended else 0,
        "runningJobIds": [],
        "successJobIds": [batch],
        "failedJobIds": [],
        "nodes": [
            {
                "nodeId": node,
                "nodeName": name,
                "wholeStageCodegenId": node,
                "metrics": [{"name": "number of output rows", "value": rows}, *metrics],
            }
            for node, name in enumerate(names)
        ],
        "edges": [{"fromId": n, "toId": n - 1} for n in range(1, NODES)],
    }


@dataclass(slots=True)
class FakeUi:
    """Answers on loopback with given documents, and counts; a context manager."""

    requests: int = 0
    sent: int = 0
    _shown: Documents = field(default_factory=lambda: Documents(by_path={}))
    _server: Any = None

    @property
    def application(self) -> Application:
        """What it shows."""
        base = f"http://127.0.0.1:{self._server.server_port}"
        return Application(base=base, id="app-1", name="synthetic")

    def show(self, documents: Documents) -> None:
        """Answer with these from now on."""
        self._shown = documents

    def forget(self) -> None:
        """Count from nothing."""
        self.requests = self.sent = 0

    def answer(self, path: str) -> bytes | None:
        """The body for a path; ``None``: there is no such document."""
        path, _, query = path.partition("?")
        below = path.removeprefix("/api/v1/applications/app-1")
        if below == "":
            attempt = {"completed": False, "appSparkVersion": "4.3.0"}
            return json.dumps({"id": "app-1", "name": "synthetic", "attempts": [attempt]}).encode()
        if below == "/environment":
            return json.dumps({"sparkProperties": []}).encode()
        return self._shown.by_path.get("/stages?active" if "status=active" in query else below)

    def __enter__(self) -> FakeUi:
        ui = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = ui.answer(self.path)
                ui.requests += 1  # before the answer: whoever has it may look at once
                ui.sent += len(body or b"")
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def misses(observed: Sequence[Observed]) -> list[str]:
    """What is above its budget, and what grows faster than what it depends on."""
    by_shape = {o.shape: o for o in observed}
    lines = []
    if (at := by_shape.get(BUDGET)) is not None:
        if at.inside_ms > CPU_MS:
            lines.append(f"{at.inside_ms:.0f} ms of CPU inside the driver, at most {CPU_MS:g}")
        if at.bytes > BYTES:
            lines.append(f"{at.bytes / 1e6:.1f} MB by REST, at most {BYTES / 1e6:g}")
    small = by_shape.get(SMALL)
    for o in observed if small is not None else ():
        size = size_over(o.shape, SMALL)
        for what in ("inside_ms", "rest_ms", "requests", "bytes"):
            grown = getattr(o, what) / getattr(small, what)
            if grown > LINEAR * size:
                lines.append(f"{what} grew {grown:.1f}-fold where the size grew {size:g}-fold")
    return lines


def size_over(shape: Shape, other: Shape) -> float:
    """How many times as large one is, by what grew most in proportion, multiplied."""
    return (
        shape.tasks / other.tasks
        * (shape.executors / other.executors)
        * (shape.queries / other.queries)
    )  # fmt: skip


def table(observed: Sequence[Observed]) -> Any:
    """Sizes beside costs."""
    found = plain_table("One observation, by the size of the application")
    for name in (
        "tasks", "executors", "queries", "inside: CPU ms", "of it JVM", "REST: CPU ms",
        "requests", "kB",
    ):  # fmt: skip
        found.add_column(name, justify="right")
    for o in observed:
        found.add_row(
            f"{o.shape.tasks:,}", f"{o.shape.executors:,}", f"{o.shape.queries}",
            f"{o.inside_ms:.0f}", f"{o.jvm_ms:.0f}", f"{o.rest_ms:.0f}",
            f"{o.requests:,}", f"{o.bytes / 1e3:,.0f}",
        )  # fmt: skip
    return found


if __name__ == "__main__":
    sys.exit(main())
