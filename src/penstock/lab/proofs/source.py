"""How fast one slot reads Nexmark's events: into a sink that throws them away, on one core.

Spark runs in a process of its own that is bound to one core, so driver, task and Python worker
share it, as they would in a slot with one core. Every round reads a fixed number of events in
each form; the rounds are the repeats behind the confidence intervals. Budgets are judged by the
clock on the wall, so on a quiet machine; the same per second of CPU stands beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penstock.core.errors import EngineError, InputError
from penstock.lab.host.java import find_java, find_spark
from penstock.lab.host.processes import own_cpu_seconds
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.report.statistics import Estimate, estimate
from penstock.workloads.nexmark import TABLES, NexmarkStream, Reading, Table
from penstock.workloads.patterns import Constant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EVERY_BUDGET = 500_000.0  # events/s of all three tables with every column
QUERY_BUDGET = 1_000_000.0  # bids/s with the columns of query 1
GAIN_BUDGET = 3.0  # times as fast as the same rows one by one
QUERY_COLUMNS = ("auction", "bidder", "price", "date_time")
SECONDS = 40.0
WARM_UP_ROUNDS = 2  # Java still compiles during the second
FEWEST_ROUNDS = 3
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to read: which tables and columns, how many events a round, how handed to Spark."""

    tables: tuple[Table, ...]
    columns: tuple[str, ...] | None
    events: int
    row_by_row: bool = False


FORMS: Mapping[str, Form] = {
    "every": Form(tables=TABLES, columns=None, events=3_000_000),
    "query": Form(tables=("bid",), columns=QUERY_COLUMNS, events=4_000_000),
    "rows": Form(tables=("bid",), columns=QUERY_COLUMNS, events=250_000, row_by_row=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Events per second by the clock on the wall, and per second of CPU of all processes."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpeed:
    """One figure over all rounds, beside its budget: the least it has to be.

    ``measured`` by the clock on the wall · ``by_cpu`` by the CPU time of all processes involved.
    """

    what: str
    unit: str
    measured: Estimate
    by_cpu: Estimate
    budget: float


def measure(seconds: float, *, say: Say) -> list[SourceSpeed]:
    """The three figures, after so many seconds of rounds (at least three) and a warm-up.

    Takes about half a minute longer than ``seconds`` on a quiet machine.
    """
    environment = _environment()
    scratch = tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True)
    with scratch as folder, tempfile.TemporaryFile() as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "penstock.lab.proofs.source", repr(seconds), folder],
            env=environment | {"TMPDIR": folder, "SPARK_LOCAL_DIRS": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        try:
            say("starting Spark on one core and warming up…")
            rounds = list(_rounds(child, say))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # Java too; its files are in the folder
            child.wait()
        if len(rounds) < FEWEST_ROUNDS:
            raise EngineError(f"the measurement of the source failed: {_tail(log)}")
    return speeds(rounds)


def speeds(rounds: Sequence[Mapping[str, Rate]]) -> list[SourceSpeed]:
    """The figures of rounds, each with the rate of every form."""
    whole: list[tuple[str, str, float, Callable[[Mapping[str, Rate]], Rate]]] = [
        ("persons, auctions and bids, every column", "events/s", EVERY_BUDGET, itemgetter("every")),
        ("bids, columns of query 1", "events/s", QUERY_BUDGET, itemgetter("query")),
        ("bids, Arrow batches over row by row", "times", GAIN_BUDGET, _gain),
    ]
    return [
        SourceSpeed(
            what=what,
            unit=unit,
            measured=estimate([figure(each).wall for each in rounds]),
            by_cpu=estimate([figure(each).cpu for each in rounds]),
            budget=budget,
        )
        for what, unit, budget, figure in whole
    ]


def _gain(rates: Mapping[str, Rate]) -> Rate:
    arrow, rows = rates["query"], rates["rows"]
    return Rate(wall=arrow.wall / rows.wall, cpu=arrow.cpu / rows.cpu)


def _rounds(child: subprocess.Popen[bytes], say: Say) -> Iterator[dict[str, Rate]]:
    assert child.stdout is not None
    count = 0
    for line in child.stdout:
        if line.startswith(b"{"):  # Java may print as well
            count += 1
            rates = {name: Rate(**rate) for name, rate in json.loads(line).items()}
            figures = ", ".join(f"{name} {rate.wall:,.0f}" for name, rate in rates.items())
            say(f"round {count}: {figures} events/s")
            yield rates


def _environment() -> dict[str, str]:
    """The environment of a process that starts Spark: nothing of Spark's from outside."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(find_spark()),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return "\n".join(lines[-5:]) or "it ended without a word"


def _read(spark: SparkSession, form: Form) -> Rate:
    """The rate of one reading of a form."""
    from penstock.lab.sources.nexmark import read

    stream = NexmarkStream(
        pattern=Constant(rps=float(form.events)),
        start=1.7e9,
        seconds=1.0,
        tables=form.tables,
        partitions=1,
    )
    began, before = time.perf_counter(), own_cpu_seconds()
    for table in form.tables:
        reading = Reading(
            stream=stream, table=table, columns=form.columns, row_by_row=form.row_by_row
        )
        read(spark, reading).write.format("noop").mode("overwrite").save()
    wall, cpu = time.perf_counter() - began, own_cpu_seconds() - before
    return Rate(wall=form.events / wall, cpu=form.events / cpu)


def _session(folder: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    settings = {
        "spark.master": "local[1]",
        "spark.driver.memory": "1g",
        "spark.driver.host": HOST,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} -XX:-UsePerfData",
    }
    session: SparkSession = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def main() -> None:
    """Measure here and print a line per round, after one that warms up: for ``measure`` only."""
    seconds, folder = float(sys.argv[1]), Path(sys.argv[2])
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    spark = _session(folder)
    for form in [*FORMS.values()] * WARM_UP_ROUNDS:
        _read(spark, form)
    began, count = time.monotonic(), 0
    while count < FEWEST_ROUNDS or time.monotonic() - began < seconds:
        rates = {name: asdict(_read(spark, form)) for name, form in FORMS.items()}
        print(json.dumps(rates), flush=True)  # noqa: T201
        count += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Seconds of measured rounds; there are at least three of them."""

    seconds: float = SECONDS

    def __post_init__(self) -> None:
        if not 1 <= self.seconds <= 3599:
            raise InputError(f"--seconds {self.seconds:g} must lie between 1 and 3599")


def prove(spec: SourceSettings, *, folder: Path, say: Say) -> Proof:
    """Measure and put the figures beside their budgets."""
    figures = measure(spec.seconds, say=say)
    return Proof(
        name="source",
        title="Source: Nexmark events read by one slot on one core",
        checks=tuple(
            Check.of(f.what, f.measured, f.budget, at_most=False, unit=f.unit) for f in figures
        ),
        details=tuple(
            {"figure": f.what, "unit": f.unit, "per second of CPU": round(f.by_cpu.mean, 1)}
            for f in figures
        ),
        notes=("a budget is kept by the mean, by the clock on the wall: let nothing else run",),
    )


if __name__ == "__main__":
    main()
