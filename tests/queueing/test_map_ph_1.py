"""MAP/PH/1 against closed forms, the spectral solution, a chain cut at many levels, simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import mead_exactness as exactness
from penstock.core.errors import InputError
from penstock.queueing import MarkovianArrivalProcess, PhaseType
from penstock.queueing.map2 import hyperexponential
from penstock.queueing.map_ph_1 import solve
from penstock.queueing.replay import departures
from penstock.queueing.simple import kingman_mean, mg1_mean
from tests.queueing.test_markovian import processes

SWITCHED = MarkovianArrivalProcess([[-1.7, 0.3], [0.2, -0.4]], np.diag([1.4, 0.2]))
BURSTY = {
    "SCV 4": hyperexponential(r2=2.5, low=0.3, gamma=math.exp(-1 / 10)),
    "SCV 10": hyperexponential(r2=5.5, low=0.3, gamma=math.exp(-1 / 5)),
    "SCV 20": hyperexponential(r2=10.5, low=0.3, gamma=math.exp(-1 / 2)),
}


@pytest.mark.parametrize("load", [0.01, 0.3, 0.7, 0.9, 0.979])
def test_exponential_service_of_poisson_arrivals(load: float) -> None:
    law = solve(MarkovianArrivalProcess.poisson(load), PhaseType.exponential(1.0))
    assert law.mean == pytest.approx(1 / (1 - load), rel=1e-8)
    for q in (0.05, 0.5, 0.95, 0.999):
        assert law.percentile(q) == pytest.approx(-math.log(1 - q) / (1 - load), rel=1e-8)
    assert law.tail(3.0) == pytest.approx(math.exp(-3 * (1 - load)), rel=1e-8)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 0.97])
@pytest.mark.parametrize("scv", [0.25, 0.5, 1.0, 4.0])
def test_any_service_of_poisson_arrivals(load: float, scv: float) -> None:
    service = PhaseType.of(mean=2.0, scv=scv)
    law = solve(MarkovianArrivalProcess.poisson(load / 2), service)
    assert law.mean == pytest.approx(mg1_mean(load / 2, 2.0, scv), rel=1e-8)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 0.97])
def test_erlang_service_of_poisson_arrivals(load: float) -> None:
    """M/E2/1, the law: E[e^(−sR)] = (1 − ρ)·β²/(s² + (2β − λ)·s + β² − 2βλ), β = 2/ES = 2."""
    beta, law = 2.0, solve(MarkovianArrivalProcess.poisson(load), PhaseType.erlang(2, mean=1.0))
    slow, fast = np.sort(-np.roots([1.0, 2 * beta - load, beta**2 - 2 * beta * load]))
    assert law.mean == pytest.approx(1 + 0.75 * load / (1 - load), rel=1e-8)

    def tail(t: float) -> float:
        ends = math.exp(-slow * t) / slow - math.exp(-fast * t) / fast
        return float((1 - load) * beta**2 / (fast - slow) * ends)

    for t in (0.3, 1.0, 5.0):
        assert law.tail(t) == pytest.approx(tail(t), rel=1e-8)
    for q in (0.05, 0.5, 0.95, 0.999):
        assert tail(law.percentile(q)) == pytest.approx(1 - q, rel=1e-8)


@pytest.mark.parametrize("load", [0.2, 0.6, 0.9])
def test_independent_arrivals_at_exponential_service(load: float) -> None:
    """GI/M/1: R is exponential with the rate μ(1 − σ), σ = A*(μ(1 − σ))."""
    law = PhaseType.of(mean=1 / load, scv=3.0)
    rates, weights = -np.diag(law.S), law.alpha
    sigma = 0.5
    for _ in range(10_000):
        sigma = float((weights * rates / (rates + 1 - sigma)).sum())
    response = solve(law.renewal(), PhaseType.exponential(1.0))
    assert response.mean == pytest.approx(1 / (1 - sigma), rel=1e-8)
    assert response.percentile(0.95) == pytest.approx(-math.log(0.05) / (1 - sigma), rel=1e-8)


def cut_chain_mean(arrivals: MarkovianArrivalProcess, mean: float, levels: int) -> float:
    """E[R] of MAP/M/1 by the balance of all states below a level, and Little's law."""
    size = arrivals.order
    mu = np.eye(size) / mean
    up, here = arrivals.D1, arrivals.D0 - mu
    # x_(n+1) = x_n·R_n, from the last level back: R_n = D1·(−(D0 − μ) − R_(n+1)·μ)⁻¹
    ratios = [np.linalg.solve(-(here + up).T, up.T).T]  # the last level loses what arrives
    for _ in range(levels - 1):
        ratios.append(np.linalg.solve(-(here + ratios[-1] @ mu).T, up.T).T)
    ratios.reverse()
    empty = arrivals.D0 + ratios[0] @ mu
    system = empty.T.copy()
    system[-1] = 1.0
    row = np.linalg.solve(system, np.eye(size)[-1])
    mass, number = row.sum(), 0.0
    for level, ratio in enumerate(ratios, 1):
        row = row @ ratio
        mass += row.sum()
        number += level * row.sum()
    return float(number / mass / arrivals.rate)


def spectral(arrivals: MarkovianArrivalProcess) -> tuple[np.ndarray, np.ndarray]:
    """MAP/M/1 with μ = 1: P(R > t) = Σ w_k·e^(−(1 − z_k)·t), as weights and rates.

    x_n = Σ c_k·ψ_k·z_k^n with ψ·(D1 + z·(D0 − I) + z²·I) = 0 and |z| < 1; c by the balance of the
    empty queue. An arrival behind n others stays for n + 1 exponential services.
    """
    size = arrivals.order
    eye, zero = np.eye(size), np.zeros((size, size))
    companion = np.block([[zero, -arrivals.D1], [eye, eye - arrivals.D0]])
    roots, columns = np.linalg.eig(companion.T)
    inside = np.argsort(np.abs(roots))[:size]
    z, psi = roots[inside], columns.T[inside, :size]
    balance = psi @ arrivals.D0 + z[:, None] * psi  # x_0·D0 + x_1 = 0
    system = np.vstack([balance.T[:-1], psi.sum(axis=1) / (1 - z)])
    c = np.linalg.solve(system, np.eye(size)[-1])
    weights = c * (psi @ arrivals.D1.sum(axis=1)) / (1 - z) / arrivals.rate
    return weights, 1 - z


@pytest.mark.parametrize("load", [0.1, 0.5, 0.7, 0.85, 0.95])
@pytest.mark.parametrize("process", [SWITCHED, BURSTY["SCV 4"]], ids=["switched", "SCV 4"])
def test_switched_arrivals_at_exponential_service(
    process: MarkovianArrivalProcess, load: float
) -> None:
    """MMPP/M/1 (and a MAP/M/1) by the classic spectral solution: the whole law."""
    scaled = process.scaled(1 / load)
    weights, rates = spectral(scaled)
    law = solve(scaled, PhaseType.exponential(1.0))
    assert law.mean == pytest.approx(float((weights / rates).sum().real), rel=1e-8)
    for q in (0.05, 0.5, 0.95, 0.999):
        tail = float((weights * np.exp(-rates * law.percentile(q))).sum().real)
        assert tail == pytest.approx(1 - q, rel=1e-8)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.85])
@pytest.mark.parametrize("process", [SWITCHED, BURSTY["SCV 4"]], ids=["switched", "SCV 4"])
def test_bursts_at_exponential_service(process: MarkovianArrivalProcess, load: float) -> None:
    law = solve(process.scaled(1 / load), PhaseType.exponential(1.0))
    assert law.mean == pytest.approx(cut_chain_mean(process.scaled(1 / load), 1.0, 8000), rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(processes(), st.floats(0.05, 0.97), st.sampled_from([0.3, 0.5, 1.0, 3.0]))
def test_a_response_time_is_a_law(
    process: MarkovianArrivalProcess, load: float, scv: float
) -> None:
    service = PhaseType.of(mean=load * process.mean, scv=scv)
    law = solve(process, service)
    assert law.tail(0.0) == pytest.approx(1.0) and law.mean >= service.mean * (1 - 1e-9)
    tails = [law.tail(t * law.mean) for t in (0.1, 0.5, 1.0, 3.0)]
    assert tails == sorted(tails, reverse=True) and tails[-1] >= 0
    for q in (0.1, 0.5, 0.95):
        assert law.tail(law.percentile(q)) == pytest.approx(1 - q, abs=1e-9)
    faster = solve(process, service.scaled(service.mean / 1.2))
    assert faster.mean < law.mean and faster.percentile(0.9) < law.percentile(0.9)


@pytest.mark.parametrize("name", ["SCV 4", "SCV 10", "SCV 20"])
def test_bursts_against_a_million_arrivals(name: str) -> None:
    """``python -m benchmarks.mead_exactness`` does it with ten million."""
    rows = exactness.measure(name, arrivals=1_000_000, batches=10)
    assert [row.load for row in rows] == [0.5, 0.7, 0.85]
    assert exactness.outside(rows) == []
    for row in rows:
        assert row.seen_mean.half_width is not None
        assert row.seen_mean.half_width < 0.3 * row.mean
        assert row.mg1 < 0.2 * row.seen_mean.low and row.kingman < 0.6 * row.seen_mean.low


def test_batches_are_one_path() -> None:
    """However it is cut, the work that is left goes on into the next batch."""
    process = exactness.PROCESSES["SCV 10"]
    (long,) = exactness.measure("SCV 10", loads=[0.85], arrivals=400_000, batches=4)
    (short,) = exactness.measure("SCV 10", loads=[0.85], arrivals=400_000, batches=400)
    law = solve(process, PhaseType.erlang(2, mean=0.85))
    for row in (long, short):  # batches that began empty would see a third of it
        assert row.seen_mean.mean == pytest.approx(law.mean, rel=0.35)


def test_a_wrong_model_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = exactness.measure("SCV 4", loads=[0.5], arrivals=200_000, batches=10)
    wrong = [replace(row, p95=2 * row.p95) for row in rows]
    assert len(exactness.outside(wrong)) == 1 and "95th percentile" in exactness.outside(wrong)[0]
    assert exactness.table(rows).rows[0][6] == "both"
    assert exactness.table(wrong).rows[0][6] == "mean"
    for found, code in ((rows, 0), (wrong, 1)):
        monkeypatch.setattr(exactness, "measure", lambda name, found=found: found)
        assert exactness.main() == code


def test_models_without_bursts_are_far_off() -> None:
    process = BURSTY["SCV 10"]
    truth = solve(process, PhaseType.erlang(2, mean=0.7)).mean
    assert mg1_mean(1.0, 0.7, 0.5) < 0.1 * truth
    assert kingman_mean(1.0, process.scv, 0.7, 0.5) < 0.3 * truth


@pytest.mark.parametrize("load", [0.98, 1.0, 1.7])
def test_what_has_no_steady_state_is_refused(load: float) -> None:
    for attempt in (
        lambda: solve(MarkovianArrivalProcess.poisson(load), PhaseType.exponential(1.0)),
        lambda: mg1_mean(load, 1.0, 1.0),
        lambda: kingman_mean(load, 1.0, 1.0, 1.0),
    ):
        with pytest.raises(InputError, match=r"must be < 0\.98"):
            attempt()


def test_correlation_over_a_million_arrivals_is_still_a_law() -> None:
    slow = hyperexponential(r2=5.5, low=0.3, gamma=1 - 1e-6)
    law = solve(slow, PhaseType.erlang(2, mean=0.9))
    assert law.mean > 1e5 and law.tail(0.0) == pytest.approx(1.0)
    assert law.tail(law.percentile(0.95)) == pytest.approx(0.05, rel=1e-6)


def test_replay_is_one_after_the_other() -> None:
    rng = np.random.default_rng(2)
    arrivals = np.cumsum(rng.exponential(1.0, 500))
    services = rng.exponential(0.9, 500)
    expected, last = [], 3.0
    for a, s in zip(arrivals, services, strict=True):
        last = max(a, last) + s
        expected.append(last)
    assert departures(arrivals, services, free_at=3.0) == pytest.approx(expected)
    assert len(departures(np.empty(0), np.empty(0))) == 0
