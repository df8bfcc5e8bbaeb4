"""The tables of a comparison: one per pipeline and workload, policies as rows, mean ± half-width.

The values come from the package ``comparison``; here they are only shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.report import units
from penstock.report.statistics import Difference, Estimate
from penstock.report.table import Column, Styled, Table

MARK = "*"
FRONT = f"{MARK} no other policy here has both a lower latency and fewer slots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy: its figures by score, and whether it is on the Pareto front."""

    key: str
    label: str
    figures: Mapping[str, Estimate]
    front: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Differences of one policy from the base of a comparison, by score."""

    label: str
    differences: Mapping[str, Difference]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Policies that saw the same load on the same pipeline, and the oracle beside them."""

    title: str
    note: str
    rows: tuple[Row, ...]
    oracle: Mapping[str, Estimate]
    base: str = ""
    against: tuple[Against, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score as a column: how it is called, and how its figures are written."""

    score: str
    name: str
    text: Callable[[Estimate], str]


def figure_text(mean: float, half_width: float | None = None) -> str:
    """A mean and the half-width of its interval to the same digit.

    >>> figure_text(12.431, 0.26), figure_text(612.2)
    ('12.4 ±0.3', '612')
    """
    if not mean and not half_width:
        return "0"
    digits = _digits(max(abs(mean), half_width or 0.0))
    text = f"{mean:.{digits}f}"
    return text if half_width is None else f"{text} ±{half_width:.{digits}f}"


def _interval(figure: Estimate) -> str:
    return figure_text(figure.mean, figure.half_width)


COLUMNS = (
    Score(score="slots_mean", name="slots", text=_interval),
    Score(score="latency_mean", name="latency s", text=_interval),
    Score(score="latency_p95", name="p95 s", text=_interval),
    Score(score="slo_seconds", name="late s", text=lambda figure: figure_text(figure.mean)),
    Score(score="actions", name="actions", text=_interval),
    Score(
        score="regret",
        name="regret",
        text=lambda figure: f"{100 * figure.mean:+.0f} %".replace("-", "−"),
    ),
)
COMPARED = ("slots_mean", "latency_mean", "latency_p95", "actions")
NAMES = {column.score: column.name for column in COLUMNS}


def group_table(group: Group, *, mark: str = MARK, oracle: str = "oracle") -> Table:
    """A group for a terminal of 80 columns; the oracle is the last row."""
    rows = [
        (f"{row.label} {mark}" if row.front else row.label, *_cells(row.figures))
        for row in group.rows
    ]
    return Table(
        title=group.title,
        note=group.note,
        header=(
            Column(name="policy", width=22),
            *(Column(name=column.name, right=True) for column in COLUMNS),
        ),
        rows=(*rows, (oracle, *_cells(group.oracle))),
        faint=frozenset([len(rows)]),
    )


def against_table(group: Group) -> Table:
    """The differences from the first policy, seed by seed."""
    return Table(
        title=f"against {group.base}",
        note=f"{group.title}; paired by seed, 95 % interval",
        header=(
            Column(name="policy", width=18),
            *(Column(name=NAMES[score], right=True) for score in COMPARED),
        ),
        rows=tuple(
            (row.label, *(_verdict(row.differences.get(score)) for score in COMPARED))
            for row in group.against
        ),
    )


def group_tables(group: Group, *, differences: bool = True) -> list[Table]:
    """A group, and the differences in it if there are any."""
    return [group_table(group), *([against_table(group)] if differences and group.against else [])]


def versus_text(difference: Difference | None) -> str:
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
    return "\n".join(
        group_table(group, mark=f"\\{MARK}", oracle="*oracle*").markdown() for group in groups
    )


def _cells(figures: Mapping[str, Estimate]) -> tuple[str, ...]:
    return tuple(_cell(figures, column) for column in COLUMNS)


def _cell(figures: Mapping[str, Estimate], column: Score) -> str:
    figure = figures.get(column.score)
    return units.UNKNOWN if figure is None else column.text(figure)


def _digits(value: float) -> int:
    size = abs(value)
    return 0 if size >= 99.5 else 1 if size >= 9.95 else 2


def _verdict(difference: Difference | None) -> str:
    text = versus_text(difference)
    return Styled((text, "dim" if text.endswith("tie") else "bold"))
