"""Gesscale: scale by a model of throughput over slots and network delay. [arkian21]"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from penstock.capacity.measurements import Measurement
from penstock.capacity.mst import Mst
from penstock.core.errors import InputError
from penstock.core.model import Placement, Proposal, Snapshot
from penstock.network.placement import Draws, Step, first_draw
from penstock.policies.gesscale.calibration import (
    Calibration,
    figures_of,
    model_of,
    no_calibration,
    with_measurement,
)
from penstock.policies.gesscale.moves import (
    PERIOD,
    Move,
    Nodes,
    check_period,
    delay_of,
    farther,
    not_now,
    proposal_of,
    rate_words,
    unknown_nodes,
)
from penstock.policies.gesscale.units import (
    HELD_BACK,
    Unit,
    input_of,
    limit_of,
    throughput_of,
    units_of,
)
from penstock.policies.signals.demand import demand_of
from penstock.policies.signals.reason import listed

HEAD_ROOM = 0.3  # share of the throughput that must be to spare, as in the public code


class Memory(TypedDict):
    """When a snapshot was last looked at, what was measured of each pool, and random choices."""

    looked: float | None
    pools: dict[str, Calibration]
    draws: Draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Gesscale:
    """MST = α·n^β − γ·NDmax; n + 1 at the limit, n − k where MST(n − k) suffices. [arkian21]

    n slots · NDmax greatest round trip between their nodes, seconds · α, β, γ fitted to what was
    measured at the limit, in stages. At its limit is what holds up all operators above it: they
    are back-pressured more than ``backpressured`` of their time and it is not. It gets one slot
    more, on the free node that adds the least latency. Slots are removed, those that add most
    latency first, while MST(n − 1) ≥ input and (MST(n) − throughput) / MST(n) ≥ ``head_room``.

    It looks every ``period`` seconds. With ``gain_per_price`` above 0 the node that gains most
    records/s per price is taken, and none that gains less than that. Not ``aware`` of latencies it
    is ``mdl-nlunaware``.

    >>> Gesscale().head_room, Gesscale().period
    (0.3, 60.0)
    """

    period: float = PERIOD
    head_room: float = HEAD_ROOM
    backpressured: float = HELD_BACK
    gain_per_price: float = 0.0
    aware: bool = True

    def __post_init__(self) -> None:
        name = "gesscale" if self.aware else "mdl-nlunaware"
        check_period(name, self.period)
        for field in ("head_room", "backpressured"):
            value = getattr(self, field)
            if not 0 <= value < 1:
                raise InputError(f"{name}: {field} = {value} must be in [0, 1)")
        if not (math.isfinite(self.gain_per_price) and self.gain_per_price >= 0):
            raise InputError(
                f"{name}: gain_per_price = {self.gain_per_price} must be ≥ 0; 0: prices are "
                "not looked at"
            )

    def start(self, seed: int) -> Memory:
        """Nothing measured yet."""
        return {"looked": None, "pools": {}, "draws": first_draw(seed)}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """Measure what is at its limit and give it one slot more; take away what is not needed."""
        why = not_now(seen, memory["looked"], self.period)
        if why is not None:
            return Proposal(reason=f"no change: {why}"), memory
        demand = demand_of(seen)
        nodes = Nodes(seen, memory["draws"], aware=self.aware)
        pools: dict[str, Calibration] = {}
        moves: list[Move] = []
        for unit in units_of(seen.pipeline):
            known = memory["pools"].get(unit.pool) or no_calibration()
            move, pools[unit.pool] = _unit(self, seen, unit, nodes, known, demand)
            moves.append(move)
        looked = seen.time if any(move.known for move in moves) else memory["looked"]
        after: Memory = {"looked": looked, "pools": pools, "draws": nodes.draws}
        return proposal_of(seen, moves), after

    def figures(self, memory: Memory) -> dict[str, float]:
        """``measurements``, and the ``model_error`` of the fully calibrated model."""
        return figures_of(memory["pools"].values())

    @property
    def coefficients(self) -> int:
        """How many of α, β and γ are fitted: unaware, MST = α·n."""
        return 3 if self.aware else 1


MdlNlunaware = partial(Gesscale, aware=False)
MdlNlunaware.__doc__ = """
Gesscale with MST = α·n and nodes chosen at random.             [arkian21, eq. 2, V-A]

Parameters as of ``gesscale``.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """A unit as it is: slots, records/s that it takes in and should, NDmax in seconds.

    ``None``: not known.
    """

    unit: Unit
    slots: int
    taken: float
    wanted: float | None
    delay: float | None

    def after(self, step: Step) -> float:
        """NDmax with one slot more; as it is where that was not looked at."""
        return (self.delay or 0.0) if step.worst is None else step.worst


def _unit(
    policy: Gesscale,
    seen: Snapshot,
    unit: Unit,
    nodes: Nodes,
    known: Calibration,
    demand: Mapping[str, float],
) -> tuple[Move, Calibration]:
    limit = limit_of(seen, unit, policy.backpressured)
    taken = throughput_of(seen, unit)
    if limit is None or taken is None or not seen.slots(unit.pool):
        return Move(unit=unit, why="back pressure or throughput not measured", known=False), known
    now = _Now(
        unit=unit,
        slots=seen.slots(unit.pool),
        taken=taken,
        wanted=input_of(unit, demand),
        delay=delay_of(seen, unit.pool) if policy.aware else 0.0,
    )
    if not limit.reached:
        return _down(policy, seen, nodes, model_of(known, policy.coefficients), now), known
    if not taken:
        return Move(unit=unit, why=f"{limit.why}, but it takes in nothing", known=False), known
    why = limit.why
    if now.delay is None:
        why += f"; not measured: {listed(unknown_nodes(seen, unit.pool))} not in the latency map"
    else:
        new = Measurement(slots=now.slots, delay=now.delay, rate=taken)
        known = with_measurement(known, new, policy.coefficients)
    return _up(policy, seen, nodes, model_of(known, policy.coefficients), now, why), known


def _up(
    policy: Gesscale, seen: Snapshot, nodes: Nodes, model: Mst | None, now: _Now, why: str
) -> Move:
    """One slot more, on the node that adds least latency or is worth most.  [algorithms 1, 3]"""
    steps = nodes.candidates(now.unit.pool)
    if steps is not None and not steps:
        return Move(unit=now.unit, why=f"{why}; {nodes.none}")
    offers = steps or (Step(name="", worst=now.delay),)
    best = offers[0]
    if policy.gain_per_price and model is not None:
        gains = [_gain_per_price(seen, model, now, step) for step in offers]
        most = max(gains)
        best = offers[gains.index(most)]
        if most < policy.gain_per_price:
            where = f" on {best.name}" if best.name else ""
            why += f"; one slot more{where} would gain {rate_words(most)}/s per price"
            why += f", at least {policy.gain_per_price:g} is asked for"
            return Move(unit=now.unit, why=why)
    more = now.slots + 1
    if model is not None:
        why += f"; MST({more}) predicted {_predicted(model, more, now.after(best))}"
    if not best.name:
        return Move(unit=now.unit, slots=more, why=f": {why}")
    nodes.take(best.name)
    return Move(
        unit=now.unit,
        slots=more,
        place=Placement(add_on=(best.name,)),
        why=f" on {best.name}{farther(now.delay, best.worst)}: {why}",
    )


def _down(policy: Gesscale, seen: Snapshot, nodes: Nodes, model: Mst | None, now: _Now) -> Move:
    """Fewer slots by as many as the model says can be missed.             [algorithms 2 and 4]

    While MST(n − 1) ≥ input and (MST(n) − throughput)/MST(n) ≥ head-room: n − 1, with the delay of
    those that are left. The guard of algorithm 4 is printed as MST ≤ input and n ≥ n_min; it
    would never shrink with head-room, and go one below the minimum.
    """
    unit, wanted = now.unit, now.wanted
    if model is None:
        return Move(unit=unit, why="its limit has not been measured yet")
    if wanted is None or (wanted > 0.0 and not now.taken):
        return Move(unit=unit, why="its input is not known", known=False)
    if now.delay is None:
        missing = listed(unknown_nodes(seen, unit.pool))
        return Move(unit=unit, why=f"{missing} not in the latency map")
    left, delay, gone = now.slots, now.delay, list[str]()
    leavers = nodes.leavers(unit.pool) if policy.aware else None
    why = "one slot is the least"
    while left > 1:
        most = model.at(left, delay)
        room = (most - now.taken) / most if most > 0.0 else 0.0
        if room < policy.head_room:
            why = f"head-room {room:.1%} of MST({left}) = {rate_words(most)}/s"
            why += f", {policy.head_room:.0%} is asked for"
            break
        step = next(leavers) if leavers is not None else Step(name="")
        after = delay if step.worst is None else step.worst
        if model.at(left - 1, after) < wanted:
            why = f"MST({left - 1}) predicted {_predicted(model, left - 1, after)}"
            why += f", input {rate_words(wanted)}/s"
            break
        left, delay = left - 1, after
        gone.append(step.name)
    if left == now.slots:
        return Move(unit=unit, why=why)
    if leavers is None:
        drawn = None if policy.aware else nodes.leavers(unit.pool)
        gone = [next(drawn).name for _ in gone] if drawn is not None else []
    why = f"input {rate_words(wanted)}/s; MST({left}) predicted {_predicted(model, left, delay)}"
    if not gone:
        return Move(unit=unit, slots=left, why=f": {why}")
    on = {slot.id: slot.node for slot in seen.pools[unit.pool]}
    where = f" without {listed([on[id] for id in gone])}"
    where += farther(now.delay, delay) if policy.aware else ""
    place = Placement(remove=tuple(gone))
    return Move(unit=unit, slots=left, place=place, why=f"{where}: {why}")


def _gain_per_price(seen: Snapshot, model: Mst, now: _Now, step: Step) -> float:
    """Records/s more per price of the node; a price of 1 where none that can be true is said."""
    before = model.at(now.slots, now.delay or 0.0)
    gain = model.at(now.slots + 1, now.after(step)) - before
    price = seen.prices.get(step.name, 1.0)
    if not (math.isfinite(price) and price >= 0.0):
        price = 1.0
    return gain / max(price, 1e-9)


def _predicted(model: Mst, slots: int, delay: float) -> str:
    return f"{rate_words(model.at(slots, delay))} ±{rate_words(model.half_width(slots, delay))}/s"
