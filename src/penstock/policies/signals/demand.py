"""Demand: what each operator would have to process if nothing upstream held records back."""

from __future__ import annotations

from penstock.core.model import Snapshot
from penstock.core.sanity import idle_for_sure


def demand_of(seen: Snapshot) -> dict[str, float]:
    """λ_i in records/s for every operator whose demand is known.          [kalavri18, eq. 5–8]

    λ of a source is the rate offered to it; λ of any other operator is Σ λ_u · s_u over its
    upstream operators u with selectivity s_u. Rates are carried on unrounded. An operator below
    one whose rate or output was not measured (or reads zero without being idle for sure) is left
    out: its demand is not known.

    s_u is measured where it can be, output over arrival, else as declared. A measured output of
    zero is a window that has not fired yet: then s_u is not known.
    """
    demand: dict[str, float] = {}
    output: dict[str, float] = {}
    pipeline, operators = seen.pipeline, seen.operators
    for name in pipeline.order:  # plain loops: every tick goes through here
        o = operators.get(name)
        if o is None:
            continue
        upstream = pipeline.upstream[name]
        if upstream:
            rate = 0.0
            for u in upstream:
                if u not in output:
                    break
                rate += output[u]
            else:
                demand[name] = rate
            if name not in demand:
                continue
        elif o.offered_rate:
            demand[name] = rate = o.offered_rate
        elif idle_for_sure(seen, name):
            demand[name] = rate = 0.0
        else:
            continue
        arrived, left = o.arrival_rate, o.output_rate
        if rate == 0.0:
            output[name] = 0.0
        elif not arrived or left is None:
            output[name] = rate * pipeline.operators[name].selectivity
        elif left > 0.0:
            output[name] = rate * (left / arrived)
    return demand
