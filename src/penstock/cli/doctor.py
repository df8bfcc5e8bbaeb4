"""``penstock doctor``: what this machine has, what that enables, and how to get the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from penstock.cli.options import AsJson
from penstock.cli.output import console, print_json
from penstock.lab.kafka.jars import check as kafka
from penstock.lab.sites.requirements import check as sites

if TYPE_CHECKING:
    from penstock.lab.host.probes import MachineCheck

NEEDED = ("java", "pyspark")  # without them nothing runs on Spark; the rest is optional
MISSING = 3


def doctor(as_json: AsJson = False) -> None:
    """Tell what this machine has, what each part enables, and how to get what is missing."""
    from penstock.lab.host.probes import checks

    found = [*checks(), sites(), kafka()]
    missing = [c.name for c in found if _needed(c) and not c.ok]
    if as_json:
        rows = [
            {
                "name": c.name,
                "ok": c.ok,
                "needed": _needed(c),
                "found": c.found,
                "enables": c.enables,
                "fix": c.fix,
            }
            for c in found
        ]
        print_json({"spark": not missing, "missing": missing, "checks": rows})
    else:
        _show(found, missing)
    if missing:
        raise typer.Exit(MISSING)


def _needed(check: MachineCheck) -> bool:
    words = check.name.lower().split()
    return any(name in words for name in NEEDED)


def _show(found: list[MachineCheck], missing: list[str]) -> None:
    from rich.text import Text

    from penstock.report.table import plain_table

    table = plain_table()
    table.add_column("", no_wrap=True)
    table.add_column("part", no_wrap=True, style="bold")
    table.add_column("found", ratio=2)
    table.add_column("what it enables", ratio=3)
    for c in found:
        if c.ok:
            mark = Text("yes", style="green")
        else:
            mark = Text("no", style="red" if _needed(c) else "yellow")
        enables = Text(str(c.enables))
        if not c.ok and c.fix:
            enables.append(f"\n→ {c.fix}", style="bold")
        table.add_row(mark, Text(c.name), Text(str(c.found or "")), enables)
    out = console()
    out.print(table)
    out.print()
    if missing:
        out.print(f"{' and '.join(missing)} missing: only simulations work on this machine.")
    else:
        out.print("Simulations and local Spark work on this machine.")
