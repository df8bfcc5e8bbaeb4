"""The tables of a bench: one per pipeline and workload, policies as rows, mean ± half-width.

The values come from ``penstock.bench``; here they are only shown. All text is literal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table
from rich.text import Text

from penstock.report import units
from penstock.report.style import plain_table

MARK = "*"
FRONT = f"{MARK} no other policy here has both a lower latency and fewer slots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A mean and the half-width of its 95 % interval (``None``: a single seed)."""

    mean: float
    half_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy: its figures by score, and whether it is on the Pareto front."""

    key: str
    label: str
    figures: Mapping[str, Figure]
    front: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """A policy against another one: the mean difference, its half-width, the verdict."""

    mean: float
    half_width: float | None
    verdict: str
    relative: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Differences of one policy from the base of a comparison, by score."""

    label: str
    differences: Mapping[str, Versus]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Policies that saw the same load on the same pipeline, and the oracle beside them."""

    title: str
    note: str
    rows: tuple[Row, ...]
    oracle: Mapping[str, Figure]
    base: str = ""
    against: tuple[Against, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A score as a column: how it is called, and how its figures are written."""

    score: str
    name: str
    text: Callable[[Figure], str]


def figure_text(figure: Figure) -> str:
    """A mean and its half-width to the same digit.

    >>> figure_text(Figure(mean=12.431, half_width=0.26)), figure_text(Figure(mean=612.2))
    ('12.4 ±0.3', '612')
    """
    if not figure.mean and not figure.half_width:
        return "0"
    digits = _digits(max(abs(figure.mean), figure.half_width or 0.0))
    text = f"{figure.mean:.{digits}f}"
    return text if figure.half_width is None else f"{text} ±{figure.half_width:.{digits}f}"


def percent_text(figure: Figure) -> str:
    """A share as a percentage with its sign."""
    return f"{100 * figure.mean:+.0f} %".replace("-", "−")


def mean_text(figure: Figure) -> str:
    """The mean alone."""
    return figure_text(Figure(mean=figure.mean))


COLUMNS = (
    Column(score="slots_mean", name="slots", text=figure_text),
    Column(score="latency_mean", name="latency s", text=figure_text),
    Column(score="latency_p95", name="p95 s", text=figure_text),
    Column(score="slo_seconds", name="late s", text=mean_text),
    Column(score="actions", name="actions", text=figure_text),
    Column(score="regret", name="regret", text=percent_text),
)
COMPARED = ("slots_mean", "latency_mean", "latency_p95", "actions")
NAMES = {column.score: column.name for column in COLUMNS}


def group_table(group: Group) -> Table:
    """A group for a terminal of 80 columns; the oracle is the last row."""
    table = plain_table(group.title, group.note, tight=True)
    table.add_column("policy", no_wrap=True, max_width=22)
    for column in COLUMNS:
        table.add_column(column.name, justify="right", no_wrap=True)
    for row in group.rows:
        label = f"{row.label} {MARK}" if row.front else row.label
        table.add_row(Text(label), *(Text(_cell(row.figures, c)) for c in COLUMNS))
    oracle = [Text(_cell(group.oracle, c), style="dim") for c in COLUMNS]
    table.add_row(Text("oracle", style="dim"), *oracle)
    return table


def against_table(group: Group) -> Table:
    """The differences from the first policy, seed by seed."""
    table = plain_table(
        f"against {group.base}", f"{group.title}; paired by seed, 95 % interval", tight=True
    )
    table.add_column("policy", no_wrap=True, max_width=18)
    for score in COMPARED:
        table.add_column(NAMES[score], justify="right", no_wrap=True)
    for row in group.against:
        texts = [versus_text(row.differences.get(score)) for score in COMPARED]
        table.add_row(Text(row.label), *(_verdict(text) for text in texts))
    return table


def versus_text(difference: Versus | None) -> str:
    """A difference with its sign and half-width; "tie" where the interval holds 0."""
    if difference is None:
        return units.UNKNOWN
    size = max(abs(difference.mean), difference.half_width or 0.0)
    digits = _digits(size)
    text = f"{difference.mean:+.{digits}f}".replace("-", "−")
    if difference.half_width is not None:
        text += f" ±{difference.half_width:.{digits}f}"
    return f"{text} tie" if difference.verdict == "tie" else text


def markdown(groups: Sequence[Group]) -> str:
    """The same tables as Markdown."""
    return "\n\n".join(_markdown(group) for group in groups) + "\n"


def _markdown(group: Group) -> str:
    rows = [("policy", *(c.name for c in COLUMNS))]
    rows.append(("---", *("---:" for _ in COLUMNS)))
    for row in group.rows:
        label = f"{row.label} {MARK}" if row.front else row.label
        rows.append((label, *(_cell(row.figures, c) for c in COLUMNS)))
    rows.append(("*oracle*", *(_cell(group.oracle, c) for c in COLUMNS)))
    lines = [f"| {' | '.join(_escape(cell) for cell in row)} |" for row in rows]
    head = f"### {_escape(group.title)}\n\n{_escape(group.note)}\n\n"
    return head + "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace(f" {MARK}", f" \\{MARK}")


def _cell(figures: Mapping[str, Figure], column: Column) -> str:
    figure = figures.get(column.score)
    return units.UNKNOWN if figure is None else column.text(figure)


def _digits(value: float) -> int:
    size = abs(value)
    return 0 if size >= 99.5 else 1 if size >= 9.95 else 2


def _verdict(text: str) -> Text:
    return Text(text, style="dim" if text.endswith("tie") else "bold")
