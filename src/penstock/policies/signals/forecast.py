"""A forecast of the offered rate that knows how far it can be trusted, and how wrong it was."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from penstock.policies.signals.windows import Samples, remember

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

    ``samples`` of the offered rate · ``due`` forecasts that are not settled yet, each
    ``[time made, rate then, slope, trust]`` · ``agreed`` Σ p·a and ``moved`` Σ p², p the relative
    change that a trend predicted and a the one that came · ``missed`` Σ |error|, ``over`` Σ error
    and ``actual`` Σ rate of the settled forecasts, records/s.
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
    """Before anything was seen."""
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
