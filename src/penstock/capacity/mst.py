"""Maximum sustainable throughput by slots and by the delay between their nodes. [arkian21]"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from penstock.capacity.measurements import NEAR, Measurement, configurations
from penstock.capacity.student import errors_wide
from penstock.core.errors import InputError

NOISE, NOISE_WORTH = 0.05, 4.0  # of a reading, as a share; worth so many degrees of freedom
BETA_SPREAD = 0.15  # of β around 1 before it is known: pipelines grow about as n^0.8
GAMMA_SPREAD = 3.0  # of γ/α, per second: 100 ms cost 0.3 of what one slot does
LEAST_BETA = 0.1  # less growth than that is none
MOST_GAMMA = 10.0  # of γ/α, per second, while β may pass for it: 100 ms cost a whole slot
POINTS, ROUNDS = 21, 9  # of the search for β: each round is ten times as fine as the one before
INDEPENDENT = 1e-3  # least singular value of what the measurements say of the parameters

Floats = npt.NDArray[np.float64]
Covariance = tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mst:
    """MST(n, d) = α·n^β − γ·d, in records/s                                  [arkian21, eq. 1]

    n slots · d greatest round trip among their nodes, seconds.

    alpha: what one slot does
    beta: ≤ 1, what slots cost each other
    gamma: ≥ 0, what a second of delay costs
    fitted: how many of them were fitted; the others have their defaults β = 1 and γ = 0
    covariance: of ln α, β and γ/α
    noise, freedom: of a reading, as a share, and its degrees of freedom

    >>> model = calibrate([Measurement(slots=2, delay=0.0, rate=100.0)])
    >>> model.at(3, 0.1), model.fitted
    (150.0, 1)
    """

    alpha: float
    beta: float
    gamma: float
    fitted: int
    covariance: Covariance
    noise: float
    freedom: float

    def at(self, slots: float, delay: float) -> float:
        """Records/s of so many slots that are so far apart; never below 0."""
        return max(0.0, self.alpha * math.pow(slots, self.beta) - self.gamma * delay)

    def half_width(self, slots: float, delay: float) -> float:
        """Half the width of the 95 % interval in which a measurement is expected, records/s.

        From the covariance of the parameters and the noise of a reading. Parameters that were not
        fitted are uncertain too: as far as measurements leave it open, β by ±0.15 and γ by ±3 α
        per second (standard deviations).
        """
        grown = self.alpha * math.pow(slots, self.beta)
        here = grown - self.gamma * delay
        slope = np.array([here, grown * math.log(slots), -self.alpha * delay])
        variance = float(slope @ np.array(self.covariance) @ slope) + (self.noise * here) ** 2
        return errors_wide(self.freedom) * math.sqrt(max(0.0, variance))

    def __str__(self) -> str:
        return f"MST(n, d) = {self.alpha:.3g}·n^{self.beta:.2f} − {self.gamma:.3g}·d"


def calibrate(measured: Sequence[Measurement], *, parameters: int = 3) -> Mst:
    """The model of one configuration: α; of two: α, γ; of three or more: all.   [eq. 2, 3, 1]

    Least squares of relative deviations. For a given β the model is linear in α and γ ≥ 0, so only
    β is searched for, in [0.1, 1]; β above 1 would be no inefficiency, so it ends at 1, which is
    equation 3. A parameter of which the measurements say nothing keeps its default: γ where all
    delays are the same, β where all have as many slots or where it cannot be told from γ. With
    β = 1 by default a second configuration on a near node gives a γ beyond reason, since what slots
    cost each other passes for what a few milliseconds cost: above 10 α per second it stays 0.
    ``parameters`` 1 is equation 2 for ever, 2 equation 3.

    >>> truth = [(1, 0.0, 30.0), (4, 0.1, 59.0), (9, 0.2, 88.0)]
    >>> str(calibrate([Measurement(slots=n, delay=d, rate=r) for n, d, r in truth]))
    'MST(n, d) = 30·n^0.50 − 10·d'
    """
    if not measured:
        raise InputError("a throughput model takes at least one measurement; there is none")
    if parameters not in (1, 2, 3):
        raise InputError(f"parameters {parameters} must be 1 (α), 2 (α, γ) or 3 (α, β, γ)")
    return _calibrated(tuple(measured), parameters)


@lru_cache(maxsize=1024)
def _calibrated(measured: tuple[Measurement, ...], parameters: int) -> Mst:
    fit = _Fit(measured)
    stage = configurations(measured, most=parameters)
    with_gamma = stage >= 2 and bool(np.ptp(fit.delays) > NEAR)
    sizes_differ = bool(np.ptp(fit.slots) > 0)
    with_beta = stage >= 3 and sizes_differ
    beta = fit.best_beta(with_gamma) if with_beta else 1.0
    if with_beta and not fit.tells_apart(beta, with_gamma):
        beta, with_beta = 1.0, False
    alpha, gamma, rest = fit.at(beta, with_gamma)
    if sizes_differ and not with_beta and gamma > MOST_GAMMA * alpha:
        alpha, gamma, rest = fit.at(beta, with_gamma=False)
    fitted = 1 + (gamma > 0.0) + (beta < 1.0)
    freedom = NOISE_WORTH + max(0, len(measured) - fitted)
    noise = math.sqrt((NOISE_WORTH * NOISE**2 + rest) / freedom)
    return Mst(
        alpha=alpha * fit.unit,
        beta=beta,
        gamma=gamma * fit.unit,
        fitted=fitted,
        covariance=fit.covariance(alpha, beta, gamma, noise),
        noise=noise,
        freedom=freedom,
    )


class _Fit:
    """Measurements as columns; rates in units of their mean."""

    def __init__(self, measured: tuple[Measurement, ...]) -> None:
        self.slots = np.array([m.slots for m in measured], dtype=np.float64)
        self.delays = np.array([m.delay for m in measured])
        rates = np.array([m.rate for m in measured])
        self.unit = float(rates.mean())
        self.rates: Floats = rates / self.unit
        self.weights = np.array([m.readings for m in measured])

    def solve(self, betas: Floats, with_gamma: bool) -> tuple[Floats, Floats, Floats]:
        """α and γ for each β, and the weighted squares that are left.

        min Σ w·(α·p − γ·q − 1)², p = n^β / rate, q = d / rate: two normal equations.
        """
        w, q = self.weights, self.delays / self.rates
        p = self.slots ** betas[:, None] / self.rates
        wp = w * p
        pp, p1 = (wp * p).sum(axis=1), wp.sum(axis=1)
        alphas, gammas = p1 / pp, np.zeros_like(pp)
        if with_gamma:
            pq, qq, q1 = wp @ q, float(w @ (q * q)), float(w @ q)
            determinant = pp * qq - pq * pq
            regular = determinant > 1e-12 * pp * qq
            safe = np.where(regular, determinant, 1.0)
            gammas = np.where(regular, np.maximum(0.0, (p1 * pq - q1 * pp) / safe), 0.0)
            alphas = (p1 + gammas * pq) / pp
        off = alphas[:, None] * p - gammas[:, None] * q - 1.0
        return alphas, gammas, (w * off * off).sum(axis=1)

    def at(self, beta: float, with_gamma: bool) -> tuple[float, float, float]:
        """The same for one β."""
        alphas, gammas, rests = self.solve(np.array([beta]), with_gamma)
        return float(alphas[0]), float(gammas[0]), float(rests[0])

    def best_beta(self, with_gamma: bool) -> float:
        """The best β by ever finer grids: the first is fine enough for every valley."""
        low, high = LEAST_BETA, 1.0
        best = 1.0
        for round_ in range(ROUNDS):
            betas = np.linspace(low, high, POINTS if round_ else 2 * POINTS)
            best = float(betas[self.solve(betas, with_gamma)[2].argmin()])
            step = float(betas[1] - betas[0])
            low, high = max(LEAST_BETA, best - step), min(1.0, best + step)
        return best

    def slopes(self, alpha: float, beta: float, gamma: float) -> Floats:
        """Slopes of the rates by ln α, β and γ/α, as shares of the rates; a row per measurement."""
        grown = alpha * self.slots**beta
        columns = [grown - gamma * self.delays, grown * np.log(self.slots), -alpha * self.delays]
        return np.stack(columns, axis=1) / self.rates[:, None]

    def tells_apart(self, beta: float, with_gamma: bool) -> bool:
        """Whether the measurements say different things of the parameters that are fitted."""
        columns = self.slopes(1.0, beta, 0.0)[:, : 3 if with_gamma else 2]
        length = np.linalg.norm(columns, axis=0)
        if not (length > 0.0).all():
            return False
        return bool(np.linalg.svd(columns / length, compute_uv=False)[-1] > INDEPENDENT)

    def covariance(self, alpha: float, beta: float, gamma: float, noise: float) -> Covariance:
        """(Σ w·J·Jᵀ/noise² + prior)⁻¹, the prior as wide as the spreads above."""
        slopes = self.slopes(alpha, beta, gamma)
        known = (slopes * self.weights[:, None]).T @ slopes / noise**2
        known += np.diag([0.0, BETA_SPREAD**-2, GAMMA_SPREAD**-2])
        rows = np.linalg.inv(known).tolist()
        return tuple((a, b, c) for a, b, c in rows)
