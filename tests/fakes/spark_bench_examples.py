"""A spec of a bench on Spark and a cell of one, for tests without Spark."""

from __future__ import annotations

from typing import Any

from penstock.compare.cell import Cell
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


def real_cell(**given: Any) -> Cell:
    fields: dict[str, Any] = {
        "key": "a", "query": "q1", "workload": "random", "policy": "ds2", "minutes": 20.0,
        "spark": SparkSettings(),
    }  # fmt: skip
    return Cell(**{**fields, **given})
