"""How many records/s a measured application can take on so many executors, by its profile alone.

With warm executors that stay: what an oracle would count on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from penstock.history.profiling.fit_driver import makespan
from penstock.simulator.microbatch.profile import Profile, QueryProfile, StageProfile
from penstock.simulator.series import Floats

TRIES = 8  # when the largest batch is looked for
CLOSE = 0.01  # of the longest batch: near enough
ROUNDS = 3  # of how long a batch takes and what state it then finds
DRAWS = 4  # of the noise of its tasks
MOST_ROWS = 1e9  # in one batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCapacity:
    """``rates[n − 1]`` records/s on n executors, of all sources together; never falling.

    >>> ProfileCapacity(rates=(100.0, 180.0)).fewest(np.array([0.0, 100.0, 101.0, 900.0]))
    array([1., 1., 2., 2.])
    """

    rates: tuple[float, ...]

    def at(self, executors: int) -> float:
        """Records/s on so many executors."""
        return self.rates[min(max(executors, 1), len(self.rates)) - 1]

    def fewest(self, rates: Floats) -> Floats:
        """The fewest executors for each rate; where none suffice the fewest that take the most."""
        known = np.array(self.rates)
        places = np.searchsorted(known * (1 + 1e-9), rates, side="left")
        return np.asarray(np.minimum(places, int(np.argmax(known))) + 1, dtype=float)

    @property
    def most(self) -> float:
        """Records/s that no number of executors exceeds."""
        return max(self.rates)


def capacity_of(
    profile: Profile, shares: Mapping[str, float], *, most: int, longest: float
) -> ProfileCapacity:
    """The capacity on 1 to ``most`` executors.

    shares: of all records, by source
    longest: seconds that a batch may take, or its trigger if that is longer
    """
    return _capacity(profile, tuple(sorted(shares.items())), most, longest)


@lru_cache(maxsize=64)
def _capacity(
    profile: Profile, shares: tuple[tuple[str, float], ...], most: int, longest: float
) -> ProfileCapacity:
    by_source = dict(shares)
    rates = [_rate(profile, by_source, n, longest) for n in range(1, most + 1)]
    return ProfileCapacity(rates=tuple(np.maximum.accumulate(rates).tolist()))


def _rate(profile: Profile, shares: Mapping[str, float], executors: int, longest: float) -> float:
    """Records/s in the largest batches that take no longer; T(N) grows slower than N does."""
    trigger = max(query.trigger for query in profile.queries)
    end = max(longest, trigger)
    rows = _admitted(profile, shares)

    def seconds(rows: float) -> float:
        by_source = {name: rows * share for name, share in shares.items()}
        return sum(batch_seconds(profile, q, by_source, executors) for q in profile.queries)

    empty, taken = seconds(0.0), seconds(rows)
    if empty >= end:
        return 0.0
    for _ in range(TRIES):  # T(N) is nearly a straight line
        if taken <= end * (1 + CLOSE) and (rows == _admitted(profile, shares) or taken >= end / 2):
            break
        rows *= (end - empty) / (taken - empty)
        taken = seconds(rows)
    return rows / max(trigger, taken)


def _admitted(profile: Profile, shares: Mapping[str, float]) -> float:
    """Records that one batch of each query takes at most, of all sources together."""
    limits = [
        source.max_rows / shares[source.name]
        for query in profile.queries
        for source in query.sources
        if source.max_rows is not None and shares.get(source.name)
    ]
    return min([*limits, MOST_ROWS])


def batch_seconds(
    profile: Profile, query: QueryProfile, rows: Mapping[str, float], executors: int
) -> float:
    """Mean seconds of a batch, from planning to commit, if it takes ``rows`` of each source.

    The state that it works on is what such batches, one after the other, come to hold.
    """
    slots = executors * profile.executor.cores
    upstream = [
        [[s.name for s in query.stages].index(name) for name in stage.upstream]
        for stage in query.stages
    ]
    taken = query.trigger
    for _ in range(ROUNDS):
        tasks = _tasks(profile, query, rows, max(taken, query.trigger))
        noise = query.task_noise
        draws = np.random.default_rng(0)
        spans = [
            makespan(_varied(tasks, noise, draws), upstream, slots)
            for _ in range(DRAWS if noise else 1)
        ]
        taken = query.planning + query.commit + sum(spans) / len(spans)
    return taken


def _tasks(
    profile: Profile, query: QueryProfile, rows: Mapping[str, float], every: float
) -> list[Floats]:
    """Seconds of the tasks of a batch, by stage, if there is one ``every`` so often."""
    written: dict[str, float] = {}
    found = []
    for stage in query.stages:
        if stage.source is not None:
            records = rows.get(stage.source, 0.0)
        else:
            records = sum(written[name] for name in stage.upstream)
        most = np.inf if stage.most_out is None else stage.most_out * stage.tasks
        written[stage.name] = min(stage.selectivity * records, most)
        work = stage.per_record * records + _state_work(stage, records, every)
        shares = np.array(stage.shares or [1.0 / stage.tasks] * stage.tasks)
        found.append((stage.fixed + work * shares) / profile.executor.share)
    return found


def _varied(tasks: list[Floats], noise: float, draws: np.random.Generator) -> list[list[float]]:
    """The tasks with noise of mean 1: whoever waits for the last waits for longer."""
    if not noise:
        return [stage.tolist() for stage in tasks]
    return [
        (stage * np.exp(draws.normal(-(noise**2) / 2, noise, len(stage)))).tolist()
        for stage in tasks
    ]


def _state_work(stage: StageProfile, records: float, every: float) -> float:
    """Slot-seconds for the state that a stage comes to hold; none where it grows for ever."""
    state = stage.state
    if state is None or not state.per_row:
        return 0.0
    rows = np.inf if state.most_rows is None else state.most_rows
    if state.seconds is not None:
        kept = state.rows_per_record * records / max(every, 1e-9) * state.seconds
        rows = min(rows, kept)
    return state.per_row * float(rows) if np.isfinite(rows) else 0.0
