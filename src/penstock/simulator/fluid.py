"""The fluid simulator as an engine: a pipeline that runs by rates, a second at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from penstock.core.errors import InputError, unknown
from penstock.core.model import Change, OperatorSeen, Slot, Snapshot
from penstock.core.quick import maker
from penstock.simulator import kernel as k
from penstock.simulator.inflow import cumulative
from penstock.simulator.seconds import SecondsEngine, generator, speed_noise
from penstock.simulator.series import OperatorTotals, Series, Totals
from penstock.simulator.spec import FluidSpec
from penstock.workloads.patterns import Pattern

NOISE_BLOCK = 64  # metric noise is drawn for so many observations at once


_operator_seen, _snapshot = maker(OperatorSeen), maker(Snapshot)


class FluidEngine(SecondsEngine):
    """A simulated pipeline of ``seconds`` seconds under an offered load.

    ``pattern`` is divided among the sources by ``spec.source_shares``, or gives each source its
    own by name. The same spec, pattern, seed and calls give the same run, bit for bit; how the
    time is divided into ``advance`` calls does not matter.

    Time goes in whole seconds; parts of a second asked for are carried over to the next
    ``advance``. A pool's slots are all alike, so ``Change.add_on`` and ``remove`` have no effect
    beyond the number; a change of ``cpu_share`` scales a pool's speed at once and costs nothing.
    """

    def __init__(
        self,
        spec: FluidSpec,
        pattern: Pattern | Mapping[str, Pattern],
        *,
        seconds: int,
        seed: int = 0,
    ) -> None:
        rows = k.POOL_ROWS + len(spec.pipeline.pools)
        super().__init__(seconds=seconds, rows=rows, seed=seed, profile=spec.profile)
        self.spec = spec
        self._names = spec.pipeline.order
        self._pool_names = spec.pipeline.pools
        self._pool_rows = {pool: row for row, pool in enumerate(self._pool_names)}
        self._build(pattern)
        self._draw(seed)
        self._show_pools()

    def _build(self, pattern: Pattern | Mapping[str, Pattern]) -> None:
        spec, pipeline, names = self.spec, self.spec.pipeline, self._names
        number = {name: i for i, name in enumerate(names)}
        n, m = len(names), len(self._pool_names)
        self._ends = np.zeros((n + 1, 2), np.int64)
        self._edges = np.empty((len(pipeline.edges), 2), np.int64)
        for side, near in ((k.ABOVE, pipeline.upstream), (k.BELOW, pipeline.downstream)):
            self._ends[1:, side] = np.cumsum([len(near[name]) for name in names])
            self._edges[:, side] = [number[other] for name in names for other in near[name]]
        self._kind = np.empty((n, 2), np.int64)
        source_rows = {name: row for row, name in enumerate(pipeline.sources)}
        self._fixed = np.empty((n, k.FIXED_COLUMNS))
        for i, name in enumerate(names):
            o = pipeline.operators[name]
            self._kind[i] = (
                self._pool_rows[o.pool],
                source_rows.get(name, -1),
            )
            self._fixed[i] = (
                spec.service_rates[name],
                o.selectivity,
                o.partitions or math.inf,
                spec.buffer_seconds,
                spec.busy_ceilings.get(name, 1.0),
                spec.cpu_base,
                spec.cpu_ceiling * spec.cpu_factors.get(name, 1.0),
                spec.exponents.get(name, 1.0),
                spec.key_groups.get(name, 0),
                spec.hot_shares.get(name, 0.0),
                spec.fires_every.get(name, 0.0),
                spec.state_per_record.get(name, 0.0),
                spec.state_seconds.get(name, 0.0),
            )
        self._log = np.array(
            [
                spec.retention,
                spec.segment,
                spec.checkpoint_every,
                spec.checkpoint_seconds,
                spec.checkpoint_per_state,
                spec.checkpoint_slowdown,
            ]
        )
        self._pools = np.zeros((m, 4))
        self._pools[:, k.SLOTS] = [spec.start[pool] for pool in self._pool_names]
        self._pools[:, k.CPU_SHARE] = 1.0
        self._pools[:, k.MEMBERS] = np.bincount(self._kind[:, k.POOL], minlength=m)
        self._arrivals = cumulative(spec, pattern, self.seconds)
        self._state = np.zeros((n, k.STATE_COLUMNS))
        self._sums = np.zeros((n, k.SUM_COLUMNS))
        self._readings = np.empty((n, k.READINGS))
        self._is_source = [row >= 0 for row in self._kind[:, k.SOURCE].tolist()]

    def _draw(self, seed: int) -> None:
        """All noise of the run."""
        shape = (len(self._names), self.seconds)
        share, memory = self.spec.capacity_noise, self.spec.noise_memory
        self._noise = speed_noise(seed, shape, share=share, memory=memory)
        self._metric_rng = generator(seed, 1)
        self._metric_noise = np.zeros((NOISE_BLOCK, shape[0], k.NOISES))
        self._observed = 0

    def observe(self) -> Snapshot:
        """Averages over the window since the last observation.

        Lag and slots are those of this moment. Shares, CPU and buffer use are averaged over the
        time the job was up; rates over the whole window.
        """
        window = self._window()
        operators = self._operators(float(window)) if window else self._unmeasured()
        return _snapshot(
            time=float(self._now),
            window=float(window),
            pipeline=self.spec.pipeline,
            operators=operators,
            pools=self._pools_seen,
            acting=self._actions.in_flight(self._now),
            rescales=self._actions.costs(self._now, self._delivered),
        )

    def _operators(self, window: float) -> dict[str, OperatorSeen]:
        row = self._observed % NOISE_BLOCK
        if row == 0 and self.spec.metric_noise:
            self._metric_rng.standard_normal(out=self._metric_noise)
            self._metric_noise *= self.spec.metric_noise
            np.maximum(self._metric_noise, -0.9, out=self._metric_noise)
        self._observed += 1
        up = bool(self._sums[0, k.UP_TIME] > 0)
        k.measure(
            self._kind,
            self._fixed,
            self._pools,
            self._state,
            self._sums,
            self._metric_noise,
            row,
            window,
            self._readings,
        )
        operators = {}
        for name, source, readings in zip(
            self._names, self._is_source, self._readings.tolist(), strict=True
        ):
            slots, offered, arrival, output, rate, busy, idle, held, cpu, full, lag, age = readings
            worked = arrival > 0
            operators[name] = _operator_seen(
                parallelism=slots,
                offered_rate=offered if source else None,
                arrival_rate=arrival if up else None,
                output_rate=output if up else None,
                service_rate=rate if worked else None,
                busy=busy if up else None,
                idle=idle if up else None,
                backpressured=held if up else None,
                cpu=cpu if up else None,
                buffer=full if up and not source else None,
                lag=lag if source else None,
                latency=age if worked else None,
            )
        return operators

    def _unmeasured(self) -> dict[str, OperatorSeen]:
        slots = self._pools[:, k.SLOTS] / self._pools[:, k.MEMBERS]
        pool_of = self._kind[:, k.POOL]
        return {
            name: OperatorSeen(parallelism=float(slots[pool]))
            for name, pool in zip(self._names, pool_of, strict=True)
        }

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Ask for new pool sizes; what they cost is up to the spec's profile."""
        for pool, change in changes.items():
            if pool not in self._pool_names:
                raise unknown("pool", pool, self._pool_names)
            if change.slots < 1:
                raise InputError(f"pool {pool}: {change.slots} slots asked for, at least 1 needed")
            share = change.cpu_share
            if share is not None and not (math.isfinite(share) and share > 0):
                raise InputError(f"pool {pool}: cpu_share {share} must be above 0")
        sizes: dict[str, tuple[int, int]] = {}
        for pool, change in changes.items():
            row = self._pools[self._pool_rows[pool]]
            if change.cpu_share is not None:
                row[k.CPU_SHARE] = change.cpu_share
            sizes[pool] = int(row[k.SLOTS]), change.slots
        self._change(sizes, state=float(self._state[:, k.STATE].sum()))

    def _put_in_force(self) -> None:
        for pool, slots in self._actions.due(self._now).items():
            self._pools[self._pool_rows[pool], k.SLOTS] = slots
        self._show_pools()

    def _show_pools(self) -> None:
        members = self.spec.pipeline.members
        self._pools_seen = {
            pool: _slots(pool, members(pool), int(row[k.SLOTS]), float(row[k.CPU_SHARE]))
            for pool, row in zip(self._pool_names, self._pools, strict=True)
        }

    def _run(self, until: int) -> None:
        k.advance(
            self._ends,
            self._edges,
            self._kind,
            self._fixed,
            self._log,
            self._pools,
            self._state,
            self._sums,
            self._arrivals,
            self._noise,
            self._series,
            self._now,
            until,
        )

    @property
    def series(self) -> Series:
        """Every second simulated so far."""
        rows = self._series[:, : self._now]
        slots = {pool: rows[k.POOL_ROWS + i] for i, pool in enumerate(self._pool_names)}
        return self._series_of(expired=rows[k.LOST], slots=slots)

    def totals(self) -> Totals:
        """Where all records are that have arrived so far."""
        pipeline, state = self.spec.pipeline, self._state
        operators = {
            name: OperatorTotals(
                received=float(row[k.RECEIVED]),
                processed=float(row[k.PROCESSED]),
                waiting=float(row[k.WAITING]),
                expired=float(row[k.EXPIRED]),
                holds=float(row[k.PENDING] + row[k.READY]),
                state=float(row[k.STATE]),
            )
            for name, row in zip(self._names, state, strict=True)
        }
        sources = [operators[name] for name in pipeline.sources]
        return Totals(
            arrived=float(self._arrivals[:, self._now].sum()),
            consumed=sum(o.processed for o in sources),
            queued=sum(o.waiting for o in sources),
            expired=sum(o.expired for o in sources),
            buffered=sum(o.waiting for name, o in operators.items() if pipeline.upstream[name]),
            delivered=sum(
                o.processed for name, o in operators.items() if not pipeline.downstream[name]
            ),
            operators=operators,
        )


@lru_cache(maxsize=4096)
def _slots(pool: str, members: tuple[str, ...], size: int, share: float) -> tuple[Slot, ...]:
    operator = members[0] if len(members) == 1 else None
    return tuple(Slot(id=f"{pool}-{i}", operator=operator, cpu_share=share) for i in range(size))
