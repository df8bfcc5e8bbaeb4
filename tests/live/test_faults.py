"""An executor, the worker and the driver are killed during actions: the result stays exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.history.journal import read
from penstock.lab.host import leftovers
from penstock.lab.proofs import faults
from penstock.report.runs import JOURNAL

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_three_kills_in_the_middle_of_actions_leave_the_result_exact(
    class_data: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "BOUND", 600.0)  # how fast is not for a test to judge
    said: list[str] = []
    before = {run.id for run in leftovers.runs(leftovers.cache_folder())}
    spec = faults.FaultsSettings(queries=("q5",), seconds=10.0, quick=True)
    proof = faults.prove(spec, folder=tmp_path, say=said.append)
    assert proof.held, proof.checks
    assert [row["killed"] for row in proof.details] == ["executor", "worker", "driver"]
    for row in proof.details:
        asked_from, asked_for = map(int, row["during"].split("→"))
        assert asked_from < asked_for, "a scale-up"
        assert row["registered"] < asked_for, "in flight"
    assert any("the Spark worker was killed (signal 9)" in line for line in said)
    assert len(read(tmp_path / JOURNAL)[1]) > 5
    left = [run for run in leftovers.runs(leftovers.cache_folder()) if run.id not in before]
    assert [run for run in left if run.owner == leftovers.Owner.me()] == []
