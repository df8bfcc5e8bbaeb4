"""What a window of inter-arrival times says of the process behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import fft

from penstock.core.errors import InputError
from penstock.queueing.matrices import Floats

MOST_LAGS = 60
LONGEST = 1000  # lags
MOST_SUMS = 40
BLOCKS = 20
APART = (1, 2, 5, 10, 25)  # lags of the joint moments


@dataclass(frozen=True, eq=False)
class Intervals:
    """Times between arrivals, in seconds, oldest first; at least two, positive on average.

    A value of zero is an arrival at the same time as the one before.
    """

    values: Floats

    def __init__(self, values: npt.ArrayLike) -> None:
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != 1 or len(array) < 2:
            raise InputError(f"{array.size} inter-arrival times; it takes at least 2 in a row")
        if not np.isfinite(array).all():
            raise InputError("inter-arrival times must be finite")
        if (least := float(array.min())) < 0.0:
            raise InputError(f"an inter-arrival time of {least:g} s: arrivals are not in order")
        if not array.any():
            raise InputError("all inter-arrival times are 0: the arrivals' clock is too coarse")
        object.__setattr__(self, "values", array)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def mean(self) -> float:
        """Seconds between two arrivals."""
        return float(self.values.mean())

    @cached_property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return max(0.0, self.moment(2) / self.mean**2 - 1.0)

    def moment(self, k: int) -> float:
        """Mean of the k-th powers."""
        return float((self.values**k).mean())

    @cached_property
    def lags(self) -> npt.NDArray[np.intp]:
        """Where the autocorrelation is looked at: all small lags, then ever fewer."""
        longest = min(LONGEST, len(self) - 1)
        spread = np.geomspace(1.0, longest, MOST_LAGS)
        return np.unique(np.round(spread)).astype(np.intp)

    @cached_property
    def autocorrelation(self) -> Floats:
        """Biased estimates at ``lags``: sums over all pairs, divided by the length, by FFT."""
        centred = self.values - self.mean
        length = len(self)
        size = fft.next_fast_len(length + int(self.lags[-1]), real=True)
        power = np.abs(fft.rfft(centred, size)) ** 2
        sums = fft.irfft(power, size)
        if sums[0] <= 0.0:
            return np.zeros(len(self.lags))
        return np.asarray(sums[self.lags] / sums[0])

    @cached_property
    def sums(self) -> npt.NDArray[np.intp]:
        """Over how many intervals in a row the dispersion is looked at; 20 of the longest fit."""
        longest = max(1, len(self) // BLOCKS)
        return np.unique(np.round(np.geomspace(1.0, longest, MOST_SUMS))).astype(np.intp)

    @cached_property
    def dispersion(self) -> Floats:
        """I(m) = Var[X_1 + … + X_m] / (m·E[X]²) for m in ``sums``; 1 for a Poisson process.

        I(m) = SCV·(1 + 2·Σ (1 − k/m)·ρ_k): it adds up correlation that is lost in the noise at
        each single lag, and that is what fills a queue.
        """
        ends = np.concatenate([[0.0], np.cumsum(self.values)])
        found = [float((ends[m:] - ends[:-m]).var()) / m for m in self.sums.tolist()]
        return np.array(found) / self.mean**2

    @cached_property
    def joint_moments(self) -> dict[tuple[int, int], float]:
        """E[X_0·X_k·X_(k+l)] for some k and l."""
        x = self.values
        found = {}
        for k in APART:
            if k >= len(x):
                continue
            pairs = x[:-k] * x[k:]
            for l in APART:  # noqa: E741
                if k + l < len(x):
                    found[k, l] = float(np.dot(pairs[: len(x) - k - l], x[k + l :])) / (
                        len(x) - k - l
                    )
        return found

    def least_local_mean(self, arrivals: int) -> float:
        """The smallest mean over so many times in a row."""
        count = min(max(1, arrivals), len(self))
        sums = np.concatenate([[0.0], np.cumsum(self.values)])
        return float((sums[count:] - sums[:-count]).min()) / count

    def last(self, count: int) -> Intervals:
        """The newest of them."""
        return self if count >= len(self) else Intervals(self.values[-count:])
