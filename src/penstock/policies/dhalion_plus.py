"""Dhalion+: Dhalion that scales all operators at once, by what was measured. [kanis23, 8.3]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Proposal, Snapshot
from penstock.policies.signals.backlog import (
    RESCALE_UNDER_WAY,
    SOURCES_NOT_MEASURED,
    Backlog,
    backlog_of,
    consumed_rate,
    lag_words,
    smoothed,
    stopped,
)
from penstock.policies.signals.bottleneck import (
    BACK_PRESSURE_NOT_MEASURED,
    BACKPRESSURED,
    backpressure_of,
)
from penstock.policies.signals.catch_up import Move, Waste, check_pace, move_of, no_waste
from penstock.policies.signals.demand import demand_of
from penstock.policies.signals.learned import Learned, learn, load_of, saturated, steadied
from penstock.policies.signals.reason import listed
from penstock.policies.signals.turns import pooled
from penstock.policies.signals.windows import Samples


class Memory(TypedDict):
    """The slots that one record/s takes of each operator, what else was learned of it, the rates
    offered of late, and what was wasted."""

    cost: dict[str, float]
    learned: dict[str, Learned]
    offered: Samples
    waste: Waste


@dataclass(frozen=True, slots=True, kw_only=True)
class DhalionPlus:
    """slots_i = p_i · ρ_i/ρ* · λ_i/done_i · g,  ρ_i = busy_i / κ_i, or 1 if i can do no more

    p_i slots · ρ* ``target`` utilisation · λ_i/done_i demand of operator i over what it processed ·
    κ_i the busy share that it reads when it can do no more: learned while records wait in front
    of it, ``busy_ceiling`` until then · g = 1 + (lag/λ + downtime) / ``catch_up`` makes room for
    the lag, and for what comes in while the job is stopped.

    Symptoms as in Dhalion: an operator is back-pressured more than ``backpressured`` of its time,
    there is a backlog of more than ``calm`` seconds of input, or the lag grows by more than
    ``growth`` of the input. If so, and the pipeline is too small or its backlog drains too slowly,
    every operator that lacks slots gets them, not only the present bottleneck. If not, it shrinks
    to the size that was measured to be enough, once that is worth a stop (as in ``ds2+``), unless
    a buffer is used more than ``buffer_low``.

    >>> DhalionPlus().target
    0.7
    """

    target: float = 0.7
    catch_up: float = 600.0
    pay_back: float = 0.5
    calm: float = 15.0
    downtime: float = 40.0
    busy_ceiling: float = 0.95
    growth: float = 0.02
    buffer_low: float = 0.2
    backpressured: float = BACKPRESSURED

    def __post_init__(self) -> None:
        for name in ("target", "busy_ceiling"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise InputError(f"dhalion+: {name} = {value} must be in (0, 1]")
        for name in ("growth", "buffer_low", "backpressured"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise InputError(f"dhalion+: {name} = {value} must be in [0, 1)")
        check_pace("dhalion+", self)

    def start(self, seed: int) -> Memory:
        """Nothing learned yet."""
        return {"cost": {}, "learned": {}, "offered": [], "waste": no_waste()}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """Scale up all that an unhealthy pipeline lacks, or down what a healthy one wastes."""
        seen = pooled(seen)  # it sizes all operators at once, so what their slots did counts
        learned = learn(seen, memory["learned"])
        held = backpressure_of(seen)
        waiting = backlog_of(seen, downtime=self.downtime, calm=self.calm)
        backlog, offered, scale = smoothed(waiting, memory["offered"], seen.time)
        cost = self._costs(seen, learned, memory["cost"])
        after: Memory = {
            "cost": cost,
            "learned": learned,
            "offered": offered,
            "waste": memory["waste"],
        }
        if held is None:
            return BACK_PRESSURE_NOT_MEASURED, after
        if stopped(seen):  # rates count the whole window, shares of time only what was up
            return RESCALE_UNDER_WAY, after
        if backlog is None:
            return SOURCES_NOT_MEASURED, after
        load = load_of(demand_of(steadied(seen, learned)), cost, scale)
        if not load:
            return Proposal(
                reason="no change: busy time or demand not measured", term="demand-not-measured"
            ), after
        spare = dict.fromkeys(load, 1.0 / self.target)
        move = move_of(self, seen, load, spare, backlog, memory["waste"])
        after["waste"] = move.waste
        return self._treated(seen, move, self._symptom(seen, held, backlog)), after

    def _treated(self, seen: Snapshot, move: Move, symptom: str | None) -> Proposal:
        """What a move comes to in a pipeline with or without a symptom."""
        if not move.needs:
            return Proposal(reason=move.why, term=move.term)
        if move.up:
            if symptom is None:
                reason = "no change: healthy, though close to what it can do"
                return Proposal(reason=reason, term="healthy")
            lacking = {
                n: need
                for n, need in move.needs.items()
                if need.slots > seen.operators[n].parallelism
            }
            return Proposal(needs=lacking, reason=f"unhealthy, {symptom}; {move.why}")
        full = [n for n in move.needs if not self._is_empty(seen, n)]
        if symptom is not None or full:
            why = symptom or f"records wait at {listed(full)}"
            term = "records-wait" if symptom is None else "unhealthy"
            return Proposal(reason=f"no change: {why}", term=term)
        return Proposal(needs=move.needs, reason=f"healthy; {move.why}")

    def _costs(
        self, seen: Snapshot, learned: Mapping[str, Learned], memory: Mapping[str, float]
    ) -> dict[str, float]:
        """p · ρ / done of each operator; where nothing arrived it is remembered."""
        if stopped(seen):
            return dict(memory)
        full = saturated(seen)
        costs: dict[str, float] = {}
        for name, o in seen.operators.items():
            if o.busy and o.arrival_rate:
                ceiling = learned[name]["ceiling"] or max(self.busy_ceiling, o.busy)
                use = 1.0 if name in full else o.busy / ceiling
                costs[name] = o.parallelism * use / o.arrival_rate
            elif name in memory and o.arrival_rate == 0.0:
                costs[name] = memory[name]
        return costs

    def _symptom(self, seen: Snapshot, held: Mapping[str, float], backlog: Backlog) -> str | None:
        worst = max(held, key=lambda name: held[name])
        if held[worst] > self.backpressured:
            return f"{worst} is back-pressured {held[worst]:.0%} of its time"
        if backlog.seconds > self.calm:
            return lag_words(backlog)
        taken = consumed_rate(seen, seen.pipeline.sources)
        if taken is not None and backlog.rate - taken > self.growth * backlog.rate:
            return f"lag grows by {backlog.rate - taken:,.0f}/s"
        return None

    def _is_empty(self, seen: Snapshot, name: str) -> bool:
        """Whether nothing to speak of waits in an operator's buffer; a source has none."""
        buffer = seen.operators[name].buffer
        return not seen.pipeline.upstream[name] or buffer is None or buffer < self.buffer_low
