"""What a window of the geo simulator looks like to a policy."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.model import OperatorSeen, Slot
from penstock.simulator.geo import kernel as k
from penstock.simulator.geo.job import Job
from penstock.simulator.geo.spec import SINK, SOURCE

NOISES = 4  # of offered and arrival rate, busy share, CPU


def readings(
    job: Job,
    slots: Sequence[Slot],
    *,
    window: float,
    sums: Sequence[float],
    lag: float,
    noise: Sequence[Sequence[float]],
) -> dict[str, OperatorSeen]:
    """All three operators; ``sums`` of the kernel, ``noise`` by operator and reading."""
    up, taken = sums[k.UP_TIME], sums[k.TAKEN]
    if not (window > 0.0 and up > 0.0):
        offered = sums[k.ARRIVED] / window * (1.0 + noise[0][0]) if window > 0.0 else None
        return {
            SOURCE: OperatorSeen(parallelism=1.0, offered_rate=offered, lag=lag),
            job.name: OperatorSeen(parallelism=float(len(slots))),
            SINK: OperatorSeen(parallelism=1.0),
        }
    rate = taken / window
    age = sums[k.AGE_SUM] / taken if taken > 0.0 else None
    latency = sums[k.LATENCY_SUM] / taken if taken > 0.0 else None
    loads = [slot.load for slot in slots if slot.load is not None]
    cpus = [slot.cpu for slot in slots if slot.cpu is not None]
    busy = sum(loads) / len(loads) if loads else None
    cpu = sum(cpus) / len(cpus) if cpus else None
    return {
        SOURCE: _seen(
            1.0,
            rate,
            up / window,
            sums[k.SOURCE_TIME] / up,
            noise[0],
            held=sums[k.HELD_TIME] / up,
            offered=sums[k.ARRIVED] / window,
            lag=lag,
            latency=age,
        ),
        job.name: _seen(
            float(len(slots)),
            rate,
            up / window,
            busy,
            noise[1],
            cpu=cpu,
            full=sums[k.FULL] / up,
            latency=latency,
        ),
        SINK: _seen(
            1.0,
            rate,
            up / window,
            min(1.0, taken * job.source_cost / up),
            noise[2],
            full=0.0,
            latency=latency,
        ),
    }


def _seen(
    slots: float,
    rate: float,
    up: float,
    busy: float | None,
    noise: Sequence[float],
    *,
    held: float = 0.0,
    cpu: float | None = None,
    offered: float | None = None,
    full: float | None = None,
    lag: float | None = None,
    latency: float | None = None,
) -> OperatorSeen:
    """One operator, with errors of measurement; ``up`` the share of the window it ran."""
    arrival = rate * (1.0 + noise[1])
    shown = None if busy is None else min(1.0, busy * (1.0 + noise[2]))
    idle = back = service = None
    if shown is not None and busy is not None:
        rest = 1.0 - busy
        # The rest of the time keeps its division into held back and idle.
        back = min(1.0 - shown, held / rest * (1.0 - shown)) if rest > 0.0 else 0.0
        idle = max(0.0, 1.0 - shown - back)
        if shown > 0.0 and arrival > 0.0:
            service = arrival / (shown * slots * up)
    return OperatorSeen(
        parallelism=slots,
        offered_rate=None if offered is None else offered * (1.0 + noise[0]),
        arrival_rate=arrival,
        output_rate=arrival,
        service_rate=service,
        busy=shown,
        idle=idle,
        backpressured=back,
        cpu=None if cpu is None else min(1.0, cpu * (1.0 + noise[3])),
        buffer=full,
        lag=lag,
        latency=latency,
    )
