"""A spec of a bench on Spark and a cell of one, for tests without Spark."""

from __future__ import annotations

from typing import Any

from penstock.bench.cell import SparkCell
from penstock.comparison.cell import Cell
from penstock.lab.rig.settings import SparkSettings

SPEC = """\
name = "real"
engine = "spark"
seeds = 2
minutes = 20

[spark]
minute = 3

[[pipeline]]
query = "q5"

[[workload]]
name = "random"

[[policy]]
name = ["ds2", "hpa-cpu"]
"""


def real_cell(**given: Any) -> SparkCell:
    fields: dict[str, Any] = {
        "key": "a", "query": "q1", "workload": "random", "policy": "ds2", "minutes": 20.0,
        "spark": SparkSettings(),
    }  # fmt: skip
    return SparkCell(**{**fields, **given})


def simulated(cell: SparkCell) -> Cell:
    """The same cell in the fluid simulator, from one slot on."""
    document = {key: v for key, v in cell.to_dict().items() if key not in ("spark", "twin")}
    return Cell.from_dict(document | {"start": 1})
