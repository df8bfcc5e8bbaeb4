"""Twins of queries from a folder of profiles, one file ``<query>.json`` per query."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.batches.values import Batch
from penstock.bench.twin.twin import Twin, check_profile, limited, shares_of
from penstock.core.errors import InputError
from penstock.lab.rig.capacity_file import FIRST_ROWS, TRIGGERS, Capacity, settle
from penstock.lab.rig.saturation import lasted, mean_duration, rate
from penstock.lab.rig.settings import SparkSettings
from penstock.simulator.microbatch import MicroBatchEngine
from penstock.simulator.microbatch.profile import Profile, read_profile
from penstock.workloads.patterns import Constant


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
    again = f"`penstock lab calibrate --query {query} --profile {path}`"
    if not path.is_file():
        raise InputError(f"no profile {path}; {again} measures one")
    profile = read_profile(path)
    try:
        check_profile(profile, query, settings)
    except InputError as error:
        raise InputError(f"{path}: {error}, by {again}") from None
    return profile


SECONDS = 12.0  # of whole batches, as on Spark
REPEATS = 4  # with other noise
ROUNDS = 12
PACES = 4  # tries: triggers and start-ups do not get slower
SAME_PACE = 0.01  # of a throughput: near enough
GIVE_UP = 600.0  # simulated seconds


def capacity_of(profile: Profile, settings: SparkSettings) -> Capacity:
    """Throughput of one executor and of all, in batches as long as a bench has them."""
    most = settings.slots
    rows = _batch_size(profile, settings)
    return Capacity(
        slots=most,
        one=_throughput(profile, settings, rows, 1),
        all=_throughput(profile, settings, rows, most),
        rows=rows,
    )


def paced(profile: Profile, settings: SparkSettings, capacity: Capacity) -> Profile:
    """The profile at the speed that the machine had when a bench measured its capacity.

    Machines differ from hour to hour. All executors of the bench did ``capacity.pace`` records/s
    in the mean; the profile is made slower or faster as a whole until it does, too.
    """
    for _ in range(PACES):
        factor = _throughput(profile, settings, capacity.rows, capacity.slots) / capacity.pace
        if abs(factor - 1.0) <= SAME_PACE:
            break
        profile = profile.slower(factor)
    return profile


def _batch_size(profile: Profile, settings: SparkSettings) -> int:
    def seconds(rows: int) -> float:
        return mean_duration(_saturated(profile, settings, rows, settings.slots))

    target = settings.trigger * TRIGGERS
    return settle(seconds, FIRST_ROWS * settings.slots, target, rounds=ROUNDS)


def _throughput(profile: Profile, settings: SparkSettings, rows: int, executors: int) -> float:
    """Records/s from the first planning to the last commit."""
    return statistics.fmean(
        rate(_saturated(profile, settings, rows, executors, seed)) for seed in range(REPEATS)
    )


def _saturated(
    profile: Profile, settings: SparkSettings, rows: int, executors: int, seed: int = 0
) -> list[Batch]:
    """Some seconds of whole batches that always have more to do; without the first."""
    played = limited(profile, settings, rows)
    flood = 2.0 * rows / settings.trigger  # twice as much as triggers could take
    engine = MicroBatchEngine(
        played,
        {table: Constant(rps=flood * share) for table, share in shares_of(profile).items()},
        seconds=GIVE_UP,
        start=executors,
        seed=seed,
    )
    name = played.queries[0].name
    while engine.advance(SECONDS / 2):
        found = [b for b in engine.record().batches[name] if b.rows][1:]
        if found and lasted(found) >= SECONDS:
            return found
    raise InputError(
        f"the profile of {name} does not finish batches of {rows:,} records within "
        f"{GIVE_UP:.0f} s on {executors} executors; give the capacities of a bench instead"
    )
