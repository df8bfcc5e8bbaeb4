"""MAP(2): which moments and decays exist, and that the process found has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.queueing.map2 import decays, hyperexponential, map2, third_moments
from penstock.queueing.markovian import MarkovianArrivalProcess

SHARES = st.floats(0.01, 0.99)


def check(process: MarkovianArrivalProcess, r2: float, r3: float, gamma: float) -> None:
    assert process.mean == pytest.approx(2.0, rel=1e-4)
    assert process.moment(2) / 2 / 4 == pytest.approx(r2, rel=1e-4)
    assert process.moment(3) / 6 / 8 == pytest.approx(r3, rel=1e-3)
    if process.order == 2:
        values = np.linalg.eigvals(process.embedded).real
        assert np.abs(values - gamma).min() < 1e-3


@given(st.floats(1.001, 50.0), st.floats(1.001, 20.0), SHARES)
def test_every_variable_process_that_may_exist_does(r2: float, more: float, share: float) -> None:
    r3 = r2**2 * more
    possible = decays(r2, r3)
    assert possible is not None and possible.low <= 0.0
    gamma = possible.low + share * (possible.high - possible.low)
    check(map2(mean=2.0, r2=r2, r3=r3, gamma=gamma), r2, r3, gamma)


@given(st.floats(0.751, 0.999), SHARES, SHARES)
def test_every_regular_process_that_may_exist_does(r2: float, third: float, share: float) -> None:
    thirds = third_moments(r2)
    assert thirds is not None
    r3 = thirds.low + third * (thirds.high - thirds.low)
    possible = decays(r2, r3)
    assert possible is not None
    gamma = possible.low + share * (possible.high - possible.low)
    check(map2(mean=2.0, r2=r2, r3=r3, gamma=gamma), r2, r3, gamma)


@st.composite
def any_process(draw: st.DrawFn) -> MarkovianArrivalProcess:
    rates = [draw(st.floats(0.0, 10.0)) for _ in range(6)]
    D0 = np.array([[0.0, rates[0]], [rates[1], 0.0]])
    D1 = np.array([[rates[2], rates[3]], [rates[4], rates[5]]])
    leave = (D0 + D1).sum(axis=1)
    assume(leave.min() > 0.1 and D1.sum() > 0.1)
    np.fill_diagonal(D0, -leave)
    assume(abs(np.linalg.det(D0)) > 1e-2)
    generator = D0 + D1
    assume(generator[0, 1] > 1e-2 and generator[1, 0] > 1e-2)
    return MarkovianArrivalProcess(D0, D1)


@given(any_process())
def test_no_process_with_two_phases_lies_outside(process: MarkovianArrivalProcess) -> None:
    """The other direction: the region is not too small."""
    r2 = process.moment(2) / 2 / process.mean**2
    r3 = process.moment(3) / 6 / process.mean**3
    assume(abs(r2 - 1) > 1e-3 and abs(r3 - r2**2) > 1e-4)
    gamma = float(np.trace(process.embedded)) - 1
    thirds = third_moments(r2)
    assert thirds is not None and thirds.low - 1e-6 <= r3 <= thirds.high + 1e-6
    possible = decays(r2, thirds.clip(r3))
    assert possible is not None and possible.low - 1e-6 <= gamma <= possible.high + 1e-6


@pytest.mark.parametrize(
    ("r2", "r3", "gamma", "said"),
    [
        (0.7, 0.4, 0.0, "r2 ≥ 0.75"),
        (2.0, 3.0, 0.0, r"r3 in \[4, inf\]"),
        (2.0, 6.0, 1.0, "decay 1"),
        (2.0, 6.0, -0.9, "decay -0.9"),
        (1.0, 1.0, 0.5, "decay 0.5"),
    ],
)
def test_what_does_not_exist_is_refused(r2: float, r3: float, gamma: float, said: str) -> None:
    with pytest.raises(InputError, match=said):
        map2(mean=1.0, r2=r2, r3=r3, gamma=gamma)


def test_the_edges() -> None:
    assert map2(mean=2.0, r2=1.0, r3=1.0, gamma=0.0).order == 1
    erlang = map2(mean=2.0, r2=0.75, r3=0.5, gamma=0.0)
    assert erlang.scv == pytest.approx(0.5)


@given(st.floats(1.01, 50.0), st.floats(0.01, 0.95), st.floats(0.0, 0.999))
def test_a_block_with_a_diagonal_d0(r2: float, low: float, gamma: float) -> None:
    block = hyperexponential(r2=r2, low=low, gamma=gamma)
    assert block.mean == pytest.approx(1.0) and block.moment(2) / 2 == pytest.approx(r2)
    assert block.autocorrelation(1) == pytest.approx(gamma * (r2 - 1) / block.scv)
    assert np.diag(1 / np.diag(-block.D0))[1, 1] == pytest.approx(low)
