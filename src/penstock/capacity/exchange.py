"""Throughput of slots that share work, wait and exchange state over a network, as a model.

Gesscale's model knows slots and the greatest delay [arkian21]. A study of stateful operators found
what it does not know [arsalane24]: what the first node does for the source, work that keys divide
unevenly, and exchanges over slow links. Each shows in what an engine reports; ``learning`` learns
it from there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.capacity.readings import Layout
from penstock.capacity.slowest import stretched
from penstock.capacity.student import errors_wide

GRID = np.linspace(math.log(1e-2), math.log(1e3), 61)  # of ln(θ / w), θ / w per second
DIVIDED = np.array([0.0, 0.5, 1.0])  # of an exchange: the part that shares divide
USUAL_SHARE = 0.2  # with which a divided part is as large as one that is not
EXCHANGE_NOISE = 0.15  # of a reading of which exchanges took all the time: few of them fit in
WORTH = 2.0  # readings that the model is worth against those of the very same layout

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a layout is expected to do, in records/s.

    ``half_width`` of the 95 % interval in which a reading of one window is expected · ``doubt`` the
    part of it that is due to what is not known of the exchange: the part that one layout does not
    share with the next.
    """

    rate: float
    half_width: float
    doubt: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchange:
    """1/MST = E max(l, Z), in seconds per record: the later of work and exchange.

    l = max over slots of (w + κ·(n − 1))·share + [beside the source] (s + e·(1 − share)) / hosts
    + z + ρ·share·d, what the busiest slot works and waits for a record of the whole stream ·
    Z = θ·D·(1 − δ + δ·share/0.2) times a number that varies (see ``slowest``).

    n slots, each with its share of the work · w work for a record, κ what every further slot adds
    to it · s what the source does for it, e if it goes to another node · z waiting at any distance,
    ρ for each second of the greatest round trip d · D round trip of the slowest exchange, θ how
    many of them a record takes, δ the part of them that becomes less where a slot has a smaller
    share.

    work, covariance: w, κ, s, e and their covariance
    waiting: z, ρ
    weights: of the values of ``DIVIDED`` for δ and of ``GRID`` for ln(θ/w); ``None`` where there is
        no state to exchange
    noise, freedom: of a reading, as a share, and its degrees of freedom
    offs: ln(measured / modelled) of layouts that were seen, and in how many readings
    """

    work: Floats
    covariance: Floats
    waiting: Floats
    weights: Floats | None
    noise: float
    freedom: float
    offs: tuple[tuple[Layout, float, float], ...] = ()

    def at(self, layout: Layout) -> float:
        """The records/s of a layout; near what was measured, where this very layout was."""
        return self.expected(layout).rate

    def expected(self, layout: Layout) -> Expected:
        """The records/s of a layout with their interval.

        From the covariance of the work, what is not known of the exchange, and the noise of a
        reading, which is greater where few exchanges fit into a window.
        """
        rate, spread, few = self.modelled(layout)
        off, left = self._off(layout)
        rate *= math.exp(off)
        work, exchange = self.slot_seconds(layout)[1] * left**2, spread * left**2
        width = errors_wide(self.freedom) * rate
        return Expected(
            rate=rate,
            half_width=width * math.sqrt(work + exchange + self.noise**2 + few**2),
            doubt=width * math.sqrt(exchange),
        )

    def slot_seconds(self, layout: Layout) -> tuple[float, float]:
        """l, and its variance as a share."""
        rows = [work_row(layout, host=False)] if layout.slots > layout.hosts else []
        rows += [work_row(layout, host=True)] if layout.hosts else []
        busiest = max(rows, key=lambda row: float(row @ self.work))
        seconds = float(busiest @ self.work) + float(waiting_row(layout) @ self.waiting)
        return seconds, float(busiest @ self.covariance @ busiest) / seconds**2

    def modelled(self, layout: Layout) -> tuple[float, float, float]:
        """Records/s; as shares their variance and the noise of a reading that exchanges cause."""
        seconds, _ = self.slot_seconds(layout)
        if self.weights is None or not layout.exchange:
            return 1.0 / seconds, 0.0, 0.0
        ratios = exchange_ratios(layout, float(self.work[0]), seconds)
        longer, later = stretched(ratios)
        slower = 1.0 / longer
        mean = float((self.weights * slower).sum())
        spread = float((self.weights * (slower - mean) ** 2).sum()) / mean**2
        few = EXCHANGE_NOISE * float((self.weights * later).sum())
        return mean / seconds, spread, few

    def _off(self, layout: Layout) -> tuple[float, float]:
        """How far readings of this very layout are off the model, and what they leave to it."""
        for seen, off, count in self.offs:
            if seen.alike(layout):
                left = WORTH / (count + WORTH)
                return off * (1.0 - left), left
        return 0.0, 1.0


def work_row(layout: Layout, *, host: bool) -> Floats:
    """How w, κ, s and e make up what the busiest slot does, beside the source or elsewhere."""
    share = layout.host if host else layout.rest
    beside = 1.0 / layout.hosts if host else 0.0
    return np.array([share, share * (layout.slots - 1), beside, (1.0 - share) * beside])


def waiting_row(layout: Layout) -> Floats:
    """How z and ρ make up what it waits."""
    return np.array([1.0, layout.most * layout.delay])


def exchange_ratios(layout: Layout, work: float, slot: float) -> Floats:
    """Z / l for every δ of ``DIVIDED`` (rows) and ln(θ/w) of ``GRID`` (columns)."""
    parts = 1.0 - DIVIDED + DIVIDED * layout.most / USUAL_SHARE
    ratios: Floats = np.outer(parts * (work * layout.exchange / slot), np.exp(GRID))
    return ratios
