"""The tables of a proof, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from penstock.lab.proofs.proof import Check, Proof
from penstock.report import units
from penstock.report.table import plain_table

COUNT = 100_000.0  # from here on a figure is short: 1.25M


def checks_table(proof: Proof) -> Table:
    """Every figure with its interval, its bound and the verdict."""
    table = plain_table(proof.title)
    table.add_column("figure", overflow="fold", max_width=38)
    for name in ("measured", "95 % interval", "bound"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for check in proof.checks:
        verdict = Text("held", "green") if check.held else Text("not held", "bold red")
        table.add_row(
            Text(check.figure),
            shown(check.value, check.unit),
            _interval(check),
            f"{'≤' if check.at_most else '≥'} {shown(check.bound, check.unit)}",
            verdict,
        )
    return table


def details_table(proof: Proof) -> Table:
    """One row per action, fault or pair."""
    return rows_table("", proof.details)


def rows_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows that all have the same keys."""
    table = plain_table(title)
    names = list(rows[0])
    for name in names:
        numeric = any(isinstance(row[name], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_cell(row[name])) for name in names))
    return table


def shown(value: float | None, unit: str) -> str:
    """A figure in its unit, short.

    >>> shown(12.34, "s"), shown(0.0123, "%"), shown(1_250_000, "events/s"), shown(None, "s")
    ('12.3 s', '1.23 %', '1.25M', '–')
    """
    if value is None:
        return units.UNKNOWN
    if unit == "s":
        return f"{value:.1f} s"
    if unit == "%":
        return f"{value * 100:.2f} %"
    if abs(value) >= COUNT:
        return units.count(value)
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3f}"


def _interval(check: Check) -> str:
    if check.low is None or check.high is None:
        return ""
    low = shown(check.low, check.unit).removesuffix(f" {check.unit}")
    return f"{low} to {shown(check.high, check.unit).removesuffix(f' {check.unit}')}"


def _cell(value: Any) -> str:
    if value is None:
        return units.UNKNOWN
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 2 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
