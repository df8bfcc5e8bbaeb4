"""The examples, run as their users run them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.history.journal import read
from tests.fakes.waiting import until
from tests.places import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.long]

EXAMPLES = ROOT / "examples"
QUIET = "--conf spark.ui.port=0 --conf spark.ui.showConsoleProgress=false"
SLOW = 240.0  # seconds, on a machine that does ten other things


@contextmanager
def example(
    folder: Path, name: str, *arguments: str, **more: str
) -> Iterator[subprocess.Popen[str]]:
    """A script on ``local[2]``, as ``python examples/…``; killed if the test fails."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")},
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {QUIET} pyspark-shell",
        "PYSPARK_PYTHON": sys.executable,
        **more,
    }
    script = subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=folder, env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield script
    finally:
        script.kill()
        script.communicate()  # until its JVM, which shares the pipe, has ended too


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_plain_job_ends_by_itself(tmp_path: Path) -> None:
    with example(tmp_path, "plain_job.py", "out", "--rate", "50", "--seconds", "2") as script:
        _, said = script.communicate(timeout=SLOW)
    assert script.returncode == 0, said
    assert (tmp_path / "out" / "checkpoint" / "metadata").is_file()
    assert "penstock:" not in said


def test_with_penstock_decides_while_the_job_runs(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    more = {"PENSTOCK_PERIOD": "1s", "PENSTOCK_JOURNAL": str(journal)}
    with example(tmp_path, "with_penstock.py", "out", "--rate", "50", **more) as script:
        until(
            "a decision, or the end of the script",
            lambda: script.poll() is not None or (journal.is_file() and len(lines(journal)) > 1),
            seconds=SLOW,
        )
        script.send_signal(signal.SIGTERM)
        _, said = script.communicate(timeout=SLOW)
    assert script.returncode == -signal.SIGTERM, said
    assert "ds2 in mode advise, 1 to 80 executors, every 1 s" in said
    header, entries = read(journal)
    assert (header.policy, header.mode) == ("ds2", "advise")
    assert not any(entry.decision.applied for entry in entries)
    assert list((tmp_path / "out" / "checkpoint" / "commits").iterdir())
