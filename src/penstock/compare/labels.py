"""Names of cells for tables and files, made from what was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from penstock.compare.cell import Cell
from penstock.report import units


def policy_label(cell: Cell) -> str:
    """The policy and the values of its given parameters: ``ds2 1.2``."""
    return " ".join([cell.policy, *values_of(cell.policy_parameters)])


def workload_label(cell: Cell) -> str:
    """The workload and its given parameters: ``cosine, high 3e+06``."""
    given = [f"{name} {value_text(value)}" for name, value in cell.workload_parameters.items()]
    return ", ".join([cell.workload, *given])


def pipeline_label(cell: Cell) -> str:
    """The query and how its pools differ from the query's own."""
    parts = [cell.query]
    if cell.shared:
        parts.append("one pool")
    if cell.start is not None:
        parts.append(f"from {cell.start}")
    parts += [f"{name} {_flat(value)}" for name, value in cell.spec.items()]
    return ", ".join(parts)


def values_of(parameters: Mapping[str, Any]) -> Iterable[str]:
    """The values as text; a switch that is on by its name."""
    for name, value in parameters.items():
        if isinstance(value, bool):
            yield name if value else f"no-{name}"
        else:
            yield value_text(value)


def value_text(value: Any) -> str:
    """A value in a few letters: numbers without noise, files without their folder."""
    if isinstance(value, float):
        if abs(value) >= 1e4 and float(f"{value:.3g}") == value:
            return units.count(value)
        return f"{value:.1f}" if value.is_integer() and abs(value) < 10 else f"{value:g}"
    if isinstance(value, str):
        return PurePath(value).name.removesuffix(".gz").removesuffix(".csv")
    return str(value)


def key_of(*parts: str) -> str:
    """A name that is safe in a path and on a command line.

    >>> key_of("q1", "cosine", "ds2 1.2")
    'q1-cosine-ds2-1.2'
    """
    text = "-".join(part for part in parts if part)
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-.")[:120]


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_flat(v)}" for name, v in value.items())
    return value_text(value)
