"""Changes of size under way: when each takes effect, and what it turned out to cost."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.model import Rescale
from penstock.simulator.series import Floats
from penstock.simulator.spec import RescaleProfile

KEPT = 8  # costs of so many past actions are shown
LOOK = 60  # seconds between two looks at whether the throughput has come back
PATIENCE = 600  # seconds after which a throughput that has not come back is no longer looked for
NEVER = 2**62


@dataclass(slots=True)
class _Action:
    """``done`` the second in which all is in force · ``rate`` throughput before the action."""

    number: int
    rescale: Rescale
    done: int
    rate: float
    looked: int


class Actions:
    """The actions of one run. Pools are asked for absolute sizes; a later wish replaces one that
    is still under way, which then leaves no cost behind.

    ``next_event`` is the second before which no size changes.
    """

    def __init__(self, profile: RescaleProfile, rng: np.random.Generator) -> None:
        self.next_event = NEVER
        self._profile = profile
        self._rng = rng
        self._events: list[tuple[int, str, int]] = []
        self._down_until = 0.0
        self._open: list[_Action] = []
        self._costs: dict[int, Rescale] = {}
        self._shown: tuple[Rescale, ...] = ()
        self._count = 0

    def ask(
        self,
        now: int,
        sizes: Mapping[str, tuple[int, int]],
        rate: float,
        state: float,
        moved: Collection[str] = (),
    ) -> float:
        """Plan changes of pools from one size to another; seconds the job stops from now on.

        ``rate`` throughput before it · ``state`` records of state that have to move · ``moved``
        pools whose slots go to other nodes, which is a change though their number stays.
        """
        self._events = [e for e in self._events if e[1] not in sizes]
        self._open = [a for a in self._open if a.done <= now or a.rescale.pool not in sizes]
        jitter = 1.0 + self._profile.jitter * self._rng.uniform(-1.0, 1.0)
        stops = self._profile.stops_for(state) * jitter
        down = 0.0
        for pool, (before, after) in sizes.items():
            if after == before and pool not in moved:
                continue
            down = stops
            if after > before:
                joins = self._profile.join_times(after - before)
                delays = [max(stops, seconds * jitter) for seconds in joins]
                steps = list(zip(delays, range(before + 1, after + 1), strict=True))
            else:
                steps = [(max(stops, self._profile.drain * jitter), after)]
            # A slot that joins counts from the next whole second; a job that comes back up does
            # so with its new sizes, for the rest of that second.
            events = [
                (now + (int(delay) if delay <= down else math.ceil(delay)), pool, slots)
                for delay, slots in steps
            ]
            self._events += events
            cost = Rescale(
                time=float(now),
                pool=pool,
                before=before,
                after=after,
                registered=steps[-1][0],
                downtime=down,
            )
            self._open.append(_Action(self._count, cost, events[-1][0], rate, now))
            self._count += 1
        self._events.sort(key=lambda event: event[0])  # stable: sizes of a pool stay in order
        self.next_event = self._events[0][0] if self._events else NEVER
        self._down_until = max(self._down_until, now + down)
        return down

    def due(self, now: int) -> dict[str, int]:
        """The sizes that are in force from now on."""
        sizes = {pool: slots for second, pool, slots in self._events if second <= now}
        self._events = [e for e in self._events if e[0] > now]
        self.next_event = self._events[0][0] if self._events else NEVER
        return sizes

    def in_flight(self, now: int) -> bool:
        """Whether sizes are still to change, or the job is still down."""
        return bool(self._events) or now < self._down_until

    def costs(self, now: int, delivered: Floats) -> tuple[Rescale, ...]:
        """The last few actions that are in force, with their cost as far as it is known."""
        if not self._open:
            return self._shown
        settled = []
        found: dict[tuple[int, float], int | None] = {}  # pools that change together share it
        for action in self._open:
            if action.done > now or (now - action.looked < LOOK and action.number in self._costs):
                continue
            cost = action.rescale
            search = action.looked, action.rate
            if search not in found:
                found[search] = _first(delivered[action.looked : now], action.rate * (1.0 - 1e-9))
            if (after := found[search]) is not None:
                cost = replace(cost, steady=action.looked + after + 1 - cost.time)
            action.looked = now
            over = cost.steady is not None or now - cost.time > PATIENCE
            if over:
                settled.append(action)
            if over or action.number not in self._costs:
                self._show(action.number, cost)
        if settled:
            self._open = [a for a in self._open if a not in settled]
        return self._shown

    def _show(self, number: int, cost: Rescale) -> None:
        self._costs[number] = cost
        while len(self._costs) > KEPT:
            del self._costs[min(self._costs)]
        self._shown = tuple(self._costs.values())


def _first(values: Floats, least: float) -> int | None:
    """Where a value is at least that large for the first time."""
    if not len(values) or values.max() < least:
        return None
    return int((values >= least).argmax())
