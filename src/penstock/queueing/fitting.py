"""Markovian arrival processes that look like a window of inter-arrival times. [casale10]

Blocks of two phases with a diagonal D0 are composed by Kronecker products, so that with the mean
scaled to 1 and a_j = (SCV_j − 1)/2
    ∏(1 + a_j) = r2,   ∏ r3_j = r3,   1 + SCV·ρ_k = ∏(1 + a_j·γ_j^k).
First the a_j and γ_j are fitted to the index of dispersion (SCV is met exactly), then the mean of
the fast phase of each block to the third moments, which decide how dense bursts are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from itertools import combinations

import numpy as np
from scipy.optimize import leastsq
from scipy.special import expit

from penstock.core.errors import InputError
from penstock.queueing.intervals import Intervals
from penstock.queueing.map2 import decays, hyperexponential, map2, third_moments
from penstock.queueing.markovian import MarkovianArrivalProcess
from penstock.queueing.matrices import Floats
from penstock.queueing.phase_type import PhaseType

LEAST = 100  # intervals: fewer say nothing of correlation
MOST_BLOCKS = 3
SPREADS = (0.5, 1.0, 1.5)  # of the correlation times to start from
MOST_STEPS = 200
NEAR, EXACT = 1e-3, 1.5e-8  # relative gain of a step below which a search ends: to choose, to use
NEARLY_ONE = 0.01  # of an SCV: a Poisson process
LOWEST, HIGHEST = 1e-3, 0.98  # of the mean in the fast phase of a block, relative to all


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A process and how far its dispersion is off: root mean square of the relative error."""

    process: MarkovianArrivalProcess
    blocks: int
    error: float


def fit(intervals: Intervals, *, most_blocks: int = MOST_BLOCKS) -> Fit:
    """A process like a window: with its mean and, if that is > 1, its SCV.

    The number of blocks is the one with the best BIC.
    """
    _check(intervals, most_blocks)
    if intervals.scv <= 1.0 + NEARLY_ONE:
        return _regular(intervals)
    return _finished(intervals, _best(intervals, most_blocks))


def alternatives(intervals: Intervals, count: int) -> tuple[Fit, ...]:
    """Processes like a window without its first, second, … of ``count`` equal parts.

    What differs between them is what the window does not tell for sure (a jackknife of blocks);
    the worst of them errs on the safe side. They have as many blocks as the fit of the whole,
    which is the only one if ``count`` is 1.
    """
    _check(intervals, MOST_BLOCKS)
    if count == 1 or len(intervals) < 2 * LEAST or intervals.scv <= 1.0 + NEARLY_ONE:
        return (fit(intervals),)
    start = _best(intervals, MOST_BLOCKS).found
    parts = np.array_split(intervals.values, count)
    fits = []
    for out in range(count):
        rest = Intervals(np.concatenate(parts[:out] + parts[out + 1 :]))
        if rest.scv <= 1.0 + NEARLY_ONE:
            fits.append(_regular(rest))
        else:
            fits.append(_finished(rest, _shape(rest, start)))
    return tuple(fits)


def _check(intervals: Intervals, most_blocks: int) -> None:
    if len(intervals) < LEAST:
        raise InputError(f"{len(intervals)} inter-arrival times; a fit takes at least {LEAST}")
    if not 1 <= most_blocks <= 4:
        raise InputError(f"{most_blocks} blocks must be from 1 to 4")


@dataclass(frozen=True, slots=True)
class _Shape:
    """Blocks with the share ``weights`` of log r2 each and γ_j = e^(−1/τ_j), as ``found``."""

    weights: Floats
    taus: Floats
    found: Floats
    error: float
    score: float


def _best(intervals: Intervals, most_blocks: int) -> _Shape:
    """The fit with the best score (BIC), of every order and from several starts.

    Which that is shows long before a search has ended; only that one is brought to its end.
    """
    starts: list[Floats] = []
    longest = math.log(max(2.0, float(intervals.sums[-1])))
    for blocks in range(1, most_blocks + 1):
        places = (np.arange(blocks) + 0.5) / blocks
        for spread in SPREADS if blocks > 1 else SPREADS[1:2]:
            start = np.concatenate([np.zeros(blocks - 1), places**spread * longest])
            if len(start) <= len(intervals.sums):
                starts.append(start)
    best = min(starts, key=lambda start: _shape(intervals, start, NEAR).score)
    return _shape(intervals, best)


def _shape(intervals: Intervals, start: Floats, tolerance: float = EXACT) -> _Shape:
    blocks = (len(start) + 1) // 2
    model = _Dispersion(intervals, blocks)
    wanted = np.log(np.maximum(intervals.dispersion, 1e-12))
    found = _least_squares(lambda x: model.logs(x) - wanted, start, model.slopes, tolerance)
    weights, taus = model.unpacked(found)
    square = float(np.mean((model.logs(found) - wanted) ** 2))
    count = len(wanted)
    score = count * math.log(max(square, 1e-30)) + len(start) * math.log(count)
    return _Shape(weights, taus, found, math.sqrt(square), score)


class _Dispersion:
    """log I(m) of composed blocks and its slopes, by J − 1 logits of the weights and J log τ.

    ∏(1 + a_j·γ_j^k) − 1 is a sum over all sets of blocks of A·g^k, A the product of their a_j and
    g of their γ_j, and Σ_(k<m) (1 − k/m)·g^k = u − v·(1 − g^m)/m, u = g/(1−g), v = u·(1+u).
    """

    def __init__(self, intervals: Intervals, blocks: int) -> None:
        self._m = intervals.sums.astype(np.float64)[:, None]
        self._scv = intervals.scv
        self._log_r2 = math.log((1.0 + intervals.scv) / 2.0)
        self._longest = math.log(len(intervals))  # a window says nothing of what lasts longer
        self._sets = _sets(blocks)

    def unpacked(self, x: Floats) -> tuple[Floats, Floats]:
        blocks = self._sets.shape[1]
        logits = np.concatenate([[0.0], x[: blocks - 1]])
        weights = np.exp(logits - logits.max())
        return weights / weights.sum(), np.exp(np.clip(x[blocks - 1 :], -3.0, self._longest))

    def logs(self, x: Floats) -> Floats:
        weights, taus = self.unpacked(x)
        products, decay = self._products(weights), self._sets @ (1.0 / taus)
        return np.asarray(np.log(self._scv + 2.0 * (self._sum(decay) @ products)))

    def slopes(self, x: Floats) -> Floats:
        weights, taus = self.unpacked(x)
        products, decay = self._products(weights), self._sets @ (1.0 / taus)
        a = np.expm1(weights * self._log_r2)
        sums = self._sum(decay)
        whole = (self._scv + 2.0 * (sums @ products))[:, None]
        by_a = 2.0 * (sums * products) @ self._sets / np.maximum(a, 1e-300)
        by_weight = by_a * (self._log_r2 * (1.0 + a))
        mixing = np.diag(weights) - np.outer(weights, weights)
        by_tau = -2.0 * (self._sum_slope(decay) * products) @ self._sets / taus
        return np.hstack([by_weight @ mixing[:, 1:], by_tau]) / whole

    def _products(self, weights: Floats) -> Floats:
        a = np.maximum(np.expm1(weights * self._log_r2), 1e-300)
        return np.asarray(np.exp(self._sets @ np.log(a)))

    def _sum(self, decay: Floats) -> Floats:
        u = 1.0 / np.expm1(decay)
        return np.asarray(u + u * (1.0 + u) * np.expm1(-decay * self._m) / self._m)

    def _sum_slope(self, decay: Floats) -> Floats:
        u = 1.0 / np.expm1(decay)
        v = u * (1.0 + u)
        gone = np.expm1(-decay * self._m)
        return np.asarray(-v * (1.0 + (1.0 + 2.0 * u) * gone / self._m + 1.0 + gone))


@cache
def _sets(blocks: int) -> Floats:
    """A row per set of blocks that is not empty."""
    rows = [
        [float(j in chosen) for j in range(blocks)]
        for size in range(1, blocks + 1)
        for chosen in combinations(range(blocks), size)
    ]
    return np.array(rows)


def _finished(intervals: Intervals, shape: _Shape) -> Fit:
    """The blocks with the mean of each one's fast phase, by the third moments.

    It is at least the smallest mean that was seen over as many arrivals as the block remembers:
    without that bound a whole burst would be put at distance zero.
    """
    r2 = np.exp(shape.weights * math.log((1.0 + intervals.scv) / 2.0))
    gammas = np.exp(-1.0 / shape.taus)
    lows = np.array([intervals.least_local_mean(round(tau)) / intervals.mean for tau in shape.taus])
    fast = _fast_means(intervals, r2, gammas, np.clip(lows, LOWEST, HIGHEST - 0.01))
    blocks = [
        hyperexponential(r2=float(r), low=float(low), gamma=float(gamma))
        for r, low, gamma in zip(r2, fast, gammas, strict=True)
        if r > 1.0 + 1e-9
    ]
    process = reduce(MarkovianArrivalProcess.composed, blocks).scaled(intervals.mean)
    return Fit(process=process, blocks=len(blocks), error=shape.error)


def _fast_means(intervals: Intervals, r2: Floats, gammas: Floats, lows: Floats) -> Floats:
    cube = intervals.mean**3
    joint = {lags: value for lags, value in intervals.joint_moments.items() if value > 0.0}
    k, l = np.array(list(joint), dtype=np.intp).reshape(-1, 2).T  # noqa: E741
    wanted = np.log(np.array([*joint.values(), intervals.moment(3) / 6.0]) / cube)
    near, far = gammas[:, None] ** k, gammas[:, None] ** l

    def residuals(x: Floats) -> Floats:
        fast = lows + (HIGHEST - lows) * expit(x)
        slow = (r2 - fast) / (1.0 - fast)
        share = (1.0 - fast) / (slow - fast)
        r3 = (share * slow**3 + (1.0 - share) * fast**3)[:, None]
        second = r2[:, None]
        inner = far * second + 1.0 - far
        outer = far * r3 + (1.0 - far) * second
        model = near * outer + (1.0 - near) * inner
        return np.append(np.log(model).sum(axis=0), np.log(r3).sum()) - wanted

    found = _least_squares(residuals, np.zeros(len(r2)))
    return np.asarray(lows + (HIGHEST - lows) * expit(found))


def _least_squares(
    residuals: Callable[[Floats], Floats],
    start: Floats,
    slopes: Callable[[Floats], Floats] | None = None,
    tolerance: float = EXACT,
) -> Floats:
    """Levenberg and Marquardt's method, straight from MINPACK: a fit makes hundreds of calls."""
    with np.errstate(all="ignore"):  # it also looks for a covariance, which need not exist
        found, *_ = leastsq(
            residuals, start, Dfun=slopes, ftol=tolerance, maxfev=MOST_STEPS, full_output=True
        )
    return np.asarray(found)


def _regular(intervals: Intervals) -> Fit:
    """SCV ≤ 1: a MAP(2) where one has that SCV, else Erlang phases without correlation."""
    scv, r2 = intervals.scv, (1.0 + intervals.scv) / 2.0
    first = float(intervals.autocorrelation[0])
    thirds = third_moments(r2)
    if scv >= 1.0 - NEARLY_ONE:
        process = MarkovianArrivalProcess.poisson(1.0 / intervals.mean)
    elif thirds is None:
        process = PhaseType.of(mean=intervals.mean, scv=scv).renewal()
    else:
        r3 = thirds.clip(intervals.moment(3) / 6.0 / intervals.mean**3)
        possible = decays(r2, r3)
        assert possible is not None  # r3 is within
        gamma = possible.clip(first * scv / (r2 - 1.0))  # ρ_1 = γ·(r2 − 1)/SCV
        process = map2(mean=intervals.mean, r2=r2, r3=r3, gamma=gamma)
    found = float(process.autocorrelation(1)) if process.order > 1 else 0.0
    return Fit(process=process, blocks=1, error=abs(first - found))
