"""The results of a bench: every score of every run, with intervals and differences."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.comparison import trace as traces
from penstock.comparison.cell import Cell
from penstock.comparison.scores import TOTAL_COST, Scores, total_cost
from penstock.comparison.trace import Trace
from penstock.core.errors import InputError, unknown
from penstock.report.runs import CELLS
from penstock.report.statistics import Difference, Estimate, estimate, paired
from penstock.simulator.series import Floats

SCORES = "scores.jsonl"
TRACES = "traces"

Run = tuple[str, int]  # a cell's key and a seed
ReadCell = Callable[[Mapping[str, Any]], Cell]  # a cell from its document


class Results:
    """Scores by cell and seed; complete, or as far as a bench has come."""

    def __init__(
        self,
        cells: Sequence[Cell],
        seeds: Sequence[int],
        scores: Mapping[Run, Scores],
        folder: Path | None = None,
    ) -> None:
        self.cells = tuple(cells)
        self.seeds = tuple(seeds)
        self.folder = folder
        self._scores = scores
        self._cells = {cell.key: cell for cell in cells}

    @classmethod
    def load(cls, folder: Path, *, read: ReadCell = Cell.from_dict) -> Results:
        """The results in the folder of an experiment; ``read`` makes a cell of its document."""
        document = read_cells(folder)
        cells = [read(cell) for cell in document["cells"]]
        return cls(cells, document["seeds"], dict(read_scores(folder)), folder)

    @property
    def complete(self) -> bool:
        """Whether every cell has run with every seed."""
        return self.done == len(self.cells) * len(self.seeds)

    @property
    def done(self) -> int:
        """Finished runs."""
        return sum((c.key, s) in self._scores for c in self.cells for s in self.seeds)

    def cell(self, key: str) -> Cell:
        """The cell of a key."""
        if key not in self._cells:
            raise unknown("cell", key, self._cells)
        return self._cells[key]

    def seeds_of(self, key: str) -> tuple[int, ...]:
        """The seeds that a cell has finished."""
        self.cell(key)
        return tuple(seed for seed in self.seeds if (key, seed) in self._scores)

    def scores(self, key: str, seed: int) -> Scores:
        """All scores of one run."""
        self.cell(key)
        if (key, seed) not in self._scores:
            raise InputError(f"{key} has not run with seed {seed}; resume the bench")
        return self._scores[key, seed]

    def names(self, key: str) -> tuple[str, ...]:
        """The scores that a cell has, in the order of their writing, and what it cost."""
        found = (self._scores[key, seed] for seed in self.seeds_of(key))
        return (*next(found, {}), TOTAL_COST)

    def measured(self, key: str, score: str) -> bool:
        """Whether any run of a cell has this score."""
        return any(self._value(key, s, score) is not None for s in self.seeds_of(key))

    def values(self, key: str, score: str) -> Floats:
        """A score by seed, over the seeds for which it was measured."""
        found = self._by_seed(key, score)
        return np.array(list(found.values()), dtype=float)

    def estimate(self, key: str, score: str) -> Estimate:
        """Mean and 95 % interval of a score over the seeds."""
        found = self._by_seed(key, score)
        if not found:
            raise InputError(f"{key} has no {score}: no run of it has measured that")
        return estimate(list(found.values()))

    def paired(self, a: str, b: str, score: str) -> Difference:
        """Cell a minus cell b over the seeds that both have run; by seed, so the load cancels."""
        of_a, of_b = self._by_seed(a, score), self._by_seed(b, score)
        both = [seed for seed in of_a if seed in of_b]
        if not both:
            raise InputError(f"{a} and {b} share no seed with {score}; nothing can be paired")
        return paired([of_a[s] for s in both], [of_b[s] for s in both])

    def has_trace(self, key: str) -> bool:
        """Whether the first seed of a cell left a trace."""
        return self.folder is not None and self._trace_path(self.folder, key).is_file()

    def trace(self, key: str) -> Trace:
        """What the first seed of a cell looked like over time."""
        if self.folder is None:
            raise InputError("these results were not written to a folder and have no traces")
        return traces.load(self._trace_path(self.folder, key))

    def _trace_path(self, folder: Path, key: str) -> Path:
        return folder / TRACES / f"{self.cell(key).key}.npz"

    def rows(self) -> Iterator[dict[str, Any]]:
        """One mapping per finished run: what it was, its seed, its scores."""
        for cell in self.cells:
            for seed in self.seeds_of(cell.key):
                yield {
                    "cell": cell.key,
                    "query": cell.query,
                    "workload": cell.workload,
                    "policy": cell.policy,
                    "seed": seed,
                    **self._scores[cell.key, seed],
                }

    def _value(self, key: str, seed: int, score: str) -> float | None:
        """A score of a run; what it cost follows from others and from the prices of its cell."""
        scores = self._scores[key, seed]
        if score != TOTAL_COST:
            return scores.get(score)
        cell = self.cell(key)
        return total_cost(scores, price=cell.price, late_price=cell.late_price)

    def _by_seed(self, key: str, score: str) -> dict[int, float]:
        found = {seed: self._value(key, seed, score) for seed in self.seeds_of(key)}
        return {seed: float(value) for seed, value in found.items() if value is not None}


def read_cells(folder: Path) -> dict[str, Any]:
    """The cells and seeds that a bench was started with."""
    path = folder / CELLS
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} is not a bench: {CELLS} is missing") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); run the bench again") from None
    if not (isinstance(document, dict) and {"cells", "seeds"} <= document.keys()):
        raise InputError(f"{path} does not hold the cells of a bench; run the bench again")
    return document


def read_scores(folder: Path) -> Iterator[tuple[Run, Scores]]:
    """The finished runs. A torn last line (a crash) is left out; other faults are errors."""
    path = folder / SCORES
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            document = json.loads(line)
            run = str(document["cell"]), int(document["seed"])
            yield run, document["scores"]
        except (ValueError, KeyError, TypeError):
            if number == len(lines):  # no line break after it: it was being written
                return
            raise InputError(
                f"{path}, line {number}: not the scores of a run. Remove the line and resume"
            ) from None
