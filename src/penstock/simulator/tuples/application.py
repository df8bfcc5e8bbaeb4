"""Applications of single-server operators, by the demand of a record at each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.pipeline import Operator, Pipeline

SERVICE_SCV = 0.5  # Erlang-2
PARSER, COUNTER, MATCHER = 0.15, 0.10, 0.50  # of the mean time between arrivals
MALFORMED = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A pipeline whose operators have a pool of one slot each.

    ``demands`` mean seconds of a record at full CPU, gamma-distributed with ``scv``; an operator
    without one (a source) takes no time. Selectivities ≤ 1: a record is passed on or not.
    """

    pipeline: Pipeline
    demands: Mapping[str, float]
    scv: float = SERVICE_SCV

    def __post_init__(self) -> None:
        if len(self.pipeline.sources) != 1:
            raise InputError(f"{len(self.pipeline.sources)} sources; the tuple simulator takes 1")
        for name, demand in self.demands.items():
            if not (math.isfinite(demand) and demand > 0.0):
                raise InputError(f"demand {demand} s of {name} must be > 0")
        if missing := set(self.pipeline.operators) - set(self.demands) - {*self.pipeline.sources}:
            raise InputError(f"no demand for {', '.join(sorted(missing))}")
        for name, operator in self.pipeline.operators.items():
            if operator.selectivity > 1.0:
                raise InputError(f"selectivity {operator.selectivity} of {name} must be ≤ 1")


def log_analysis(interval: float) -> Application:
    """Parser → counter and parser → matcher.                                  [russo21, Fig. 1]

    The paper does not publish the demands. Here they are shares of the mean ``interval`` between
    arrivals, the same for all traces and models: parser 0.15, counter 0.10, matcher 0.50, so that
    the matcher is the bottleneck and 40 % of its CPU are too little on average. Of the lines 1 %
    are malformed and go no further.
    """
    return Application(
        pipeline=Pipeline(
            operators={
                "source": Operator(pool="source"),
                "parser": Operator(pool="parser", selectivity=1.0 - MALFORMED),
                "counter": Operator(pool="counter", stateful=True),
                "matcher": Operator(pool="matcher", stateful=True),
            },
            edges=[("source", "parser"), ("parser", "counter"), ("parser", "matcher")],
        ),
        demands={
            "parser": PARSER * interval,
            "counter": COUNTER * interval,
            "matcher": MATCHER * interval,
        },
    )
