"""A made-up query for Spark's twin, and a bench folder as Spark leaves one, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.bench.cell import SparkCell
from penstock.bench.spark import runner
from penstock.bench.twin.profiles import capacity_of
from penstock.bench.twin.twin import Twin, run_twin
from penstock.comparison.cell import CellRun
from penstock.core.guards import Guards
from penstock.lab.rig.capacity_file import Capacity, write_capacities
from penstock.lab.rig.settings import SparkSettings
from penstock.simulator.microbatch import Profile, SourceProfile, write_profile
from tests.fakes.microbatch_examples import EXECUTOR, counting, joining

SETTINGS = SparkSettings(minute=3, slots=4, cpu_share=None, partitions=6)
GUARDS = Guards(minimum=1, maximum=4, cap=4, cool_down=120.0)
LUCK = 1_000  # added to a seed: another run of the same load


def windowed() -> Profile:
    """q5 of one table."""
    query = counting()
    read, count = query.stages
    stages = (replace(read, source="bid"), count)
    query = replace(query, name="q5", sources=(SourceProfile(name="bid"),), stages=stages)
    return Profile(
        version=1,
        queries=(query,),
        executor=EXECUTOR,
        measured="made up for a test",
        provenance={"seeds": "77", "machine": "none"},
    )


def joined() -> Profile:
    """q3 of two tables, persons far fewer than auctions."""
    names = {"bids": "auction", "people": "person"}
    query = joining()
    stages = tuple(
        replace(s, tasks=6 if s.source else s.tasks, source=names.get(s.source or ""))
        for s in query.stages
    )
    sources = tuple(SourceProfile(name=name) for name in names.values())
    made = replace(query, name="q3", sources=sources, stages=stages)
    return Profile(version=1, queries=(made,), executor=EXECUTOR)


def twin_of(profile: Profile, settings: SparkSettings = SETTINGS) -> Twin:
    return Twin(profile=profile, capacity=capacity_of(profile, settings))


def spark_cell(policy: str = "ds2", key: str = "", **given: Any) -> SparkCell:
    """A cell for Spark; ``static4`` is static at four executors."""
    name, _, slots = policy.partition("static")
    fields: dict[str, Any] = {
        "key": key or policy,
        "query": "q5",
        "workload": "cosine",
        "workload_parameters": {"period": 900.0},
        "policy": name or "static",
        "policy_parameters": {"slots": int(slots)} if slots else {},
        "minutes": 30.0,
        "guards": GUARDS,
        "spark": SETTINGS,
    }
    return SparkCell(**{**fields, **given})


class Pretender:
    """Runs cells for Spark on a twin, with noise of its own."""

    def __init__(self, twins: Mapping[str, Twin]) -> None:
        self.twins = twins

    def run(self, cell: SparkCell, seed: int, *, journal: Path | None, first: bool) -> CellRun:
        return run_twin(
            cell,
            seed,
            settings=cell.spark,
            twin=self.twins[cell.query],
            allocation=cell.allocation(),
            journal=journal,
            trace=True,
            luck=seed + LUCK,
        )

    def recover(self) -> None:
        raise AssertionError("a run failed")


def spark_folder(
    folder: Path, cells: Sequence[SparkCell], seeds: Sequence[int], twins: Mapping[str, Twin]
) -> dict[str, Capacity]:
    """A bench as Spark leaves it, whose queries are what the twins are."""
    failures = runner.run(cells, seeds, folder, Pretender(twins), journals=False)
    assert failures == []
    known = {query: twin.capacity for query, twin in twins.items()}
    write_capacities(folder, known)
    return known


def profile_folder(folder: Path, *profiles: Profile) -> Path:
    """One file per query."""
    folder.mkdir(parents=True, exist_ok=True)
    for profile in profiles:
        write_profile(profile, folder / f"{profile.queries[0].name}.json")
    return folder
