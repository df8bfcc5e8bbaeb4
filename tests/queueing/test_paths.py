"""Paths of queues against replay: one after the other, and side by side."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.core.errors import InputError
from penstock.queueing import MarkovianArrivalProcess, PhaseType
from penstock.queueing.map2 import hyperexponential
from penstock.queueing.map_ph_1 import solve
from penstock.queueing.paths import Station, joined, path_response
from penstock.queueing.replay import departures

BURSTY = hyperexponential(r2=2.5, low=0.3, gamma=math.exp(-1 / 5))
POISSON = MarkovianArrivalProcess.poisson(1.0)
COUNT = 1_000_000


def station(mean: float, name: str = "s", visits: float = 1.0) -> Station:
    return Station(name=name, service=PhaseType.erlang(2, mean=mean), visits=visits)


def replayed(
    process: MarkovianArrivalProcess, *means: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(process.sample(COUNT, rng))
    times = arrivals
    for mean in means:
        times = departures(times, rng.gamma(2.0, mean / 2, COUNT))
    return arrivals, times - arrivals


@pytest.mark.parametrize("process", [POISSON, BURSTY], ids=["poisson", "bursty"])
@pytest.mark.parametrize("load", [0.5, 0.8])
@pytest.mark.parametrize("ratio", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("order", ["fast first", "slow first"])
def test_two_stations_in_a_row(
    process: MarkovianArrivalProcess, load: float, ratio: float, order: str
) -> None:
    means = (load * ratio, load) if order == "fast first" else (load, load * ratio)
    _, stays = replayed(process, *means)
    law = path_response(process, (station(means[0], "a"), station(means[1], "b")))
    assert law.mean == pytest.approx(stays.mean(), rel=0.1)
    assert law.percentile(0.95) == pytest.approx(np.quantile(stays, 0.95), rel=0.1)


def test_every_station_under_the_source_would_be_far_too_slow() -> None:
    _, stays = replayed(BURSTY, 0.72, 0.8)
    naive = sum(solve(BURSTY, PhaseType.erlang(2, mean=m)).mean for m in (0.72, 0.8))
    assert naive > 1.3 * stays.mean()


def test_three_stations_in_a_row() -> None:
    _, stays = replayed(BURSTY, 0.2, 0.7, 0.4)
    law = path_response(BURSTY, (station(0.2, "a"), station(0.7, "b"), station(0.4, "c")))
    assert law.mean == pytest.approx(stays.mean(), rel=0.12)


def test_a_station_that_gets_a_part() -> None:
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(BURSTY.sample(COUNT, rng))
    kept = arrivals[rng.random(COUNT) < 0.4]
    stays = departures(kept, rng.gamma(2.0, 1.6 / 2, len(kept))) - kept
    law = path_response(BURSTY, (station(1.6, visits=0.4),))
    assert law.mean == pytest.approx(stays.mean(), rel=0.08)


def test_a_station_that_gets_more() -> None:
    twice = path_response(POISSON, (station(0.3, visits=2.0),))
    assert twice.mean == pytest.approx(
        solve(POISSON.scaled(0.5), PhaseType.erlang(2, mean=0.3)).mean
    )


def test_branches_that_meet_again() -> None:
    """As if independent: too high for branches that see the same bursts, exact for others."""
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(BURSTY.sample(COUNT, rng))
    ends = [departures(arrivals, rng.gamma(2.0, m / 2, COUNT)) for m in (0.6, 0.7)]
    stays = np.maximum(*ends) - arrivals
    both = joined([solve(BURSTY, PhaseType.erlang(2, mean=m)) for m in (0.6, 0.7)])
    assert stays.mean() * 0.98 <= both.mean <= 1.6 * stays.mean()
    high = float(np.quantile(stays, 0.95))
    assert 0.97 * high <= both.percentile(0.95) <= 1.3 * high
    laws = [solve(POISSON, PhaseType.exponential(m)) for m in (0.3, 0.5)]
    draws = [rng.exponential(law.mean, COUNT) for law in laws]
    assert joined(laws).mean == pytest.approx(np.maximum(*draws).mean(), rel=0.01)
    assert joined(laws).percentile(0.9) == pytest.approx(
        np.quantile(np.maximum(*draws), 0.9), rel=0.01
    )


def test_what_is_no_path() -> None:
    with pytest.raises(InputError, match="at least one"):
        path_response(POISSON, ())
    with pytest.raises(InputError, match="visits"):
        station(1.0, visits=0.0)
    with pytest.raises(InputError, match="utilisation"):
        path_response(POISSON, (station(0.5), station(0.99)))
