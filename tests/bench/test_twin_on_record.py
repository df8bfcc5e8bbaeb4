"""The twin beside runs that were made on real Spark and recorded: the oracle is Spark itself.

The bounds are those of ``penstock lab validate``; the profile comes from other runs than these.
"""

from __future__ import annotations

import pytest

from penstock.bench.cell import read_cell
from penstock.bench.validation.agreement import tally
from penstock.bench.validation.comparison import EXECUTORS, LAG, Scene, twin_cells, validate
from penstock.comparison.results import Results
from penstock.comparison.runner import run
from tests.places import ROOT

TWIN = ROOT / "examples" / "twin"
LATE_IN_THE_TWIN = "spark-dra 1800"  # Spark's own allocation grows sooner than its twin


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    spark = Results.load(TWIN / "kafka-q5", read=read_cell)
    cells = twin_cells(spark, TWIN / "profiles")
    played = run(cells, spark.seeds, tmp_path_factory.mktemp("twin"), workers=1)
    (found,) = validate(spark, played, name="kafka-q5").scenes
    return found


def test_the_record_is_whole(scene: Scene) -> None:
    assert len(scene.policies) == 6
    assert {policy.seeds for policy in scene.policies} == {3}
    assert all(policy.over is not None for policy in scene.policies)


def test_every_policy_has_as_many_executors_as_on_spark(scene: Scene) -> None:
    held = {p.label: p.figures[EXECUTORS].held for p in scene.policies}
    assert held == dict.fromkeys(held, True)


def test_lag_is_as_on_spark_for_all_whose_timing_is_ours(scene: Scene) -> None:
    held = {p.label: p.figures[LAG].held for p in scene.policies if p.label != LATE_IN_THE_TWIN}
    assert len(held) == 5 and held == dict.fromkeys(held, True)


def test_policies_have_the_order_that_they_have_on_spark(scene: Scene) -> None:
    for score in (EXECUTORS, LAG):
        assert tally(scene.orders[score]).held
        assert tally(scene.orders[score]).alike >= 12
