"""Tasks on a new executor: slower while it is cold, or faster while it may use more CPU."""

from __future__ import annotations

import math

from penstock.simulator.microbatch.profile import ExecutorProfile


def seconds_after(profile: ExecutorProfile, seconds: float, worked: float) -> float:
    """What a task of so many ``seconds`` elsewhere takes after ``worked`` seconds of work here.

    After w seconds of work everything takes 1 + m·e^(−w/τ) times as long, m = slowdown − 1 and
    τ = warm_up, also within a task: a long one warms the executor up itself. So a task does
    ∫ dw / (1 + m·e^(−w/τ)) = τ·ln(e^(w/τ) + m) between its begin and its end.

    >>> cold = ExecutorProfile(slowdown=10.0, warm_up=2.0)
    >>> round(seconds_after(cold, 0.01, 0.0), 3), round(seconds_after(cold, 10.0, 0.0), 1)
    (0.098, 14.6)
    """
    p = profile
    if worked < p.boost_for:
        faster = min(seconds, (p.boost_for - worked) / p.boost)
        return faster * p.boost + seconds - faster
    more = p.slowdown - 1.0
    if not (more > 0.0 and p.warm_up > 0.0):
        return seconds
    begin = worked / p.warm_up
    whole = _log_sum(begin, math.log(more)) + seconds / p.warm_up
    end = whole + math.log1p(-more * math.exp(-whole))
    return (end - begin) * p.warm_up


def _log_sum(a: float, b: float) -> float:
    """ln(e^a + e^b)."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))
