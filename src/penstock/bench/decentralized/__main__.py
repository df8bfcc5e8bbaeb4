"""``python -m penstock.bench.decentralized``: run, judge, show."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from penstock.bench.decentralized import command
from penstock.bench.decentralized.command import Plan
from penstock.core.errors import PenstockError
from penstock.report import runs


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when everything was run; a finding that does not hold is a result."""
    parser = argparse.ArgumentParser(prog="python -m penstock.bench.decentralized")
    parser.add_argument("--seeds", type=int, default=command.SEEDS, help="runs of every setting")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder for the run")
    parser.add_argument("--docs", type=Path, help="also write the document into this folder")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    given = parser.parse_args(arguments)
    errors = Console(stderr=True)
    try:
        plan = Plan(seeds=given.seeds, first_seed=given.first_seed)
        if given.docs is not None:
            runs.check_writable(given.docs)
        folder = command.begin(plan, given.out)
        begun = time.process_time()
        found = command.reproduce(plan, folder)
        errors.print(f"{plan.seeds} seeds in {time.process_time() - begun:.0f} s of CPU")
        if given.docs is not None:
            command.publish(found, given.docs)
    except PenstockError as error:
        errors.print(str(error), style="red")
        return error.exit_code
    if given.json:
        sys.stdout.write(json.dumps(found.document(), ensure_ascii=False) + "\n")
        return 0
    console = Console()
    for table in found.tables:
        console.print(table.rich())
        console.print()
    for finding in found.findings:
        console.print(f"({finding.id}) {finding.verdict}: {finding.claim}", style="bold")
        console.print(f"    paper: {finding.paper}\n    ours: {finding.ours}")
    held = sum(finding.holds for finding in found.findings)
    console.print(f"\n{held} of {len(found.findings)} findings held")
    console.print(f"run     {found.folder}", soft_wrap=True)
    console.print(f"page    {found.folder / runs.PAGE}", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
