"""The frozen set-ups behave as the papers say; on seeds that they were not calibrated on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from statistics import fmean

import pytest

from penstock.core.errors import InputError
from penstock.core.latency import LatencyMap
from penstock.network.maps import Fluctuating
from penstock.simulator.geo import GeoEngine
from penstock.simulator.geo.setups import RATE, TAXI, Case, fog_spec, study_network, study_spec
from penstock.workloads.patterns import Constant

SEEDS = range(3000, 3040)
WARM_UP, MEASURED = 60, 180  # seconds


@cache
def run(
    job: str, case: Case, n: int, seed: int, delayed: float = 0.5, delay: float = 0.025
) -> tuple[float, float, tuple[float, ...]]:
    """Records/s, back pressure of the source and loads of the instances, n of them."""
    spec = study_spec(job, case, delayed=delayed, delay=delay, seed=seed)
    seconds = WARM_UP + MEASURED
    engine = GeoEngine(replace(spec, start=n), Constant(rps=RATE), seconds=seconds, seed=seed)
    engine.advance(WARM_UP)
    engine.observe()
    engine.advance(MEASURED)
    seen = engine.observe()
    loads = tuple(slot.load or 0.0 for slot in seen.pools[job])
    held = seen.operators["source"].backpressured or 0.0
    return seen.operators[job].arrival_rate or 0.0, held, loads


def rate(job: str, case: Case, n: int, **more: float) -> float:
    """Mean over the seeds, in thousands."""
    return fmean(run(job, case, n, seed, **more)[0] for seed in SEEDS) / 1e3


def held(job: str, case: Case, n: int, **more: float) -> float:
    return fmean(run(job, case, n, seed, **more)[1] for seed in SEEDS)


def test_without_delay_map_grows_by_nine_tenths_and_the_join_by_seven() -> None:
    first = rate("map", "none", 1)
    assert (rate("map", "none", 6) / first - 1) / 5 == pytest.approx(0.9, abs=0.03)
    first = rate("id-id", "none", 1)
    assert (rate("id-id", "none", 10) / first - 1) / 9 == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize("case", ["none", "fixed", "jitter"])
def test_map_carries_the_load_on_seven_nodes_however_far(case: Case) -> None:
    assert 90 < rate("map", case, 6) < 99
    assert rate("map", case, 7) == pytest.approx(100, rel=0.01)


def test_the_join_on_the_key_is_never_enough_and_worse_with_delay() -> None:
    none = [rate("id-id", "none", n) for n in (7, 8, 9, 10)]
    assert none == sorted(none) and none[-1] < 97
    fixed = [rate("id-id", "fixed", n) for n in range(5, 11)]
    assert fixed[0] == pytest.approx(rate("id-id", "none", 5))  # only near nodes
    assert fixed[2] == pytest.approx(62, abs=4) and fixed[3] == pytest.approx(58, abs=5)
    assert fixed.index(max(fixed)) in (2, 3)  # 7 or 8 instances
    assert fixed[5] < fixed[4] < fixed[3]
    jitter = [rate("id-id", "jitter", n) for n in (8, 9, 10)]
    assert jitter == sorted(jitter, reverse=True)


def test_waiting_for_far_nodes_shows_no_back_pressure() -> None:
    assert held("id-id", "none", 9) > 0.7
    assert held("id-id", "fixed", 6) > 0.6
    assert held("id-id", "fixed", 8) < 0.4  # though the load is not reached
    # Figure 10: with 70 % of the nodes delayed it levels off, with twice the delay it falls.
    far = [rate("id-id", "fixed", n, delayed=0.7) for n in (3, 4, 5, 6)]
    assert far[1] - far[0] > 7 and abs(far[3] - far[2]) < 5
    assert held("id-id", "fixed", 6, delayed=0.7) < 0.5 < held("id-id", "fixed", 4, delayed=0.7)
    farther = [rate("id-id", "fixed", n, delayed=0.7, delay=0.05) for n in (4, 5, 6)]
    assert farther == sorted(farther, reverse=True)


def test_only_the_instance_beside_the_source_is_always_busy() -> None:
    for n in (2, 5, 10):
        loads = run("id-id", "none", n, 3000)[2]
        assert loads[0] > 0.99
    others = [max(run("id-id", "none", n, 3000)[2][1:]) for n in (2, 4, 6, 8, 10)]
    assert others == sorted(others, reverse=True)


def test_the_join_on_a_value_is_skewed_and_irregular() -> None:
    rates = [rate("id-value", "none", n) for n in range(1, 8)]
    assert rates[5] < 99 and rates[6] == pytest.approx(100, rel=0.01)
    steps = [(b - a) / rates[0] for a, b in pairwise(rates)]
    assert min(steps) < 0.25 and max(steps) > 1.0
    busiest = []
    for n in range(2, 7):
        loads = run("id-value", "none", n, 3000)[2]
        busiest.append(loads.index(max(loads)))
        assert max(loads) > 0.98 and min(loads) < 0.85
    assert len(set(busiest)) == len(busiest)  # another one each time
    assert rate("id-value", "fixed", 7) > 97


def test_the_networks_of_the_study() -> None:
    none, fixed = study_network("none"), study_network("fixed")
    assert isinstance(none, LatencyMap) and isinstance(fixed, LatencyMap)
    assert none.worst(none.nodes) < 0.001
    assert fixed.worst(fixed.nodes[:5]) < 0.001
    assert fixed.between("node-1", "node-6") == pytest.approx(0.0255)
    assert fixed.between("node-6", "node-10") == pytest.approx(0.0505)
    jitter = study_network("jitter", seed=1)
    assert isinstance(jitter, Fluctuating) and jitter.base == fixed
    with pytest.raises(InputError, match="unknown job 'maps'"):
        study_spec("maps", "none")
    with pytest.raises(InputError, match="unknown case 'fix'"):
        study_network("fix")  # type: ignore[arg-type]


def test_the_fog() -> None:
    spec = fog_spec(7)
    assert len(spec.nodes) == 8 and spec.profile.downtime == 120.0
    assert spec == fog_spec(7) != fog_spec(8)
    alone = spec.capacity(spec.nodes[:1])
    assert alone == pytest.approx(1 / TAXI.work)
    # The greatest round trip there is costs an instance a quarter of what it does.
    pair = LatencyMap(["a", "b"], [[0.0, 0.3], [0.3, 0.0]])
    near = LatencyMap(["a", "b"], [[0.0, 0.0], [0.0, 0.0]])
    far = replace(spec, network=pair).capacity("ab") / replace(spec, network=near).capacity("ab")
    assert far == pytest.approx(0.75, abs=0.01)
