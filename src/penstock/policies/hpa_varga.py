"""HPA-Varga: the horizontal autoscaler on utilisation and lag growth. [varga21; kanis23, 6.7.4]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Need, OperatorSeen, Proposal, Snapshot
from penstock.policies.signals.backlog import PERIOD, Lags, consumed_rate, lag_rate, remember_lag
from penstock.policies.signals.bottleneck import BACKPRESSURED, bottlenecks, shares_add_up
from penstock.policies.signals.reason import foremost, listed
from penstock.policies.signals.turns import pooled, take_turns
from penstock.policies.signals.warm_up import WARM_UP, Sizes, no_sizes, remember_sizes, warming_up
from penstock.policies.signals.windows import Samples, most, remember

DEPLOYED_LAG_RATE = 10_000.0  # records/s; the thesis says 1,000 and ran with this


class Memory(TypedDict):
    """Desired sizes of the recent past by operator, recent lags, and the sizes of the pools."""

    desired: dict[str, Samples]
    lags: Lags
    sizes: Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaVarga:
    """slots_i = max over the last ``window`` seconds of max(U_i, L_i)        [kanis23, 6.7.4]

    U_i = p_i · (1 − idle_i) / ``target``, utilisation · L_i = p_i · (1 + lag' / consumed) /
    ``lag_target``, relative lag change, of the bottleneck only and only while lag' is above
    ``lag_rate`` · p_i slots of operator i · lag' growth of the lag in front of all sources in
    records/s, its least-squares slope over ``period`` seconds · consumed records/s that all
    sources took in.                                                  [kanis23, eq. 4.4, 4.5]

    The bottleneck is the first operator below one that is back-pressured (more than
    ``backpressured`` of its time) and is not so itself; without back pressure, the sources.
    Stages that take turns on one pool have no slots of their own to be idle: there 1 − idle is
    that of the pool, p_i a stage's part of it, and the bottleneck the busiest stage.

    While lag' is not known, nothing is scaled down, as Kubernetes does with a missing metric.

    Until ``warm_up`` seconds after a change of size nothing is counted or proposed. ``strict``
    counts at once, and has 10,000 in place of ``lag_rate``, as the thesis's set-up did.

    >>> HpaVarga().target, HpaVarga().lag_rate
    (0.7, 1000.0)
    """

    target: float = 0.7
    lag_target: float = 1.0
    lag_rate: float = 1000.0
    period: float = PERIOD
    window: float = 300.0
    backpressured: float = BACKPRESSURED
    warm_up: float = WARM_UP
    strict: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1:
            raise InputError(f"hpa-varga: target = {self.target} must be in (0, 1]")
        for name in ("lag_target", "period"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"hpa-varga: {name} = {value} must be above 0")
        if not 0 <= self.backpressured < 1:
            raise InputError(f"hpa-varga: backpressured = {self.backpressured} must be in [0, 1)")
        for name in ("lag_rate", "window", "warm_up"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"hpa-varga: {name} = {value} must be ≥ 0")

    def start(self, seed: int) -> Memory:
        """No history yet."""
        return {"desired": {}, "lags": [], "sizes": no_sizes()}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The largest size that recent utilisation or lag growth called for."""
        sizes = remember_sizes(seen, memory["sizes"])
        lags = remember_lag(seen, memory["lags"], self.period)
        early = not self.strict and warming_up(seen, sizes, self.warm_up)
        growth = None if early else self._growth(seen, lags)
        slow = bottlenecks(seen, self.backpressured) if growth else ()
        blind = growth is None or slow is None
        guilty = frozenset(slow or ())
        desired: dict[str, Samples] = {}
        needs: dict[str, Need] = {}
        shared = pooled(seen)
        for name in seen.pipeline.order:
            o = shared.operators.get(name)
            use = None if early or o is None else utilisation(o)
            now = None
            if o is not None and use is not None:
                now = o.parallelism * use / self.target
                if growth and name in guilty:
                    now = max(now, o.parallelism * growth / self.lag_target)
            past = remember(memory["desired"].get(name, []), seen.time, now, self.window)
            desired[name] = past
            if o is not None and now is not None:
                slots = most(past)
                needs[name] = Need(slots=max(slots, o.parallelism) if blind else slots)
        after: Memory = {"desired": desired, "lags": lags, "sizes": sizes}
        term = ""
        if early:
            term = "warm-up"
            reason = f"no change: less than {self.warm_up:.0f} s since the last change of size"
        elif not needs:
            term = "idle-time-not-measured"
            reason = "no change: idle time not measured"
        else:
            reason = self._reason(shared, needs, growth, slow)
        return Proposal(needs=needs, reason=reason, term=term), after

    def _growth(self, seen: Snapshot, lags: Lags) -> float | None:
        """1 + lag'/consumed while the lag grows, else 0; ``None`` if that is not known."""
        rate = lag_rate(seen, lags, self.period)
        consumed = consumed_rate(seen, seen.pipeline.sources)
        if rate is None or consumed is None:
            return None
        if rate <= (DEPLOYED_LAG_RATE if self.strict else self.lag_rate):
            return 0.0
        return 1.0 + rate / consumed if consumed else None

    def _reason(
        self,
        seen: Snapshot,
        needs: dict[str, Need],
        growth: float | None,
        slow: tuple[str, ...] | None,
    ) -> str:
        names, more = foremost(needs, lambda name: seen.operators[name].parallelism)
        used = {name: f"used {utilisation(seen.operators[name]):.0%}" for name in names}
        words = [f"{name} {used[name]}" for name in names if not take_turns(seen, name)]
        turns = [name for name in names if take_turns(seen, name)]
        for share in dict.fromkeys(used[name] for name in turns):
            same = listed([name for name in turns if used[name] == share])
            words.append(f"the executors of {same} {share}")
        reason = f"{', '.join(words)}{more} against {self.target:.0%}"
        if growth is None:
            reason += "; no scale-down: lag growth not measured"
        elif slow is None:
            reason += "; no scale-down: lag grows, back pressure not measured"
        elif slow:
            reason += f"; lag grows by {growth - 1.0:.0%} of input, held up by {listed(slow)}"
        return f"{reason}; most of the last {self.window:.0f} s"


def utilisation(o: OperatorSeen) -> float | None:
    """1 − idle; ``None`` if not measured, or a zero that no other share confirms."""
    if o.idle is None or not shares_add_up(o):
        return None
    if o.idle == 0.0 and not o.busy and not o.backpressured:
        return None
    return 1.0 - min(o.idle, 1.0)
