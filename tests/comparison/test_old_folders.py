"""Folders that version 0.1 wrote still load, and their runs give the same scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest import approx

from penstock.bench.cell import SparkCell, read_cell
from penstock.comparison.folder import finish, resumed
from penstock.comparison.results import ReadCell, Results
from tests.places import ROOT

FLUID = ROOT / "tests" / "reference" / "compare-0.1"
ROUNDING = 1e-12  # relative: sums of products are added up in another order by other processors
ON_SPARK = ROOT / "examples" / "twin" / "kafka-q5"


@pytest.mark.parametrize("read", [None, read_cell], ids=["product", "bench"])
def test_a_simulated_comparison(read: ReadCell | None) -> None:
    results = Results.load(FLUID) if read is None else Results.load(FLUID, read=read)
    assert results.complete and results.seeds == (0, 1)
    assert {cell.engine for cell in results.cells} == {"simulated"}
    for cell in results.cells:
        for seed in results.seeds:
            found = cell.run(seed).scores
            for name, value in results.scores(cell.key, seed).items():
                assert found[name] == (value if value is None else approx(value, rel=ROUNDING))
    assert results.trace("q5-shared-spikes-dhalion").slots.max() > 1


def test_its_tables_are_the_same(tmp_path: Path) -> None:
    for path in FLUID.glob("*.json*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    finish(tmp_path)
    for name in ("tables.txt", "tables.md"):
        assert (tmp_path / name).read_text() == (FLUID / name).read_text()


def test_it_can_be_resumed() -> None:
    experiment = resumed(FLUID)
    assert (experiment.name, experiment.seeds) == ("compare-q5-spikes", (0, 1))
    assert experiment.runs == 6 and not experiment.journals


def test_a_bench_on_spark() -> None:
    results = Results.load(ON_SPARK, read=read_cell)
    assert results.done and all(isinstance(cell, SparkCell) for cell in results.cells)
    assert {cell.engine for cell in results.cells} == {"spark"}
