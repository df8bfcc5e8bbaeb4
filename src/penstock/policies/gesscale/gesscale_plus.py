"""Gesscale+: the smallest set of nodes that is enough by a learnt model. [arkian21, arsalane24]"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from penstock.capacity.exchange import Exchange
from penstock.core.errors import InputError
from penstock.core.latency import LatencyMap
from penstock.core.model import Placement, Proposal, Snapshot
from penstock.policies.gesscale.calibration import figures_of
from penstock.policies.gesscale.layouts import Candidate, Layouts
from penstock.policies.gesscale.moves import (
    PERIOD,
    Move,
    check_period,
    not_now,
    proposal_of,
    rate_words,
    unknown_nodes,
)
from penstock.policies.gesscale.observed import (
    Experience,
    at_limit,
    model_of,
    no_experience,
    reading_of,
    sizes_tried,
    with_reading,
)
from penstock.policies.gesscale.units import Unit, input_of, units_of
from penstock.policies.signals.demand import demand_of
from penstock.policies.signals.reason import listed

HOPELESS = 0.8  # of the input: sets that do less even without exchange are not looked at closely


class Memory(TypedDict):
    """When a snapshot was last looked at, what was learnt of each pool, and round trips."""

    looked: float | None
    pools: dict[str, Experience]
    round_trips: RoundTrips


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a set of slots is expected to do: records/s.

    ``half_width`` of the 95 % interval of a reading, ``doubt`` the part of it that is due to what
    is not known of the exchange · ``candidate`` how to get there; nothing to add or remove for the
    set that is there.
    """

    candidate: Candidate
    rate: float
    half_width: float
    doubt: float

    @classmethod
    def of(cls, model: Exchange, candidate: Candidate) -> Forecast:
        """The forecast of a model for a set of slots."""
        found = model.expected(candidate.layout)
        return cls(
            candidate=candidate, rate=found.rate, half_width=found.half_width, doubt=found.doubt
        )

    @property
    def slots(self) -> int:
        """How many slots the set has."""
        return self.candidate.slots

    def __str__(self) -> str:
        rate, width = rate_words(self.rate), rate_words(self.half_width)
        return f"MST({self.slots}) predicted {rate} ±{width}/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class GesscalePlus:
    """1/MST = E max(work + waiting, exchange); the smallest set with MST ≥ input · (1 + spare).

    MST of a set of nodes is learnt from how busy slots are, from time in which even the busiest one
    waits, and from time in which records wait though nothing holds the source back. A pool is short
    if records wait all the time and its MST is below the input, whatever back pressure says. Of the
    sets that come of adding the nearest nodes one by one, or removing the farthest, it takes the
    smallest that reaches input · (1 + ``spare``), as far as predictions are within ``sure`` of
    themselves, else one node more. If none reaches it, the best one, unless that gains less than
    ``gain``. Slots are removed while the rest is enough with 95 % confidence. It looks every
    ``period`` seconds.

    >>> GesscalePlus().spare, GesscalePlus().period
    (0.05, 60.0)
    """

    period: float = PERIOD
    spare: float = 0.05
    sure: float = 0.2
    gain: float = 0.05

    def __post_init__(self) -> None:
        check_period("gesscale+", self.period)
        for name in ("spare", "sure", "gain"):
            value = getattr(self, name)
            if not (math.isfinite(value) and 0 <= value <= 1):
                raise InputError(f"gesscale+: {name} = {value} must be in [0, 1]")

    def start(self, seed: int) -> Memory:
        """Nothing learnt yet."""
        return {"looked": None, "pools": {}, "round_trips": no_round_trips()}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The set that is enough, for every pool that is short or has room."""
        why = not_now(seen, memory["looked"], self.period)
        if why is not None:
            return Proposal(reason=f"no change: {why}"), memory
        rtt, round_trips = smoothed(seen.rtt, memory["round_trips"])
        seen = replace(seen, rtt=rtt)
        units = units_of(seen.pipeline)
        limits = at_limit(seen, units)
        held_up = any(limits.values())
        demand = demand_of(seen)
        free = list(seen.free_nodes)
        pools: dict[str, Experience] = {}
        moves: list[Move] = []
        for unit in units:
            known = memory["pools"].get(unit.pool) or no_experience()
            move, pools[unit.pool] = self._unit(
                seen, unit, known, limits.get(unit.pool), input_of(unit, demand), free, held_up
            )
            moves.append(move)
            free = [node for node in free if move.place is None or node not in move.place.add_on]
        looked = seen.time if any(move.known for move in moves) else memory["looked"]
        after: Memory = {"looked": looked, "pools": pools, "round_trips": round_trips}
        return proposal_of(seen, moves), after

    def figures(self, memory: Memory) -> dict[str, float]:
        """``measurements``, and ``model_error`` of predictions of sizes not seen before."""
        return figures_of(memory["pools"].values())

    def _unit(
        self,
        seen: Snapshot,
        unit: Unit,
        known: Experience,
        limit: str | None,
        wanted: float | None,
        free: Sequence[str],
        held_up: bool,
    ) -> tuple[Move, Experience]:
        """What becomes of one pool; ``limit`` why it can do no more, empty if it can.

        ``held_up`` whether any pool can do no more: then one that can is short all the same if it
        could not take in what would come without that.
        """
        if limit is None or not seen.slots(unit.pool):
            return Move(unit=unit, why="its throughput was not measured", known=False), known
        layouts = Layouts(seen, unit)
        if not layouts.known:
            missing = listed(unknown_nodes(seen, unit.pool))
            return Move(unit=unit, why=f"{missing} not in the latency map"), known
        new = reading_of(seen, unit, layouts, full=bool(limit))
        if new is not None:
            known = with_reading(seen, unit, known, new)
        model = model_of(seen, unit, known)
        if wanted is None or (wanted > 0.0 and new is None):
            return Move(unit=unit, why="its input or throughput is not known", known=False), known
        if model is None:
            return Move(unit=unit, why="nothing was learnt of it yet"), known
        here = Forecast.of(model, Candidate(layout=layouts.here()))
        if not limit and held_up and here.rate < wanted:
            limit = "it would be the next to hold others up"
        if not limit:
            return self._fewer(unit, model, layouts, here, wanted), known
        if here.rate >= wanted:
            why = f"works off its queue; {here}, input {rate_words(wanted)}/s"
            return Move(unit=unit, why=why), known
        sets = [*_near(model, layouts, free), here]
        return self._short(unit, limit, sets, wanted, sizes_tried(known)), known

    def _short(
        self, unit: Unit, limit: str, sets: Sequence[Forecast], wanted: float, tried: frozenset[int]
    ) -> Move:
        """The smallest set that reaches the target, the best one, or one node more.

        The last of the sets is the one that is there.
        """
        here, target = sets[-1], wanted * (1.0 + self.spare)
        enough = [f for f in sets if f.rate >= target]
        if enough:
            chosen = min(enough, key=lambda f: f.slots)
            why = f"{limit}; target {rate_words(target)}/s"
        else:
            chosen = self._best(sets, tried)
            best = max(sets, key=lambda f: f.rate)
            why = (
                f"{limit}; no set of {len(sets)} reaches {rate_words(target)}/s, the best is {best}"
            )
        if chosen.slots > here.slots:
            way = [f for f in sets if here.slots < f.slots <= chosen.slots]
            sure = [f for f in way if f.half_width <= self.sure * f.rate]
            chosen = max(sure or way[:1], key=lambda f: f.slots)
        if chosen is here:
            return Move(unit=unit, why=why)
        return _to(unit, chosen, why if str(chosen) in why else f"{why}; {chosen}")

    def _best(self, sets: Sequence[Forecast], tried: frozenset[int]) -> Forecast:
        """Where no set reaches the target: the smallest that is about as good as any.

        A set that was there before, or that is smaller than the present one, must be better even if
        its prediction is somewhat too high. One node more that was never there is worth a try if it
        would be better with a prediction that is somewhat too low.
        """
        here = sets[-1]
        least = here.rate * (1.0 + self.gain)
        worth = [
            (f.rate - f.doubt / 2.0 * (f.slots < here.slots or f.slots in tried), f)
            for f in sets[:-1]
        ]
        most = max((value for value, _ in worth), default=0.0)
        if most > least:
            good = [f for value, f in worth if value >= most / (1.0 + self.gain)]
            return min(good, key=lambda f: f.slots)
        for f in sets[:-1]:
            if (
                f.slots == here.slots + 1
                and f.slots not in tried
                and f.rate + f.doubt / 2.0 > least
            ):
                return f
        return here

    def _fewer(
        self, unit: Unit, model: Exchange, layouts: Layouts, here: Forecast, wanted: float
    ) -> Move:
        """The smallest set that is enough for sure."""
        for candidate in reversed(list(layouts.fewer())):
            if 1.0 / model.slot_seconds(candidate.layout)[0] < HOPELESS * wanted:
                continue
            found = Forecast.of(model, candidate)
            if min(found.rate - found.half_width, found.rate / (1.0 + self.spare)) >= wanted:
                return _to(unit, found, f"input {rate_words(wanted)}/s; {found}")
        return Move(unit=unit, why=f"keeps up with {rate_words(wanted)}/s; {here}")


def forecasts(seen: Snapshot, memory: Memory, pool: str) -> list[Forecast]:
    """What is expected of the sets near the one that a pool has, by what was learnt so far.

    Ever fewer slots, then ever more; nothing where nothing was learnt yet.
    """
    unit = next(unit for unit in units_of(seen.pipeline) if unit.pool == pool)
    seen = replace(seen, rtt=remembered(seen.rtt, memory["round_trips"]))
    layouts = Layouts(seen, unit)
    model = model_of(seen, unit, memory["pools"].get(pool) or no_experience())
    return [] if model is None else list(_near(model, layouts, seen.free_nodes))


def _near(model: Exchange, layouts: Layouts, free: Sequence[str]) -> Iterator[Forecast]:
    for candidate in (*layouts.fewer(), *layouts.more(free)):
        yield Forecast.of(model, candidate)


def _to(unit: Unit, chosen: Forecast, why: str) -> Move:
    candidate = chosen.candidate
    where = f" on {listed(candidate.add_on)}" if candidate.add_on else ""
    where += f" without {listed(candidate.remove)}" if candidate.remove else ""
    place = Placement(add_on=candidate.add_on, remove=candidate.remove) if where else None
    return Move(unit=unit, slots=chosen.slots, place=place, why=f"{where}: {why}")


NEW = 0.3  # weight of a new measurement against all older ones
MOST = 32  # nodes up to which round trips are remembered


class RoundTrips(TypedDict):
    """Nodes by name, and the seconds between each and those before it."""

    nodes: list[str]
    below: list[list[float]]


def no_round_trips() -> RoundTrips:
    """The round trips before the first look."""
    return {"nodes": [], "below": []}


def smoothed(rtt: LatencyMap | None, memory: RoundTrips) -> tuple[LatencyMap | None, RoundTrips]:
    """The map with the mean of this and past measurements, in which this one counts 0.3.

    Links that were not known before are as measured; of more than 32 nodes nothing is remembered.

    >>> before, after = (LatencyMap(["a", "b"], [[0, s], [s, 0]]) for s in (0.02, 0.03))
    >>> _, memory = smoothed(before, no_round_trips())
    >>> mixed, _ = smoothed(after, memory)
    >>> round(mixed.between("a", "b"), 4)
    0.023
    """
    mixed = _mixed(rtt, memory, NEW)
    if mixed is None or len(mixed) > MOST:
        return mixed, no_round_trips()
    below = [row[:i] for i, row in enumerate(mixed.rtt.tolist())]
    return mixed, {"nodes": list(mixed.nodes), "below": below}


def remembered(rtt: LatencyMap | None, memory: RoundTrips) -> LatencyMap | None:
    """The map with what is remembered, as far as it is; this measurement does not count."""
    return _mixed(rtt, memory, 0.0)


def _mixed(rtt: LatencyMap | None, memory: RoundTrips, new: float) -> LatencyMap | None:
    known = [] if rtt is None else [i for i, node in enumerate(memory["nodes"]) if node in rtt]
    if rtt is None or not known:
        return rtt
    below = memory["below"]
    old = np.array([[below[max(i, j)][min(i, j)] if i != j else 0.0 for j in known] for i in known])
    rows = np.ix_(*[rtt.rows([memory["nodes"][i] for i in known])] * 2)
    mixed = rtt.rtt.copy()
    mixed[rows] = old + new * (mixed[rows] - old)
    return LatencyMap(rtt.nodes, mixed)
