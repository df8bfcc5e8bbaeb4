"""Whether something fits a terminal of 80 columns."""

from __future__ import annotations

import io

from rich.console import Console

from penstock.lab.proofs.proof import Proof
from penstock.lab.proofs.tables import checks_table, details_table, rows_table


def assert_fits(proof: Proof) -> None:
    """All tables of a proof in 80 columns, with nothing cut off."""
    screen = Console(width=80, file=io.StringIO())
    screen.print(checks_table(proof))
    if proof.details:
        screen.print(details_table(proof))
    for title, rows in proof.tables.items():
        screen.print(rows_table(title, rows))
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
