"""Twins of queries from a folder of profiles, one file ``<query>.json`` per query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.bench.twin.capacity import capacity_of, paced
from penstock.bench.twin.twin import Twin, check_profile
from penstock.core.errors import InputError
from penstock.lab.rig.capacity_file import Capacity
from penstock.lab.rig.settings import SparkSettings
from penstock.simulator.microbatch.profile import Profile, read_profile


def read_twins(
    folder: Path,
    queries: Iterable[str],
    settings: SparkSettings,
    capacities: Mapping[str, Capacity],
) -> dict[str, Twin]:
    """A twin per query, at the speed of its capacity.

    One whose capacity is not given has that of its profile.
    """
    found = {}
    for query, profile in read_profiles(folder, queries, settings).items():
        capacity = capacities.get(query) or capacity_of(profile, settings)
        if capacity.slots != settings.slots:
            raise InputError(
                f"the capacity of {query} was measured with {capacity.slots} executors, the bench "
                f"has slots = {settings.slots}; set it to {capacity.slots}, or leave the "
                "capacities out"
            )
        if query in capacities:
            profile = paced(profile, settings, capacity)
        found[query] = Twin(profile=profile, capacity=capacity)
    return found


def read_profiles(
    folder: Path, queries: Iterable[str], settings: SparkSettings
) -> dict[str, Profile]:
    """The profile of each query, if it was measured under these settings."""
    return {query: _profile(folder, query, settings) for query in dict.fromkeys(queries)}


def _profile(folder: Path, query: str, settings: SparkSettings) -> Profile:
    path = folder / f"{query}.json"
    again = f"`penstock calibrate --query {query} --profile {path}`"
    if not path.is_file():
        raise InputError(f"no profile {path}; {again} measures one")
    profile = read_profile(path)
    try:
        check_profile(profile, query, settings)
    except InputError as error:
        raise InputError(f"{path}: {error}, by {again}") from None
    return profile
