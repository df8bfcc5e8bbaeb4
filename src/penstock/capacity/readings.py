"""What was seen of a pool at one of its sizes: the layout, its throughput, who was busy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.capacity.measurements import MOST_READINGS, NEAR, NEWEST
from penstock.core.errors import InputError

MOST = 32  # layouts that are remembered
FADE, LEAST = 0.995, 0.1  # of what a reading is worth after every other one; then it is gone
ALIKE = 0.25  # share by which the delays of like layouts may differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What of a set of slots decides on its throughput.

    slots: their number
    hosts: how many of them run beside the source and do its work too
    host, rest: shares of the operator's work that the busiest of those has, and of the others
    delay: greatest round trip among the nodes, seconds
    exchange: round trip of the slowest exchange: every slot with all nodes in use, the slowest of
        them (see ``slowest``)
    """

    slots: int
    hosts: int = 0
    host: float = 0.0
    rest: float = 0.0
    delay: float = 0.0
    exchange: float = 0.0

    def __post_init__(self) -> None:
        if self.slots < 1 or not 0 <= self.hosts <= self.slots:
            raise InputError(f"{self.slots} slots, {self.hosts} of them beside the source")
        for name in ("host", "rest", "delay", "exchange"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise InputError(f"layout: {name} = {value} must be a finite number ≥ 0")
        if not self.most > 0.0:
            raise InputError("a layout in which no slot has any share of the work")

    @property
    def most(self) -> float:
        """The greatest share of the work that a slot has."""
        return max(self.host, self.rest)

    def alike(self, other: Layout) -> bool:
        """Whether both have as many slots, and delays within 2 ms or a quarter of each other."""
        near = max(NEAR, ALIKE * max(self.delay, other.delay))
        return self.slots == other.slots and abs(self.delay - other.delay) <= near


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a pool did in a window.

    rate: records/s it took in
    full: whether records waited throughout, so that it could do no more
    busiest, host: shares of the time in which the busiest slot worked, and the busiest of those
        beside the source
    rest, rest_share: the sum of these shares over all others, and the share of the work they have
    source: the same of the source itself
    waits: of the time in which the source did not work, the share in which nothing held it back
    count: of windows this is a mean of
    """

    layout: Layout
    rate: float
    full: bool
    busiest: float | None = None
    host: float | None = None
    rest: float | None = None
    rest_share: float = 1.0
    source: float | None = None
    waits: float | None = None
    count: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate > 0.0):
            raise InputError(f"a throughput of {self.rate} records/s must be a finite number > 0")


def remember(readings: Sequence[Reading], new: Reading, most: int = MOST) -> tuple[Reading, ...]:
    """The readings with a new one; the one that was renewed last stands last.

    Those of like layouts, of which records waited or did not, become one: their mean, in which a
    new one counts at least 0.3. All others fade: each counts 0.5 % less, and is forgotten when it
    is worth a tenth of a reading, or when there are more than ``most`` that are newer.

    >>> two = Layout(slots=2, rest=0.5)
    >>> one = remember([], Reading(layout=two, rate=100.0, full=True))
    >>> [(r.rate, r.count) for r in remember(one, Reading(layout=two, rate=110.0, full=True))]
    [(105.0, 2.0)]
    """
    alike = [r for r in readings if r.full == new.full and r.layout.alike(new.layout)]
    old = min(alike, key=lambda r: abs(r.layout.delay - new.layout.delay), default=None)
    others = [replace(r, count=FADE * r.count) for r in readings if r is not old]
    renewed = new if old is None else _renewed(old, new)
    return (*(r for r in others if r.count >= LEAST), renewed)[-most:]


def _renewed(old: Reading, new: Reading) -> Reading:
    weight = max(NEWEST, 1.0 / (old.count + 1.0))

    def mixed(one: object, other: object, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: _mixed(getattr(one, name), getattr(other, name), weight) for name in names}

    return replace(
        new,
        layout=replace(new.layout, **mixed(old.layout, new.layout, _OF_LAYOUT)),
        count=min(MOST_READINGS, old.count + 1.0),
        **mixed(old, new, _FIGURES),
    )


_OF_LAYOUT = ("host", "rest", "delay", "exchange")
_FIGURES = ("rate", "busiest", "host", "rest", "rest_share", "source", "waits")


def _mixed(old: float | None, new: float | None, weight: float) -> float | None:
    if old is None or new is None:
        return old if new is None else new
    return old + weight * (new - old)
