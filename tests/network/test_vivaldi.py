"""Vivaldi coordinates: what they find exactly, and that ranks hold."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.vivaldi import cloud, plane
from penstock.core.errors import InputError
from penstock.core.latency import LatencyMap
from penstock.network.maps import from_inbound
from penstock.network.vivaldi import error, estimate


def test_a_star_is_all_heights_and_found_almost_exactly() -> None:
    star = from_inbound({f"n{i}": 0.005 * (i + 1) for i in range(8)})
    found = error(estimate(star, rounds=1000, seed=2), star)
    assert found.median_error < 0.03
    assert found.nearest > 0.9


def test_the_same_seed_the_same_map() -> None:
    assert estimate(cloud(), 20, seed=3) == estimate(cloud(), 20, seed=3)
    assert estimate(cloud(), 20, seed=3) != estimate(cloud(), 20, seed=4)


def test_measured_samples_serve_as_well_as_a_map() -> None:
    """Noisy samples of every pair, in random order: near the truth after some rounds."""
    true, random = plane(3), np.random.default_rng(1)
    nodes = true.nodes
    samples = [
        (nodes[i], nodes[j], true.between(nodes[i], nodes[j]) * random.uniform(0.95, 1.05))
        for i, j in random.permutation([(i, j) for i in range(8) for j in range(8) if i != j])
    ]
    found = estimate(samples, rounds=40, seed=1)
    assert set(found.nodes) == set(nodes)
    assert error(found, true).median_error < 0.06


def test_error_is_the_median_and_the_overlap() -> None:
    """Pairs are off by 10, 20, 0, 50, 0 and 100 %."""

    def of(ab: float, ac: float, bc: float, ad: float, bd: float, cd: float) -> LatencyMap:
        rtt = [[0, ab, ac, ad], [ab, 0, bc, bd], [ac, bc, 0, cd], [ad, bd, cd, 0]]
        return LatencyMap("abcd", rtt)

    true, guess = of(1, 1, 1, 1, 1, 1), of(1.1, 0.8, 1, 1.5, 1, 2)
    assert error(guess, true).median_error == pytest.approx(0.15)
    assert error(true, true).nearest == 1.0
    swapped = LatencyMap("dcba", guess.rtt[::-1, ::-1])
    assert error(swapped, true).median_error == pytest.approx(0.15)


def test_nearest_counts_the_three_that_are_found() -> None:
    line = LatencyMap("abcde", np.abs(np.subtract.outer(range(5), range(5))).astype(float))
    turned = LatencyMap("abcde", np.where(line.rtt > 0, 5.0 - line.rtt, 0.0))
    assert error(line, line).nearest == 1.0
    # Of a, b, c, d, e the nearest three become the farthest three: 2, 2, 3, 2, 2 are both.
    assert error(turned, line).nearest == pytest.approx((2 + 2 + 3 + 2 + 2) / 15, abs=1 / 15)


def test_tiny_maps_and_zero_round_trips_are_no_trouble() -> None:
    alone = LatencyMap(["a"], [[0.0]])
    assert estimate(alone, 5, seed=1) == alone
    assert error(alone, alone).nearest == 1.0
    together = from_inbound({"a": 0.0, "b": 0.0})
    found = estimate(together, 50, seed=1)
    assert np.isfinite(found.rtt).all() and found.between("a", "b") < 1e-3
    assert error(found, together).median_error == 0.0  # there is no relative error of nothing


@pytest.mark.parametrize(
    ("measured", "rounds", "says"),
    [
        (cloud(), 0, "0 rounds"),
        ([("a", "a", 0.1)], 1, "a is 0.1 s from a"),
        ([("a", "b", float("nan"))], 1, "nan s"),
        ([("a", "b", -1.0)], 1, "-1.0 s"),
    ],
)
def test_what_is_no_measurement_is_refused(measured: LatencyMap, rounds: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        estimate(measured, rounds, seed=1)
    with pytest.raises(InputError, match="the same nodes"):
        error(cloud(), plane(1))
