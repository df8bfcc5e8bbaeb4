"""The traces of the MEAD paper, or what stands in for them. [russo21, §VII]

| name | what | rate |
|---|---|---|
| synt | twelve stretches of five minutes, from six processes of different variability | 300/s |
| bc | BC-pAug89, as recorded | 318/s |
| lm | a stand-in for the Live Maps trace, which is not available: drawn from a MAP(8) | 60/s |
| taxi | New York taxi drop-offs of five steady hours at ten times their speed | 65/s |

SYNT and LM were fixed without a policy: the autocorrelation of LM is the strongest, that of SYNT
is gone first (Fig. 7), and a matcher at a fixed share of its CPU has about the response times of
the paper's extremes (LM: 0.3 s at full CPU, 9 s at 55 %; the paper has 0.75 s and 7.5 s).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce

import numpy as np

from penstock.core.errors import unknown
from penstock.queueing import MarkovianArrivalProcess
from penstock.queueing.map2 import hyperexponential
from penstock.workloads.pattern import Floats
from penstock.workloads.recorded import bellcore
from penstock.workloads.sampling import sample
from penstock.workloads.trace import Trace

SYNT_RATE = 300.0
STRETCH = 300.0  # seconds; the six come twice
SYNT = ((1.0, 1.0), (2.0, 5.0), (4.0, 20.0), (1.0, 1.0), (3.0, 10.0), (5.0, 20.0))
"""Squared coefficient of variation and arrivals that correlation lasts, of each stretch."""
LM_RATE = 60.0
LM_SECONDS = 3600.0
LM = ((1.4, 0.5, 3.0), (1.6, 0.5, 30.0), (1.3, 0.6, 150.0))
"""r2, the mean of the fast phase and the arrivals that correlation lasts, of each block."""
TAXI_SPEED = 10.0
KEPT = 4  # traces: runs of the same seed follow one another
TAXI_BEGIN, TAXI_SECONDS = 10.5 * 3600.0, 5 * 3600.0  # the steadiest of 1 May 2013; 30 minutes


def arrivals(name: str, seed: int, seconds: float = math.inf) -> Floats:
    """Times of all arrivals in the first ``seconds``; of BC the same for every seed."""
    if name not in TRACES:
        raise unknown("trace", name, TRACES)
    times = _whole(name, seed)
    return times[: int(np.searchsorted(times, seconds))]


@lru_cache(maxsize=KEPT)
def _whole(name: str, seed: int) -> Floats:
    times = TRACES[name](seed)
    times.setflags(write=False)
    return times


def live_maps() -> MarkovianArrivalProcess:
    """The process that stands in for the Live Maps trace."""
    blocks = [hyperexponential(r2=r2, low=low, gamma=math.exp(-1.0 / t)) for r2, low, t in LM]
    return reduce(MarkovianArrivalProcess.composed, blocks).scaled(1.0 / LM_RATE)


def stretch(scv: float, tau: float) -> MarkovianArrivalProcess:
    """One stretch of SYNT."""
    if scv <= 1.0:
        return MarkovianArrivalProcess.poisson(SYNT_RATE)
    block = hyperexponential(r2=(1.0 + scv) / 2.0, low=0.3, gamma=math.exp(-1.0 / tau))
    return block.scaled(1.0 / SYNT_RATE)


def _synt(seed: int) -> Floats:
    pieces = []
    for number, (scv, tau) in enumerate(SYNT * 2):
        rng = np.random.default_rng([seed, 1, number])
        drawn = _filled(stretch(scv, tau), STRETCH, rng)
        pieces.append(number * STRETCH + drawn)
    return np.concatenate(pieces)


def _lm(seed: int) -> Floats:
    return _filled(live_maps(), LM_SECONDS, np.random.default_rng([seed, 2]))


def _bc(seed: int) -> Floats:
    return np.cumsum(bellcore())


def _taxi(seed: int) -> Floats:
    """Within a minute of the record, as if at random: times were rounded to the minute."""
    pattern = Trace(file="taxi")
    rates = sample(pattern, TAXI_BEGIN + TAXI_SECONDS, cell=60.0).rates
    counts = np.round(rates[int(TAXI_BEGIN // 60) :] * 60.0).astype(np.int64)
    rng = np.random.default_rng([seed, 3])
    minutes = np.repeat(np.arange(len(counts)), counts)
    return np.sort((minutes + rng.random(len(minutes))) * 60.0 / TAXI_SPEED)


def _filled(process: MarkovianArrivalProcess, seconds: float, rng: np.random.Generator) -> Floats:
    """Arrivals of so many seconds."""
    count = int(seconds * process.rate)
    times = np.cumsum(process.sample(2 * count + 1000, rng))
    return np.asarray(times[times < seconds])


TRACES: Mapping[str, Callable[[int], Floats]] = {
    "synt": _synt,
    "bc": _bc,
    "lm": _lm,
    "taxi": _taxi,
}
