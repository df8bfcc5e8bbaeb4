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
FRONT = f"{MARK} no other policy here has both a lower mean latency and fewer slots"


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
    """Policies that saw the same load on the same pipeline, and the oracle beside them.

    late_oracle: of one that may be as late as the objective allows
    """

    title: str
    note: str
    rows: tuple[Row, ...]
    oracle: Mapping[str, Estimate]
    late_oracle: Mapping[str, Estimate] = field(default_factory=dict)
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
    Score(score="latency_p95", name="p95 s", text=_interval),
    Score(score="slo_seconds", name="late s", text=lambda figure: figure_text(figure.mean)),
    Score(score="actions", name="actions", text=_interval),
    Score(score="total_cost", name="cost", text=_interval),
)
COMPARED = ("slots_mean", "latency_mean", "latency_p95", "total_cost")
NAMES = {column.score: column.name for column in COLUMNS} | {"latency_mean": "latency s"}


def group_table(group: Group, *, mark: str = MARK, oracle: str = "oracle") -> Table:
    """A group for a terminal of 80 columns; the oracle is the last row."""
    rows = [
        (f"{row.label} {mark}" if row.front else row.label, *_cells(row.figures))
        for row in group.rows
    ]
    late = [(f"{oracle}, late", *_cells(group.late_oracle))] if group.late_oracle else []
    return Table(
        title=group.title,
        note=group.note,
        header=(
            Column(name="policy", width=22),
            *(Column(name=column.name, right=True) for column in COLUMNS),
        ),
        rows=(*rows, (oracle, *_cells(group.oracle)), *late),
        faint=frozenset([len(rows), len(rows) + len(late)]),
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
    """A difference with its sign and half-width; where the interval holds 0 it is a tie."""
    if difference is None:
        return units.UNKNOWN
    size = max(abs(difference.mean), difference.half_width or 0.0)
    digits = _digits(size)
    half = difference.half_width
    spread = "" if half is None else f"±{half:.{digits}f}"
    if difference.verdict == "tie":
        return f"{spread} tie".strip()
    return f"{difference.mean:+.{digits}f} {spread}".replace("-", "−").strip()


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
