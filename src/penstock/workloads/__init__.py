"""What arrives: rate patterns and recorded traffic.

``from penstock.workloads import Trace``: each pattern is loaded when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.workloads.cosine import Cosine as Cosine
    from penstock.workloads.simple import Constant as Constant
    from penstock.workloads.simple import Convergence as Convergence
    from penstock.workloads.simple import Step as Step
    from penstock.workloads.spikes import Spikes as Spikes
    from penstock.workloads.trace import Trace as Trace
    from penstock.workloads.walks import Decreasing as Decreasing
    from penstock.workloads.walks import Increasing as Increasing
    from penstock.workloads.walks import Random as Random

_MODULES = {
    "Constant": "simple",
    "Convergence": "simple",
    "Cosine": "cosine",
    "Decreasing": "walks",
    "Increasing": "walks",
    "Random": "walks",
    "Spikes": "spikes",
    "Step": "simple",
    "Trace": "trace",
}

__all__ = [
    "Constant",
    "Convergence",
    "Cosine",
    "Decreasing",
    "Increasing",
    "Random",
    "Spikes",
    "Step",
    "Trace",
]


if not TYPE_CHECKING:  # a checker would take any name for one of these

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
