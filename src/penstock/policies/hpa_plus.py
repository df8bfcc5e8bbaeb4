"""HPA+: HPA-CPU that knows where its metric begins and ends. [kanis23, 8.3]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Proposal, Snapshot
from penstock.policies.signals.backlog import (
    RESCALE_UNDER_WAY,
    SOURCES_NOT_MEASURED,
    backlog_of,
    smoothed,
    stopped,
)
from penstock.policies.signals.catch_up import Waste, check_pace, move_of, no_waste
from penstock.policies.signals.cpu import pool_cpu
from penstock.policies.signals.demand import demand_of
from penstock.policies.signals.learned import Learned, blend, learn, load_of, saturated, steadied
from penstock.policies.signals.windows import Samples

NARROW = 0.05  # base and ceiling (or target) closer than this: CPU says nothing of the load


class Memory(TypedDict):
    """The range of each pool's CPU, the slots that one record/s keeps busy at each operator, what
    each passes on, the rates offered of late, and what was wasted."""

    cpu: dict[str, CpuRange]
    cost: dict[str, float]
    learned: dict[str, Learned]
    offered: Samples
    waste: Waste


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaPlus:
    """slots = p · ρ/ρ* · λ/done · g,  ρ = (cpu − b) / (c − b),  ρ* = min((t − b) / (c − b), m)

    HPA's rule is p · cpu / t. p slots, t ``target``. Here CPU counts from b, what it reads
    without work, to c, what it reads when a slot can do no more; both are learned (b from the
    line of CPU over records/s of a slot, c at saturation, ``cpu_ceiling`` until then). So a
    size is not kept for the base load, and a target above m ``most`` of the range is lowered.

    At its ceiling CPU cannot say how much is missing. λ/done can: the demand of an operator over
    what it processed. g = 1 + (lag/λ + downtime) / ``catch_up`` makes room for the lag and for
    what comes in while the job is stopped.

    When it acts is as in ``ds2+``; this takes the place of HPA's maximum over 300 s.

    >>> HpaPlus().target, HpaPlus().most
    (0.7, 0.9)
    """

    target: float = 0.7
    most: float = 0.9
    catch_up: float = 1800.0
    pay_back: float = 0.5
    calm: float = 15.0
    downtime: float = 40.0
    cpu_ceiling: float = 0.9

    def __post_init__(self) -> None:
        for name in ("target", "most", "cpu_ceiling"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise InputError(f"hpa+: {name} = {value} must be in (0, 1]")
        check_pace("hpa+", self)

    def start(self, seed: int) -> Memory:
        """Nothing learned yet."""
        return {"cpu": {}, "cost": {}, "learned": {}, "offered": [], "waste": no_waste()}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The sizes that bring CPU to its target at the input and backlog as they are."""
        learned = learn(seen, memory["learned"])
        cpu = learn_cpu(seen, memory["cpu"])
        cost, spare = self._costs(seen, cpu, memory["cost"])
        waiting = backlog_of(seen, downtime=self.downtime, calm=self.calm)
        backlog, offered, scale = smoothed(waiting, memory["offered"], seen.time)
        after: Memory = {
            "cpu": cpu,
            "cost": cost,
            "learned": learned,
            "offered": offered,
            "waste": memory["waste"],
        }
        if stopped(seen):  # rates count the whole window, shares of time only what was up
            return RESCALE_UNDER_WAY, after
        if backlog is None:
            return SOURCES_NOT_MEASURED, after
        demand = demand_of(steadied(seen, learned))
        known = {name: rate for name, rate in demand.items() if name in spare}
        load = load_of(known, cost, scale)
        if not load:
            return Proposal(
                reason="no change: CPU or demand not measured", term="demand-not-measured"
            ), after
        move = move_of(self, seen, load, spare, backlog, memory["waste"])
        after["waste"] = move.waste
        return Proposal(needs=move.needs, reason=move.why, term=move.term), after

    def _costs(
        self, seen: Snapshot, ranges: Mapping[str, CpuRange], memory: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """p · ρ / done of each operator, and 1/ρ* of those whose pool's CPU was measured.

        Where nothing arrived (below a window that has not fired) the cost is remembered.
        """
        costs = {name: cost for name, cost in memory.items() if name in seen.operators}
        spare: dict[str, float] = {}
        if stopped(seen):
            return costs, spare
        for pool in seen.pipeline.pools:
            cpu = pool_cpu(seen, pool)
            if not cpu or pool not in ranges:
                continue
            base = base_of(ranges[pool])
            room = (ranges[pool]["ceiling"] or max(self.cpu_ceiling, cpu)) - base
            if room < NARROW or self.target - base < NARROW:
                continue
            use = max(0.0, (cpu - base) / room)
            goal = min((self.target - base) / room, self.most)
            for name in seen.pipeline.members(pool):
                o = seen.operators.get(name)
                if o is None or o.arrival_rate is None:
                    continue
                spare[name] = 1.0 / goal
                if o.arrival_rate:
                    costs[name] = o.parallelism * use / o.arrival_rate
        return costs, spare


OLDER = 0.98  # weight of a sample against the next one
ENOUGH = 3.0  # samples that a line is drawn through
SPREAD = 0.1  # of the rates around their mean, at least, for a line to mean anything


class CpuRange(TypedDict):
    """What is known of the CPU of one pool.

    ``ceiling`` CPU when it could do no more · ``lowest`` ever read · the others are weighted sums
    of samples: number, x records/s of one slot, y CPU, x², x·y.
    """

    ceiling: float | None
    lowest: float
    n: float
    x: float
    y: float
    xx: float
    xy: float


def learn_cpu(seen: Snapshot, memory: Mapping[str, CpuRange]) -> dict[str, CpuRange]:
    """What is known after one more window; nothing is learned from one with a rescale in it."""
    ranges = {pool: memory[pool] for pool in seen.pipeline.pools if pool in memory}
    if stopped(seen):
        return ranges
    full = saturated(seen)
    for pool in seen.pipeline.pools:
        cpu = pool_cpu(seen, pool)
        members = seen.pipeline.members(pool)
        rates = [o.arrival_rate for m in members if (o := seen.operators.get(m)) is not None]
        known = [rate for rate in rates if rate is not None]
        if cpu and len(known) == len(members):
            at_most = any(m in full for m in members)
            ranges[pool] = _taught(ranges.get(pool), cpu, sum(known) / seen.slots(pool), at_most)
    return ranges


def _taught(old: CpuRange | None, cpu: float, rate: float, at_most: bool) -> CpuRange:
    """One sample more; ``rate`` records/s of one slot, ``at_most`` whether it was all it can."""
    if old is None:
        old = {"ceiling": None, "lowest": cpu, "n": 0, "x": 0, "y": 0, "xx": 0, "xy": 0}
    ceiling = old["ceiling"]
    if at_most or (ceiling is not None and cpu > ceiling):
        ceiling = blend(ceiling, cpu)
    return {
        "ceiling": ceiling,
        "lowest": min(old["lowest"], cpu),
        "n": OLDER * old["n"] + 1.0,
        "x": OLDER * old["x"] + rate,
        "y": OLDER * old["y"] + cpu,
        "xx": OLDER * old["xx"] + rate * rate,
        "xy": OLDER * old["xy"] + rate * cpu,
    }


def base_of(known: CpuRange) -> float:
    """CPU without work: where the least-squares line of CPU over rate per slot begins.

    b = ȳ − s·x̄, s = cov(x, y) / var(x); within 0 and the lowest CPU ever read. 0, the careful
    choice, until the rates differ enough: then CPU counts as work.
    """
    n = known["n"]
    if n < ENOUGH:
        return 0.0
    x, y = known["x"] / n, known["y"] / n
    var, cov = known["xx"] / n - x * x, known["xy"] / n - x * y
    if x <= 0.0 or var <= (SPREAD * x) ** 2 or cov <= 0.0:
        return 0.0
    return min(max(y - cov / var * x, 0.0), known["lowest"])
