"""The reproduction of a paper: its folder, and what is written when all has been run.

::

    runs/<UTC time>-<paper>/
        config.json                 what was asked for
        scores.jsonl                a line per finished run
        figures/                    the pictures
        <paper>.json                findings and tables, as --json prints them
        <paper>.md, report.html     the same to read
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from penstock import __version__
from penstock.core.errors import InputError
from penstock.papers.judging import Finding
from penstock.report import runs
from penstock.report.grid import Grid

FIGURES = "figures"
Plan = TypeVar("Plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """Everything that was found with so many seeds."""

    name: str
    seeds: int
    folder: Path
    findings: tuple[Finding, ...]
    tables: tuple[Grid, ...]
    pictures: tuple[Path, ...]

    def document(self) -> dict[str, Any]:
        """``--json``: findings and tables, plain values."""
        return {
            "findings": [finding.document() for finding in self.findings],
            "tables": [
                {
                    "title": table.title,
                    "seeds": self.seeds,
                    "columns": list(table.header),
                    "rows": [list(row) for row in table.rows],
                }
                for table in self.tables
            ],
        }


def begin(name: str, plan: Any, out: Path) -> Path:
    """A new folder for a plan, which is a dataclass of plain values."""
    runs.check_writable(out)
    config = {"reproduces": name, "penstock": __version__, **dataclasses.asdict(plan)}
    return runs.create(out, name, config)


def planned(name: str, kind: type[Plan], folder: Path) -> Plan:
    """The plan that a folder was begun with."""
    path = folder / runs.CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if config["reproduces"] != name:
            raise KeyError(name)
        fields = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
        plan = kind(**{field: config[field] for field in fields})
        version = config["penstock"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder} is not a run of `penstock reproduce {name}`: {path} does not say so. Give "
            "the folder that it named, or leave --resume out to start a new one"
        ) from None
    if version != __version__:
        raise InputError(
            f"{folder} was begun with penstock {version}, this is {__version__}; its results "
            "cannot be mixed. Leave --resume out to start a new one"
        )
    return plan


def finish(found: Reproduction, *, text: str, page: str) -> None:
    """Write everything that shows what was found."""
    plain = json.dumps(found.document(), indent=1, ensure_ascii=False)
    _write(found.folder / f"{found.name}.json", plain + "\n")
    _write(found.folder / f"{found.name}.md", text)
    _write(found.folder / runs.PAGE, page)


def publish(found: Reproduction, docs: Path, *, text: str, shown: Sequence[str]) -> list[Path]:
    """The document and the pictures that it shows, into a folder of documents."""
    docs.mkdir(parents=True, exist_ok=True)
    written = [docs / f"{found.name}.md"]
    _write(written[0], text)
    for picture in found.pictures:
        if picture.name in shown:
            target = docs / f"{found.name}-{picture.name}"
            target.write_bytes(picture.read_bytes())
            written.append(target)
    return written


def check_seeds(seeds: int, first_seed: int, usual: int) -> None:
    """Refuse seeds that cannot be."""
    if seeds < 1:
        raise InputError(f"--seeds {seeds} must be ≥ 1; {usual} give narrow intervals")
    if first_seed < 0:
        raise InputError(f"--first-seed {first_seed} must be ≥ 0")


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
