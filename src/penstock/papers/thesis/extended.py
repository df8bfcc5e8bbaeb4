"""What the thesis leaves for the future [kanis23, chapter 8], one section each.

Equal rates on all queries · convergence stages of three hours · the optimum by sweeping fixed
sizes, and each auto-scaler's distance from it · no limit of +15 slots per action · parameters
swept on every query and workload · skew · spikes · a week with large state · the repaired and
improved auto-scalers in every table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from penstock.comparison.cell import THESIS_GUARDS, Cell
from penstock.comparison.results import Results
from penstock.papers.thesis import cells, extended_tables, published
from penstock.report.table import Table
from penstock.simulator import queries

REPAIRED = ("hpa-cpu", "hpa-varga", "ds2", "dhalion")
NEW = ("hpa+", "ds2+", "dhalion+", "proactive")
EVERY = (*REPAIRED, *NEW)
LEFT_OUT = "drs"  # named in the thesis and not evaluated
VALUES: Mapping[str, tuple[float, ...]] = {
    "dhalion": (1.1, 1.15, 1.2, 1.25, 1.3),
    "ds2": (1.0, 1.2, 1.4),
    "hpa-cpu": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "hpa-varga": (0.6, 0.7, 0.8),
}
"""The values that Section 7.1 tries."""
HOUR, DAY = 3600.0, 86400.0
EQUAL = {"low": 50e3, "high": 550e3, "noise": 25e3}  # records/s
ROOMY = replace(THESIS_GUARDS, maximum=200, cap=400)  # slots that query 3 needs at these rates
KEYED = {"q3": "join", "q5": "window", "q8": "join", "q11": "window"}
WEEK_STATE: Mapping[str, Mapping[str, Any]] = {
    # About 300 million records, which a restart takes five minutes to move.
    "q3": {"state_per_record": {"join": 1.0}, "state_seconds": {"join": 6 * HOUR}},
    "q11": {"state_per_record": {"window": 0.01}, "state_seconds": {"window": 6 * HOUR}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One question: its cells, the most seeds it is run with, and the tables that answer it.

    ``main`` whether the tables also need the results of the main bench.
    """

    name: str
    title: str
    about: str
    cells: Callable[[], list[Cell]]
    tables: Callable[[Results], list[Table]]
    seeds: int = 10
    main: bool = False


def equal_rates() -> list[Cell]:
    """Every query under the same cosine, with room for the largest."""
    return [
        _cell(query, "cosine", policy, "equal", guards=ROOMY, rates=EQUAL)
        for query in queries.QUERIES
        for policy in EVERY
    ]


def long_stages() -> list[Cell]:
    """Convergence with stages of three hours."""
    return [
        _cell(query, "convergence", policy, "3h", rates={"stage": 3 * HOUR}, minutes=370.0)
        for query in ("q1", "q11")
        for policy in EVERY
    ]


def constant() -> list[Cell]:
    """Two constant rates for six hours: those of the convergence stages."""
    return [
        _cell(
            query,
            "constant",
            policy,
            level,
            rates={"rps": cells.load(query, "convergence")[level]},
            minutes=360.0,
        )
        for query in queries.QUERIES
        for level in ("high", "low")
        for policy in EVERY
    ]


def no_step_limit() -> list[Cell]:
    """The thesis's auto-scalers with and without the limit of +15."""
    free = replace(THESIS_GUARDS, step_up=None)
    found = []
    for query in ("q1", "q11"):
        for workload in cells.WORKLOADS:
            for policy in REPAIRED:
                limited = cells.chosen(query, workload, policy)
                found += [limited, replace(limited, key=f"{limited.key}-free", guards=free)]
    return found


def parameters() -> list[Cell]:
    """Section 7.1's values on every query and workload, as the thesis ran them."""
    return [
        cells.cell(query, workload, policy, value, strict=True)
        for query in queries.QUERIES
        for workload in cells.WORKLOADS
        for policy, values in VALUES.items()
        for value in values
    ]


def skew() -> list[Cell]:
    """A hot key that takes 30 or 70 % of what one slot can do at the peak."""
    found = []
    for query, operator in KEYED.items():
        for name, share in hot_shares(query, operator).items():
            spec = {"hot_shares": {operator: share}} if share else {}
            found += [_cell(query, "cosine", p, f"skew-{name}", rates={}, spec=spec) for p in EVERY]
    return found


def hot_shares(query: str, operator: str) -> dict[str, float]:
    """Shares h of the hottest key: a share of μ/λ of all records would fill one slot."""
    spec, high = queries.create(query).spec, queries.create(query).high
    demand = float(spec.demand(extended_tables.source_rates(spec, high))[operator])
    fills = min(1.0, spec.service_rates[operator] / demand)
    return {"none": 0.0, "30": round(0.3 * fills, 4), "70": round(0.7 * fills, 4)}


def spikes() -> list[Cell]:
    """A steady load with spikes to a little above the cosine's maximum, at random times."""
    found = []
    for query in queries.QUERIES:
        rates = queries.create(query)
        load = {"base": 0.45 * rates.high, "height": 2.3, "noise": rates.noise}
        found += [_cell(query, "spikes", policy, rates=load) for policy in EVERY]
    return found


def week() -> list[Cell]:
    """Seven days, a daily cosine, state of hundreds of millions of records, nothing expires.

    Once with the thesis's cool-down, which is as long as a restart here, once with a longer one.
    """
    cool_downs = {"week": THESIS_GUARDS, "calm-week": replace(THESIS_GUARDS, cool_down=1800.0)}
    return [
        _cell(
            query,
            "cosine",
            policy,
            name,
            rates={"period": DAY},
            minutes=7 * DAY / 60,
            guards=guards,
            spec={**state, "retention": 0.0},
        )
        for query, state in WEEK_STATE.items()
        for name, guards in cool_downs.items()
        for policy in EVERY
    ]


def every_table() -> list[Cell]:
    """The repaired, the improved and the missing auto-scalers in every scene of the tables."""
    scenes = dict.fromkeys(
        (row.query, row.workload) for table in published.TABLES.values() for row in table.rows
    )
    scenes |= dict.fromkeys((row.query, "convergence") for row in published.CONVERGENCE)
    return [cells.cell(*scene, policy) for scene in scenes for policy in (*EVERY, LEFT_OUT)]


def _cell(
    query: str,
    workload: str,
    policy: str,
    suffix: str = "",
    *,
    rates: Mapping[str, Any],
    **changes: Any,
) -> Cell:
    """A cell whose load is not the thesis's, or has other ``rates``; with its start size."""
    thesis = workload in ("cosine", "convergence")
    like = cells.cell(query, workload if thesis else "cosine", policy, **changes)
    load = {**(like.workload_parameters if thesis else {}), **rates}
    key = "-".join(part for part in (query, workload, policy, suffix) if part)
    return replace(like, key=key, workload=workload, workload_parameters=load)


SECTIONS: Sequence[Section] = (
    Section(
        name="tables",
        title="The repaired and improved auto-scalers in every table",
        about="The thesis's rows as run there (strict), then the same auto-scalers without the "
        "faults of its set-up, then the improved ones, then DRS, which it names and leaves out.",
        cells=every_table,
        tables=partial(extended_tables.every_table, policies=(*EVERY, LEFT_OUT)),
        seeds=1000,  # as many as the main bench
        main=True,
    ),
    Section(
        name="equal-rates",
        title="Equal rates on all queries",
        about="A cosine from 50,000 to 550,000 records/s on every query; up to 400 slots, because "
        "query 3 needs more than 80.",
        cells=equal_rates,
        tables=extended_tables.standings,
    ),
    Section(
        name="long-stages",
        title="Convergence with stages of three hours",
        about="Came to rest: no action in the last 10 minutes of a stage.",
        cells=long_stages,
        tables=extended_tables.stages,
    ),
    Section(
        name="optimum",
        title="The optimum, and each auto-scaler's distance from it",
        about="Constant rates for six hours. The optimum is the smallest fixed size that keeps "
        "up, found by sweeping each operator; the distance counts the way to it, too.",
        cells=constant,
        tables=extended_tables.distances,
        seeds=5,
    ),
    Section(
        name="no-step-limit",
        title="Without the limit of 15 more slots per action",
        about="The thesis's auto-scalers as run there, and the same without the limit.",
        cells=no_step_limit,
        tables=extended_tables.limits,
    ),
    Section(
        name="parameters",
        title="Parameters on every query and workload",
        about="Section 7.1's values. Fastest: the lowest mean latency. Frugal: the fewest slots "
        "of those whose mean latency is at most that of the value the thesis chose.",
        cells=parameters,
        tables=extended_tables.best_values,
        seeds=5,
    ),
    Section(
        name="skew",
        title="Skew",
        about="One key takes so much that at the peak it fills 30 %, or 70 %, of a slot, which "
        "no scaling can split.",
        cells=skew,
        tables=extended_tables.standings,
        seeds=5,
    ),
    Section(
        name="spikes",
        title="Spikes",
        about="A steady load of 45 % of the cosine's maximum, 2.3 times that in spikes of 3 "
        "minutes, one every 20 minutes on average.",
        cells=spikes,
        tables=extended_tables.standings,
    ),
    Section(
        name="week",
        title="Seven days with large state",
        about="A daily cosine; about 300 million records of state, so that a restart takes five "
        "minutes; nothing expires. The thesis's cool-down of 5 minutes leaves no time to work; a "
        "calm week has one of 30 minutes.",
        cells=week,
        tables=extended_tables.standings,
        seeds=2,
    ),
)
