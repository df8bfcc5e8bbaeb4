"""Proactive: DS2+ on a forecast of the load, one rescale ahead. [kanis23, 8.3]"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Proposal, Snapshot
from penstock.policies.ds2_plus import busy_slots, check_sizing
from penstock.policies.signals.backlog import backlog_of
from penstock.policies.signals.catch_up import Pace, Waste, check_pace, no_waste
from penstock.policies.signals.forecast import Outlook, errors_of, look_ahead, no_outlook
from penstock.policies.signals.learned import Learned, learn, steadied


class Memory(TypedDict):
    """What was learned of each operator and of the load to come, and what was wasted."""

    learned: dict[str, Learned]
    outlook: Outlook
    waste: Waste


@dataclass(frozen=True, slots=True, kw_only=True)
class Proactive:
    """slots_i = λ̂_i · f · g / (μ_i · κ_i), λ̂ the mean demand of the next ``horizon`` seconds

    All but λ̂ is as in ``ds2+``: g makes room for the lag and the stop of a rescale, κ_i is the
    learned busy ceiling, and an action has to be worth its stop.

    The offered rate is expected to go on along its trend, as far as trends have come true of
    late; its mean over the horizon is then that at half of it. ``horizon`` should be the time
    until the action after this one is in force: cool-down and stop. How wrong the forecasts of
    the rate one horizon ahead were is in ``figures``.

    >>> Proactive().figures(Proactive().start(0))
    {}
    """

    horizon: float = 360.0
    over_provisioning: float = 1.0
    catch_up: float = 1800.0
    pay_back: float = 0.5
    calm: float = 15.0
    downtime: float = 40.0
    busy_ceiling: float = 0.95

    def __post_init__(self) -> None:
        if not (math.isfinite(self.horizon) and self.horizon > 0):
            raise InputError(f"proactive: horizon = {self.horizon} s must be above 0")
        check_sizing("proactive", self.over_provisioning, self.busy_ceiling)
        check_pace(
            "proactive",
            catch_up=self.catch_up,
            pay_back=self.pay_back,
            calm=self.calm,
            downtime=self.downtime,
        )

    def start(self, seed: int) -> Memory:
        """Nothing learned yet."""
        return {"learned": {}, "outlook": no_outlook(), "waste": no_waste()}

    def figures(self, memory: Memory) -> dict[str, float]:
        """``forecast_error`` and ``forecast_bias``, shares of the rate; none before the first."""
        return errors_of(memory["outlook"])

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The sizes that carry the rate to come and the backlog, if that is worth a stop."""
        learned = learn(seen, memory["learned"])
        after: Memory = {**memory, "learned": learned}
        backlog = backlog_of(seen, downtime=self.downtime, calm=self.calm)
        if backlog is None:
            return Proposal(reason="no change: rates or lag of the sources not measured"), after
        ahead, after["outlook"] = look_ahead(
            memory["outlook"], seen.time, backlog.rate, self.horizon
        )
        mean = ahead.after(self.horizon / 2.0) if backlog.rate else 0.0
        scale = mean / backlog.rate if backlog.rate else 1.0
        load = busy_slots(steadied(seen, learned, self.busy_ceiling), scale)
        if not load:
            return Proposal(reason="no change: demand or service rate not measured"), after
        pace = Pace(catch_up=self.catch_up, pay_back=self.pay_back, calm=self.calm)
        spare = dict.fromkeys(load, self.over_provisioning)
        expected = replace(backlog, rate=mean)
        move = pace.move(seen, load, spare, expected, memory["waste"])
        after["waste"] = move.waste
        words = f"{mean:,.0f}/s expected in the next {self.horizon:.0f} s, {ahead.now:,.0f}/s now"
        return Proposal(needs=move.needs, reason=f"{move.why}; {words}"), after
