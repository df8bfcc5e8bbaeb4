"""Throughput at the limit, by configuration: what a model of it is calibrated with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.errors import InputError

MOST = 64  # configurations that are remembered
NEAR, NEAR_SHARE = 0.002, 0.1  # delays that differ by less (seconds, share) are the same
NEWEST = 0.3  # least weight of a new reading against all older ones of its configuration
MOST_READINGS = 2.0 / NEWEST - 1.0  # that such a mean is worth, however many went into it


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What an operator did while it could do no more.

    ``slots`` it had · ``delay`` greatest round trip among their nodes, seconds · ``rate`` records/s
    it took in · ``readings`` how many the rate is a mean of.
    """

    slots: int
    delay: float
    rate: float
    readings: float = 1.0

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise InputError(f"a throughput measured with {self.slots} slots; it takes at least 1")
        if not (math.isfinite(self.delay) and self.delay >= 0):
            raise InputError(f"a round trip of {self.delay} s must be a finite number ≥ 0")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise InputError(f"a throughput of {self.rate} records/s must be a finite number > 0")
        if not (math.isfinite(self.readings) and self.readings > 0):
            raise InputError(f"a mean of {self.readings} readings must be of more than 0")

    def same_configuration(self, other: Measurement) -> bool:
        """Whether both have as many slots, and delays that differ by less than 2 ms or 10 %."""
        near = max(NEAR, NEAR_SHARE * max(self.delay, other.delay))
        return self.slots == other.slots and abs(self.delay - other.delay) <= near


def remember(
    measured: Sequence[Measurement], new: Measurement, most: int = MOST
) -> tuple[Measurement, ...]:
    """The measurements with a new one; the one that was renewed last stands last.

    Readings of one configuration become one measurement: their mean, in which a new reading
    counts at least 0.3, so that what has changed is noticed. Of more than ``most`` configurations
    the one that has not been renewed for longest is forgotten.

    >>> one = Measurement(slots=2, delay=0.05, rate=100.0)
    >>> remember([one], Measurement(slots=2, delay=0.05, rate=110.0))
    (Measurement(slots=2, delay=0.05, rate=105.0, readings=2.0),)
    """
    alike = [m for m in measured if m.same_configuration(new)]
    if not alike:
        return (*measured, new)[-most:]
    old = min(alike, key=lambda m: abs(m.delay - new.delay))
    weight = max(NEWEST, 1.0 / (old.readings + 1.0))
    renewed = Measurement(
        slots=new.slots,
        delay=old.delay + weight * (new.delay - old.delay),
        rate=old.rate + weight * (new.rate - old.rate),
        readings=min(MOST_READINGS, old.readings + 1.0),
    )
    return (*(m for m in measured if m is not old), renewed)


def configurations(measured: Sequence[Measurement], most: int) -> int:
    """How many different configurations there are; ``most`` are enough to know of.

    >>> configurations([Measurement(slots=2, delay=d, rate=9.0) for d in (0.0, 0.001, 0.1)], 3)
    2
    """
    different: list[Measurement] = []
    for m in measured:
        if len(different) == most:
            break
        if not any(m.same_configuration(d) for d in different):
            different.append(m)
    return len(different)
