"""Fitting: statistics of a window, processes that are like it, and input that cannot be fitted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.queueing import PhaseType
from penstock.queueing.fitting import LEAST, alternatives, fit
from penstock.queueing.intervals import Intervals
from penstock.queueing.map2 import hyperexponential
from penstock.queueing.map_ph_1 import solve
from penstock.queueing.replay import departures
from penstock.workloads.recorded import bellcore


def sampled(scv: float, tau: float, count: int = 50_000, seed: int = 0) -> Intervals:
    process = hyperexponential(r2=(1 + scv) / 2, low=0.3, gamma=math.exp(-1 / tau))
    return Intervals(process.scaled(0.01).sample(count, np.random.default_rng(seed)))


def test_statistics_by_their_definition() -> None:
    x = np.random.default_rng(1).gamma(0.5, 2.0, 500)
    window = Intervals(x)
    centred = x - x.mean()
    for lag, found in zip(window.lags, window.autocorrelation, strict=True):
        expected = (centred[lag:] * centred[:-lag]).sum() / (centred**2).sum()
        assert found == pytest.approx(expected, abs=1e-12)
    assert window.joint_moments[2, 5] == pytest.approx((x[:-7] * x[2:-5] * x[7:]).mean())
    assert window.scv == pytest.approx(x.var() / x.mean() ** 2)
    assert window.least_local_mean(7) == pytest.approx(min(x[k : k + 7].mean() for k in range(494)))
    assert list(window.lags[:4]) == [1, 2, 3, 4] and window.lags[-1] == 499
    for m, found in zip(window.sums, window.dispersion, strict=True):
        sums = [x[k : k + m].sum() for k in range(len(x) - m + 1)]
        assert found == pytest.approx(np.var(sums) / (m * x.mean() ** 2))
    assert window.sums[-1] == 25


@pytest.mark.parametrize("scv", [2.0, 5.0, 15.0])
@pytest.mark.parametrize("tau", [3.0, 30.0])
def test_a_fit_has_the_moments_and_the_correlation_of_its_window(scv: float, tau: float) -> None:
    window = sampled(scv, tau)
    best = fit(window)
    assert best.process.mean == pytest.approx(window.mean)
    assert best.process.scv == pytest.approx(window.scv)
    lags = window.lags[window.lags <= 2 * tau]
    seen = window.autocorrelation[: len(lags)]
    most = 0.5 * (1 - 1 / window.scv)  # what such a process can have
    assert best.process.autocorrelation(lags) == pytest.approx(np.minimum(seen, most), abs=0.05)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_a_fit_predicts_the_queue_of_its_process(load: float) -> None:
    truth = hyperexponential(r2=3.0, low=0.3, gamma=math.exp(-1 / 15))
    window = Intervals(truth.sample(400_000, np.random.default_rng(4)))
    service = PhaseType.erlang(2, mean=load)
    expected = solve(truth, service)
    found = solve(fit(window).process, service)
    assert found.mean == pytest.approx(expected.mean, rel=0.3)
    assert found.percentile(0.95) == pytest.approx(expected.percentile(0.95), rel=0.3)


def test_alternatives_are_fits_without_a_part() -> None:
    window = sampled(6.0, 40.0)
    found = alternatives(window, 5)
    assert len(found) == len({f.process for f in found}) == 5
    fifth = len(window) // 5
    for out, each in enumerate(found):
        rest = np.delete(window.values, np.arange(out * fifth, (out + 1) * fifth))
        assert each.process.mean == pytest.approx(rest.mean())
        assert each.process.scv == pytest.approx(rest.var() / rest.mean() ** 2)
        assert each.blocks <= fit(window).blocks
    assert [f.process for f in alternatives(window, 1)] == [fit(window).process]


def test_a_regular_stream() -> None:
    x = np.random.default_rng(3).gamma(4.0, 0.25, 20_000)
    best = fit(Intervals(x)).process
    assert best.mean == pytest.approx(x.mean()) and best.scv == pytest.approx(0.25, rel=0.05)
    x = np.random.default_rng(3).gamma(1.5, 0.25, 20_000)
    best = fit(Intervals(x)).process
    assert best.order == 2 and best.scv == pytest.approx(1 / 1.5, rel=0.05)


def test_poisson_and_independent_streams() -> None:
    rng = np.random.default_rng(9)
    assert fit(Intervals(rng.exponential(2.0, 50_000))).process.scv == pytest.approx(1, abs=0.05)
    law = PhaseType.of(mean=1.0, scv=5.0)
    found = fit(Intervals(law.sample(50_000, rng)))
    assert found.process.scv == pytest.approx(5.0, rel=0.1)
    assert float(found.process.autocorrelation(5)) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "at least 2"),
        ([1.0], "at least 2"),
        ([0.0, 0.0, 0.0], "are 0"),
        ([1.0, -0.5, 1.0], "not in order"),
        ([1.0, math.nan], "finite"),
        ([1.0, math.inf], "finite"),
        ([[1.0, 2.0]], "in a row"),
    ],
)
def test_what_is_no_window(values: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Intervals(values)


def test_too_few_to_fit() -> None:
    with pytest.raises(InputError, match=f"at least {LEAST}"):
        fit(Intervals(np.ones(LEAST - 1)))
    with pytest.raises(InputError, match="from 1 to 4"):
        fit(sampled(2.0, 3.0, count=200), most_blocks=0)


def test_constant_times_are_nearly_deterministic_arrivals() -> None:
    best = fit(Intervals(np.full(1_000, 0.5))).process
    assert best.mean == pytest.approx(0.5) and best.scv < 0.05


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.floats(0.0, 1e6, allow_nan=False) | st.just(0.0) | st.just(1.0),
        min_size=LEAST,
        max_size=300,
    ).filter(lambda values: sum(values) > 1e-3)
)
def test_whatever_came_it_is_fitted_or_refused_in_words(values: list[float]) -> None:
    window = Intervals(values)
    assert fit(window).process.mean == pytest.approx(window.mean, rel=1e-6)
    assert all(f.process.order >= 1 for f in alternatives(window, 3))


def test_times_in_order() -> None:
    with pytest.raises(InputError, match="not in order"):
        Intervals(np.diff([1.0, 4.0, 3.0]))


def test_the_reference_values_of_bellcore() -> None:
    """From the tests of the Java port of the KPC-Toolbox."""
    window = Intervals(bellcore())
    assert len(window) == 999_999
    moments = [window.moment(k) for k in (1, 2, 3)]
    expected = [0.003142823538823539, 4.171801994357199e-05, 2.010425529820079e-06]
    assert moments == pytest.approx(expected, rel=1e-10)
    rho = dict(zip(window.lags.tolist(), window.autocorrelation.tolist(), strict=True))
    first = [0.20004843, 0.18927415, 0.13895062, 0.14213340, 0.11712676]
    assert [rho[k] for k in (1, 2, 3, 4, 5)] == pytest.approx(first, abs=5e-9)
    assert rho[10] == pytest.approx(0.09879629, abs=5e-9)
    assert window.joint_moments[1, 1] == pytest.approx(1.218447284598931e-07, rel=1e-10)


@pytest.mark.parametrize("window", [0, 7, 15])
@pytest.mark.parametrize("load", [0.5, 0.7])
def test_real_traffic_in_order_of_magnitude(window: int, load: float) -> None:
    """A window of BC-pAug89: within a factor where M/G/1 is off by ten and more."""
    x = bellcore()[window * 50_000 : (window + 1) * 50_000]
    seen = Intervals(x)
    arrivals, mean = np.cumsum(x), load * seen.mean
    services = np.random.default_rng(0).gamma(2.0, mean / 2, len(x))
    replay = float((departures(arrivals, services) - arrivals).mean())
    model = solve(fit(seen).process, PhaseType.erlang(2, mean=mean)).mean
    assert replay / 4 < model < replay * 4
