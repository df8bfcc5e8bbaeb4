"""What one run looked like over time: one figure per tick, for pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from penstock.core.errors import InputError
from penstock.history.files import atomic
from penstock.simulator import Series
from penstock.simulator.series import Floats

_POOL = "pool:"  # prefix of the arrays by pool in a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One figure per tick.

    time: seconds at the end of the tick
    offered, consumed: records/s over the tick
    slots: of all pools, the mean over the tick
    oracle: what the oracle would have had
    latency: mean queue time of the seconds in which the job was up, or of all if it never was
    cpu: mean share likewise
    lag: records at the end
    down: share of the tick in which the job stood still
    actions: times of the actions, in seconds
    pools: slots by pool at the end
    """

    time: Floats
    offered: Floats
    consumed: Floats
    slots: Floats
    latency: Floats
    cpu: Floats
    oracle: Floats
    lag: Floats
    down: Floats
    actions: Floats
    pools: Mapping[str, Floats] = field(default_factory=dict)


def trace_of(series: Series, oracle: Floats, period: float, actions: Sequence[float]) -> Trace:
    """Averages over ticks of ``period`` seconds; a rest shorter than a tick is left out."""
    seconds = len(series.offered)
    ends = np.floor(np.arange(1, int(seconds / period + 1e-9) + 1) * period + 1e-6).astype(int)
    starts = np.concatenate(([0], ends[:-1]))
    lengths = ends - starts
    up = 1.0 - series.down

    def mean(values: Floats, weights: Floats | None = None) -> Floats:
        """Over each tick; without the weights where they are all 0."""
        if weights is None:
            return np.asarray(_sums(values, starts, ends) / lengths)
        total = _sums(weights, starts, ends)
        weighted = _sums(values * weights, starts, ends)
        known = total > 0.0
        return np.where(known, weighted / np.where(known, total, 1.0), mean(values))

    return Trace(
        time=ends.astype(float),
        offered=mean(series.offered),
        consumed=mean(series.consumed),
        slots=mean(sum(series.slots.values(), np.zeros(seconds))),
        latency=mean(series.queue_latency, up),
        cpu=mean(series.cpu, up),
        oracle=mean(oracle),
        lag=series.lag[ends - 1].copy(),
        down=mean(series.down),
        actions=np.array(actions, dtype=float),
        pools={pool: slots[ends - 1].copy() for pool, slots in series.slots.items()},
    )


def save(trace: Trace, path: Path) -> None:
    """Write a trace as a compressed ``.npz`` file, at once or not at all."""
    arrays = {f.name: getattr(trace, f.name) for f in fields(trace) if f.name != "pools"}
    arrays |= {_POOL + name: values for name, values in trace.pools.items()}
    with atomic(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)


def load(path: Path) -> Trace:
    """A trace as it was written."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise InputError(f"no trace at {path} ({error}); run the bench again") from None
    pools = {n.removeprefix(_POOL): a for n, a in arrays.items() if n.startswith(_POOL)}
    return Trace(pools=pools, **{n: a for n, a in arrays.items() if not n.startswith(_POOL)})


def _sums(values: Floats, starts: Floats, ends: Floats) -> Floats:
    running = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(running[ends] - running[starts])
