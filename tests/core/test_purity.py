"""The core reads no file and no clock and draws no random number."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import penstock.core

FILES = sorted(Path(penstock.core.__file__).parent.glob("*.py"))
# What it may import; none of these opens anything, waits, or differs from run to run.
PURE = {
    "__future__", "collections", "contextlib", "copy", "dataclasses", "difflib", "functools",
    "graphlib", "hashlib", "heapq", "math", "numpy", "operator", "penstock", "types", "typing",
}  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_module_of_the_core_touches_nothing_outside(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {alias.name.partition(".")[0] for alias in node.names} <= PURE
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] in PURE
        elif isinstance(node, ast.Name):
            assert node.id not in ("open", "print", "input", "eval")
            assert node.id != "exec" or path.stem == "quick"  # it writes constructors
        elif isinstance(node, ast.Attribute):
            assert node.attr != "random"  # of numpy
