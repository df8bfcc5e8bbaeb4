"""What is to be run: cells, each with every seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.comparison.cell import Cell
from penstock.core.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Cells that can run, the seeds that each is run with, and what they were made from.

    name: part of the name of its folder
    cells: of one kind, with different keys
    seeds: each gives the same load to all cells
    journals: whether the first seed of each cell writes every decision down
    document: what it was made from, for ``config.json``
    """

    name: str
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    journals: bool = True
    document: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def engine(self) -> str:
        """The name of what all of its cells run on."""
        return self.cells[0].engine if self.cells else Cell.ENGINE

    @property
    def runs(self) -> int:
        """The number of runs: each cell with each seed."""
        return len(self.cells) * len(self.seeds)


def seed_range(value: Any, what: str) -> tuple[int, ...]:
    """The seeds 0 to ``value`` − 1; ``what`` names the value in an error."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{what} = {value!r} must be a whole number ≥ 1")
    return tuple(range(value))
