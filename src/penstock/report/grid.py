"""A table of texts, and how it looks in a terminal, in Markdown and in HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from penstock.report.statistics import Estimate

if TYPE_CHECKING:
    from rich.table import Table

NONE = "–"  # not published, or not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A title, a row of headings, rows of texts, notes below; the first ``words`` columns are text.

    ``strong`` rows (by number) are set off, such as references.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    words: int = 1
    faint: frozenset[int] = frozenset()

    def rich(self) -> Table:
        """For a terminal."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=Text(self.title, style="bold"),
            title_justify="left",
            caption=Text("\n".join(self.notes)) if self.notes else None,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            show_edge=False,
            pad_edge=False,
        )
        for number, name in enumerate(self.header):
            justify = "left" if number < self.words else "right"
            table.add_column(Text(name), justify=justify, no_wrap=number >= self.words)  # type: ignore[arg-type]
        for number, row in enumerate(self.rows):
            style = "dim" if number in self.faint else None
            table.add_row(*(Text(text) for text in row), style=style)
        return table

    def markdown(self) -> str:
        """For a document, with its title as a heading of the third level."""
        marks = ["---" if n < self.words else "---:" for n in range(len(self.header))]
        lines = [_pipes(self.header), _pipes(marks), *(_pipes(row) for row in self.rows)]
        notes = "".join(f"\n{note}  " for note in self.notes)
        table = "\n".join(lines)
        return f"### {self.title}\n\n{table}\n" + (f"{notes.rstrip()}\n" if notes else "")

    def html(self) -> str:
        """For a page."""

        def cells(tag: str, row: tuple[str, ...]) -> str:
            kinds = ["" if n < self.words else ' class="num"' for n in range(len(row))]
            parts = zip(kinds, row, strict=True)
            return "".join(f"<{tag}{kind}>{escape(text)}</{tag}>" for kind, text in parts)

        body = "".join(
            f"<tr{' class=faint' * (n in self.faint)}>{cells('td', row)}</tr>"
            for n, row in enumerate(self.rows)
        )
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        return (
            f"<h3>{escape(self.title)}</h3><div class=scroll><table><thead><tr>"
            f"{cells('th', self.header)}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
        )


def _pipes(row: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |"


def number(value: float | None) -> str:
    """Three figures at most where they matter, never an exponent.

    >>> [number(v) for v in (0.0123, 0.5, 7.25, 13.46, 311.8, 12345.6)]
    ['0.012', '0.5', '7.2', '13.5', '312', '12346']
    """
    if value is None:
        return NONE
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 0.995 or size < 0.0005:
        return f"{value:.1f}".removesuffix(".0") if size < 0.0005 else f"{value:.1f}"
    return f"{value:.3f}" if size < 0.1 else f"{value:.2f}".rstrip("0")


def printed(value: float | None) -> str:
    """A figure of the paper, as it stands there."""
    return NONE if value is None else f"{value:g}"


def interval(estimate: Estimate | None) -> str:
    """Mean and half-width, as many decimals as the mean has.

    >>> interval(Estimate(mean=13.4567, half_width=0.42, count=30))
    '13.5 ±0.4'
    """
    if estimate is None:
        return NONE
    mean = number(estimate.mean)
    if estimate.half_width is None:
        return mean
    decimals = len(mean.partition(".")[2])
    return f"{mean} ±{estimate.half_width:.{decimals}f}"


def percent(share: float | None, *, sign: bool = False) -> str:
    """A share as a percentage."""
    if share is None:
        return NONE
    return f"{share * 100:+.0f} %" if sign else f"{share * 100:.0f} %"
