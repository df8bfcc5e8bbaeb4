"""Markovian arrival processes and phase types: moments, correlation, operations, samples."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.queueing import MarkovianArrivalProcess, PhaseType
from penstock.queueing.map2 import hyperexponential
from penstock.queueing.matrices import sampled_chain

GENERAL = MarkovianArrivalProcess([[-2.0, 0.5], [0.1, -10.0]], [[1.4, 0.1], [0.2, 9.7]])
BLOCK = hyperexponential(r2=2.5, low=0.2, gamma=0.9)
OTHER = hyperexponential(r2=1.5, low=0.4, gamma=0.5)


@st.composite
def processes(draw: st.DrawFn) -> MarkovianArrivalProcess:
    size = draw(st.integers(1, 4))
    rates = st.floats(0.05, 5.0)
    D0 = np.array([[draw(rates) for _ in range(size)] for _ in range(size)])
    D1 = np.array([[draw(rates) for _ in range(size)] for _ in range(size)])
    np.fill_diagonal(D0, 0.0)
    np.fill_diagonal(D0, -(D0 + D1).sum(axis=1))
    return MarkovianArrivalProcess(D0, D1)


def correlation(values: np.ndarray, lag: int) -> float:
    centred = values - values.mean()
    return float((centred[lag:] * centred[:-lag]).mean() / centred.var())


def test_a_poisson_process() -> None:
    poisson = MarkovianArrivalProcess.poisson(4.0)
    assert [poisson.moment(k) for k in (1, 2, 3)] == pytest.approx([1 / 4, 2 / 16, 6 / 64])
    assert poisson.scv == pytest.approx(1.0) and poisson.dispersion() == pytest.approx(1.0)
    assert poisson.autocorrelation([0, 1, 7]) == pytest.approx([1.0, 0.0, 0.0])


def test_a_switched_poisson_process_has_the_published_dispersion() -> None:
    """I = 1 + 2·(l1−l2)²·s1·s2 / ((s1+s2)²·(l1·s2 + l2·s1)).  Fischer, Meier-Hellstern 1993."""
    s1, s2, l1, l2 = 0.3, 0.8, 5.0, 1.0
    process = MarkovianArrivalProcess([[-s1 - l1, s1], [s2, -s2 - l2]], np.diag([l1, l2]))
    assert process.rate == pytest.approx((l1 * s2 + l2 * s1) / (s1 + s2))
    excess = 2 * (l1 - l2) ** 2 * s1 * s2 / ((s1 + s2) ** 2 * (l1 * s2 + l2 * s1))
    assert process.dispersion() == pytest.approx(1 + excess, rel=1e-12)


@given(processes())
def test_the_dispersion_is_that_of_the_intervals(process: MarkovianArrivalProcess) -> None:
    """I = SCV·(1 + 2·Σ ρ_k) for every stationary process."""
    sums = process.autocorrelation(np.arange(1, 400)).sum()
    assert process.dispersion() == pytest.approx(process.scv * (1 + 2 * sums), rel=1e-5)


@given(processes(), st.floats(0.05, 1.0), st.floats(1e-3, 1e3))
def test_what_becomes_of_the_rate(one: MarkovianArrivalProcess, keep: float, mean: float) -> None:
    assert one.rate == pytest.approx(1 / one.mean)
    assert one.thinned(keep).rate == pytest.approx(one.rate * keep)
    scaled = one.scaled(mean)
    assert scaled.mean == pytest.approx(mean) and scaled.scv == pytest.approx(one.scv)
    lags = [1, 2, 5]
    assert scaled.autocorrelation(lags) == pytest.approx(one.autocorrelation(lags), abs=1e-9)


@given(processes(), st.floats(0.05, 0.95))
def test_thinning_brings_the_dispersion_towards_one(
    process: MarkovianArrivalProcess, keep: float
) -> None:
    expected = 1 + keep * (process.dispersion() - 1)
    assert process.thinned(keep).dispersion() == pytest.approx(expected, rel=1e-6)


def test_a_composition_multiplies_moments_and_correlations() -> None:
    whole = BLOCK.composed(OTHER).composed(GENERAL)
    for k in (1, 2, 3):
        single = math.prod(b.moment(k) / math.factorial(k) for b in (BLOCK, OTHER, GENERAL))
        assert whole.moment(k) / math.factorial(k) == pytest.approx(single)
    lags = np.arange(1, 30)
    pair = BLOCK.composed(OTHER)
    factors = [1 + b.scv * b.autocorrelation(lags) for b in (BLOCK, OTHER)]
    assert 1 + pair.scv * pair.autocorrelation(lags) == pytest.approx(factors[0] * factors[1])
    joint = joint_moment(BLOCK, 2, 3) * joint_moment(OTHER, 2, 3)
    assert joint_moment(pair, 2, 3) == pytest.approx(joint)


def joint_moment(process: MarkovianArrivalProcess, first: int, second: int) -> float:
    """E[X_0·X_k·X_(k+l)], which the autocorrelation does not tell."""
    inverse, step = np.linalg.inv(-process.D0), np.linalg.matrix_power
    row = process.at_arrivals @ inverse @ step(process.embedded, first) @ inverse
    return float(row @ step(process.embedded, second) @ inverse.sum(axis=1))


@pytest.mark.parametrize("process", [GENERAL, BLOCK.composed(OTHER)], ids=["general", "composed"])
def test_samples_look_like_the_process(process: MarkovianArrivalProcess) -> None:
    drawn = process.sample(400_000, np.random.default_rng(7))
    assert len(drawn) == 400_000 and (drawn >= 0).all()
    assert drawn.mean() == pytest.approx(process.mean, rel=0.03)
    assert drawn.var() / drawn.mean() ** 2 == pytest.approx(process.scv, rel=0.06)
    for lag in (1, 3, 10):
        expected = float(process.autocorrelation(lag))
        assert correlation(drawn, lag) == pytest.approx(expected, abs=0.02)


def test_samples_are_of_their_seed_and_of_any_length() -> None:
    one, again = (GENERAL.sample(1_000, np.random.default_rng(3)) for _ in range(2))
    assert (one == again).all()
    assert len(GENERAL.sample(0, np.random.default_rng(3))) == 0
    assert len(GENERAL.sample(1, np.random.default_rng(3))) == 1


def test_a_stream_is_one_path_in_pieces() -> None:
    process = hyperexponential(r2=2.5, low=0.3, gamma=0.95)
    rng = np.random.default_rng(11)
    pieces = list(islice(process.stream(1, rng), 4_000))
    lasts = np.array([piece[-1] for piece in pieces[:-1]])
    firsts = np.array([piece[0] for piece in pieces[1:]])
    expected = float(process.autocorrelation(1))
    assert np.corrcoef(lasts, firsts)[0, 1] == pytest.approx(expected, abs=0.08)
    whole = np.concatenate(list(islice(GENERAL.stream(1, rng), 2_000)))
    assert whole.mean() == pytest.approx(GENERAL.mean, rel=0.02)
    assert correlation(whole, 3) == pytest.approx(float(GENERAL.autocorrelation(3)), abs=0.02)
    assert len(next(GENERAL.stream(50_000, rng))) == pytest.approx(50_000, rel=0.1)


@given(processes(), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_a_path_in_blocks_is_the_path_step_by_step(
    process: MarkovianArrivalProcess, length: int, seed: int
) -> None:
    steps = process.embedded
    uniforms = np.random.default_rng(seed).random(length)
    path, what = sampled_chain(steps, 0, uniforms)
    edges = np.cumsum(steps, axis=1)[:, :-1]
    state = 0
    for k in range(length):
        assert path[k] == state
        state = int((uniforms[k] >= edges[state]).sum())
        assert what[k] == state


@pytest.mark.parametrize("scv", [0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 8.0])
def test_a_phase_type_with_two_moments(scv: float) -> None:
    law = PhaseType.of(mean=3.0, scv=scv)
    assert law.mean == pytest.approx(3.0) and law.scv == pytest.approx(scv)
    drawn = law.sample(100_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(3.0, rel=0.03)
    assert (drawn > 4.0).mean() == pytest.approx(law.tail(4.0), abs=0.01)
    assert law.renewal().autocorrelation([1, 2]) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_an_erlang_law() -> None:
    law = PhaseType.erlang(2, mean=1.0)
    assert law.tail(1.5) == pytest.approx(math.exp(-3.0) * (1 + 3.0))
    assert [law.moment(k) for k in (1, 2, 3)] == pytest.approx([1.0, 1.5, 3.0])
    assert law.scaled(5.0).mean == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("D0", "D1", "said"),
    [
        ([[-1.0]], [[2.0]], "sum to 0"),
        ([[-1.0, 2.0], [0.0, -1.0]], [[0.0, -1.0], [0.0, 1.0]], "≥ 0"),
        ([[-1.0]], [[1.0, 0.0]], "same size"),
        ([[math.nan]], [[1.0]], "finite"),
        ([[0.0]], [[0.0]], "arrival"),
    ],
)
def test_what_is_no_arrival_process(
    D0: list[list[float]], D1: list[list[float]], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        MarkovianArrivalProcess(D0, D1)


def test_what_is_no_phase_type() -> None:
    for alpha, S, said in (
        ([0.5, 0.4], np.diag([-1.0, -1.0]), "sum to 1"),
        ([1.0], [[0.5]], "≤ 0"),
        ([1.0, 0.0], [[-1.0, 1.0], [1.0, -1.0]], "end"),
        ([1.0], [[math.inf]], "finite"),
    ):
        with pytest.raises(InputError, match=said):
            PhaseType(alpha, S)
    with pytest.raises(InputError, match="must be ≥ 0"):
        PhaseType.of(mean=1.0, scv=-0.1)
    for mean in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError):
            PhaseType.exponential(mean)
        with pytest.raises(InputError):
            GENERAL.scaled(mean)
    with pytest.raises(InputError, match=r"\(0, 1\]"):
        GENERAL.thinned(0.0)
