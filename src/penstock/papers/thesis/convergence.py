"""Table 7.19: whether an auto-scaler comes to rest under a constant rate, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.comparison.results import Results
from penstock.papers.thesis import cells, published
from penstock.papers.thesis.tables import plain
from penstock.report.statistics import Estimate, estimate
from penstock.report.table import NONE, Table, number, percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """One stage over all seeds: the share that came to rest, and their minutes and actions.

    Came to rest: no action in the last 10 minutes of the stage.
    """

    share: float
    minutes: Estimate | None
    actions: Estimate | None


def rest(key: str, stage: int, results: Results) -> Rest:
    """How a cell came to rest in a stage, 1 or 2."""
    settled = results.values(key, f"stage{stage}_converged") > 0
    found: dict[str, Estimate | None] = {}
    for what in ("minutes", "actions"):
        values = results.values(key, f"stage{stage}_{what}")[settled]
        found[what] = estimate(values.tolist()) if len(values) else None
    return Rest(share=float(settled.mean()), **found)


def grid(
    results: Results, title: str, rows: Sequence[tuple[str, str, published.ConvergenceRow | None]]
) -> Table:
    """Label, key and published row of each line."""
    texts = []
    for label, key, row in rows:
        parts = [label]
        for stage in (1, 2):
            if row is not None:
                parts.append(_printed(row, stage))
            parts.append(_ours(rest(key, stage, results)))
        texts.append(tuple(parts))
    beside = any(row is not None for _, _, row in rows)
    header: tuple[str, ...] = ("", "stage 1", "stage 2")
    if beside:
        header = ("", "stage 1", "ours", "stage 2", "ours")
    note = "Share of the seeds that came to rest: minutes and actions of those, means."
    return Table(title=title, header=header, rows=tuple(texts), notes=(note,))


def table(results: Results) -> Table:
    """Table 7.19 with ours beside it."""
    rows = [
        (f"{row.query.upper()} {row.name}", cells.of_convergence(row).key, row)
        for row in published.CONVERGENCE
    ]
    return grid(results, f"Table {published.CONVERGENCE_ID}: {published.CONVERGENCE_TITLE}", rows)


def document(results: Results) -> dict[str, Any]:
    """Plain values for ``--json``."""
    rows = []
    for row in published.CONVERGENCE:
        key = cells.of_convergence(row).key
        ours = [rest(key, stage, results) for stage in (1, 2)]
        rows.append(
            {
                "label": f"{row.query.upper()} {row.name}",
                "query": row.query,
                "workload": "convergence",
                "policy": row.policy,
                "cell": key,
                "paper": [
                    {"converged": s.minutes is not None, "minutes": s.minutes, "actions": s.actions}
                    for s in row.stages
                ],
                "ours": [
                    {
                        "converged": r.share,
                        "minutes": plain(r.minutes),
                        "actions": plain(r.actions),
                    }
                    for r in ours
                ],
            }
        )
    return {
        "id": published.CONVERGENCE_ID,
        "title": published.CONVERGENCE_TITLE,
        "seeds": len(results.seeds),
        "rows": rows,
    }


def _printed(row: published.ConvergenceRow, stage: int) -> str:
    if not row.stages:
        return NONE
    found = row.stages[stage - 1]
    return "40+" if found.minutes is None else f"{found.minutes:g} min, {found.actions}"


def _ours(found: Rest) -> str:
    share = percent(found.share)
    if found.minutes is None or found.actions is None:
        return share
    return f"{share}: {number(found.minutes.mean)} min, {number(found.actions.mean)}"
