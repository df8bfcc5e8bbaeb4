"""A table of texts, and how it looks in a terminal, in Markdown and in HTML.

What shows figures makes a ``Table``; only here is it known how one is drawn. All text is literal:
no markup is read from it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from penstock.report.statistics import Estimate

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

NONE = "–"  # not published, or not measured
TERMINAL = 80  # columns

Span = tuple[str, str]  # a text and how it is set off: "dim", "bold", "bold red" or ""


class Styled(str):
    """A text some of whose parts are set off.

    >>> Styled(("12.4", "bold"), (" s", ""))
    '12.4 s'
    """

    __slots__ = ("spans",)
    spans: tuple[Span, ...]

    def __new__(cls, *spans: Span) -> Styled:
        """A text of these parts, each with how it is set off."""
        made = super().__new__(cls, "".join(text for text, _ in spans))
        made.spans = spans
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column whose look differs from the others.

    name: its heading
    right: whether it is set at the right, as numbers are
    style: how all of it is set off: "dim", "bold" or ""
    wrap: whether its texts may take several lines in a terminal
    width: the most characters that it takes in a terminal
    rest: whether it takes all the room that is left in a terminal
    """

    name: str
    right: bool = False
    style: str = ""
    wrap: bool = False
    width: int | None = None
    rest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A title, a row of headings and rows of texts.

    title: none if empty
    header: headings; a plain text is a column of words or, after the first ``words``, of numbers
    rows: a text for each column; ``Styled`` where parts of it are set off
    notes: lines below
    note: a line below the title
    words: how many of the first columns hold words
    faint: rows (by number) that are set off, such as references
    loose: more room between columns in a terminal
    """

    title: str = ""
    header: tuple[str | Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    note: str = ""
    words: int = 1
    faint: frozenset[int] = frozenset()
    loose: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, each with its look."""
        return tuple(
            given if isinstance(given, Column) else self._column(number, given)
            for number, given in enumerate(self.header)
        )

    def _column(self, number: int, name: str) -> Column:
        words = number < self.words
        return Column(name=name, right=not words, wrap=words)

    def __rich__(self) -> RichTable:
        return self.rich()

    def rich(self) -> RichTable:
        """For a terminal."""
        from rich.text import Text

        table = plain_table(self.title or None, self.note or None, tight=not self.loose)
        if self.notes:
            table.caption = Text("\n".join(self.notes))
            table.caption_justify = "left"
        for column in self.columns:
            table.add_column(
                Text(column.name),
                justify="right" if column.right else "left",
                style=column.style,
                no_wrap=not column.wrap,
                max_width=column.width,
                ratio=1 if column.rest else None,
            )
        for number, row in enumerate(self.rows):
            style = "dim" if number in self.faint else None
            table.add_row(*(_rich(text) for text in row), style=style)
        return table

    def markdown(self) -> str:
        """For a document, with its title as a heading of the third level."""
        marks = ["---:" if column.right else "---" for column in self.columns]
        names = [column.name for column in self.columns]
        lines = [_pipes(names), _pipes(marks), *map(_pipes, self.rows)]
        head = f"### {_safe(self.title)}\n\n" + (f"{_safe(self.note)}\n\n" if self.note else "")
        notes = "".join(f"\n{note}  " for note in self.notes)
        table = "\n".join(lines)
        return f"{head}{table}\n" + (f"{notes.rstrip()}\n" if notes else "")

    def html(self) -> str:
        """For a page, with its title as a heading of the third level."""
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        return f"<h3>{escape(self.title)}</h3>{note}{self.html_table()}{notes}"

    def html_table(self) -> str:
        """For a page, without title and notes."""
        kinds = [' class="num"' if column.right else "" for column in self.columns]

        def cells(tag: str, texts: Iterable[str]) -> str:
            parts = zip(kinds, texts, strict=True)
            return "".join(f"<{tag}{kind}>{text}</{tag}>" for kind, text in parts)

        head = cells("th", (escape(column.name) for column in self.columns))
        body = "".join(
            f"<tr{' class=faint' * (n in self.faint)}>{cells('td', map(_html, row))}</tr>"
            for n, row in enumerate(self.rows)
        )
        return (
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )


def plain_table(
    title: str | None = None, note: str | None = None, *, tight: bool = False
) -> RichTable:
    """An empty table of a terminal, with a title and a note below it; ``tight`` of many columns."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    head = None if title is None else Text(title, style="bold")
    if head is not None and note is not None:
        head.append(f"\n{note}", style="dim not bold")
    return RichTable(
        title=head,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0) if tight else (0, 1),
        show_edge=False,
        pad_edge=False,
    )


def terminal_text(parts: Iterable[RenderableType]) -> str:
    """Tables and lines as a terminal of 80 columns shows them, without colours."""
    from rich.console import Console

    page = io.StringIO()
    screen = Console(file=page, width=TERMINAL, markup=False, emoji=False, highlight=False)
    for part in parts:
        screen.print(part)
    return page.getvalue()


def _rich(text: str) -> Text:
    from rich.text import Text

    return Text.assemble(*text.spans) if isinstance(text, Styled) else Text(text)


def _html(text: str) -> str:
    if not isinstance(text, Styled):
        return escape(text)
    tags = {"dim": "small", "bold": "b"}
    return "".join(
        f"<{tags[style]}>{escape(part)}</{tags[style]}>" if style in tags else escape(part)
        for part, style in text.spans
    )


def _pipes(row: Sequence[str]) -> str:
    return "| " + " | ".join(map(_safe, row)) + " |"


def _safe(text: str) -> str:
    """A text within a Markdown table."""
    return text.replace("|", "\\|")


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
