"""Demand: what each operator would have to process if nothing upstream held records back."""

from __future__ import annotations

from penstock.core.model import OperatorSeen, Snapshot
from penstock.core.pipeline import Operator
from penstock.core.sanity import idle_for_sure


def demand_of(seen: Snapshot) -> dict[str, float]:
    """λ_i in records/s for every operator whose demand is known.          [kalavri18, eq. 5–8]

    λ of a source is the rate offered to it; λ of any other operator is Σ λ_u · s_u over its
    upstream operators u with selectivity s_u. Rates are carried on unrounded. An operator below
    one whose rate or output was not measured (or reads zero without being idle for sure) is left
    out: its demand is not known.
    """
    demand: dict[str, float] = {}
    output: dict[str, float] = {}
    pipeline = seen.pipeline
    for name in pipeline.order:
        o = seen.operators.get(name)
        if o is None:
            continue
        upstream = pipeline.upstream[name]
        if upstream:
            if any(u not in output for u in upstream):
                continue
            rate = sum(output[u] for u in upstream)
        else:
            if not o.offered_rate and not idle_for_sure(seen, name):
                continue
            rate = o.offered_rate or 0.0
        demand[name] = rate
        selectivity = _selectivity(o, pipeline.operators[name]) if rate else 0.0
        if selectivity is not None:
            output[name] = rate * selectivity
    return demand


def _selectivity(o: OperatorSeen, declared: Operator) -> float | None:
    """Measured where it was; a measured output of zero is a window that has not fired yet."""
    if o.arrival_rate and o.output_rate is not None:
        return o.output_rate / o.arrival_rate if o.output_rate > 0 else None
    return declared.selectivity
