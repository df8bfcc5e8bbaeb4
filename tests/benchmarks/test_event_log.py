"""The budget of event logs: what is written is what Spark writes, and it is read whole."""

from __future__ import annotations

from pathlib import Path

from benchmarks.event_log import TASKS, read, write
from penstock.history.event_log import read_event_log


def test_a_small_log_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    size = write(path, 1e6)
    assert size == path.stat().st_size >= 1e6
    found = read(path)
    (query,) = read_event_log(path).queries
    assert found["batches"] == len(query.batches) > 0 and found["mb"] > 0
    first, second = query.stages[0]
    assert (first.tasks, first.completed, second.completed) == (TASKS, TASKS, TASKS)
    assert second.read_records == first.write_records == 50 * TASKS
    lines = path.read_bytes().splitlines()
    ends = [len(line) for line in lines if line.startswith(b'{"Event":"SparkListenerTaskEnd"')]
    assert min(ends) >= 2000 and max(ends) <= 4000
