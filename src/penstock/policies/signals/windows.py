"""What policies remember: short windows of samples, as plain JSON values.

A sample is ``[time, value]``, samples are in the order of time. Windows are never changed in
place: a policy's memory is a value.
"""

from __future__ import annotations

from collections.abc import Sequence

Samples = list[list[float]]


def remember(samples: Samples, time: float, value: float | None, window: float) -> Samples:
    """The samples younger than ``window`` seconds, and a new one unless it was not measured.

    >>> remember([[0.0, 1.0], [15.0, 2.0]], 300.0, 3.0, window=300.0)
    [[15.0, 2.0], [300.0, 3.0]]
    """
    old = 0
    for sample in samples:  # in the order of time: few are old at any one tick
        if sample[0] > time - window:
            break
        old += 1
    kept = samples[old:]
    if value is not None:
        kept.append([time, value])
    return kept


def most(samples: Samples) -> float:
    """The largest value of a window that holds at least one sample.

    Over 300 s this is Kubernetes' stabilisation against early scale-down.

    >>> most([[15.0, 2.0], [300.0, 1.0]])
    2.0
    """
    return max([sample[1] for sample in samples])


def slope(samples: Sequence[tuple[float, float]]) -> float | None:
    """The slope of the least-squares line through (time, value), as Prometheus' ``deriv``.

    b = Σ(t − t̄)(v − v̄) / Σ(t − t̄)²; ``None`` of fewer than two different times.

    >>> slope([(0.0, 5.0), (15.0, 35.0), (30.0, 65.0)])
    2.0
    """
    n = len(samples)
    if n < 2:
        return None
    mean_t = mean_v = 0.0
    for t, v in samples:
        mean_t += t / n
        mean_v += v / n
    spread = together = 0.0
    for t, v in samples:
        spread += (t - mean_t) ** 2
        together += (t - mean_t) * (v - mean_v)
    return together / spread if spread > 0.0 else None
