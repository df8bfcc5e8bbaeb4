"""An oracle that may be late: how it spreads work, against what no plan can do better."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from penstock.comparison.oracle import late_scores, smoothed

RATES = arrays.arrays(np.float64, st.integers(2, 40), elements=st.floats(0.0, 1e4, width=32))
LAGS = st.integers(1, 15)  # shorter than twice the fineness: every second is a point


@given(rates=RATES, lag=LAGS)
def test_nothing_is_done_before_it_came_nor_later_than_allowed(rates: np.ndarray, lag: int) -> None:
    done, came = np.cumsum(smoothed(rates, lag)), np.cumsum(rates)
    slack = 1e-6 * max(1.0, came[-1])
    assert (done <= came + slack).all()
    assert (done[lag:] >= came[:-lag] - slack).all()
    assert abs(done[-1] - came[-1]) <= slack


@given(rates=RATES, lag=LAGS)
def test_its_highest_rate_is_the_least_that_any_plan_needs(rates: np.ndarray, lag: int) -> None:
    """Between two moments s < t at least A(t − lag) − A(s) must be done; at the end, all."""
    most = np.concatenate(([0.0], np.cumsum(rates)))
    least = np.concatenate((np.zeros(lag), most[:-lag]))[: len(most)]
    least[-1] = most[-1]
    needed = max(
        (least[t] - most[s]) / (t - s) for s in range(len(most)) for t in range(s + 1, len(most))
    )
    assert np.isclose(smoothed(rates, lag).max(), max(0.0, needed), rtol=1e-6, atol=1e-6)


@given(rates=RATES)
def test_without_a_lag_nothing_changes(rates: np.ndarray) -> None:
    assert (smoothed(rates, 0.0) == rates).all()


def test_it_never_costs_more_than_the_oracle_that_is_never_late() -> None:
    now, behind = {"a": np.array([1.0, 3.0])}, {"a": np.array([3.0, 3.0])}
    assert late_scores(now, behind) == {
        "late_oracle_slots_mean": 2.0,
        "late_oracle_slot_seconds": 4.0,
    }
