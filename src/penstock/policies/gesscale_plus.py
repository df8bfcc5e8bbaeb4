"""Gesscale+: the smallest set of nodes that is enough by a learnt model. [arkian21, arsalane24]"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from penstock.capacity.exchange import Exchange, learn
from penstock.capacity.readings import Layout, Reading, remember
from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError
from penstock.core.model import Placement, Proposal, Snapshot
from penstock.policies.demand import demand_of
from penstock.policies.layouts import Candidate, Layouts
from penstock.policies.moves import PERIOD, Move, check_period, not_now, proposal_of
from penstock.policies.nodes import unknown_nodes
from penstock.policies.observed import at_limit, reading_of
from penstock.policies.reason import listed
from penstock.policies.units import Unit, input_of, units_of


class Learnt(TypedDict):
    """Of one pool: ``readings``, how many there were, and the sum of the relative errors of
    ``compared`` predictions of sizes that had not been seen."""

    readings: list[Any]
    count: int
    compared: int
    error: float


class Memory(TypedDict):
    """When a snapshot was last looked at, and what was learnt of each pool."""

    looked: float | None
    pools: dict[str, Learnt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a set of slots is expected to do: records/s.

    ``half_width`` of the 95 % interval of a reading, ``doubt`` that of the mean of many ·
    ``candidate`` how to get there; nothing to add or remove for the set that is there.
    """

    candidate: Candidate
    rate: float
    half_width: float
    doubt: float

    def __str__(self) -> str:
        return (
            f"MST({self.candidate.slots}) predicted {_rate(self.rate)} ±{_rate(self.half_width)}/s"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GesscalePlus:
    """1/MST = E max(work + waiting, exchange); the smallest set with MST ≥ input · (1 + spare).

    MST of a set of nodes is learnt from busy slots, from time in which even the busiest waits, and
    from how often nothing holds the source back though records wait. A pool is short if records
    wait all the time and MST is below the target, whatever back pressure says. Of the sets that
    come of adding the nearest nodes one by one, or removing the farthest, it takes the smallest
    that reaches the target, as far as predictions are within ``sure`` of what they say, else one
    node more. If none reaches it, the best one, unless it gains less than ``gain``. Nodes are given
    up while the rest is enough with 95 % confidence.

    >>> GesscalePlus().spare
    0.05
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
        return {"looked": None, "pools": {}}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The set that is enough for every pool that is short or has room."""
        why = not_now(seen, memory["looked"], self.period)
        if why is not None:
            return Proposal(reason=f"no change: {why}"), memory
        units = units_of(seen.pipeline)
        limits = at_limit(seen, units)
        demand = demand_of(seen)
        free = list(seen.free_nodes)
        pools: dict[str, Learnt] = {}
        moves: list[Move] = []
        for unit in units:
            known = memory["pools"].get(unit.pool) or _nothing()
            why = None if limits is None else limits.get(unit.pool, "")
            known = _learnt(seen, unit, known, why)
            move = self._move(seen, unit, known, why, input_of(unit, demand), free)
            moves.append(move)
            pools[unit.pool] = known
            free = [node for node in free if move.place is None or node not in move.place.add_on]
        looked = seen.time if any(move.known for move in moves) else memory["looked"]
        return proposal_of(seen, moves), {"looked": looked, "pools": pools}

    def figures(self, memory: Memory) -> dict[str, float]:
        """``measurements``, and ``model_error`` of predictions of sizes not seen before."""
        pools = memory["pools"].values()
        figures = {"measurements": float(sum(known["count"] for known in pools))}
        if compared := sum(known["compared"] for known in pools):
            figures["model_error"] = sum(known["error"] for known in pools) / compared
        return figures

    def _move(
        self,
        seen: Snapshot,
        unit: Unit,
        known: Learnt,
        limit: str | None,
        wanted: float | None,
        free: Sequence[str],
    ) -> Move:
        """What becomes of one pool; ``limit`` why it can do no more, empty if it can."""
        if limit is None or wanted is None or not seen.slots(unit.pool):
            return Move(unit=unit, why="its throughput or input was not measured", known=False)
        layouts = Layouts(seen, unit)
        if not layouts.known:
            missing = listed(unknown_nodes(seen, unit.pool))
            return Move(unit=unit, why=f"{missing} not in the latency map")
        model = _model(seen, unit, known)
        if model is None:
            return Move(unit=unit, why="nothing learnt of it yet")
        here = _forecast(model, Candidate(layout=layouts.here()))
        if not limit:
            return self._fewer(unit, model, layouts, here, wanted)
        if here.rate >= wanted:
            return Move(unit=unit, why=f"works off its queue; {here}, input {_rate(wanted)}/s")
        target = wanted * (1.0 + self.spare)
        sets = [*forecasts(model, layouts, free), here]
        tried = {r.layout.slots for r in _readings(known) if r.full}
        return self._short(unit, limit, here, sets, target, tried)

    def _short(
        self,
        unit: Unit,
        limit: str,
        here: Forecast,
        sets: Sequence[Forecast],
        target: float,
        tried: set[int],
    ) -> Move:
        """The smallest set that reaches the target, the best one, or one node more."""
        have = here.candidate.slots
        enough = [f for f in sets if f.rate >= target]
        if enough:
            chosen = min(enough, key=lambda f: f.candidate.slots)
            why = f"{limit}; target {_rate(target)}/s"
        else:
            best = max(sets, key=lambda f: f.rate)
            why = f"{limit}; no set of {len(sets)} reaches {_rate(target)}/s, the best is {best}"
            chosen = self._best(here, sets, tried)
        if chosen.candidate.slots > have:
            chosen = self._as_far_as_sure(have, chosen, sets)
        if chosen is here:
            return Move(unit=unit, why=why)
        return _to(unit, chosen, f"{why}; {chosen}" if enough else why)

    def _as_far_as_sure(self, have: int, chosen: Forecast, sets: Sequence[Forecast]) -> Forecast:
        """The largest set on the way to the chosen one that is predicted well; else one more."""
        way = [f for f in sets if have < f.candidate.slots <= chosen.candidate.slots]
        sure = [f for f in way if f.half_width <= self.sure * f.rate]
        return max(sure or way[:1], key=lambda f: f.candidate.slots)

    def _best(self, here: Forecast, sets: Sequence[Forecast], tried: set[int]) -> Forecast:
        """Where no set reaches the target: one that is better by more than chance, or one more.

        A set that was there before, or that is smaller, must be better even if its prediction is
        somewhat too high; one node more that was never there may be so if it is somewhat too low.
        """
        have = here.candidate.slots
        known = [f for f in sets if f.candidate.slots < have or f.candidate.slots in tried]
        new = [f for f in sets if f.candidate.slots > have and f.candidate.slots not in tried]
        found = [(f.rate - f.doubt / 2.0, f) for f in known if f is not here]
        found += [(f.rate, f) for f in new]
        found += [(f.rate + f.doubt / 2.0, f) for f in new if f.candidate.slots == have + 1]
        least = here.rate * (1.0 + self.gain)
        better = [(worth, f) for worth, f in found if worth > least]
        return max(better, key=lambda pair: pair[0])[1] if better else here

    def _fewer(
        self, unit: Unit, model: Exchange, layouts: Layouts, here: Forecast, wanted: float
    ) -> Move:
        """The smallest set that is enough for sure."""
        chosen = here
        for candidate in layouts.fewer():
            found = _forecast(model, candidate)
            if found.rate - found.half_width >= wanted and found.rate >= wanted * (1 + self.spare):
                chosen = found
        if chosen is here:
            return Move(unit=unit, why=f"keeps up with {_rate(wanted)}/s; {here}")
        return _to(unit, chosen, f"input {_rate(wanted)}/s; {chosen}")


def forecasts(model: Exchange, layouts: Layouts, free: Sequence[str]) -> Iterator[Forecast]:
    """Of every set that comes of adding nodes or removing slots one by one."""
    for candidate in (*layouts.fewer(), *layouts.more(free)):
        yield _forecast(model, candidate)


def model_of(seen: Snapshot, memory: Memory, unit: Unit) -> Exchange | None:
    """What was learnt of a pool; ``None`` before the first reading that teaches anything."""
    return _model(seen, unit, memory["pools"].get(unit.pool) or _nothing())


def _nothing() -> Learnt:
    return {"readings": [], "count": 0, "compared": 0, "error": 0.0}


def _readings(known: Learnt) -> tuple[Reading, ...]:
    return tuple(from_json(Reading, row) for row in known["readings"])


def _model(seen: Snapshot, unit: Unit, known: Learnt) -> Exchange | None:
    readings = _readings(known)
    if not any(r.full or r.host or r.rest for r in readings):
        return None
    stateful = any(seen.pipeline.operators[name].stateful for name in unit.members)
    return learn(readings, stateful=stateful)


def _learnt(seen: Snapshot, unit: Unit, known: Learnt, limit: str | None) -> Learnt:
    """With one more reading, after the model of those before has been held against it."""
    if limit is None or not seen.slots(unit.pool):
        return known
    new = reading_of(seen, unit, Layouts(seen, unit), full=bool(limit))
    if new is None:
        return known
    readings = _readings(known)
    compared, error = known["compared"], known["error"]
    model = _model(seen, unit, known)
    if new.full and model is not None and _unseen(new.layout, readings):
        compared += 1
        error += abs(model.at(new.layout) / new.rate - 1.0)
    return {
        "readings": [to_json(r) for r in remember(readings, new)],
        "count": known["count"] + 1,
        "compared": compared,
        "error": error,
    }


def _unseen(layout: Layout, readings: Sequence[Reading]) -> bool:
    return all(r.layout.slots != layout.slots for r in readings)


def _forecast(model: Exchange, candidate: Candidate) -> Forecast:
    return Forecast(
        candidate=candidate,
        rate=model.at(candidate.layout),
        half_width=model.half_width(candidate.layout),
        doubt=model.doubt(candidate.layout),
    )


def _to(unit: Unit, chosen: Forecast, why: str) -> Move:
    candidate = chosen.candidate
    place = None
    where = ""
    if candidate.add_on or candidate.remove:
        place = Placement(add_on=candidate.add_on, remove=candidate.remove)
        where = f" on {listed(candidate.add_on)}" if candidate.add_on else ""
        where += f" without {listed(candidate.remove)}" if candidate.remove else ""
    return Move(unit=unit, slots=candidate.slots, place=place, why=f"{where}: {why}")


def _rate(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
