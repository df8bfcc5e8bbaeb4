"""Throughput of nodes that share work, exchange state and wait for each other, as it is observed.

Gesscale's model knows slots and the greatest delay [arkian21]. A study of stateful operators found
what it does not know [arsalane24]: what the first node does for the source, work that keys divide
unevenly, and exchanges over slow links. Each of these shows in what an engine reports, so each is
learnt from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls
from scipy.special import stdtrit

from penstock.capacity.readings import Layout, Reading
from penstock.capacity.slowest import later, longer
from penstock.core.errors import InputError

CONFIDENCE = 0.95
NOISE, NOISE_WORTH = 0.05, 4.0  # of a reading, as a share; worth so many degrees of freedom
# Spreads of what is not known yet, as shares of the work per record:
COUPLING = 0.02  # that each further slot costs all others
SOURCE, SENDING = 0.1, 0.05  # that the source does for a record, and for one to another node
STEADY = 0.5  # that is waited for whatever the delay
WAITING = 3.0  # per second of round trip: 100 ms cost 0.3 of the work
EXCHANGE, EXCHANGE_SPREAD = 3.0, 1.0  # the same of exchanges: most likely; of its logarithm
EXCHANGE_NOISE = 0.15  # of a reading of which exchanges took all the time: few of them fit in
GRID = np.linspace(math.log(1e-3), math.log(1e3), 241)  # of ln(θ / w)
WINDOWS = 8.0  # that the share of time spent waiting is worth
MEASURED = 2.0  # readings that the model is worth against one of the very same layout

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchange:
    """1/MST = E max(l, Z): seconds per record, the later of work and exchange.

    l = max over slots of (w + κ·(n − 1))·share + [beside the source] (s + e·(1 − share)) / hosts,
    and z + ρ·share·d: work and waiting for each record · Z = θ·D times what varies from exchange
    to exchange · d greatest round trip, D that of the slowest exchange.

    ``work`` w, κ, s, e with their ``covariance`` · ``waiting`` z, ρ · ``weights`` of the values of
    ``GRID`` for ln(θ/w), none where there is no state to exchange · ``noise`` of a reading, with
    ``freedom`` degrees of freedom · ``offs`` ln(measured / modelled) of layouts that were seen.
    """

    work: Floats
    covariance: Floats
    waiting: Floats
    weights: Floats | None
    noise: float
    freedom: float
    offs: tuple[tuple[Layout, float, float], ...]

    def at(self, layout: Layout) -> float:
        """Records/s."""
        return self._modelled(layout)[0] * math.exp(self._off(layout)[0])

    def doubt(self, layout: Layout) -> float:
        """Half-width of the 95 % interval of the mean over many windows, records/s.

        From the covariance of the work and what is not known of the exchange.
        """
        return self._width(layout, 0.0)

    def half_width(self, layout: Layout) -> float:
        """Of the 95 % interval in which a reading of one window is expected, records/s."""
        return self._width(layout, 1.0)

    def _width(self, layout: Layout, windows: float) -> float:
        rate, variance, noise = self._modelled(layout)
        off, open_share = self._off(layout)
        total = variance * open_share**2 + windows * (noise**2 + self.noise**2)
        return _quantile(self.freedom) * math.sqrt(total) * rate * math.exp(off)

    def limit(self, layout: Layout) -> float:
        """Records/s without exchange: by work and waiting alone."""
        return 1.0 / self._lane(layout)[0]

    def _lane(self, layout: Layout) -> tuple[float, float]:
        """l, and its variance as a share."""
        rows = [_row(layout, host=False)] if layout.slots > layout.hosts else []
        rows += [_row(layout, host=True)] if layout.hosts else []
        costs = [float(row @ self.work) for row in rows]
        place = costs.index(max(costs))
        seconds = costs[place] + float(_waiting_row(layout) @ self.waiting)
        variance = float(rows[place] @ self.covariance @ rows[place])
        return seconds, variance / seconds**2

    def _modelled(self, layout: Layout) -> tuple[float, float, float]:
        """Records/s, their variance as a share, and the noise of a reading due to exchanges."""
        seconds, variance = self._lane(layout)
        if self.weights is None or not layout.exchange:
            return 1.0 / seconds, variance, 0.0
        ratios = np.exp(GRID) * self.work[0] * layout.exchange / seconds
        slower = 1.0 / longer(ratios)
        mean = float(self.weights @ slower)
        spread = float(self.weights @ (slower - mean) ** 2) / mean**2
        few = EXCHANGE_NOISE * float(self.weights @ later(ratios))
        return mean / seconds, variance + spread, few

    def _off(self, layout: Layout) -> tuple[float, float]:
        """How far measurements of this very layout are off the model, and what they leave open."""
        for seen, off, count in self.offs:
            if seen.alike(layout):
                share = count / (count + MEASURED)
                return off * share, 1.0 - share
        return 0.0, 1.0

    def __str__(self) -> str:
        w, _, s, e = (1e6 * v for v in self.work)
        return f"{w:.3g} µs of work per record, {s:.3g} + {e:.3g} µs beside the source"


def learn(readings: Sequence[Reading], *, stateful: bool = True) -> Exchange:
    """The model of some readings; at least one must be of a full pool or tell who was busy.

    Work: least squares of the busy time per record, of the slots beside the source, of the others
    and of the source. Waiting: the time per record in which not even the busiest slot worked though
    records waited. Exchange: by how much, and how often, the exchange ended later than the work.
    What the readings leave open is held by what is usual, wide enough to give way to two or three.

    >>> layouts = [Layout(slots=n, rest=1 / n) for n in (1, 2)]
    >>> model = learn([Reading(layout=l, rate=100.0 * l.slots, full=True) for l in layouts])
    >>> round(model.at(Layout(slots=3, rest=1 / 3)))
    300
    """
    if not any(r.full or r.rest or r.host for r in readings):
        raise InputError("a throughput model takes at least one reading of a full or busy pool")
    return _learnt(tuple(readings), stateful)


@lru_cache(maxsize=256)
def _learnt(readings: tuple[Reading, ...], stateful: bool) -> Exchange:
    work, covariance = _work(readings)
    model = Exchange(
        work=work,
        covariance=covariance,
        waiting=np.zeros(2),
        weights=None,
        noise=NOISE,
        freedom=NOISE_WORTH,
        offs=(),
    )
    full = [r for r in readings if r.full]
    seen = [_Seen.of(r, model) for r in full]
    waiting = _waiting(full, seen, work[0])
    model = _with(model, waiting=waiting)
    if stateful and any(r.waits is not None and r.layout.exchange for r in full):
        model = _with(model, weights=_exchange(full, seen, model))
    elif stateful:
        model = _with(model, weights=_prior())
    offs = tuple((r.layout, math.log(r.rate / model._modelled(r.layout)[0]), r.count) for r in full)
    squares = sum(count * off * off for _, off, count in offs)
    freedom = NOISE_WORTH + max(0, len(offs) - 1)
    noise = math.sqrt((NOISE_WORTH * NOISE**2 + squares) / (freedom + sum(c - 1 for *_, c in offs)))
    return _with(model, noise=noise, freedom=freedom, offs=offs)


def _with(model: Exchange, **changed: object) -> Exchange:
    from dataclasses import replace

    return replace(model, **changed)  # type: ignore[arg-type]


def _row(layout: Layout, *, host: bool) -> Floats:
    """What the busiest slot does for a record, by w, κ, s and e."""
    share = layout.host if host else layout.rest
    beside = 1.0 / layout.hosts if host else 0.0
    return np.array([share, share * (layout.slots - 1), beside, (1.0 - share) * beside])


def _waiting_row(layout: Layout) -> Floats:
    return np.array([1.0, layout.most * layout.delay])


def _work(readings: Sequence[Reading]) -> tuple[Floats, Floats]:
    """w, κ, s, e ≥ 0 and their covariance."""
    rows, seconds, counts = [], [], []
    least = min(r.layout.delay for r in readings)
    for r in readings:
        layout, found = r.layout, list[tuple[Floats, float]]()
        if r.host:
            found.append((_row(layout, host=True), r.host))
        if r.rest and r.rest_share > 0.0:
            others = np.array([1.0, layout.slots - 1.0, 0.0, 0.0]) * r.rest_share
            found.append((others, r.rest))
        if r.source and layout.hosts:
            found.append((np.array([0.0, 0.0, 1.0, 1.0 - layout.host]), r.source))
        if not found and r.full and layout.delay <= least + 0.002:
            found.append((_row(layout, host=layout.hosts > 0), 1.0))
        for row, busy in found:
            rows.append(row)
            seconds.append(busy / r.rate)
            counts.append(r.count)
    if not rows:
        raise InputError("a throughput model takes a reading that tells who was busy")
    matrix, values = np.array(rows), np.array(seconds)
    unit = float((values / matrix.sum(axis=1)).max())
    scale = np.sqrt(counts) / NOISE / values
    prior = np.diag([0.0, 1.0 / COUPLING, 1.0 / SOURCE, 1.0 / SENDING]) / unit
    stacked = np.vstack([matrix * scale[:, None], prior])
    target = np.concatenate([values * scale, np.zeros(4)])
    norms = np.linalg.norm(stacked, axis=0)
    found_work, _ = nnls(stacked / norms, target)
    covariance = np.linalg.inv(stacked.T @ stacked)
    return found_work / norms, covariance


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Of a full reading: ``lane`` seconds per record in steps that the work decided; ``busy`` those
    that the busiest slot worked."""

    lane: float
    busy: float

    @classmethod
    def of(cls, r: Reading, model: Exchange) -> _Seen:
        seconds = 1.0 / r.rate
        busy = model._lane(r.layout)[0] if r.busiest is None else r.busiest * seconds
        lane = seconds if r.waits is None else seconds / float(longer(_ratio(r.waits)))
        return cls(lane=max(lane, busy), busy=busy)


_RATIOS = np.linspace(0.0, 2.2, 441)
_SHARES = later(_RATIOS)


def _ratio(share: float) -> float:
    """The ratio of exchange to work at which such a share of the time goes by in waiting."""
    return float(np.interp(share, _SHARES, _RATIOS))


def _waiting(full: Sequence[Reading], seen: Sequence[_Seen], work: float) -> Floats:
    if not full:
        return np.zeros(2)
    rows = np.array([_waiting_row(r.layout) * r.rate for r in full])
    excess = np.array([(s.lane - s.busy) * r.rate for r, s in zip(full, seen, strict=True)])
    sure = np.array([1.0 if r.waits is None else 1.0 - r.waits for r in full])
    scale = np.sqrt(np.array([r.count for r in full]) * np.maximum(sure, 1e-3)) / NOISE
    unit = work * float(np.mean([r.layout.most for r in full]))
    prior = np.diag([1.0 / (STEADY * unit), 1.0 / (WAITING * work)])
    found, _ = nnls(
        np.vstack([rows * scale[:, None], prior]), np.append(excess * scale, [0.0, 0.0])
    )
    return np.asarray(found)


def _prior() -> Floats:
    weights = np.exp(-(((GRID - math.log(EXCHANGE)) / EXCHANGE_SPREAD) ** 2) / 2.0)
    return np.asarray(weights / weights.sum())


def _exchange(full: Sequence[Reading], seen: Sequence[_Seen], model: Exchange) -> Floats:
    """Weights of ln(θ/w): of each, how likely it makes the readings."""
    score = np.log(_prior())
    for r, s in zip(full, seen, strict=True):
        lane = s.busy + float(_waiting_row(r.layout) @ model.waiting)
        ratios = np.exp(GRID) * model.work[0] * r.layout.exchange / lane
        off = np.log(1.0 / r.rate / lane) - np.log(longer(ratios))
        shares = np.clip(later(ratios), 1e-4, 1.0 - 1e-4)
        squares = NOISE**2 + (EXCHANGE_NOISE * shares) ** 2
        score -= r.count * (off**2 / squares + np.log(squares)) / 2.0
        if r.waits is not None:
            part = min(max(r.waits, 0.0), 1.0)
            score += r.count * WINDOWS * (part * np.log(shares) + (1.0 - part) * np.log1p(-shares))
    weights = np.exp(score - score.max())
    return np.asarray(weights / weights.sum())


@lru_cache(maxsize=256)
def _quantile(freedom: float) -> float:
    return float(stdtrit(freedom, (1.0 + CONFIDENCE) / 2.0))
