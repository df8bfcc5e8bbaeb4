"""Auto-scaling for stream pipelines on Apache Spark: observe, advise, simulate, act.

``import penstock`` loads neither Spark nor Kafka; ``penstock.Autoscaler`` does on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.core.errors import PenstockError
from penstock.core.guards import Blackout, Guards
from penstock.core.model import Change, Need, OperatorSeen, Proposal, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline

if TYPE_CHECKING:
    from penstock.spark.autoscaler import Autoscaler as Autoscaler

__version__ = "0.1.0"

__all__ = [
    "Autoscaler",
    "Blackout",
    "Change",
    "Guards",
    "Need",
    "Operator",
    "OperatorSeen",
    "PenstockError",
    "Pipeline",
    "Proposal",
    "Slot",
    "Snapshot",
]


def __getattr__(name: str) -> Any:
    if name == "Autoscaler":
        return import_module("penstock.spark.autoscaler").Autoscaler
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
