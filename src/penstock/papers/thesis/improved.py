"""What improved: each new auto-scaler against its original, on every query and workload.

Both run with the thesis's guards and without the faults of its set-up, on the same loads. A cell
is judged by mean queue latency and slot-seconds, as paired differences over the seeds:
"dominates" if neither is really worse (95 % interval above 0) and at least one really better,
"dominated" the other way round, "trade-off" if one is better and the other worse, else "tie".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.comparison.results import Results
from penstock.papers.thesis import cells
from penstock.papers.thesis.tables import plain
from penstock.report.statistics import Difference, Estimate
from penstock.report.table import Table, interval, percent
from penstock.simulator import queries

Judgement = Literal["dominates", "dominated", "trade-off", "tie"]
_SIGNS: dict[Judgement, str] = {
    "dominates": "✓",
    "dominated": "✗",
    "trade-off": "±",
    "tie": "=",
}
TITLE = "What improved: new auto-scalers against their originals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """A new auto-scaler against its original in one cell: differences are new − old."""

    query: str
    workload: str
    new: str
    old: str
    latency: Difference
    slots: Difference
    new_latency: Estimate
    old_latency: Estimate
    new_slots: Estimate
    old_slots: Estimate

    @property
    def judgement(self) -> Judgement:
        """Which of the two is better, or neither."""
        verdicts = {self.latency.verdict, self.slots.verdict}
        if verdicts == {"tie"}:
            return "tie"
        if verdicts == {"lower", "higher"}:
            return "trade-off"
        return "dominates" if "lower" in verdicts else "dominated"


def duels(results: Results) -> list[Duel]:
    """Every new auto-scaler on every query and workload."""
    return [
        duel(results, query, workload, new, old)
        for new, old in cells.IMPROVED.items()
        for query in queries.QUERIES
        for workload in cells.WORKLOADS
    ]


def duel(results: Results, query: str, workload: str, new: str, old: str) -> Duel:
    """A new auto-scaler against its original in one cell."""
    a, b = (cells.cell(query, workload, policy).key for policy in (new, old))
    return Duel(
        query=query,
        workload=workload,
        new=new,
        old=old,
        latency=results.paired(a, b, "latency_mean"),
        slots=results.paired(a, b, "slot_seconds"),
        new_latency=results.estimate(a, "latency_mean"),
        old_latency=results.estimate(b, "latency_mean"),
        new_slots=results.estimate(a, "slots_mean"),
        old_slots=results.estimate(b, "slots_mean"),
    )


def counts(found: Sequence[Duel]) -> dict[str, Counter[Judgement]]:
    """How often each new auto-scaler was what."""
    table: dict[str, Counter[Judgement]] = {new: Counter() for new in cells.IMPROVED}
    for one in found:
        table[one.new][one.judgement] += 1
    return table


def summary(found: Sequence[Duel]) -> Table:
    """A table of how often each new auto-scaler was what."""
    rows = []
    for new, count in counts(found).items():
        total = sum(count.values())
        most = "most" if count["dominates"] > total / 2 else "not most"
        rows.append(
            (
                new,
                cells.IMPROVED[new],
                *(str(count[judgement]) for judgement in _SIGNS),
                f"{most} of {total}",
            )
        )
    header = ("new", "against", *_SIGNS, "dominates in")
    return Table(title=TITLE, header=header, rows=tuple(rows), words=2)


def compact(found: Sequence[Duel]) -> Table:
    """Relative changes of latency and slot-seconds, within 80 columns."""
    by_cell: dict[tuple[str, str], dict[str, str]] = {}
    for one in found:
        text = f"{_change(one.latency)}, {_change(one.slots)} {_SIGNS[one.judgement]}"
        by_cell.setdefault((one.query, one.workload), {})[one.new] = text
    rows = tuple(
        (f"{query.upper()} {workload}", *(texts.get(new, "–") for new in cells.IMPROVED))
        for (query, workload), texts in by_cell.items()
    )
    header = ("latency, slot-seconds", *(f"{n} against {o}" for n, o in cells.IMPROVED.items()))
    signs = ", ".join(f"{sign} {judgement}" for judgement, sign in _SIGNS.items())
    return Table(title=f"{TITLE}, by cell", header=header, rows=rows, notes=(signs,))


def full(found: Sequence[Duel]) -> list[Table]:
    """One table per new auto-scaler, with intervals."""
    grids = []
    for new, old in cells.IMPROVED.items():
        rows = tuple(
            (
                f"{one.query.upper()} {one.workload}",
                interval(one.old_latency),
                interval(one.new_latency),
                interval(one.latency),
                interval(one.old_slots),
                interval(one.new_slots),
                f"{_change(one.slots)} ±{_half(one.slots)}",
                one.judgement,
            )
            for one in found
            if one.new == new
        )
        header = (
            "cell",
            f"latency {old}, s",
            f"latency {new}, s",
            "difference, s",
            f"slots {old}",
            f"slots {new}",
            "slot-seconds",
            "verdict",
        )
        grids.append(Table(title=f"{new} against {old}", header=header, rows=rows))
    return grids


def document(found: Sequence[Duel], seeds: int) -> dict[str, Any]:
    """Plain values for ``--json``."""
    rows = [
        {
            "query": one.query,
            "workload": one.workload,
            "new": one.new,
            "old": one.old,
            "latency_mean": {"new": plain(one.new_latency), "old": plain(one.old_latency)},
            "slots_mean": {"new": plain(one.new_slots), "old": plain(one.old_slots)},
            "latency_difference": plain(one.latency),
            "slot_seconds_difference": plain(one.slots),
            "verdict": one.judgement,
        }
        for one in found
    ]
    return {
        "id": "improved",
        "title": TITLE,
        "seeds": seeds,
        "counts": {new: dict(count) for new, count in counts(found).items()},
        "rows": rows,
    }


def _change(difference: Difference) -> str:
    return percent(difference.relative, sign=True)


def _half(difference: Difference) -> str:
    if difference.half_width is None or not difference.base:
        return "–"
    return percent(difference.half_width / difference.base)
