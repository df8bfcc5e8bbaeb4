"""Auto-scaling for stream pipelines on Apache Spark: observe, advise, simulate, act.

``import penstock`` loads the values and guards that everything shares. ``penstock.Autoscaler``,
``penstock.compare``, ``penstock.replay`` and ``penstock.simulate`` load what they need on first
use; the last three need ``penstock[sim]``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.core.errors import PenstockError, missing
from penstock.core.guards import Blackout, Guards
from penstock.core.model import Change, Need, OperatorSeen, Proposal, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline

if TYPE_CHECKING:
    from penstock.comparison.api import compare as compare
    from penstock.comparison.api import simulate as simulate
    from penstock.comparison.replay import replay as replay
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
    "compare",
    "replay",
    "simulate",
]


_ON_FIRST_USE = {
    "Autoscaler": "penstock.spark.autoscaler",
    "compare": "penstock.comparison.api",
    "replay": "penstock.comparison.replay",
    "simulate": "penstock.comparison.api",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    try:
        return getattr(import_module(_ON_FIRST_USE[name]), name)
    except ModuleNotFoundError as error:
        raise (missing(error) or error) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
