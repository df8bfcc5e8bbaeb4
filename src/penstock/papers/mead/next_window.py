"""How well the response time of the next window is told from the present one.

``python -m penstock.papers.mead.next_window`` prints it for BC-pAug89: windows of 50,000 arrivals,
one server with Erlang-2 service. Everything said of a window is made of arrivals up to its end;
the truth is a simulation of the next window alone, from an empty server on, with services of its
own. The error is |said − true|/true. ``mead`` says the worst over its fits and windows, ``replay``
what the present window took, ``mead+`` the outlook (``penstock.queueing.outlook``).

A utilisation is that of the whole trace (the server is given, as on a machine), or that of the
present window (the server is chosen by it, as a policy does). The constants of the outlook were
chosen on other traffic: self-similar, Markovian, SYNT, LM and a web server's log.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.console import Console
from rich.progress import track

from penstock.core.errors import InputError
from penstock.core.model import Arrivals
from penstock.policies.mead.response import Load, by_process
from penstock.queueing import PhaseType
from penstock.queueing.outlook import Levels, expected, learnt, newest
from penstock.queueing.paths import Station
from penstock.queueing.replay import departures, replayed
from penstock.report.table import Table
from penstock.workloads.pattern import Floats
from penstock.workloads.recorded import bellcore

Reading = Literal["trace", "window"]

WINDOW = 50_000
STEP = 25_000
LOADS = (0.5, 0.7, 0.85)
READINGS: tuple[Reading, ...] = ("trace", "window")
NAMES = ("mead", "replay", "mead+")
MAPS = 5
SCV = 0.5
MOST = 2.0 / 3.0  # of mead's error
RESAMPLES = 2000
SEED = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Mean response times in seconds of one next window: ``said`` by each of NAMES, and true."""

    end: int
    reading: Reading
    load: float
    said: tuple[float, ...]
    true: float


def cases(intervals: Floats, *, window: int = WINDOW, step: int = STEP) -> Iterator[list[Case]]:
    """Window by window, every ``step`` arrivals, what is said at its end of the next one.

    Before the first arrival of a trace there is no interval: the last window may lack one.
    """
    draws = np.random.default_rng(SEED).gamma(1.0 / SCV, SCV, len(intervals))
    average = float(intervals.mean())
    levels: Levels = {}
    for end in range(window, len(intervals) - window + 2, step):
        now = Arrivals(intervals[end - window : end])
        levels = learnt(levels, now, step, SCV)
        load = Load((now, newest(now)), MAPS)
        coming = slice(end, end + window)
        found = []
        for reading in READINGS:
            gap = average if reading == "trace" else float(now.intervals.mean())
            for busy in LOADS:
                service = PhaseType.of(mean=busy * gap, scv=SCV)
                path = (Station(name="server", service=service),)
                said = (_by_mead(load, path), replayed(now, path, 0.0), expected(levels, now, path))
                true = simulated(intervals[coming], draws[coming] * busy * gap)
                found.append(Case(end=end, reading=reading, load=busy, said=said, true=true))
        yield found


def simulated(intervals: Floats, services: Floats) -> float:
    """Mean response time of arrivals at a server that is empty at first."""
    times = np.cumsum(intervals)
    return float((departures(times, services) - times).mean())


def _by_mead(load: Load, path: tuple[Station, ...]) -> float:
    try:
        return by_process(load, path, 0.0)
    except InputError:  # a fit that cannot be solved says as little as an overload
        return math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Median:
    """The median of some values and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def median(values: Floats, together: int) -> Median:
    """The median, with an interval by a bootstrap.

    It draws runs of ``together`` neighbours, as those that overlap are alike.
    """
    count = len(values)
    rng = np.random.default_rng(SEED)
    begins = rng.integers(0, count, (RESAMPLES, -(-count // together)))
    places = (begins[:, :, None] + np.arange(together)) % count
    drawn = np.median(values[places.reshape(RESAMPLES, -1)[:, :count]], axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975), method="nearest")  # there may be infinite ones
    return Median(value=float(np.median(values)), low=float(low), high=float(high))


def errors(chosen: Sequence[Case], name: str) -> Floats:
    """|said − true|/true, case by case."""
    which = NAMES.index(name)
    return np.array([abs(case.said[which] / case.true - 1.0) for case in chosen])


def log_ratios(chosen: Sequence[Case], name: str) -> Floats:
    """log(said/true), case by case."""
    which = NAMES.index(name)
    return np.array([math.log(case.said[which] / case.true) for case in chosen])


def failures(chosen: Sequence[Case]) -> list[str]:
    """What mead+ misses at one utilisation: at most 2/3 of mead's error, and not above replay's."""
    mead, replay, plus = (float(np.median(errors(chosen, name))) for name in NAMES)
    found = []
    if plus > MOST * mead:
        found.append(f"{plus:.2f} is above 2/3 of mead's {mead:.2f}")
    if plus > replay:
        found.append(f"{plus:.2f} is above replay's {replay:.2f}")
    return found


def table(
    found: Sequence[Case], reading: Reading, step: int = STEP, *, window: int = WINDOW
) -> Table:
    """A table of one reading of the utilisation, windows that begin every ``step`` arrivals."""
    rows, notes = [], []
    together = max(1, window // step)
    for load in sorted({case.load for case in found}):
        chosen = [
            case
            for case in found
            if (case.reading, case.load) == (reading, load) and (case.end - window) % step == 0
        ]
        mead = float(np.median(errors(chosen, "mead")))
        for name in NAMES:
            error = median(errors(chosen, name), together)
            logs = log_ratios(chosen, name)
            rows.append(
                (
                    f"{load:g}",
                    name,
                    str(error),
                    str(median(np.abs(logs), together)),
                    f"{np.median(logs):+.2f}",
                    f"{error.value / mead:.2f}",
                )
            )
        problems = failures(chosen)
        notes.append(
            f"at {load:g}: " + (f"not held: {'; '.join(problems)}" if problems else "held")
        )
    count = len(rows) and len(chosen)
    return Table(
        title=f"Utilisation of the {reading}; {count} windows, one every {step:,} arrivals",
        header=("load", "by", "error", "|log ratio|", "log ratio", "of mead's"),
        rows=tuple(rows),
        notes=("medians, 95 % bootstrap intervals; log ratio: of said to true", *notes),
        words=2,
    )


def main() -> int:
    """Print the tables; what does not hold is said below them."""
    console = Console()
    intervals = bellcore()
    total = (len(intervals) + 1 - 2 * WINDOW) // STEP + 1
    progress = Console(stderr=True)
    windows = track(cases(intervals), "windows", total=total, console=progress, transient=True)
    found = [case for some in windows for case in some]
    for reading in READINGS:
        for step in (WINDOW, STEP):
            console.print(table(found, reading, step).rich())
            console.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
