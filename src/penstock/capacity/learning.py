"""Learning the model of ``exchange`` from few readings: each part from where it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from penstock.capacity.exchange import (
    DIVIDED,
    EXCHANGE_NOISE,
    GRID,
    Exchange,
    Floats,
    exchange_ratios,
    waiting_row,
    work_row,
)
from penstock.capacity.measurements import NEAR
from penstock.capacity.readings import Reading
from penstock.capacity.slowest import stretched
from penstock.core.errors import InputError

NOISE, NOISE_WORTH = 0.05, 4.0  # of a reading, as a share; worth so many degrees of freedom
# What is usual, as long as readings do not tell; all as shares of the work per record.
COUPLING = 0.02  # that each further slot costs all others
SOURCE, SENDING = 0.1, 0.05  # that the source does for a record, and for one to another node
STEADY = 0.5  # of a slot's part: waiting at any distance
WAITING = 3.0  # waiting per second of round trip: 100 ms cost 0.3 of the work
EXCHANGING, SPREAD = 3.0, 1.0  # the same of exchanges, most likely; and of its logarithm
EXCHANGES = 8.0  # in a window, as far as the share of those that come late goes
ANY = 1e4  # times the work that readings show: no more than that, and no less than one part in it
IDLE = 1e-6  # busy share below which nothing is learnt of it
LEAST, MOST = 1e-4, 1.0 - 1e-4  # of such shares: nothing is certain


def learn(readings: Sequence[Reading], *, stateful: bool = True) -> Exchange:
    """The model of some readings, of which at least one is of a full pool or tells who was busy.

    **Work** (w, κ, s, e): busy seconds per record, of the slots beside the source, of all others
    and of the source itself, by least squares; where none are told, of full pools on the nearest
    nodes the time per record. **Waiting** (z, ρ): the time per record in which not even the busiest
    slot worked although records waited, as far as something held the source back. **Exchange** (θ):
    how much longer records took, and for what share of the time nothing held the source back
    though they waited. What readings leave open is held by what is usual; two or three of them are
    enough to overrule it. ``stateful`` whether there is state to exchange.

    >>> from penstock.capacity.readings import Layout
    >>> layouts = [Layout(slots=n, rest=1 / n) for n in (1, 2)]
    >>> model = learn([Reading(layout=l, rate=100.0 * l.slots, full=True) for l in layouts])
    >>> round(model.at(Layout(slots=3, rest=1 / 3)))
    300
    """
    if not any(teaches(reading) for reading in readings):
        raise InputError("a throughput model takes at least one reading of a full or busy pool")
    return _learnt(tuple(readings), stateful)


def teaches(reading: Reading) -> bool:
    """Whether something can be learnt of a reading."""
    return bool(_work_rows(reading, math.inf))


@lru_cache(maxsize=256)
def _learnt(readings: tuple[Reading, ...], stateful: bool) -> Exchange:
    work, covariance = _work(readings)
    model = Exchange(
        work=work,
        covariance=covariance,
        waiting=np.zeros(2),
        weights=_usual() if stateful else None,
        noise=NOISE,
        freedom=NOISE_WORTH,
    )
    full = [_Full.of(r, model) for r in readings if r.full]
    if not full:
        return model
    model = replace(model, waiting=_waiting(full, float(work[0])))
    if stateful:
        model = replace(model, weights=_exchange(full, model))
    return _with_noise(model, full)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Full:
    """A reading of a full pool: ``busy`` seconds per record that its busiest slot worked, ``slot``
    those in steps which did not wait for an exchange."""

    reading: Reading
    busy: float
    slot: float

    @classmethod
    def of(cls, r: Reading, model: Exchange) -> _Full:
        seconds = 1.0 / r.rate
        busy = model.slot_seconds(r.layout)[0] if r.busiest is None else r.busiest * seconds
        slot = seconds
        if model.weights is not None and r.waits is not None and r.layout.exchange:
            longer, later = _stretches()
            slot /= float(np.interp(r.waits, later, longer))
        return cls(reading=r, busy=busy, slot=max(slot, busy))


@lru_cache(maxsize=1)
def _stretches() -> tuple[Floats, Floats]:
    """How much longer steps take, and the share of time in which exchanges decide, both rising."""
    return stretched(np.linspace(0.0, 2.2, 441))


def _work(readings: Sequence[Reading]) -> tuple[Floats, Floats]:
    """w, κ, s, e ≥ 0 and their covariance: least squares of relative deviations."""
    rows: list[Floats] = []
    seconds: list[float] = []
    counts: list[float] = []
    near = min((r.layout.delay for r in readings if r.full), default=math.inf) + NEAR
    for r in readings:
        for row, busy in _work_rows(r, near):
            rows.append(row)
            seconds.append(busy / r.rate)
            counts.append(r.count)
    matrix, values = np.array(rows), np.array(seconds)
    shares = matrix[:, 0]
    unit = float((values[shares > 0.0] / shares[shares > 0.0]).max(initial=values.max()))
    scale = np.sqrt(counts) / (NOISE * values)
    usual = np.diag([1.0 / ANY, 1.0 / COUPLING, 1.0 / SOURCE, 1.0 / SENDING]) / unit
    stacked = np.vstack([matrix * scale[:, None], usual])
    found = _not_negative(stacked, np.append(values * scale, np.zeros(4)))
    found[0] = max(found[0], unit / ANY)  # a source that does all the work leaves none
    size = np.linalg.norm(stacked, axis=0)
    known = np.linalg.pinv(stacked / size) / size[:, None]  # inverse, of any readings whatever
    return found, np.asarray(known @ known.T, dtype=np.float64)


def _work_rows(r: Reading, near: float) -> list[tuple[Floats, float]]:
    """What a reading says of w, κ, s and e, and the busy share that it says it with."""
    layout = r.layout
    found = []
    if _told(r.host) and layout.hosts:
        found.append((work_row(layout, host=True), r.host))
    if _told(r.rest) and r.rest_share > 0.0:
        found.append((np.array([1.0, layout.slots - 1.0, 0.0, 0.0]) * r.rest_share, r.rest))
    if found and _told(r.source) and layout.hosts:
        found.append((np.array([0.0, 0.0, 1.0, 1.0 - layout.host]), r.source))
    if not found and r.full and layout.delay <= near:
        found.append((work_row(layout, host=layout.hosts > 0), 1.0))
    return found


def _told(busy: float | None) -> TypeGuard[float]:
    return busy is not None and busy > IDLE


def _waiting(full: Sequence[_Full], work: float) -> Floats:
    """z, ρ ≥ 0 of the time in which the busiest slot did not work, as a share of all time."""
    rates = np.array([f.reading.rate for f in full])
    rows = np.array([waiting_row(f.reading.layout) for f in full]) * rates[:, None]
    idle = np.array([f.slot - f.busy for f in full]) * rates
    told = np.array([f.reading.count * (1.0 - (f.reading.waits or 0.0)) for f in full])
    scale = np.sqrt(np.maximum(told, LEAST)) / NOISE
    part = work * float(np.mean([f.reading.layout.most for f in full]))
    usual = np.diag([1.0 / (STEADY * part), 1.0 / (WAITING * work)])
    stacked = np.vstack([rows * scale[:, None], usual])
    return _not_negative(stacked, np.append(idle * scale, np.zeros(2)))


def _not_negative(rows: Floats, values: Floats) -> Floats:
    """Least squares with x ≥ 0."""
    from scipy.optimize import nnls  # here: most commands have no use for it

    size = np.linalg.norm(rows, axis=0)
    found, _ = nnls(rows / size, values)
    return np.asarray(found / size, dtype=np.float64)


def _usual() -> Floats:
    """Weights of δ and ln(θ/w) before anything was read."""
    weights = np.exp(-(((GRID - math.log(EXCHANGING)) / SPREAD) ** 2) / 2.0)
    return np.tile(weights / weights.sum(), (len(DIVIDED), 1)) / len(DIVIDED)


def _exchange(full: Sequence[_Full], model: Exchange) -> Floats:
    """Weights of δ and ln(θ/w): of each pair, how likely the readings are if it is true."""
    score = np.log(_usual())
    for f in full:
        r = f.reading
        if not r.layout.exchange:
            continue
        slot = f.busy + float(waiting_row(r.layout) @ model.waiting)
        ratios = exchange_ratios(r.layout, float(model.work[0]), slot)
        longer, later = stretched(ratios)
        late = np.clip(later, LEAST, MOST)
        off = math.log(1.0 / (r.rate * slot)) - np.log(longer)
        squares = NOISE**2 + (EXCHANGE_NOISE * late) ** 2
        score -= r.count * (off**2 / squares + np.log(squares)) / 2.0
        if r.waits is not None:
            told = np.clip(r.waits, 0.0, 1.0)
            many = r.count * EXCHANGES
            score += many * (told * np.log(late) + (1.0 - told) * np.log1p(-late))
    weights = np.exp(score - score.max())
    return np.asarray(weights / weights.sum())


def _with_noise(model: Exchange, full: Sequence[_Full]) -> Exchange:
    """How far readings are off, by layout, and the noise that this tells."""
    offs, squares = [], 0.0
    for f in full:
        r = f.reading
        rate, _, few = model.modelled(r.layout)
        off = math.log(r.rate / rate)
        offs.append((r.layout, off, r.count))
        squares += off**2 * NOISE**2 / (NOISE**2 + few**2)
    freedom = NOISE_WORTH + len(full) - 1
    noise = math.sqrt((NOISE_WORTH * NOISE**2 + squares) / freedom)
    return replace(model, noise=noise, freedom=freedom, offs=tuple(offs))
