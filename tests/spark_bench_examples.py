"""A spec of a bench on Spark and a cell of one, for tests without Spark."""

from __future__ import annotations

from typing import Any

from penstock.bench.cell import Cell
from penstock.bench.spark.settings import SparkSettings

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
