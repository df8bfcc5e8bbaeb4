"""How well two sets of runs agree: errors, spreads and the order of policies, on plain numbers.

A *sample* is a score by seed. Runs of the same seed saw the same load, so policies are compared
seed by seed (``penstock.report.statistics.paired``).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.report.statistics import paired

EXECUTORS = 0.15  # error of mean executors that is allowed, as a share of Spark's
LAG = 0.30  # of p95 lag, at least
SPREADS = 2.0  # run-to-run spreads on Spark that are allowed if they are more
ORDER = 0.8  # of the pairs that Spark tells apart: 12 of 15

Sample = Mapping[int, float]  # by seed
Same = Literal["same", "swapped", "tie"]


def error(twin: float, spark: float) -> float | None:
    """(twin − spark) / spark; ``None`` where Spark has 0 and the twin has not.

    >>> error(3.0, 4.0), error(0.0, 0.0), error(1.0, 0.0)
    (-0.25, 0.0, None)
    """
    if spark:
        return (twin - spark) / abs(spark)
    return None if twin else 0.0


def spread(values: Sequence[float]) -> float | None:
    """Standard deviation over the mean, from run to run; ``None`` for one run or a mean of 0.

    >>> spread([8.0, 12.0]), spread([8.0])
    (0.282842712474619, None)
    """
    mean = statistics.fmean(values)
    return statistics.stdev(values) / abs(mean) if len(values) > 1 and mean else None


def allowed_lag(values: Sequence[float]) -> float:
    """The error of a lag that is allowed, from Spark's own values: max(30 %, 2 spreads).

    >>> allowed_lag([10.0, 10.5]), allowed_lag([8.0, 12.0])
    (0.3, 0.565685424949238)
    """
    return max(LAG, SPREADS * (spread(values) or 0.0))


def within(error: float | None, allowed: float) -> bool:
    """Whether an error is allowed; one that is not finite never is."""
    return error is not None and abs(error) <= allowed + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Two policies a and b by one score: the sign of a − b on Spark and in the twin.

    ``tie`` Spark's own interval of the difference holds 0: it does not tell them apart. With a
    single seed there is no interval, and only equal scores are a tie.
    """

    a: str
    b: str
    spark: int
    twin: int
    tie: bool

    @property
    def verdict(self) -> Same:
        """A tie on Spark cannot be got wrong; it is counted apart."""
        if self.tie:
            return "tie"
        return "same" if self.alike else "swapped"

    @property
    def alike(self) -> bool:
        """Whether the means have the same order, whatever the intervals say."""
        return self.spark == self.twin


def orders(spark: Mapping[str, Sample], twin: Mapping[str, Sample]) -> list[Order]:
    """Every pair of policies, over the seeds that all four samples have; none without any."""
    found = []
    for a, b in itertools.combinations(spark, 2):
        four = (spark[a], spark[b], twin[a], twin[b])
        seeds = [seed for seed in spark[a] if all(seed in sample for sample in four)]
        if not seeds:
            continue
        real = paired([spark[a][s] for s in seeds], [spark[b][s] for s in seeds])
        played = paired([twin[a][s] for s in seeds], [twin[b][s] for s in seeds])
        unsure = real.half_width is not None and real.verdict == "tie"
        found.append(
            Order(
                a=a,
                b=b,
                spark=_sign(real.mean),
                twin=_sign(played.mean),
                tie=unsure or not real.mean,
            )
        )
    return found


def _sign(value: float) -> int:
    return 0 if value == 0 else int(math.copysign(1, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Pairs counted: ``same`` and ``swapped`` of those that Spark tells apart, and ``ties``.

    ``alike`` pairs whose means have the same order, ties included.
    """

    same: int
    swapped: int
    ties: int
    alike: int

    @property
    def told(self) -> int:
        """Pairs that Spark tells apart."""
        return self.same + self.swapped

    @property
    def pairs(self) -> int:
        """Pairs in all, whether Spark tells them apart or not."""
        return self.told + self.ties

    @property
    def wanted(self) -> int:
        """Pairs of those told apart that must have the same order.

        >>> Tally(same=11, swapped=4, ties=0, alike=11).wanted
        12
        """
        return math.ceil(ORDER * self.told - 1e-9)

    @property
    def held(self) -> bool | None:
        """``None`` where Spark tells no pair apart: nothing can be judged."""
        return self.same >= self.wanted if self.told else None


def tally(found: Sequence[Order]) -> Tally:
    """Count pairs."""
    verdicts = [order.verdict for order in found]
    return Tally(
        same=verdicts.count("same"),
        swapped=verdicts.count("swapped"),
        ties=verdicts.count("tie"),
        alike=sum(order.alike for order in found),
    )
