"""Finite room against closed forms, a chain solved whole, unlimited room, and events."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import splu
from scipy.stats import erlang

from penstock.core.errors import InputError
from penstock.queueing import MarkovianArrivalProcess, PhaseType, map_ph_1
from penstock.queueing.map2 import hyperexponential
from penstock.queueing.map_ph_1_k import solve
from penstock.report.statistics import estimate
from tests.queueing.test_markovian import processes

BURSTY = hyperexponential(r2=2.5, low=0.3, gamma=math.exp(-1 / 10))
HIDDEN = MarkovianArrivalProcess([[-2.0, 0.5], [0.1, -10.0]], [[1.4, 0.1], [0.2, 9.7]])


@pytest.mark.parametrize("load", [0.2, 0.9, 1.0, 1.1, 3.0])
@pytest.mark.parametrize("room", [1, 2, 7, 60])
def test_exponential_service_of_poisson_arrivals(load: float, room: int) -> None:
    """M/M/1/K: P(n) ∝ ρ^n; who is accepted behind n others stays for n + 1 services."""
    queue = solve(MarkovianArrivalProcess.poisson(load / 2), PhaseType.exponential(2.0), room)
    shares = load ** np.arange(room + 1)
    shares /= shares.sum()
    assert queue.numbers == pytest.approx(shares, rel=1e-10)
    assert queue.loss == pytest.approx(shares[-1], rel=1e-10)
    behind = shares[:-1] / shares[:-1].sum()
    assert queue.mean == pytest.approx(2.0 * (behind @ np.arange(1, room + 1)), rel=1e-10)
    for q in (0.05, 0.5, 0.95):
        time = queue.percentile(q)
        tail = behind @ erlang.sf(time, np.arange(1, room + 1), scale=2.0)
        assert queue.tail(time) == pytest.approx(1 - q, rel=1e-8)
        assert tail == pytest.approx(1 - q, rel=1e-8)


@pytest.mark.parametrize("scv", [0.2, 0.5, 1.0, 5.0])
def test_room_for_one_depends_on_the_mean_of_the_service_alone(scv: float) -> None:
    """M/G/1/1, Erlang's loss formula: ρ/(1 + ρ)."""
    service = PhaseType.of(mean=3.0, scv=scv)
    queue = solve(MarkovianArrivalProcess.poisson(0.5), service, 1)
    assert queue.loss == pytest.approx(1.5 / 2.5, rel=1e-10)
    assert queue.mean == pytest.approx(3.0, rel=1e-10)
    assert queue.tail(2.0) == pytest.approx(service.tail(2.0), rel=1e-9)


def whole_chain(
    arrivals: MarkovianArrivalProcess, service: PhaseType, room: int
) -> tuple[np.ndarray, float]:
    """P(n) and the share that is lost, by all states at once, written down one by one."""
    states = [(0, i, 0) for i in range(arrivals.order)] + [
        (n, i, j)
        for n in range(1, room + 1)
        for i in range(arrivals.order)
        for j in range(service.order)
    ]
    place = {state: k for k, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for (n, i, j), k in place.items():
        for after in range(arrivals.order):
            if after != i:
                rates[k, place[n, after, j]] += arrivals.D0[i, after]
            if n == room:
                rates[k, place[n, after, j]] += arrivals.D1[i, after]
            elif n:
                rates[k, place[n + 1, after, j]] += arrivals.D1[i, after]
            else:
                for begin, share in enumerate(service.alpha):
                    rates[k, place[1, after, begin]] += arrivals.D1[i, after] * share
        if n:
            for step in range(service.order):
                if step != j:
                    rates[k, place[n, i, step]] += service.S[j, step]
                if n > 1:
                    rates[k, place[n - 1, i, step]] += service.exits[j] * service.alpha[step]
            if n == 1:
                rates[k, place[0, i, 0]] += service.exits[j]
    balance = (rates - np.diag(rates.sum(axis=1))).T
    system = np.vstack([balance, np.ones(len(states))])
    found, *_ = np.linalg.lstsq(system, np.eye(len(states) + 1)[-1], rcond=None)
    numbers = np.zeros(room + 1)
    lost = 0.0
    for (n, i, _), share in zip(states, found, strict=True):
        numbers[n] += share
        lost += share * arrivals.D1[i].sum() if n == room else 0.0
    return numbers, lost / arrivals.rate


@settings(max_examples=30, deadline=None)
@given(processes(), st.floats(0.1, 3.0), st.sampled_from([0.4, 0.5, 1.0, 3.0]), st.integers(1, 6))
def test_any_small_queue(
    process: MarkovianArrivalProcess, load: float, scv: float, room: int
) -> None:
    service = PhaseType.of(mean=load * process.mean, scv=scv)
    queue = solve(process, service, room)
    numbers, loss = whole_chain(process, service, room)
    assert queue.numbers == pytest.approx(numbers, rel=1e-7, abs=1e-12)
    assert queue.loss == pytest.approx(loss, rel=1e-7)
    # what is served is what was accepted, and a law of the response time has its mean
    assert queue.busy == pytest.approx(load * (1 - queue.loss), rel=1e-9)
    assert queue.tail(0.0) == 1.0
    more = solve(process, service, room + 1)
    assert more.loss < queue.loss and more.mean > queue.mean


@pytest.mark.parametrize("load", [0.5, 1.0, 1.5])
def test_the_law_of_the_response_time_has_its_mean(load: float) -> None:
    queue = solve(BURSTY, PhaseType.erlang(2, mean=load), 12)
    times = np.linspace(0.0, 60.0 * load, 4001)
    tails = np.array([queue.tail(t) for t in times])
    assert (np.diff(tails) <= 1e-12).all() and tails[-1] < 1e-9
    assert np.trapezoid(tails, times) == pytest.approx(queue.mean, rel=1e-4)


@pytest.mark.parametrize(
    ("process", "load", "room"), [(BURSTY, 0.5, 4_000), (BURSTY, 0.85, 8_000), (HIDDEN, 0.9, 4_000)]
)
def test_much_room_is_unlimited_room(
    process: MarkovianArrivalProcess, load: float, room: int
) -> None:
    service = PhaseType.erlang(2, mean=load * process.mean)
    queue, unlimited = solve(process, service, room), map_ph_1.solve(process, service)
    assert queue.loss < 1e-12
    assert queue.mean == pytest.approx(unlimited.mean, rel=1e-8)
    assert queue.percentile(0.95) == pytest.approx(unlimited.percentile(0.95), rel=1e-8)


def test_an_overload_is_served_as_fast_as_can_be() -> None:
    queue = solve(BURSTY, PhaseType.erlang(2, mean=2.0), 3_000)
    assert queue.busy == pytest.approx(1.0, abs=1e-9)
    assert queue.loss == pytest.approx(0.5, rel=1e-9)
    assert 0.9 * 6_000 < queue.mean < 6_000


@pytest.mark.parametrize("load", [3.0, 10.0, 50.0])
@pytest.mark.parametrize("phases", [2, 8])
def test_a_heavy_overload_loses_no_precision(load: float, phases: int) -> None:
    """Of what leaves a level a rounding error would grow by the load from level to level."""
    processes = (
        MarkovianArrivalProcess.poisson(1.0),
        PhaseType.erlang(4, mean=1.0).renewal(),
        hyperexponential(r2=2.5, low=0.3, gamma=0.3),
    )
    for process in processes:
        queue = solve(process, PhaseType.erlang(phases, mean=load), 500)
        assert (queue.numbers >= 0).all()
        assert queue.loss == pytest.approx(1 - 1 / load, rel=1e-11)


@pytest.mark.parametrize("load", [0.9, 0.999, 1.0, 1.05, 1.3])
@pytest.mark.parametrize("tau", [10.0, 3_000.0])
def test_many_levels_lose_no_precision(load: float, tau: float) -> None:
    """All states at once by a sparse factorisation; served is what was accepted."""
    process = hyperexponential(r2=2.5, low=0.3, gamma=math.exp(-1 / tau))
    room = 2_000
    queue = solve(process, PhaseType.exponential(load), room)
    size = process.order
    up, down = process.D1, np.eye(size) / load
    levels = [process.D0] + [process.D0 - down] * (room - 1) + [process.D0 - down + up]
    above, below = sparse.eye_array(room + 1, k=1), sparse.eye_array(room + 1, k=-1)
    generator = sparse.block_diag(levels) + sparse.kron(above, up) + sparse.kron(below, down)
    # x·Q = 0 with 1 for the first state, whose balance follows from the others
    system = sparse.csc_array(generator.T)[1:, :]
    rest = splu(sparse.csc_matrix(system[:, 1:])).solve(-system[:, [0]].toarray()[:, 0])
    shares = np.append(1.0, rest).reshape(room + 1, size).sum(axis=1)
    shares /= shares.sum()
    assert queue.numbers == pytest.approx(shares, rel=1e-6, abs=1e-11)
    assert queue.busy == pytest.approx(load * (1 - queue.loss), rel=1e-9)
    assert (queue.numbers >= 0).all()


def simulated(load: float, room: int, count: int, seed: int) -> tuple[float, float]:
    """Share lost and mean response time of the others, arrival by arrival."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(BURSTY.sample(count, rng)).tolist()
    services = rng.gamma(2.0, load / 2.0, count).tolist()
    inside: deque[float] = deque()
    lost, stays = 0, []
    for number, (now, service) in enumerate(zip(times, services, strict=True)):
        while inside and inside[0] <= now:
            inside.popleft()
        if len(inside) < room:
            inside.append(max(now, inside[-1] if inside else now) + service)
            stays.append(inside[-1] - now)
        elif number > 1_000:
            lost += 1
    return lost / (count - 1_001), float(np.mean(stays[500:]))


@pytest.mark.parametrize(("load", "room"), [(0.7, 10), (0.7, 40), (1.2, 20)])
def test_bursts_against_events(load: float, room: int) -> None:
    queue = solve(BURSTY, PhaseType.erlang(2, mean=load), room)
    runs = [simulated(load, room, 60_000, seed) for seed in range(12)]
    for values, expected in zip(zip(*runs, strict=True), (queue.loss, queue.mean), strict=True):
        seen = estimate(values)
        assert seen.half_width is not None and seen.half_width < 0.1 * expected
        assert abs(seen.mean - expected) <= 1.5 * seen.half_width
    poisson = solve(MarkovianArrivalProcess.poisson(1.0), PhaseType.erlang(2, mean=load), room)
    assert poisson.loss < 0.7 * queue.loss  # bursts are what a buffer is for


def test_what_is_refused() -> None:
    service = PhaseType.exponential(1.0)
    for room in (0, -3, 100_001):
        with pytest.raises(InputError, match="must be from 1 to 100000"):
            solve(BURSTY, service, room)
    with pytest.raises(InputError, match=r"\(0, 1\)"):
        solve(BURSTY, service, 3).percentile(1.0)
