"""Dhalion: scale what holds up the others, shrink what is empty. [floratou17; kanis23, 6.7.1]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot
from penstock.core.pipeline import Pipeline
from penstock.policies.signals.backlog import PERIOD, Lags, lag_rate, remember_lag
from penstock.policies.signals.bottleneck import (
    BACK_PRESSURE_NOT_MEASURED,
    BACKPRESSURED,
    backpressure_of,
    bottlenecks,
)
from penstock.policies.signals.reason import listed
from penstock.policies.signals.turns import take_turns

MOST_BACKPRESSURE = 0.9  # of an operator's time; so no action does more than × 10
MOST_GROWTH = 1.0 / (1.0 - MOST_BACKPRESSURE)


class Memory(TypedDict):
    """Recent lags."""

    lags: Lags


@dataclass(frozen=True, slots=True, kw_only=True)
class Dhalion:
    """Unhealthy: bottleneck × (1 + bp / (1 − bp)). Healthy: empty operators × (2 − f).

    The pipeline is unhealthy if the lag grows faster than ``lag_rate`` records/s or an operator
    is back-pressured (more than ``backpressured`` of its time). Then the bottleneck, found by
    following back pressure downstream, is scaled: bp ≤ 0.9 is the largest back-pressured share
    of its upstream operators; a source has none and is scaled by 1 + lag' / consumed, lag' the
    growth of its lag over ``period`` seconds and consumed what it took in, both in records/s.
    Only one operator is scaled per action.       [kanis23, eq. 4.1; 6.1 and 6.2 omit the "1 +"]

    Stages that take turns on one pool hold each other up, so there the bottleneck is the busiest
    stage. What went to it counts as the bp of those above, and not what went to others; where
    they are not held back and the lag grows, it is scaled as a source is.

    If healthy, every operator whose input buffer is used less than ``buffer_low`` (a source:
    whose lag is below ``lag_low`` records) goes to floor(p · (2 − f)), f = ``scale_down_factor``.
    The floor belongs to the rule: rounded up, 4 · 0.8 would stay 4 for ever.

    ``strict`` compares a source's lag *rate* with ``lag_low``, as the thesis's set-up did.

    >>> Dhalion().scale_down_factor, Dhalion().lag_low
    (1.2, 10000.0)
    """

    scale_down_factor: float = 1.2
    lag_rate: float = 1000.0
    buffer_low: float = 0.2
    lag_low: float = 10_000.0
    period: float = PERIOD
    backpressured: float = BACKPRESSURED
    strict: bool = False

    def __post_init__(self) -> None:
        if not 1 < self.scale_down_factor <= 2:
            raise InputError(
                f"dhalion: scale_down_factor = {self.scale_down_factor} must be in (1, 2]; "
                "1.2 shrinks by 20 %"
            )
        for name in ("buffer_low", "backpressured"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise InputError(f"dhalion: {name} = {value} must be in [0, 1)")
        for name in ("lag_rate", "lag_low"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"dhalion: {name} = {value} must be ≥ 0")
        if not (math.isfinite(self.period) and self.period > 0):
            raise InputError(f"dhalion: period = {self.period} s must be above 0")

    def start(self, seed: int) -> Memory:
        """No history yet."""
        return {"lags": []}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """Scale up the bottleneck of an unhealthy pipeline, or down the parts of a healthy one."""
        lags = remember_lag(seen, memory["lags"], self.period)
        after: Memory = {"lags": lags}
        held = backpressure_of(seen)
        if held is None:
            return BACK_PRESSURE_NOT_MEASURED, after
        worst = max(held, key=lambda name: held[name])
        rate = lag_rate(seen, lags, self.period)
        if held[worst] > self.backpressured:
            why = f"{worst} is back-pressured {held[worst]:.0%} of its time"
            return self._up(seen, lags, held, why), after
        if rate is None:
            return Proposal(
                reason="no change: lag growth not measured", term="lag-not-measured"
            ), after
        if rate > self.lag_rate:
            return self._up(seen, lags, held, f"lag grows by {rate:,.0f}/s"), after
        return self._down(seen, lags), after

    def _up(self, seen: Snapshot, lags: Lags, held: dict[str, float], why: str) -> Proposal:
        """Scale the one bottleneck with the largest factor.

        Below a split the factors tie, as both branches stand below the same operator; the
        one with the fuller buffer, then the busier one, holds it up.
        """
        factors: dict[str, float] = {}
        for name in bottlenecks(seen, self.backpressured) or ():
            above = seen.pipeline.upstream[name]
            bp = max((held[u] for u in above), default=0.0)
            if take_turns(seen, name):
                bp = min(bp, seen.operators[name].busy or 0.0)
                if bp <= self.backpressured:
                    above = ()
            if above:
                bp = min(bp, MOST_BACKPRESSURE)
                factors[name] = 1.0 + bp / (1.0 - bp)
            elif factor := self._growth(seen, lags, name):
                factors[name] = factor
        if not factors:
            reason = f"no change: {why}; what the sources take in is not measured"
            return Proposal(reason=reason, term="intake-not-measured")

        def weight(name: str) -> tuple[float, float, float]:
            o = seen.operators[name]
            return factors[name], o.buffer or 0.0, o.busy or 0.0

        name = max(factors, key=weight)
        factor, p = factors[name], seen.operators[name].parallelism
        reason = f"unhealthy: {why}; bottleneck {name} {p:g} × {factor:.2f}"
        return Proposal(needs={name: Need(slots=p * factor)}, reason=reason)

    def _growth(self, seen: Snapshot, lags: Lags, name: str) -> float | None:
        """1 + lag' / consumed of a source; of another operator that of the source in front of it
        whose lag grows most. ``None`` if it is not known of any.
        """
        factors = []
        for source in sources_above(seen.pipeline, name):
            rate = lag_rate(seen, lags, self.period, source=source)
            consumed = seen.operators[source].arrival_rate
            if rate is not None and consumed:
                factors.append(min(max(1.0 + rate / consumed, 1.0), MOST_GROWTH))
        return max(factors, default=None)

    def _down(self, seen: Snapshot, lags: Lags) -> Proposal:
        """Shrink what is empty; on shared slots the whole pool is floored, not each operator."""
        empty = [name for name in seen.pipeline.order if self._is_empty(seen, lags, name)]
        if not empty:
            return Proposal(reason="healthy: something waits everywhere, nothing to scale down")
        shrinks = set(empty)
        needs: dict[str, Need] = {}
        pool_needs: dict[str, Need] = {}
        keep = 2.0 - self.scale_down_factor
        for pool in seen.pipeline.pools:
            members = seen.pipeline.members(pool)
            if shrinks.isdisjoint(members):
                continue
            slots = 0.0
            for name in members:
                o = seen.operators[name]
                slots += o.parallelism * (keep if name in shrinks else 1.0)
            need = Need(slots=max(1.0, math.floor(slots + 1e-9)))
            if len(members) == 1:
                needs[members[0]] = need
            else:
                pool_needs[pool] = need
        reason = f"healthy: nothing waits at {listed(empty)}: × {keep:g}, rounded down"
        return Proposal(needs=needs, pool_needs=pool_needs, reason=reason)

    def _is_empty(self, seen: Snapshot, lags: Lags, name: str) -> bool:
        """Whether nothing to speak of waits in front of an operator; no if not measured."""
        o = seen.operators[name]
        if seen.pipeline.upstream[name]:
            return o.buffer is not None and o.buffer < self.buffer_low
        if self.strict:
            rate = lag_rate(seen, lags, self.period, source=name)
            return rate is not None and rate < self.lag_low
        return o.lag is not None and o.lag < self.lag_low


def sources_above(pipeline: Pipeline, name: str) -> list[str]:
    """The sources whose records reach an operator; itself if it is one."""
    found, todo = {name}, [name]
    while todo:
        new = set(pipeline.upstream[todo.pop()]) - found
        found |= new
        todo += new
    return [source for source in pipeline.sources if source in found]
