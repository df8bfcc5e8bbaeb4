"""Imports point downwards only, in the order of the design; the core is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import penstock

ROOT = Path(penstock.__file__).parent
# From the top; a package may import only what stands below it.
ORDER = [
    "cli",
    "papers",
    "bench",
    "lab",
    "compare",
    "report",
    "spark",
    "history",
    "simulator",
    "policies",
    "batches",
    "decentralized",
    "workloads",
    "capacity",
    "network",
    "queueing",
    "core",
]
FORBIDDEN = {("simulator", "capacity"), ("capacity", "simulator")}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_every_package_is_in_the_order() -> None:
    packages = {p.parent.name for p in ROOT.glob("*/__init__.py")}
    assert packages <= set(ORDER)


def test_imports_point_downwards() -> None:
    wrong = []
    for path in ROOT.glob("*/**/*.py"):
        mine = path.relative_to(ROOT).parts[0]
        for name in imported(path):
            parts = name.split(".")
            if parts[0] != "penstock" or len(parts) < 2 or parts[1] not in ORDER:
                continue
            if ORDER.index(parts[1]) < ORDER.index(mine) or (mine, parts[1]) in FORBIDDEN:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_core_needs_only_the_standard_library_and_numpy() -> None:
    allowed = set(sys.stdlib_module_names) | {"numpy", "penstock"}
    roots = {n.split(".")[0] for p in (ROOT / "core").glob("*.py") for n in imported(p)}
    assert roots <= allowed


def test_importing_penstock_loads_no_spark() -> None:
    script = (
        "import sys, penstock, penstock.policies, penstock.history.journal, penstock.cli;"
        "heavy = {'pyspark', 'py4j', 'confluent_kafka', 'numba', 'matplotlib'} & set(sys.modules);"
        "sys.exit(repr(sorted(heavy)) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
