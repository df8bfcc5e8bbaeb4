"""The thesis's experiments as cells of a bench, with its guards, rates and start sizes.

Start sizes are 5 slots per operator on queries 1 and 2, 10 on the others, and 1 under increasing
and convergence. The thesis says so of increasing on both queries, yet on query 11 DS2 "scales
down from the initial configuration of parallelism 30" and has a maximum of 30 (Table 7.14), which
it cannot have from 3: there we start with 10.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.comparison.cell import THESIS_GUARDS, Cell
from penstock.papers.thesis import published
from penstock.policies import POLICIES
from penstock.simulator import queries

WORKLOADS = ("cosine", "random", "increasing", "decreasing")
MINUTES = 140.0
CONVERGENCE_MINUTES = 90.0
WALK_PEAK = 2.5e6  # records/s: the top of random, increasing and decreasing on queries 1 and 11
COSINE_PEAK = 2.2e6  # records/s: the top of cosine on the same queries
PARAMETERS: Mapping[str, str] = {
    "dhalion": "scale_down_factor",
    "ds2": "over_provisioning",
    "hpa-cpu": "target",
    "hpa-varga": "target",
}
"""The parameter of each auto-scaler that Section 7.1 sweeps."""
IMPROVED: Mapping[str, str] = {"hpa+": "hpa-cpu", "ds2+": "ds2", "dhalion+": "dhalion"}
"""Each improved auto-scaler and the original it is judged against."""


def load(query: str, workload: str) -> dict[str, Any]:
    """The parameters of a workload on a query, records/s.

    Cosine: Table 7.17, from the maximum down, one rate per minute with noise. The others: the
    thesis's on queries 1 and 11; elsewhere they are ours, in proportion to the cosine's maximum.
    """
    rates = queries.create(query)
    top = WALK_PEAK * rates.high / COSINE_PEAK
    if workload == "cosine":
        return {
            "low": rates.low,
            "high": rates.high,
            "noise": rates.noise,
            "period": 3600.0,
            "from_high": True,
            "steps": True,
        }
    if workload == "random":
        return {"start": top / 2, "change": top / 5, "maximum": top}
    if workload == "convergence":
        return {"high": 0.8 * top, "low": 0.4 * top, "wait": 600.0, "stage": 2400.0}
    return {"maximum": top}


def start(query: str, workload: str) -> int:
    """Slots of every operator at the beginning."""
    if workload == "convergence" or (workload == "increasing" and query != "q11"):
        return 1
    return queries.create(query).start


def cell(
    query: str,
    workload: str,
    policy: str,
    value: float | None = None,
    *,
    strict: bool = False,
    **changes: Any,
) -> Cell:
    """One experiment; ``value`` of the swept parameter, ``strict`` with the thesis's faults.

    >>> cell("q1", "cosine", "ds2", 1.0, strict=True).key
    'q1-cosine-ds2-1-strict'
    """
    parameters: dict[str, Any] = {} if value is None else {PARAMETERS[policy]: value}
    if strict and "strict" in POLICIES[policy].parameters:
        parameters["strict"] = True
    parts = [query, workload, policy, f"{value:g}" if value is not None else "", "strict" * strict]
    settings: dict[str, Any] = {
        "key": "-".join(part for part in parts if part),
        "query": query,
        "workload": workload,
        "policy": policy,
        "workload_parameters": load(query, workload),
        "policy_parameters": parameters,
        "guards": THESIS_GUARDS,
        "minutes": CONVERGENCE_MINUTES if workload == "convergence" else MINUTES,
        "start": start(query, workload),
    }
    return Cell(**{**settings, **changes})


def of_row(row: published.Row) -> Cell:
    """The cell of a published row, run exactly as the thesis did."""
    return cell(row.query, row.workload, row.policy, row.value, strict=True)


def of_convergence(row: published.ConvergenceRow) -> Cell:
    """The cell of a row of Table 7.19."""
    return chosen(row.query, "convergence", row.policy)


def chosen(query: str, workload: str, policy: str) -> Cell:
    """An auto-scaler with the parameter that the thesis chose, run exactly as there."""
    return cell(query, workload, policy, published.CHOSEN[policy], strict=True)


def of_table(id: str) -> list[Cell]:
    """The cells of a table; those that the thesis could not run are run here."""
    if id == published.CONVERGENCE_ID:
        return [of_convergence(row) for row in published.CONVERGENCE]
    return [of_row(row) for row in published.TABLES[id].rows]


def of_improved() -> list[Cell]:
    """The improved auto-scalers and their originals, repaired, on every query and workload."""
    policies = [p for pair in IMPROVED.items() for p in pair]
    return [
        cell(query, workload, policy)
        for query in queries.QUERIES
        for workload in WORKLOADS
        for policy in policies
    ]


def shortened(cells: Iterable[Cell], minutes: float | None) -> list[Cell]:
    """The cells with at most so many minutes, for a quick look."""
    if minutes is None:
        return list(cells)
    return [dataclasses.replace(c, minutes=min(c.minutes, minutes)) for c in cells]
