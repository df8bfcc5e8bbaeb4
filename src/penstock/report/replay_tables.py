"""A replay as tables: what ran, what each policy would have done, the advice, how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.report import units
from penstock.report.bench_tables import Group, figure_text
from penstock.report.statistics import Estimate
from penstock.report.table import Column, Table

HOUR = 3600.0
MOST_NOTES = 6  # in a terminal; the page has all


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to try.

    label: of the policy, or of the fixed size, that cost least
    policy: its name, and its ``parameters``, as a configuration takes them
    minimum, maximum: executors
    why: the figures that decide
    sure: how sure it is
    first: what to do first, one sentence each
    """

    label: str
    policy: str
    parameters: Mapping[str, Any]
    minimum: int
    maximum: int
    why: str
    sure: str
    first: tuple[str, ...] = ()

    @property
    def settings(self) -> str:
        """Lines for a configuration file."""
        lines = [
            f"min_executors = {self.minimum}",
            f"max_executors = {self.maximum}",
            "",
            "[policy]",
            f'name = "{self.policy}"',
            *(f"{name} = {_toml(value)}" for name, value in self.parameters.items()),
        ]
        return "\n".join(lines)

    @property
    def command(self) -> str:
        """The same for the command line."""
        given = "".join(f" --set {name}={value}" for name, value in self.parameters.items())
        return (
            f"penstock run my_job.py --policy {self.policy}{given} --min {self.minimum} "
            f"--max {self.maximum}"
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain JSON value."""
        return {
            "label": self.label,
            "policy": self.policy,
            "parameters": dict(self.parameters),
            "min_executors": self.minimum,
            "max_executors": self.maximum,
            "why": self.why,
            "sure": self.sure,
            "first": list(self.first),
            "command": self.command,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """The first run of everybody over time.

    time: in ``unit``
    offered: records/s
    recorded: executors that there were, and seconds ``behind``
    slots, behind: of each policy, by label
    """

    unit: str
    time: Sequence[float]
    offered: Sequence[float]
    oracle: Sequence[float]
    recorded: Sequence[float]
    recorded_behind: Sequence[float]
    slots: Mapping[str, Sequence[float]] = field(default_factory=dict)
    behind: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayView:
    """All that is shown of a replay.

    group: the policies, what really ran as the first of them, and the oracles
    agreement, notes: sentences, on how far it is to be trusted and what could not be learnt
    seconds: its length
    slo: seconds of waiting that are allowed
    price: of an executor for an hour, if one was given
    """

    title: str
    group: Group
    advice: Advice
    agreement: Sequence[str]
    notes: Sequence[str]
    remarks: Sequence[str]
    seconds: float
    slo: float
    price: float | None
    over_time: OverTime


def policies_table(view: ReplayView) -> Table:
    """What ran and what would have: executors, hours or money, delay, lateness, cost."""
    group = view.group
    oracles = [("oracle", group.oracle)]
    if group.late_oracle:
        oracles.append(("oracle, late", group.late_oracle))
    rows = [(row.label, row.figures) for row in group.rows]
    return Table(
        title=group.title,
        note=group.note,
        header=(
            Column(name="policy", width=20),
            Column(name="executors", right=True),
            Column(name="hours" if view.price is None else "price", right=True),
            Column(name="p50 s", right=True),
            Column(name="p95 s", right=True),
            Column(name="late", right=True),
            Column(name="actions", right=True),
            Column(name="cost", right=True),
        ),
        rows=tuple((label, *_cells(figures, view)) for label, figures in [*rows, *oracles]),
        faint=frozenset(range(len(rows), len(rows) + len(oracles))),
    )


def _cells(figures: Mapping[str, Estimate], view: ReplayView) -> tuple[str, ...]:
    paid = figures.get("slot_seconds")
    factor = (1.0 if view.price is None else view.price) / HOUR
    late = figures.get("slo_seconds")
    return (
        _mean(figures.get("slots_mean")),
        units.UNKNOWN if paid is None else figure_text(paid.mean * factor),
        _mean(figures.get("latency_p50")),
        _text(figures.get("latency_p95")),
        units.UNKNOWN if late is None else units.share(late.mean / view.seconds),
        _mean(figures.get("actions")),
        _text(figures.get("total_cost")),
    )


def _text(figure: Estimate | None) -> str:
    return units.UNKNOWN if figure is None else figure_text(figure.mean, figure.half_width)


def _mean(figure: Estimate | None) -> str:
    return units.UNKNOWN if figure is None else figure_text(figure.mean)


def replay_lines(view: ReplayView) -> list[Table | str]:
    """The table and the sentences below it, for a terminal."""
    advice = view.advice
    parts: list[Table | str] = [policies_table(view), ""]
    parts += [*(f"read: {line}" for line in view.remarks), ""] if view.remarks else []
    parts += [f"Advice: {advice.label}: {advice.why}", f"How sure: {advice.sure}", ""]
    parts += [f"    {line}" for line in advice.settings.split("\n")]
    parts += [f"    {advice.command}", ""]
    parts += ["First:", *(f"  {n}. {line}" for n, line in enumerate(advice.first, 1)), ""]
    parts += ["Played beside recorded:", *(f"  · {line}" for line in view.agreement)]
    if view.notes:
        parts += ["", "Not learnt:", *(f"  · {line}" for line in view.notes[:MOST_NOTES])]
        if len(view.notes) > MOST_NOTES:
            parts.append(f"  · and {len(view.notes) - MOST_NOTES} more, on the page")
    return parts


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else f"{value!r}"
