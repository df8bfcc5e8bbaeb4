"""The throughput model: what it recovers, how it falls back, and that its intervals hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import least_squares

from penstock.capacity import mst
from penstock.capacity.measurements import MOST, Measurement, configurations, remember
from penstock.capacity.mst import Floats, Mst, calibrate
from penstock.core.errors import InputError
from penstock.network.maps import fog
from penstock.network.placement import joining

Point = tuple[int, float, float]


def measured(*points: Point) -> list[Measurement]:
    return [Measurement(slots=n, delay=d, rate=rate) for n, d, rate in points]


def truth(alpha: float, beta: float, gamma: float, n: float, d: float) -> float:
    return float(alpha * n**beta - gamma * d)


# --- stages ---


def test_one_configuration_gives_alpha() -> None:
    """Equation 2: 3 slots did 300."""
    model = calibrate(measured((3, 0.08, 300.0)))
    assert (model.alpha, model.beta, model.gamma, model.fitted) == (100.0, 1.0, 0.0, 1)


def test_two_configurations_give_alpha_and_gamma() -> None:
    """Equation 3: α = 30, and 4·30 − 0.2·γ = 118."""
    model = calibrate(measured((1, 0.0, 30.0), (4, 0.2, 118.0)))
    assert model.alpha == pytest.approx(30.0)
    assert model.gamma == pytest.approx(10.0)
    assert (model.beta, model.fitted) == (1.0, 2)
    assert model.at(6, 0.1) == pytest.approx(179.0)


@given(
    alpha=st.floats(0.1, 1e6),
    beta=st.floats(0.3, 0.99),
    share=st.floats(0.01, 2.0),
    configurations=st.lists(
        st.tuples(st.integers(1, 40), st.floats(0.0, 0.3)), min_size=4, max_size=10, unique=True
    ),
)
def test_three_or_more_recover_what_made_them(
    alpha: float, beta: float, share: float, configurations: list[tuple[int, float]]
) -> None:
    """γ as a share of α per second; only where the configurations tell the parameters apart."""
    gamma = share * alpha
    points = [(n, d, truth(alpha, beta, gamma, n, d)) for n, d in configurations]
    assume(min(rate for _, _, rate in points) > 0.05 * alpha)
    columns = np.array([(n**beta, n**beta * math.log(n), d) for n, d in configurations])
    columns = columns / np.array([[rate] for _, _, rate in points])
    assume((np.linalg.norm(columns, axis=0) > 0).all())
    assume(np.linalg.svd(columns / np.linalg.norm(columns, axis=0))[1][-1] > 0.02)
    assume(np.ptp([d for _, d in configurations]) > 0.01)
    assume(len({(n, round(d, 1)) for n, d in configurations}) >= 3)
    model = calibrate(measured(*points))
    assert model.alpha == pytest.approx(alpha, rel=1e-5)
    assert model.beta == pytest.approx(beta, abs=1e-5)
    assert model.gamma == pytest.approx(gamma, rel=1e-3, abs=1e-3 * alpha)


def test_it_finds_what_another_solver_finds_from_the_papers_start() -> None:
    """Noisy measurements; scipy starts at (30, 0.85, 10) in units of the mean rate."""
    random = np.random.default_rng(3)
    for _ in range(12):
        configurations = [(n, random.uniform(0.0, 0.3)) for n in range(1, 9)]
        points = [
            (n, d, truth(210.0, 0.8, 90.0, n, d) * random.uniform(0.95, 1.05))
            for n, d in configurations
        ]
        n, d, rate = (np.array(column) for column in zip(*points, strict=True))

        def off(x: Floats, n: Floats = n, d: Floats = d, rate: Floats = rate) -> Floats:
            return np.asarray((x[0] * n ** x[1] - x[2] * d) / rate - 1.0)

        unit = rate.mean() / 100.0
        found = least_squares(
            off, (30.0 * unit, 0.85, 10.0 * unit), bounds=((0, 0.1, 0), (np.inf, 1.0, np.inf)),
            x_scale=(unit, 1.0, unit), xtol=1e-12, ftol=1e-12, gtol=1e-12,
        )  # fmt: skip
        model = calibrate(measured(*points))
        mine = off(np.array([model.alpha, model.beta, model.gamma]))
        assert (mine**2).sum() <= 2 * found.cost * (1 + 1e-6)
        assert model.beta == pytest.approx(found.x[1], abs=2e-3)


def test_fewer_parameters_can_be_asked_for() -> None:
    points = measured((1, 0.0, 30.0), (4, 0.1, 117.0), (9, 0.2, 262.0))
    assert calibrate(points, parameters=1).fitted == 1
    line = calibrate(points, parameters=2)
    assert (line.beta, line.fitted) == (1.0, 2)
    with pytest.raises(InputError, match="parameters 4"):
        calibrate(points, parameters=4)
    with pytest.raises(InputError, match="there is none"):
        calibrate([])


# --- falling back ---


@pytest.mark.parametrize(
    ("points", "beta", "gamma"),
    [
        # The same configuration three times is one: equation 2.
        ([(2, 0.05, 100.0), (2, 0.05, 104.0), (2, 0.051, 96.0)], 1.0, 0.0),
        # Two sizes without any delay: no γ to be had, β not before the third.
        ([(1, 0.0, 100.0), (2, 0.0, 180.0)], 1.0, 0.0),
        # Delays that are all the same say nothing of γ; three sizes say something of β.
        ([(1, 0.1, 100.0), (4, 0.1, 200.0), (9, 0.1, 300.0)], 0.5, 0.0),
        # All have as many slots: no β, but γ.
        ([(4, 0.0, 400.0), (4, 0.1, 390.0), (4, 0.2, 380.0)], 1.0, 100.0),
        # More throughput with more delay: no reason for a γ below 0.
        ([(1, 0.0, 100.0), (2, 0.2, 230.0)], 1.0, 0.0),
        # More than in proportion: β ends at 1.
        ([(1, 0.0, 100.0), (2, 0.0, 230.0), (3, 0.0, 360.0)], 1.0, 0.0),
        # What the second slot lacks would be 38 slots per second of delay: β passes for γ.
        ([(1, 0.0, 100.0), (2, 0.005, 181.0)], 1.0, 0.0),
    ],
)
def test_what_cannot_be_told_keeps_its_default(
    points: list[Point], beta: float, gamma: float
) -> None:
    model = calibrate(measured(*points))
    assert model.beta == pytest.approx(beta, abs=1e-6)
    assert model.gamma == pytest.approx(gamma, abs=1e-6)


def test_no_growth_at_all_ends_at_the_least_beta() -> None:
    model = calibrate(measured((2, 0.0, 100.0), (4, 0.0, 100.0), (8, 0.0, 99.0)))
    assert model.beta == pytest.approx(0.1)
    assert model.at(16, 0.0) < 115.0


any_points = st.lists(
    st.tuples(st.integers(1, 200), st.floats(0.0, 5.0), st.floats(1e-6, 1e15)),
    min_size=1,
    max_size=12,
)


@given(any_points, st.integers(1, 3), st.integers(1, 200), st.floats(0.0, 5.0))
def test_whatever_was_measured_predictions_are_sane(
    points: list[Point], parameters: int, n: int, d: float
) -> None:
    """A number, not below 0, more with more slots, less with more delay, with an interval."""
    model = calibrate(measured(*points), parameters=parameters)
    assert 0.0 < model.alpha < math.inf and 0.0 <= model.gamma < math.inf
    assert 0.1 <= model.beta <= 1.0
    here = model.at(n, d)
    assert 0.0 <= here < math.inf
    assert model.at(n + 1, d) >= here
    assert model.at(n, d + 0.1) <= here
    assert 0.0 <= model.half_width(n, d) < math.inf
    assert len(str(model)) > 10


# --- intervals ---


@cache
def growing(seed: int, noise: float) -> tuple[Measurement, ...]:
    """A pool that grows node by node through a fog; β from 0.7 to 1, γ up to α per second."""
    random = np.random.default_rng(seed)
    beta, gamma = random.uniform(0.7, 1.0), random.uniform(0.0, 100.0)
    rtt = fog(seed)
    delays = [0.0, *(s.worst or 0.0 for s in joining(rtt, ["fog-1"], rtt.nodes[1:]))]
    rates = [
        truth(100.0, beta, gamma, n, delay) * (1.0 + noise * random.standard_normal())
        for n, delay in enumerate(delays, start=1)
    ]
    return tuple(measured(*zip(range(1, 9), delays, rates, strict=True)))


def test_predictions_of_a_growing_pool_lie_in_their_intervals() -> None:
    """Readings are off by 5 %; the next one is foretold from those before."""
    held: dict[int, list[bool]] = {n: [] for n in range(2, 9)}
    off: dict[int, list[float]] = {n: [] for n in range(2, 9)}
    for seed in range(120):
        readings = growing(seed, 0.05)
        for known, new in enumerate(readings[1:], start=1):
            model = calibrate(readings[:known])
            error = abs(model.at(new.slots, new.delay) - new.rate)
            held[new.slots].append(error <= model.half_width(new.slots, new.delay))
            off[new.slots].append(error / new.rate)
    for n, inside in held.items():
        assert np.mean(inside) > 0.9, n
    assert np.mean(off[8]) < 0.06 < np.mean(off[2])  # the noise is 4 % of it


@pytest.mark.parametrize(
    ("bound", "least", "most", "none"), [(10.0, 0.08, 0.14, 0), (1e9, 0.18, 0.30, 5)]
)
def test_a_bound_keeps_the_second_stage_from_nonsense(
    monkeypatch: pytest.MonkeyPatch, bound: float, least: float, most: float, none: int
) -> None:
    """Errors of the third configuration, foretold from two; without the bound some foretell 0."""
    monkeypatch.setattr(mst, "MOST_GAMMA", bound)
    mst._calibrated.cache_clear()
    off = []
    for seed in range(100):
        one, two, three = growing(seed, 0.03)[:3]
        off.append(calibrate((one, two)).at(three.slots, three.delay) / three.rate - 1.0)
    mst._calibrated.cache_clear()
    assert least < np.mean(np.abs(off)) < most
    assert off.count(-1.0) >= none
    assert none or min(off) > -0.6


def test_the_interval_narrows_as_more_is_measured_and_widens_with_distance() -> None:
    points: list[Point] = [(n, 0.02 * n, truth(50.0, 0.9, 20.0, n, 0.02 * n)) for n in range(1, 9)]
    widths = [calibrate(measured(*points[:k])).half_width(6, 0.12) for k in range(1, 9)]
    assert widths[0] > widths[3] > widths[7]
    one = calibrate(measured(points[3]))
    assert one.half_width(4, 0.08) < one.half_width(5, 0.08) < one.half_width(9, 0.08)
    assert one.half_width(4, 0.08) < one.half_width(4, 0.3)


def test_noise_is_learnt() -> None:
    def model(spread: float) -> Mst:
        random = np.random.default_rng(1)
        points = [
            (n, 0.0, truth(100.0, 0.9, 0.0, n, 0.0) * (1 + spread * random.standard_normal()))
            for n in range(1, 31)
        ]
        return calibrate(measured(*points))

    assert model(0.0).noise < 0.02 < model(0.05).noise < 0.08 < model(0.15).noise


# --- memory ---


def test_readings_of_one_configuration_become_one() -> None:
    """The mean of the first three; then a new reading counts 0.3."""
    known: tuple[Measurement, ...] = ()
    for rate in (100.0, 110.0, 120.0):
        known = remember(known, Measurement(slots=4, delay=0.05, rate=rate))
    assert len(known) == 1
    assert (known[0].rate, known[0].readings) == pytest.approx((110.0, 3.0))
    known = remember(known, Measurement(slots=4, delay=0.052, rate=210.0))
    assert known[0].rate == pytest.approx(110.0 + 0.3 * 100.0)
    for _ in range(12):
        known = remember(known, Measurement(slots=4, delay=0.05, rate=210.0))
    assert known[0].rate == pytest.approx(210.0, rel=0.01)
    assert known[0].readings < 6.0  # what a fading mean is worth


def test_other_sizes_and_delays_stay_apart() -> None:
    known: tuple[Measurement, ...] = ()
    for n, d in [(4, 0.0), (5, 0.0), (4, 0.05), (4, 0.0015), (4, 0.054), (4, 0.06)]:
        known = remember(known, Measurement(slots=n, delay=d, rate=100.0))
    assert len(known) == configurations(known, most=9) == 4
    assert configurations(known, most=3) == 3
    assert (known[-1].slots, known[-1].delay) == (4, 0.06)  # renewed last, stands last


@given(st.lists(st.tuples(st.integers(1, 300), st.floats(0, 1), st.floats(1, 1e6)), max_size=150))
def test_memory_is_bounded_and_keeps_the_newest(points: Sequence[Point]) -> None:
    known: tuple[Measurement, ...] = ()
    for n, d, rate in points:
        new = Measurement(slots=n, delay=d, rate=rate)
        known = remember(known, new)
        assert known[-1].slots == n
        assert len(known) <= MOST


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"slots": 0}, "0 slots"),
        ({"delay": -1.0}, "-1.0 s"),
        ({"delay": math.nan}, "nan s"),
        ({"rate": 0.0}, "0.0 records/s"),
        ({"rate": math.inf}, "inf records/s"),
        ({"readings": 0.0}, "0.0 readings"),
    ],
)
def test_what_is_no_measurement_is_refused(fields: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Measurement(**{"slots": 1, "delay": 0.0, "rate": 1.0, **fields})  # type: ignore[arg-type]
