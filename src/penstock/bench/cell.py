"""A cell that runs on Spark, or on Spark's twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.batches.snapshot import POOL
from penstock.bench.twin.twin import Twin, run_twin
from penstock.comparison import profiled
from penstock.comparison.cell import Cell, CellRun
from penstock.core.errors import EngineError, InputError
from penstock.core.ports import Policy
from penstock.lab.rig.allocation import Allocation, allocation_for
from penstock.lab.rig.settings import KAFKA, LEAST_PERIOD, SparkSettings
from penstock.policies import SparkDra, parameters_of
from penstock.policies import create as create_policy

EngineName = Literal["simulated", "spark", "micro-batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCell(Cell):
    """A cell for Spark. All its times are thesis time.

    spark: the cluster, how fast time goes, how high the load is
    twin: what it runs on instead of that Spark, if anything
    """

    spark: SparkSettings
    twin: Twin | None = None

    def __post_init__(self) -> None:
        Cell.__post_init__(self)
        if self.spark.clock(self.period) < LEAST_PERIOD:
            raise InputError(
                f"period = {self.period:g} s is {self.spark.clock(self.period):g} s on the clock, "
                f"less than {LEAST_PERIOD:g}; set a longer period, or a longer minute"
            )

    @property
    def engine(self) -> EngineName:
        """The name of what it runs on."""
        return "spark" if self.twin is None else "micro-batch"

    @property
    def slow(self) -> bool:
        """A run takes a second or more."""
        return True

    def start_sizes(self) -> Mapping[str, int]:
        """Executors at the beginning; one if none are given."""
        return {POOL: self.start or 1}

    def create_policy(self) -> Policy:
        """The auto-scaler with its parameters, those that Spark implies among them."""
        known = parameters_of(create_policy(self.policy))
        return create_policy(self.policy, self.spark.parameters(known, self.policy_parameters))

    def allocation(self) -> Allocation | None:
        """The kind of session that it needs; ``None`` where a policy of ours acts."""
        policy = self.create_policy()
        if not isinstance(policy, SparkDra):
            return None
        return allocation_for(
            policy, self.guards, start=self.start_sizes()[POOL], settings=self.spark
        )

    def described(self) -> str:
        """How it runs, for the subtitle of a report."""
        settings = self.spark
        where = "on Spark" if self.twin is None else "on Spark's twin, simulated"
        where += " over Kafka" if settings.source == KAFKA else ""
        share = "" if settings.cpu_share is None else f" of {settings.cpu_share:g} of a core"
        return f"{where}, one minute = {settings.minute:g} s, {settings.slots} executors{share}"

    def remarks(self) -> tuple[str, ...]:
        """What a second of its scores is on the clock."""
        where = "Spark" if self.twin is None else "Spark's twin"
        speed = f"{self.spark.speed:g}"
        return (f"on {where} in thesis time: {speed} s of latency are 1 s on the clock",)

    def run(self, seed: int, *, journal: Path | None = None, trace: bool = False) -> CellRun:
        """Run it once on its twin; ``penstock.bench.spark`` runs it on Spark."""
        if self.twin is None:
            raise EngineError(f"{self.key} runs on a cluster, not in this process")
        return run_twin(
            self,
            seed,
            settings=self.spark,
            twin=self.twin,
            allocation=self.allocation(),
            journal=journal,
            trace=trace,
        )


def read_cell(document: Mapping[str, Any]) -> Cell:
    """The cell that ``to_dict`` wrote, of whichever kind it was."""
    return SparkCell.from_dict(document) if "spark" in document else profiled.read_cell(document)


def spark_cells(cells: Sequence[Cell]) -> list[SparkCell]:
    """Those of some cells that are for Spark or its twin."""
    return [cell for cell in cells if isinstance(cell, SparkCell)]


def settings_of(cells: Sequence[Cell]) -> SparkSettings | None:
    """How all of some cells run on Spark or its twin; ``None`` if they are simulated otherwise."""
    found = spark_cells(cells)
    return found[0].spark if found else None
