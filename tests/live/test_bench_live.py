"""A bench on a real cluster: exact results, scores from real batches, nothing run twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.cell import read_cell, settings_of, spark_cells
from penstock.bench.compressed.run import RunProgress
from penstock.bench.spark import runner
from penstock.bench.spark.worker import SparkWorker
from penstock.bench.specs.spec import load
from penstock.comparison.cell import Cell, CellRun
from penstock.comparison.folder import finish
from penstock.comparison.results import Results
from penstock.history import journal
from penstock.lab.host import leftovers
from penstock.lab.rig import capacity

pytestmark = [pytest.mark.spark, pytest.mark.long]

# A minute lasts a second. Executors are not limited: this is about what happens, not how fast.
SPEC = """\
engine = "spark"
seeds = 1
minutes = 12
slo = "10min"

[spark]
minute = 1
slots = 2
cpu_share = "none"
partitions = 2
peak = 0.4
check = true

[[pipeline]]
query = "q5"

[[workload]]
name = "cosine"

[[policy]]
name = "static"
slots = 2

[[policy]]
name = "ds2"
"""


class Never:
    """A worker that must not be asked."""

    def run(self, cell: Cell, seed: int, **_: Any) -> CellRun:
        raise AssertionError(f"{cell.key} was run again")

    def recover(self) -> None:
        raise AssertionError("nothing was run")


def ours() -> list[leftovers.OwnedRun]:
    """What clusters of this process have left behind."""
    return [r for r in leftovers.runs(leftovers.cache_folder()) if r.owner.pid == os.getpid()]


def test_a_bench_is_exact_and_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "SECONDS", 3.0)
    monkeypatch.setattr(capacity, "ROUND", 1.0)
    monkeypatch.setattr(capacity, "ROUNDS", 2)
    path = tmp_path / "live.toml"
    path.write_text(SPEC)
    spec = load(path)
    cells = spark_cells(spec.cells)
    folder, settings = tmp_path / "run", settings_of(spec.cells)
    assert settings is not None
    first, second = (cell.key for cell in spec.cells)
    ran: list[str] = []
    interrupt = True

    def watch(moment: RunProgress) -> None:
        if interrupt and moment.cell.key == second:
            raise KeyboardInterrupt
        ran.append(moment.cell.key)

    with SparkWorker(settings, folder, say=print, watch=watch) as worker:
        with pytest.raises(KeyboardInterrupt):
            runner.run(cells, spec.seeds, folder, worker, failed=print)
        assert Results.load(folder, read=read_cell).seeds_of(first) == (0,)
        assert set(ran) == {first}
        measured = (folder / "capacity.json").read_bytes()
        interrupt = False
        ran.clear()
        assert runner.run(cells, spec.seeds, folder, worker, failed=print) == []
    assert ours() == []
    assert set(ran) == {second}
    assert (folder / "capacity.json").read_bytes() == measured  # so the load was the same
    assert runner.run(cells, spec.seeds, folder, Never()) == []

    results = finish(folder, read=read_cell).results
    assert results.complete
    for key in (first, second):
        scores = results.scores(key, 0)
        assert (scores["missing"], scores["surplus"]) == (0.0, 0.0)
        assert scores["throughput"] is not None and 0 < scores["throughput"] <= 1
        assert scores["e2e_mean_real"] == pytest.approx((scores["e2e_mean"] or 0) / 60)
        assert results.trace(key).time[-1] == 720.0
    assert results.scores(first, 0)["actions"] == 1.0  # to two executors from one
    header, entries = journal.read(folder / "journals" / f"{first}.jsonl")
    assert header.policy == "static" and header.guards.maximum == 2
    assert 0 < entries[0].decision.seen.time <= entries[-1].decision.seen.time < 780
