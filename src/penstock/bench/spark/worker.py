"""Runs cells on Spark: measures each query before its first run, then runs on a warm cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.bench.spark.compressed import Watch
from penstock.bench.spark.run import run_on_spark
from penstock.compare.cell import Cell, Outcome
from penstock.lab.rig import capacity
from penstock.lab.rig.allocation import allocation_of
from penstock.lab.rig.capacity_file import Capacity, read_capacities, write_capacities
from penstock.lab.rig.rig import Rig
from penstock.lab.rig.settings import SparkSettings


class SparkWorker:
    """One cluster for all runs of a bench; a context manager.

    What a query can do is measured once and kept in ``folder``, so that a bench that is resumed
    has the same loads. How fast the machine is then is measured again before each further seed,
    for who compares these runs with others.
    """

    def __init__(
        self,
        settings: SparkSettings,
        folder: Path,
        *,
        servers: str | None = None,
        say: Callable[[str], None],
        watch: Watch,
    ) -> None:
        self._folder = folder
        self._watch = watch
        self._rig = Rig(settings, servers=servers, say=say)
        self._paced: set[tuple[str, int]] = set()  # queries and seeds

    def run(self, cell: Cell, seed: int, *, journal: Path | None, first: bool) -> Outcome:
        """Run a cell once; the first seed is checked if the settings say so."""
        known = self._capacity(cell.query)
        kind = allocation_of(cell)
        self._rig.use(kind)
        capacity.warm_up(self._rig, cell.query, known)
        if kind is None and not first:
            self._pace(cell.query, seed, known)
        return run_on_spark(
            self._rig,
            cell,
            seed,
            known,
            journal=journal,
            check=first and self._rig.settings.check,
            watch=self._watch,
        )

    def recover(self) -> None:
        """Go on with a new cluster."""
        self._rig.renew()

    def _capacity(self, query: str) -> Capacity:
        known = read_capacities(self._folder)
        if query not in known:
            self._rig.use(None)  # it takes executors that stay as many as they are
            known[query] = capacity.measure(self._rig, query)
            write_capacities(self._folder, known)
        return known[query]

    def _pace(self, query: str, seed: int, known: Capacity) -> None:
        """Measure once more what the machine can do, if it has not been for this seed."""
        if (query, seed) in self._paced:
            return
        found = capacity.again(self._rig, query, known)
        capacities = read_capacities(self._folder)
        capacities[query] = replace(known, again=(*known.again, found))
        write_capacities(self._folder, capacities)
        self._paced.add((query, seed))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._rig.__exit__(kind, problem, trace)
