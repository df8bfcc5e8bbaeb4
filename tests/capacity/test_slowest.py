"""The slowest of several parts, against integrals and draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from penstock.capacity.slowest import SHAPE, slowest, stretched


def density(x: float, scale: float) -> float:
    """Of the Fréchet law."""
    power = (scale / x) ** SHAPE
    return float(SHAPE / x * power * np.exp(-power))


@pytest.mark.parametrize("ratio", [0.05, 0.4, 0.9, 1.5, 6.0])
def test_longer_and_later_are_the_integrals_they_are_called(ratio: float) -> None:
    above = quad(lambda x: x * density(x, ratio), 1.0, np.inf)[0]
    not_later = float(np.exp(-(ratio**SHAPE)))
    longer, later = stretched(ratio)
    assert float(longer) == pytest.approx(not_later + above, rel=1e-6)
    assert float(later) == pytest.approx(above / (not_later + above), rel=1e-6, abs=1e-12)


def test_the_maximum_of_draws_has_the_scale_that_slowest_says() -> None:
    random = np.random.default_rng(1)
    scales = np.array([0.01, 0.02, 0.02, 0.03])
    draws = scales * random.exponential(size=(200_000, 4)) ** (-1.0 / SHAPE)
    median = float(np.median(draws.max(axis=1)))
    assert median == pytest.approx(slowest(scales) * np.log(2.0) ** (-1.0 / SHAPE), rel=0.01)


@given(
    times=st.lists(st.floats(0.0, 10.0), max_size=20),
    factor=st.floats(1e-3, 1e3),
    more=st.floats(0.0, 10.0),
)
def test_slowest_grows_with_parts_and_scales_with_them(
    times: list[float], factor: float, more: float
) -> None:
    found = slowest(times)
    most = max(times, default=0.0)
    assert most <= found * (1 + 1e-12) + 1e-300
    assert found <= most * max(1, len(times)) ** (1.0 / SHAPE) * (1 + 1e-12)
    assert slowest([*times, more]) >= found * (1 - 1e-12)
    assert slowest([factor * t for t in times]) == pytest.approx(factor * found, rel=1e-9)


@given(ratio=st.floats(0.0, 100.0), more=st.floats(0.0, 10.0))
def test_a_slower_exchange_never_makes_a_step_shorter(ratio: float, more: float) -> None:
    longer, later = stretched([ratio, ratio + more])
    assert 1.0 - 1e-12 <= longer[0] <= longer[1] + 1e-9
    assert 0.0 <= later[0] <= later[1] + 1e-9 <= 1.0 + 2e-9
