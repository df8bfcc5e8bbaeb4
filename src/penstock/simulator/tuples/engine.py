"""The tuple simulator as an engine: every record through every queue. [russo21]"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError, unknown
from penstock.core.model import Arrivals, Change, OperatorSeen, Slot, Snapshot
from penstock.queueing.replay import departures
from penstock.simulator.tuples.application import Application
from penstock.workloads.pattern import Floats

WINDOW = 100_000  # newest inter-arrival times shown
DRAWN = 4  # operators whose draws are kept: the next run of the same seed has the same


class TupleEngine:
    """An application under recorded or drawn arrivals, FIFO queues of any length.

    ``times`` of the arrivals in order · every operator has one slot, whose ``cpu_share`` is its
    speed. The same application, arrivals, seed and calls give the same run; how the time is
    divided into ``advance`` calls does not matter. Demands are drawn per record and operator, so
    that two policies see the same records.
    """

    def __init__(
        self, application: Application, times: Floats, *, seed: int = 0, window: int = WINDOW
    ) -> None:
        if len(times) < 2 or (np.diff(times) < 0.0).any() or times[0] < 0.0:
            raise InputError("times of at least 2 arrivals must be ≥ 0 and in order")
        if window < 2:
            raise InputError(f"window {window} must be ≥ 2")
        self.application = application
        self.seconds = float(times[-1])
        self._times, self._window = times, window
        pipeline = application.pipeline
        self._source = pipeline.sources[0]
        self._stations = {name: Station() for name in application.demands}
        self._demands: dict[str, Floats] = {}
        self._passed: dict[str, npt.NDArray[np.bool_]] = {}
        for number, name in enumerate(pipeline.order):
            mean = application.demands.get(name)
            selectivity = pipeline.operators[name].selectivity
            demands, passed = _drawn((seed, number), len(times), mean, application.scv, selectivity)
            if demands is not None:
                self._demands[name] = demands
            if passed is not None:
                self._passed[name] = passed
        self._now = self._seen = 0.0
        self._arrived = self._arrived_seen = 0
        sinks = [name for name in pipeline.order if not pipeline.downstream[name]]
        self.left: dict[str, list[tuple[Ids, Floats]]] = {name: [] for name in sinks}
        self._left_seen: dict[str, int] = {}
        self.shares: list[tuple[float, dict[str, float]]] = [(0.0, self._speeds())]
        self._counted = self._counts()

    def advance(self, seconds: float) -> bool:
        """Run; false once the last record has come."""
        if self._now >= self.seconds:
            return False
        begin, end = self._now, min(self._now + seconds, self.seconds)
        last = int(np.searchsorted(self._times, end, side="left"))
        last = len(self._times) if end >= self.seconds else last
        ids = np.arange(self._arrived, last, dtype=np.int64)
        self._arrived = last
        self._run(begin, end, {self._source: (self._times[ids], ids)})
        self._now = end
        return True

    def drain(self) -> None:
        """Serve what is left, at the present speeds."""
        while any(station.waiting for station in self._stations.values()):
            self._run(self._now, self._now + 60.0, {})
            self._now += 60.0

    def _run(self, begin: float, end: float, coming: dict[str, tuple[Floats, Ids]]) -> None:
        pipeline = self.application.pipeline
        nothing = (np.empty(0), np.empty(0, dtype=np.int64))
        for name in pipeline.order:
            times, ids = coming.pop(name, nothing)
            if name in self._stations:
                demands = self._demands[name][ids]
                times, ids = self._stations[name].work(begin, end, times, ids, demands)
            if name in self._passed:
                kept = self._passed[name][ids]
                times, ids = times[kept], ids[kept]
            if name in self.left:
                self.left[name].append((ids, times))
            for below in pipeline.downstream[name]:
                coming[below] = (times, ids)

    def observe(self) -> Snapshot:
        """Rates, CPU and demands since the last observation, and the newest arrivals."""
        window = self._now - self._seen
        if not window > 0.0:
            raise InputError("nothing has happened since the last observation")
        before, now = self._counted, self._counts()
        arrived = self._arrived - self._arrived_seen
        operators = {
            self._source: OperatorSeen(
                parallelism=1.0,
                offered_rate=arrived / window,
                arrival_rate=arrived / window,
                output_rate=arrived / window,
                arrivals=self._newest(),
            )
        }
        for name, station in self._stations.items():
            served = now[name][0] - before[name][0]
            worked = now[name][1] - before[name][1]
            busy = min(1.0, (now[name][2] - before[name][2]) / window)
            operators[name] = OperatorSeen(
                parallelism=1.0,
                arrival_rate=served / window,
                service_rate=served / worked if served and worked > 0.0 else None,
                busy=busy,
                idle=1.0 - busy,
                cpu=busy or None,
                lag=float(station.waiting),
                latency=self._latency(name),
            )
        pools = {
            name: (Slot(id=f"{name}-0", operator=name, cpu_share=self._speed(name)),)
            for name in self.application.pipeline.pools
        }
        self._seen, self._counted, self._arrived_seen = self._now, now, self._arrived
        return Snapshot(
            time=self._now,
            window=window,
            pipeline=self.application.pipeline,
            operators=operators,
            pools=pools,
        )

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Set CPU shares, at once; the number of slots cannot be changed here."""
        for pool, change in changes.items():
            if pool not in self.application.pipeline.pools:
                raise unknown("pool", pool, self.application.pipeline.pools)
            if change.cpu_share is None:
                continue
            if not change.cpu_share > 0.0:
                raise InputError(f"pool {pool}: cpu_share {change.cpu_share} must be above 0")
            if pool in self._stations:
                self._stations[pool].speed = change.cpu_share
        self.shares.append((self._now, self._speeds()))

    def responses(self, sink: str) -> tuple[Floats, Floats]:
        """Arrival and response time of every record that has left a sink, in order of arrival."""
        pieces = self.left[sink]
        ids = np.concatenate([i for i, _ in pieces])
        leaves = np.concatenate([t for _, t in pieces])
        begins = self._times[ids]
        return begins, leaves - begins

    def mean_share(self) -> float:
        """Mean CPU share of all operators over the time that has passed."""
        times = np.array([t for t, _ in self.shares] + [self._now])
        means = [sum(s.values()) / len(s) for _, s in self.shares]
        return float(np.dot(np.diff(times), means) / times[-1])

    def _latency(self, name: str) -> float | None:
        """Mean response time of the records that have left a sink since the last look."""
        if name not in self.left:
            return None
        pieces = self.left[name][self._left_seen.get(name, 0) :]
        self._left_seen[name] = len(self.left[name])
        count = sum(len(ids) for ids, _ in pieces)
        stays = sum(float((times - self._times[ids]).sum()) for ids, times in pieces)
        return stays / count if count else None

    def _newest(self) -> Arrivals | None:
        first = max(0, self._arrived - self._window - 1)
        newest = self._times[first : self._arrived]
        return Arrivals(np.diff(newest)) if len(newest) > 1 else None

    def _speed(self, name: str) -> float:
        return self._stations[name].speed if name in self._stations else 1.0

    def _speeds(self) -> dict[str, float]:
        return {name: station.speed for name, station in self._stations.items()}

    def _counts(self) -> dict[str, tuple[int, float, float]]:
        return {n: (s.served, s.worked, s.busy) for n, s in self._stations.items()}


@lru_cache(maxsize=DRAWN)
def _drawn(
    seed: tuple[int, int], count: int, mean: float | None, scv: float, selectivity: float
) -> tuple[Floats | None, npt.NDArray[np.bool_] | None]:
    """Demands of all records at an operator, if any, and which go further, if not all."""
    rng = np.random.default_rng(seed)
    demands = None if mean is None else rng.gamma(1.0 / scv, mean * scv, count)
    passed = rng.random(count) < selectivity if selectivity < 1.0 else None
    for drawn in (demands, passed):
        if drawn is not None:
            drawn.setflags(write=False)
    return demands, passed


Ids = npt.NDArray[np.int64]


class Station:
    """First come, first served. ``speed`` 1 serves a demand of one second in a second.

    Everything happens on the server's own clock, which runs as fast as it works: on that clock a
    change of speed changes nothing, so a demand that is half done goes on at the new speed.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self.served = 0
        self.worked = 0.0  # seconds of demand done
        self.busy = 0.0  # seconds
        self._own = 0.0  # its clock
        self._left = 0.0  # demand that has come and is not done
        self._free = 0.0  # when it has done all it was given, on its clock
        self._ids: Ids = np.empty(0, dtype=np.int64)
        self._ends: Floats = np.empty(0)

    @property
    def waiting(self) -> int:
        """Records that have come and not left."""
        return len(self._ids)

    def work(
        self, begin: float, end: float, times: Floats, ids: Ids, demands: Floats
    ) -> tuple[Floats, Ids]:
        """Take what comes from ``begin`` to ``end``, in order; what leaves by then, and when."""
        own = self._own + (times - begin) * self.speed
        ends = departures(own, demands, free_at=self._free)
        if len(ends):
            self._free = float(ends[-1])
        waiting_ids = np.concatenate([self._ids, ids])
        waiting_ends = np.concatenate([self._ends, ends])
        until = self._own + (end - begin) * self.speed
        gone = int(np.searchsorted(waiting_ends, until, side="right"))
        leaves = begin + (waiting_ends[:gone] - self._own) / self.speed
        self._count(own, ends, demands, until)
        self._ids, self._ends = waiting_ids[gone:], waiting_ends[gone:]
        self.served += gone
        self._own = until
        return np.minimum(leaves, end), waiting_ids[:gone]

    def _count(self, own: Floats, ends: Floats, demands: Floats, until: float) -> None:
        """Demand done in this stretch: what was left, and each new one as far as it got."""
        left = min(self._left, until - self._own)
        starts = ends - demands
        done = np.minimum(ends, until) - np.minimum(starts, until)
        work = left + float(done.sum())
        self._left = self._left - left + float((demands - done).sum())
        self.worked += work
        self.busy += work / self.speed
