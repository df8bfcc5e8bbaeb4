"""Where a pool's CPU begins and ends: what it reads without work, and when it can do no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from penstock.core.model import Snapshot
from penstock.policies.hpa_cpu import pool_cpu
from penstock.policies.signals.backlog import stopped
from penstock.policies.signals.learned import blend, saturated

OLDER = 0.98  # weight of a sample against the next one
ENOUGH = 3.0  # samples that a line is drawn through
SPREAD = 0.1  # of the rates around their mean, at least, for a line to mean anything


class CpuRange(TypedDict):
    """Of one pool. ``ceiling`` CPU when it could do no more · ``lowest`` ever read · the others
    are weighted sums of samples: number, x records/s of one slot, y CPU, x², x·y."""

    ceiling: float | None
    lowest: float
    n: float
    x: float
    y: float
    xx: float
    xy: float


def learn_cpu(seen: Snapshot, memory: Mapping[str, CpuRange]) -> dict[str, CpuRange]:
    """What is known after one more window; nothing is learned from one with a rescale in it."""
    ranges = {pool: memory[pool] for pool in seen.pipeline.pools if pool in memory}
    if stopped(seen):
        return ranges
    full = saturated(seen)
    for pool in seen.pipeline.pools:
        cpu = pool_cpu(seen, pool)
        members = seen.pipeline.members(pool)
        rates = [o.arrival_rate for m in members if (o := seen.operators.get(m)) is not None]
        known = [rate for rate in rates if rate is not None]
        if cpu and len(known) == len(members):
            at_most = any(m in full for m in members)
            ranges[pool] = _taught(ranges.get(pool), cpu, sum(known) / seen.slots(pool), at_most)
    return ranges


def _taught(old: CpuRange | None, cpu: float, rate: float, at_most: bool) -> CpuRange:
    """One sample more; ``rate`` records/s of one slot, ``at_most`` whether it was all it can."""
    if old is None:
        old = {"ceiling": None, "lowest": cpu, "n": 0, "x": 0, "y": 0, "xx": 0, "xy": 0}
    ceiling = old["ceiling"]
    if at_most or (ceiling is not None and cpu > ceiling):
        ceiling = blend(ceiling, cpu)
    return {
        "ceiling": ceiling,
        "lowest": min(old["lowest"], cpu),
        "n": OLDER * old["n"] + 1.0,
        "x": OLDER * old["x"] + rate,
        "y": OLDER * old["y"] + cpu,
        "xx": OLDER * old["xx"] + rate * rate,
        "xy": OLDER * old["xy"] + rate * cpu,
    }


def base_of(known: CpuRange) -> float:
    """CPU without work: where the least-squares line of CPU over rate per slot begins.

    b = ȳ − s·x̄, s = cov(x, y) / var(x); within 0 and the lowest CPU ever read. 0, the careful
    choice, until the rates differ enough: then CPU counts as work.
    """
    n = known["n"]
    if n < ENOUGH:
        return 0.0
    x, y = known["x"] / n, known["y"] / n
    var, cov = known["xx"] / n - x * x, known["xy"] / n - x * y
    if x <= 0.0 or var <= (SPREAD * x) ** 2 or cov <= 0.0:
        return 0.0
    return min(max(y - cov / var * x, 0.0), known["lowest"])
