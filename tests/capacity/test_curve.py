"""The curve of throughput over slots: what it recovers, and that its interval is one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from penstock.capacity.curve import PowerCurve, fit
from penstock.core.errors import InputError


@given(
    alpha=st.floats(1.0, 1e6),
    beta=st.floats(0.1, 1.2),
    sizes=st.lists(st.integers(1, 64), min_size=2, max_size=8, unique=True),
)
def test_it_recovers_the_curve_that_made_the_measurements(
    alpha: float, beta: float, sizes: list[int]
) -> None:
    curve = fit(sizes, [alpha * n**beta for n in sizes])
    assert curve.alpha == pytest.approx(alpha, rel=1e-6)
    assert curve.beta == pytest.approx(beta, abs=1e-6)


@given(
    alpha=st.floats(1.0, 1e4),
    beta=st.floats(0.2, 1.0),
    rate=st.floats(0.0, 1e6),
    most=st.integers(1, 64),
)
def test_the_fewest_slots_are_enough_and_one_less_is_not(
    alpha: float, beta: float, rate: float, most: int
) -> None:
    curve = PowerCurve(alpha=alpha, beta=beta)
    n = curve.fewest(rate, most)
    assert 1 <= n <= most
    assert n == most or curve.at(n) >= rate * (1 - 1e-9)
    assert n == 1 or curve.at(n - 1) < rate


def test_the_interval_is_that_of_a_linear_regression() -> None:
    random = np.random.default_rng(3)
    sizes = [1, 2, 4, 8] * 3
    rates = [500.0 * n**0.85 * float(np.exp(random.normal(0.0, 0.05))) for n in sizes]
    curve = fit(sizes, rates)
    line = stats.linregress(np.log(sizes), np.log(rates))
    assert curve.beta == pytest.approx(line.slope)
    assert curve.beta_half_width == pytest.approx(stats.t.ppf(0.975, 10) * line.stderr)


@pytest.mark.parametrize(
    ("sizes", "rates", "said"),
    [
        ([4, 4], [10.0, 11.0], "two sizes"),
        ([1, 2], [10.0, 0.0], "must be > 0"),
    ],
)
def test_what_cannot_be_fitted_is_refused(sizes: list[int], rates: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        fit(sizes, rates)
