"""Proactive: DS2+ on a forecast of the load, one rescale ahead. [kanis23, 8.3]"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Proposal, Snapshot
from penstock.policies.ds2_plus import busy_slots, check_sizing
from penstock.policies.signals.backlog import SOURCES_NOT_MEASURED, backlog_of
from penstock.policies.signals.catch_up import Waste, check_pace, move_of, no_waste
from penstock.policies.signals.learned import Learned, learn, steadied
from penstock.policies.signals.windows import Samples, remember


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
        check_pace("proactive", self)

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
            return SOURCES_NOT_MEASURED, after
        ahead, after["outlook"] = look_ahead(
            memory["outlook"], seen.time, backlog.rate, self.horizon
        )
        mean = ahead.after(self.horizon / 2.0) if backlog.rate else 0.0
        scale = mean / backlog.rate if backlog.rate else 1.0
        load = busy_slots(steadied(seen, learned, self.busy_ceiling), scale)
        if not load:
            return Proposal(
                reason="no change: demand or service rate not measured", term="demand-not-measured"
            ), after
        spare = dict.fromkeys(load, self.over_provisioning)
        expected = replace(backlog, rate=mean)
        move = move_of(self, seen, load, spare, expected, memory["waste"])
        after["waste"] = move.waste
        words = f"{mean:,.0f}/s expected in the next {self.horizon:.0f} s, {ahead.now:,.0f}/s now"
        reason = f"{move.why}; {words}"
        return Proposal(needs=move.needs, reason=reason, term=move.term), after


NEAR = 60.0  # seconds; the mean of these is the present rate
FADING = 200.0  # seconds after which a sample counts 1/e for the trend
KEPT = 700.0  # seconds; three samples of a loop that sleeps for 300 s after each action
SHORTEST = 120.0  # seconds of samples, at least, that a trend is drawn from
EARLY, LATE = 0.8, 1.25  # a forecast is settled at an age of so many horizons
DUE = 32  # forecasts are made so often within a horizon, at most
OLDER = 0.95  # weight of a settled forecast against the next one
DOUBT = 5.0 * 0.05**2  # weight of the first trust: five forecasts of a change by 5 %
FIRST_TRUST = 0.5


class Outlook(TypedDict):
    """What is remembered of the load.

    samples: of the offered rate
    due: forecasts that are not settled yet, each ``[time made, rate then, slope, trust]``
    agreed, moved: Σ p·a and Σ p², p the relative change that a trend predicted and a the one that
        came
    missed, over, actual: Σ |error|, Σ error and Σ rate of the settled forecasts, records/s
    """

    samples: Samples
    due: list[list[float]]
    agreed: float
    moved: float
    missed: float
    over: float
    actual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """``now`` the present rate, records/s · ``slope`` its trend, records/s² · ``trust`` the share
    of a trend that has come true of late, 0 to 1.

    >>> Forecast(now=1000.0, slope=2.0, trust=0.5).after(100.0)
    1100.0
    """

    now: float
    slope: float
    trust: float

    def after(self, seconds: float) -> float:
        """The rate so many seconds ahead: now + trust · slope · seconds, at least 0."""
        return max(0.0, self.now + self.trust * self.slope * seconds)


def no_outlook() -> Outlook:
    """The outlook before anything was seen."""
    return {
        "samples": [],
        "due": [],
        "agreed": 0.0,
        "moved": 0.0,
        "missed": 0.0,
        "over": 0.0,
        "actual": 0.0,
    }


def look_ahead(
    memory: Outlook, time: float, rate: float, horizon: float
) -> tuple[Forecast, Outlook]:
    """The forecast after one more sample, and the memory with it.

    The trend is the slope of the least-squares line through the samples of the last minutes, the
    older the less they count. Not every trend goes on: the trust is the factor on past trends
    that would have hit best, w = Σ p·a / Σ p², p the change that a forecast predicted without it
    and a the one that came. A walk at random takes it to 0, a steady rise to 1. Samples may be
    spaced in any way.
    """
    settled = _settle(memory, time, rate, horizon)
    samples = remember(memory["samples"], time, rate, KEPT)
    near = [v for t, v in samples if t > time - NEAR]
    forecast = Forecast(
        now=sum(near) / len(near), slope=_trend(samples, time), trust=_trust(settled)
    )
    due = settled["due"]
    if not due or time - due[-1][0] >= horizon / DUE:
        due = [*due, [time, forecast.now, forecast.slope, forecast.trust]]
    return forecast, {**settled, "samples": samples, "due": due}


def errors_of(memory: Outlook) -> dict[str, float]:
    """How wrong the forecasts were, one horizon ahead; empty until one was due.

    ``forecast_error`` Σ |forecast − actual| / Σ actual · ``forecast_bias`` the same with the sign:
    above 0 if the forecasts were too high.
    """
    if not memory["actual"]:
        return {}
    return {
        "forecast_error": memory["missed"] / memory["actual"],
        "forecast_bias": memory["over"] / memory["actual"],
    }


def _settle(memory: Outlook, time: float, rate: float, horizon: float) -> Outlook:
    """Compare the forecasts that are due with what came."""
    settled: Outlook = {**memory, "due": []}
    for made, then, slope, trust in memory["due"]:
        age = time - made
        if age < EARLY * horizon:
            settled["due"].append([made, then, slope, trust])
        elif age <= LATE * horizon:
            error = Forecast(now=then, slope=slope, trust=trust).after(age) - rate
            settled["missed"] += abs(error)
            settled["over"] += error
            settled["actual"] += rate
            scale = max(then, rate)
            if scale > 0.0:
                predicted, actual = slope * age / scale, (rate - then) / scale
                settled["agreed"] = OLDER * settled["agreed"] + predicted * actual
                settled["moved"] = OLDER * settled["moved"] + predicted * predicted
    return settled


def _trust(memory: Outlook) -> float:
    trust = (memory["agreed"] + DOUBT * FIRST_TRUST) / (memory["moved"] + DOUBT)
    return min(max(trust, 0.0), 1.0)


def _trend(samples: Samples, time: float) -> float:
    """Slope of the weighted least-squares line, records/s²; 0 of too short a time."""
    if time - samples[0][0] < SHORTEST:
        return 0.0
    weights = [math.exp((t - time) / FADING) for t, _ in samples]
    total = sum(weights)
    mean_t = sum(w * s[0] for w, s in zip(weights, samples, strict=True)) / total
    mean_v = sum(w * s[1] for w, s in zip(weights, samples, strict=True)) / total
    spread = sum(w * (s[0] - mean_t) ** 2 for w, s in zip(weights, samples, strict=True))
    if spread <= 0.0:
        return 0.0
    both = sum(w * (s[0] - mean_t) * (s[1] - mean_v) for w, s in zip(weights, samples, strict=True))
    return both / spread
