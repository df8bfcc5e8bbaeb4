"""What Penstock adds to a driver: packages, megabytes, modules and seconds, beside their budgets.

``python -m benchmarks.install`` builds the wheel, installs it without extras into an empty
environment, and then loads the Autoscaler in this one, where pyspark is; exit code 1 when a budget
is missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

ROOT = Path(__file__).parents[1]
MOST_MB, MOST_PACKAGES = 110.0, 15
MOST_MODULES, MOST_SECONDS = 75, 0.5
HEAVY = ("matplotlib", "numba", "pyarrow", "pyspark", "scipy")
LOADS = 8  # processes that load it; the fastest quarter counts, as other work slows them down
PIP = ("-m", "pip", "--disable-pip-version-check")

LACKING = 3  # exit code
# What a plain installation runs, or the extra that it asks for.
COMMANDS: Mapping[tuple[str, ...], str | None] = {
    ("--help",): None,
    ("policies",): None,
    ("config",): None,
    ("simulate", "--policy", "ds2"): "penstock[sim]",
    ("demo",): "penstock[",
}

LOADING = """
import json, sys, time
import pyspark.sql
before = set(sys.modules)
began = time.perf_counter()
import penstock
penstock.Autoscaler
seconds = time.perf_counter() - began
print(json.dumps({"seconds": seconds, "modules": sorted(set(sys.modules) - before)}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure and the most that it may be."""

    what: str
    value: float
    most: float
    unit: str = ""

    @property
    def within_budget(self) -> bool:
        """Whether it keeps its budget."""
        return self.value <= self.most


def installed(folder: Path) -> tuple[list[Figure], list[str]]:
    """What a plain installation adds to an empty environment, and what does not work in it."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    (packages,) = environment.glob("lib/python*/site-packages")
    before, bytes_before = _names(python), _bytes(packages)
    _run(sys.executable, *PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    (wheel,) = folder.glob("penstock-*.whl")
    _run(python, *PIP, "install", wheel)
    added = sorted(_names(python) - before)
    faults = [f"{name} is among the packages" for name in HEAVY if name in added]
    figures = [
        Figure(what="packages", value=len(added), most=MOST_PACKAGES),
        Figure(
            what="installed",
            value=(_bytes(packages) - bytes_before) / 1e6,
            most=MOST_MB,
            unit="MB",
        ),
    ]
    return figures, [*faults, *_faults(environment / "bin" / "penstock", folder)]


def loaded() -> tuple[list[Figure], list[str]]:
    """What ``import penstock; penstock.Autoscaler`` loads where pyspark is imported already."""
    loads = [_loading() for _ in range(LOADS)]
    modules: list[str] = loads[0]["modules"]
    ours = [name for name in modules if name.split(".")[0] == "penstock"]
    figures = [
        Figure(what="modules of ours", value=len(ours), most=MOST_MODULES),
        Figure(
            what="import beyond pyspark",
            value=mean(sorted(load["seconds"] for load in loads)[: LOADS // 4]),
            most=MOST_SECONDS,
            unit="s",
        ),
    ]
    heavy = sorted({name.split(".")[0] for name in modules} & set(HEAVY))
    upstairs = sorted({n for n in ours if n.split(".")[1:2] in (["lab"], ["bench"], ["papers"])})
    return figures, [f"{name} is loaded" for name in [*heavy, *upstairs]]


def verdict(figures: Sequence[Figure], faults: Sequence[str], console: Console) -> int:
    """Print what was measured and what is wrong; 1 if anything is, as an exit code."""
    table = Table("figure", Column("value", justify="right"), Column("at most", justify="right"))
    for f in figures:
        table.add_row(f.what, _shown(f.value, f.unit), _shown(f.most, f.unit))
    console.print(table)
    missed = [f.what for f in figures if not f.within_budget]
    for what in [*missed, *faults]:
        console.print(Text(f"missed: {what}", style="red"))
    return 1 if missed or faults else 0


def main() -> int:
    """Measure both, and print them."""
    with tempfile.TemporaryDirectory() as folder:
        figures, faults = installed(Path(folder))
    more, others = loaded()
    return verdict([*figures, *more], [*faults, *others], Console())


def _faults(penstock: Path, folder: Path) -> list[str]:
    """Commands that a plain installation should run, or refuse by the name of an extra."""
    found = []
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # the wheel, not the sources
    for arguments, extra in COMMANDS.items():
        done = subprocess.run(
            [penstock, *arguments], cwd=folder, env=plain, capture_output=True, text=True
        )
        if extra is None and done.returncode:
            found.append(f"penstock {' '.join(arguments)}: {done.stderr.strip()}")
        if extra is not None and (done.returncode != LACKING or extra not in done.stderr):
            found.append(f"penstock {' '.join(arguments)} does not ask for {extra}")
    return found


def _loading() -> Any:
    done = subprocess.run(
        [sys.executable, "-c", LOADING], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def _run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(str(c) for c in command)} failed:\n{done.stderr}")
    return done.stdout


def _names(python: Path) -> set[str]:
    listed = json.loads(_run(python, *PIP, "list", "--format", "json"))
    return {package["name"].lower() for package in listed}


def _bytes(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink())


def _shown(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}".strip()


if __name__ == "__main__":
    sys.exit(main())
