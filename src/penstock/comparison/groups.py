"""Results as the tables, picture and page show them: groups of policies under one load."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from penstock.comparison.cell import Cell
from penstock.comparison.guards_table import PRESETS
from penstock.comparison.results import Results
from penstock.comparison.scores import LATE, TOTAL_COST
from penstock.core.codec import to_json
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.report import units
from penstock.report.bench_tables import COMPARED, Against, Group, Row
from penstock.report.statistics import Estimate

ORACLE = {  # the oracle's figures, by the score that they stand beside
    "slots_mean": "oracle_slots_mean",
    "slots_max": "oracle_slots_max",
    "slot_seconds": "oracle_slot_seconds",
}
LATE_ORACLE = {
    "slots_mean": "late_oracle_slots_mean",
    "slot_seconds": "late_oracle_slot_seconds",
}
_NOTHING = ("latency_mean", "latency_p95", "slo_seconds", "actions", "regret")  # 0 for the oracle


def groups(results: Results, *, base: str | None = None) -> list[Group]:
    """One group per pipeline, workload, profile and guards, in the order of the cells.

    ``base`` names the policy label that the others of its group are compared with; the first of
    each group if left out. Cells without a finished run are left out.
    """
    several = len({cell.profile for cell in results.cells}) > 1
    many_guards = len({cell.guards for cell in results.cells}) > 1
    found = []
    for cells in scenes(results.cells):
        done = [cell for cell in cells if results.seeds_of(cell.key)]
        if done:
            title = " · ".join(_title(done[0], several, many_guards))
            found.append(_group(results, done, title, base))
    return found


def scenes(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that differ in nothing but the policy."""
    by_scene: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        limits = json.dumps(to_json(cell.guards))
        by_scene.setdefault((cell.scene, limits), []).append(cell)
    return list(by_scene.values())


def pareto(points: Sequence[tuple[float, float]]) -> list[bool]:
    """For each point, whether no other is as good in both figures and better in one.

    >>> pareto([(1.0, 3.0), (2.0, 2.0), (3.0, 2.5)])
    [True, True, False]
    """
    return [not any(x <= a and y <= b and (x, y) != (a, b) for x, y in points) for a, b in points]


def _group(results: Results, cells: Sequence[Cell], title: str, base: str | None) -> Group:
    fronts = _front(results, cells)
    rows = [
        Row(
            key=cell.key,
            label=policy_label(cell),
            figures={
                name: results.estimate(cell.key, name)
                for name in results.names(cell.key)
                if results.measured(cell.key, name)
            },
            front=cell.key in fronts,
        )
        for cell in cells
    ]
    oracle = {name: results.estimate(cells[0].key, own) for name, own in ORACLE.items()}
    oracle |= {name: Estimate(mean=0.0, half_width=None, count=1) for name in _NOTHING}
    oracle[TOTAL_COST] = _oracle_cost(cells[0], oracle["slot_seconds"].mean, oracle)
    key = cells[0].key
    late = {
        name: results.estimate(key, own)
        for name, own in LATE_ORACLE.items()
        if results.measured(key, own)
    }
    if late:
        late[TOTAL_COST] = _oracle_cost(cells[0], late["slot_seconds"].mean, oracle)
    first = base_of(cells, base)
    return Group(
        title=title,
        note=_note(results, cells),
        rows=tuple(rows),
        oracle=oracle,
        late_oracle=late,
        base=policy_label(first),
        against=tuple(_against(results, cell, first) for cell in cells if cell is not first),
    )


def _oracle_cost(cell: Cell, paid: float, oracle: Mapping[str, Estimate]) -> Estimate:
    """What it pays, in the unit in which costs are told; it is never late."""
    if cell.price is not None:
        return Estimate(mean=cell.price * paid / 3600.0, half_width=None, count=1)
    least = oracle["slot_seconds"].mean
    return Estimate(mean=paid / least if least else 0.0, half_width=None, count=1)


def _front(results: Results, cells: Sequence[Cell]) -> set[str]:
    """The cells that no other beats in both slot-seconds and mean latency."""
    keys = [cell.key for cell in cells if results.measured(cell.key, "latency_mean")]
    scores = ("slot_seconds", "latency_mean")
    spots = [tuple(results.estimate(key, score).mean for score in scores) for key in keys]
    best = pareto([(x, y) for x, y in spots])
    return {key for key, is_best in zip(keys, best, strict=True) if is_best}


def base_of(cells: Sequence[Cell], base: str | None) -> Cell:
    """The cell that others are compared with, by its label, policy or key; else the first."""
    if base is None:
        return cells[0]
    for cell in cells:
        if base in (policy_label(cell), cell.policy, cell.key):
            return cell
    labels = ", ".join(policy_label(cell) for cell in cells)
    raise InputError(f"no policy {base!r} to compare with; there are {labels}")


def _against(results: Results, cell: Cell, base: Cell) -> Against:
    differences = {
        score: results.paired(cell.key, base.key, score)
        for score in (*COMPARED, "slot_seconds", "slo_seconds", "actions")
        if results.measured(cell.key, score) and results.measured(base.key, score)
    }
    return Against(label=policy_label(cell), differences=differences)


def _title(cell: Cell, profile: bool, guards: bool) -> Iterable[str]:
    yield pipeline_label(cell)
    yield workload_label(cell)
    if profile:
        yield cell.profile
    if guards:
        yield f"guards {guards_label(cell.guards)}"


def guards_label(guards: Guards) -> str:
    """The preset's name, or what differs from no guards at all."""
    for name, preset in PRESETS.items():
        if guards == preset:
            return name
    return ", ".join(f"{k} {v}" for k, v in to_json(guards).items()) or "none"


def _note(results: Results, cells: Sequence[Cell]) -> str:
    counts = {len(results.seeds_of(cell.key)) for cell in cells}
    seeds = str(counts.pop()) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    plural = "" if seeds == "1" else "s"
    note = f"{cells[0].minutes:g} minutes, {seeds} seed{plural}, mean ± 95 % interval"
    for remark in (*cells[0].remarks(), cost_remark(cells[0])):
        note += f"\n{remark}"
    for cell in cells:
        if cell.label and cell.fixed:
            note += f"\n{cell.label}: {'+'.join(map(str, cell.fixed.values()))} slots all the time"
        if results.measured(cell.key, "forecast_error"):
            error = results.estimate(cell.key, "forecast_error")
            note += f"\nforecast error of {policy_label(cell)}: {error.mean:.2f}"
            note += f" ±{error.half_width:.2f}" if error.half_width is not None else ""
    return note


def cost_remark(cell: Cell) -> str:
    """What the cost of a policy is made of."""
    if cell.price is None:
        return f"cost: slot time over the oracle's + {LATE:g} × share of time > {cell.slo:g} s late"
    late = "ten hours of the oracle" if cell.late_price is None else f"{cell.late_price:g}"
    return f"cost: {cell.price:g} a slot-hour, {late} an hour > {cell.slo:g} s late"


def policy_label(cell: Cell) -> str:
    """What a cell is called: the policy and the values of its given parameters, ``ds2 1.2``."""
    return cell.label or " ".join([cell.policy, *values_of(cell.policy_parameters)])


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
