"""``penstock demo``, as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.waiting import until
from tests.live.left_behind import nothing_left

pytestmark = pytest.mark.spark

PENSTOCK = [sys.executable, "-m", "penstock"]


def test_the_demo_scales_and_its_result_is_exact(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PENSTOCK, "demo", "--seconds", "30", "--low", "1000", "--high", "6000", "--max", "2",
         "--cpu-share", "0.6", "--policy", "static", "--set", "slots=2", "--json"],
        capture_output=True, text=True, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["missing"], document["surplus"]) == (0, 0)
    assert document["events"] == pytest.approx(105_000, abs=5)  # mean 3,500/s for 30 s
    assert document["summary"]["scale_ups"] == 1
    run = tmp_path / document["run"]
    names = {"config.json", "decisions.jsonl", "metrics.parquet", "report.html", "report.png"}
    assert {p.name for p in run.iterdir()} == names
    assert [p.name for p in tmp_path.iterdir()] == ["runs"]
    assert nothing_left()


@pytest.mark.long
def test_ctrl_c_in_the_middle_of_the_demo_leaves_nothing(tmp_path: Path) -> None:
    errors = tmp_path / "stderr"
    with errors.open("wb") as stderr:
        demo = subprocess.Popen(
            [*PENSTOCK, "demo"], cwd=tmp_path, stderr=stderr, start_new_session=True
        )
        try:
            until("it starts the load", lambda: b"load begins" in errors.read_bytes(), 120)
            os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
            assert demo.wait(60) == 130
        finally:
            if demo.poll() is None:
                os.killpg(demo.pid, signal.SIGKILL)
                demo.wait()
    text = errors.read_text()
    assert "interrupted" in text
    assert "Traceback" not in text, text
    assert nothing_left()
