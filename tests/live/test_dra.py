"""Spark's own allocation in a bench on a real cluster: it grows, and the results are exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.cell import read_cell, settings_of, spark_cells
from penstock.bench.compressed.run import RunProgress
from penstock.bench.spark import runner
from penstock.bench.spark.worker import SparkWorker
from penstock.bench.specs.spec import load
from penstock.comparison.results import Results
from penstock.history import journal
from penstock.lab.rig import capacity

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.usefixtures("class_data")]

# A minute lasts a second. One executor cannot carry the load: its batches grow to six seconds and
# more, so that tasks wait for longer than the second after which Spark asks for more executors.
SPEC = """\
engine = "spark"
seeds = 1
minutes = 30
slo = "10min"

[spark]
minute = 1
slots = 3
cpu_share = "none"
partitions = 6
trigger = "3s"
peak = 1.0
check = true

[[pipeline]]
query = "q5"

[[workload]]
name = "constant"

[[policy]]
name = "spark-dra"
idle_timeout = 1200
shuffle_tracking = [true, false]
"""


def test_spark_grows_by_itself_and_the_results_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "SECONDS", 3.0)
    monkeypatch.setattr(capacity, "ROUND", 1.0)
    monkeypatch.setattr(capacity, "ROUNDS", 2)
    path = tmp_path / "dra.toml"
    path.write_text(SPEC)
    spec = load(path)
    cells = spark_cells(spec.cells)
    folder, settings = tmp_path / "run", settings_of(spec.cells)
    assert settings is not None
    assert len({cell.allocation() for cell in cells}) == 2  # each has its own session
    most: dict[str, int] = {}

    def watch(moment: RunProgress) -> None:
        most[moment.cell.key] = max(moment.executors, most.get(moment.cell.key, 0))

    with SparkWorker(settings, folder, say=print, watch=watch) as worker:
        assert runner.run(cells, spec.seeds, folder, worker, failed=print) == []
    results = Results.load(folder, read=read_cell)
    for key in (cell.key for cell in spec.cells):
        scores, trace = results.scores(key, 0), results.trace(key)
        assert (scores["missing"], scores["surplus"]) == (0.0, 0.0)
        assert trace.slots[0] < 2.0 <= max(trace.slots) <= 3.0  # from one to more, within limits
        assert 1 < most[key] <= 3
        assert scores["actions"] == len(trace.actions) >= 1
        header, entries = journal.read(folder / "journals" / f"{key}.jsonl")
        assert (header.policy, header.mode) == ("spark-dra", "advise")
        assert entries and not any(e.decision.applied for e in entries)
