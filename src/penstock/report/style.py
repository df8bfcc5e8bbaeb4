"""How a table on the terminal looks; one way for all of them."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text


def plain_table(title: str | None = None, note: str | None = None, *, tight: bool = False) -> Table:
    """An empty table with a title and a note below it; ``tight`` where it has many columns."""
    head = None if title is None else Text(title, style="bold")
    if head is not None and note is not None:
        head.append(f"\n{note}", style="dim not bold")
    return Table(
        title=head,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0) if tight else (0, 1),
        show_edge=False,
        pad_edge=False,
    )
