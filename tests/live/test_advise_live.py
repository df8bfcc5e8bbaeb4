"""``penstock advise`` beside a plain PySpark application that knows nothing of it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.history import journal
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

RATE = 1000
SCRIPT = f"""
import sys
from pathlib import Path
from pyspark.sql import SparkSession, functions as F

spark = (
    SparkSession.builder.master("local[2]").appName("plain")
    .config("spark.ui.port", "0").config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.showConsoleProgress", "false").getOrCreate()
)
rows = spark.readStream.format("rate").option("rowsPerSecond", {RATE}).load()
counts = rows.groupBy((F.col("value") % 10).alias("key")).count()
query = (
    counts.writeStream.format("noop").outputMode("update").queryName("counts")
    .trigger(processingTime="2 seconds").start()
)
Path(sys.argv[1]).write_text(spark.sparkContext.uiWebUrl)
sys.stdin.read()
spark.stop()
"""


def test_a_plain_application_is_watched_until_it_ends(tmp_path: Path) -> None:
    script, address, said = tmp_path / "plain.py", tmp_path / "url", tmp_path / "err"
    script.write_text(SCRIPT)
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path / "log").open("w"))
        application = stack.enter_context(
            subprocess.Popen(
                [sys.executable, str(script), str(address)],
                cwd=tmp_path,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        )
        stack.callback(application.kill)
        until(
            "the application's address",
            lambda: (
                application.poll() is not None or bool(address.exists() and address.stat().st_size)
            ),
            seconds=180.0,
        )
        assert application.poll() is None, (tmp_path / "log").read_text()
        command = [sys.executable, "-m", "penstock", "advise", "--app-url", address.read_text()]
        watcher = stack.enter_context(
            subprocess.Popen(
                [*command, "--period", "2", "--window", "10", "--journal", "decisions", "--json"],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=stack.enter_context(said.open("w")),
            )
        )
        stack.callback(watcher.kill)
        until(
            "decisions with figures",
            lambda: watcher.poll() is not None or said.read_text().count("demand over") >= 3,
            seconds=180.0,
        )
        assert watcher.poll() is None, said.read_text()
        application.communicate(b"", timeout=120)  # the end of its input is its end
        out, _ = watcher.communicate(timeout=120)
    document = json.loads(out)
    assert watcher.returncode == 0, said.read_text()
    assert "ended" in document["ended_by"]
    assert document["watched"]["master"] == "local[2]"
    assert document["watched"]["executors"] == 2
    assert document["summary"]["sized"] >= 3
    _, entries = journal.read(tmp_path / "decisions")
    last = [e.decision.seen for e in entries if e.decision.proposal.needs][-1]
    assert set(last.operators) == {"read", "aggregate"}
    # The source makes this many rows a second, however slow the machine is.
    assert last.operators["read"].offered_rate == pytest.approx(RATE, rel=0.5)
    assert last.operators["read"].lag is None
