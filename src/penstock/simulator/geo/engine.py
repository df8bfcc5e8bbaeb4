"""The geo simulator as an engine: one scaled operator on nodes that are far apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from penstock.core.errors import EngineError, InputError, unknown
from penstock.core.latency import LatencyMap
from penstock.core.model import Change, OperatorSeen, Rescale, Slot, Snapshot
from penstock.network.maps import Fluctuating
from penstock.simulator.geo import kernel as k
from penstock.simulator.geo.deployment import Deployment, deployed, worked
from penstock.simulator.geo.readings import NOISES, readings
from penstock.simulator.geo.spec import SINK, SOURCE, GeoSpec
from penstock.simulator.inflow import offered
from penstock.simulator.seconds import SecondsEngine, generator, speed_noise
from penstock.simulator.series import Floats, OperatorTotals, Series, Totals
from penstock.workloads.patterns import Pattern


class GeoEngine(SecondsEngine):
    """A job on far nodes, ``seconds`` seconds under an offered load.

    The same spec, pattern, seed and calls give the same run, bit for bit; how the time is divided
    into ``advance`` calls does not matter. Noise belongs to nodes, seconds and windows, not to
    instances: two policies with the same seed meet the same.

    Time goes in whole seconds; parts of a second asked for are carried over. Every node has room
    for one instance. Where a change names fewer nodes than it needs, the first free ones are
    taken, in the order of the spec; where it names fewer slots to remove, those that were added
    last go. The source is beside the instance that is there for longest; it and the sink have one
    slot each, which stays.
    """

    def __init__(self, spec: GeoSpec, pattern: Pattern, *, seconds: int, seed: int = 0) -> None:
        super().__init__(seconds=seconds, rows=k.SERIES_ROWS, seed=seed, profile=spec.profile)
        self.spec = spec
        self._pool = spec.job.name
        size = len(spec.nodes)
        self._arrivals = np.zeros(self.seconds + 1)
        np.cumsum(offered(pattern, self.seconds), out=self._arrivals[1:])
        self._maps = _maps(spec.network, self.seconds)
        self._found = np.zeros((size, k.FOUND_COLUMNS))
        self._state = np.zeros(k.STATE_VALUES)
        self._sums = np.zeros(k.SUM_VALUES)
        self._by_node = np.zeros((size, k.NODE_COLUMNS))
        self._draw(seed)
        self._planned = list(spec.nodes[: spec.start])
        self._deploy(self._planned)

    def _draw(self, seed: int) -> None:
        """All noise of the run."""
        spec, windows = self.spec, self.spec.job.windows
        store, run = generator(seed, 3), generator(seed, 4)
        shape = (len(spec.nodes), self.seconds)
        share, memory = spec.capacity_noise, spec.noise_memory
        self._noise = speed_noise(seed, shape, share=share, memory=memory)
        count = int(self.seconds / windows.every) + 1 if windows is not None else 0
        self._draws = store.standard_exponential((shape[0], count))
        spread = windows.between_runs if windows is not None else 0.0
        self._luck = math.exp(spread * run.standard_normal() - spread**2 / 2)
        self._metrics, self._group_metrics = generator(seed, 1), generator(seed, 5)

    def _deploy(self, nodes: list[str]) -> None:
        self._nodes = nodes
        self._plan: Deployment = deployed(self.spec.job, self.spec.map.rows(nodes), self._luck)

    def _run(self, until: int) -> None:
        k.advance(
            self._plan.rows,
            self._plan.loads,
            self._plan.fixed,
            self._found,
            self._maps,
            self._noise,
            self._draws,
            self._arrivals,
            self._state,
            self._sums,
            self._by_node,
            self._series,
            self._now,
            until,
        )

    def observe(self) -> Snapshot:
        """Averages over the window since the last observation; lag and slots of this moment.

        Shares and CPU are averaged over the time the job was up; rates over the whole window.
        """
        window = float(self._window())
        by_node = self._by_node.tolist()
        slots = tuple(self._slot(node, by_node) for node in self._nodes)
        used = {*self._nodes, *self._planned}
        snapshot = Snapshot(
            time=float(self._now),
            window=window,
            pipeline=self.spec.pipeline,
            operators=self._operators(window, slots),
            pools={
                SOURCE: (_beside(SOURCE, self._nodes[0]),),
                self._pool: slots,
                SINK: (_beside(SINK, self._nodes[0]),),
            },
            acting=self._actions.in_flight(self._now),
            free_nodes=tuple(node for node in self.spec.nodes if node not in used),
            rescales=self._rescales(),
            rtt=self._rtt(),
            prices=self.spec.prices,
            groups=self._groups(slots),
        )
        self._sums[:] = 0.0
        self._by_node[:] = 0.0
        return snapshot

    def _slot(self, node: str, by_node: list[list[float]]) -> Slot:
        row = by_node[self.spec.map.rows((node,))[0]]
        up = row[k.NODE_UP]
        return Slot(
            id=slot_id(self._pool, node),
            node=node,
            operator=self._pool,
            cpu=row[k.NODE_CPU] / up if up > 0.0 else None,
            load=row[k.NODE_BUSY] / up if up > 0.0 else None,
        )

    def _operators(self, window: float, slots: tuple[Slot, ...]) -> dict[str, OperatorSeen]:
        noise = self.spec.metric_noise * self._metrics.standard_normal((3, NOISES))
        return readings(
            self.spec.job,
            slots,
            window=window,
            sums=self._sums.tolist(),
            lag=float(self._state[k.WAITING]),
            noise=np.maximum(noise, -0.9).tolist(),
        )

    def _groups(self, slots: tuple[Slot, ...]) -> dict[str, tuple[float, ...]]:
        found = worked(self.spec.job, self._plan, [slot.load for slot in slots])
        if found is None:
            return {}
        noise = self.spec.metric_noise * self._group_metrics.standard_normal(len(found))
        return {self._pool: tuple((found * np.maximum(1.0 + noise, 0.1)).tolist())}

    def _rescales(self) -> tuple[Rescale, ...]:
        return self._actions.costs(self._now, self._delivered)

    def _rtt(self) -> LatencyMap:
        """As measured at this moment."""
        network = self.spec.network
        return network.at(float(self._now)) if isinstance(network, Fluctuating) else network

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Ask for more or fewer instances, or other nodes; the profile says what it costs."""
        for pool, change in changes.items():
            if pool not in self.spec.pipeline.pools:
                raise unknown("pool", pool, self.spec.pipeline.pools)
            if change.cpu_share is not None and change.cpu_share != 1.0:
                raise EngineError(
                    f"pool {pool}: a CPU share of {change.cpu_share} was asked for; the geo "
                    "simulator has whole nodes only"
                )
            if pool != self._pool and change.slots != 1:
                raise EngineError(f"pool {pool} has one slot; {change.slots} were asked for")
        if self._pool not in changes:
            return
        after = placed(self._pool, self.spec.nodes, self._nodes, changes[self._pool])
        if after == self._nodes and self._planned == self._nodes:
            return
        before = len(self._nodes)
        self._planned = after
        self._change({self._pool: (before, len(after))}, moved=True)

    def _put_in_force(self) -> None:
        size = self._actions.due(self._now).get(self._pool)
        if size is not None:
            self._deploy(self._planned[:size])

    @property
    def series(self) -> Series:
        """Every second simulated so far."""
        rows = self._series[:, : self._now]
        one = np.ones(self._now)
        slots = {SOURCE: one, self._pool: rows[k.SLOTS], SINK: one}
        return self._series_of(expired=np.zeros(self._now), slots=slots)

    @property
    def paced(self) -> Floats:
        """Share of each second in which records waited for the network and not for an instance."""
        return self._series[k.PACED, : self._now]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes with an instance, in the order in which they were added."""
        return tuple(self._nodes)

    @property
    def planned(self) -> tuple[str, ...]:
        """The nodes that will have one when all changes asked for are in force."""
        return tuple(self._planned)

    def totals(self) -> Totals:
        """Where all records are that have arrived so far."""
        received, processed, waiting = (
            float(self._state[i]) for i in (k.RECEIVED, k.PROCESSED, k.WAITING)
        )
        source = OperatorTotals(received=received, processed=processed, waiting=waiting)
        through = OperatorTotals(received=processed, processed=processed, waiting=0.0)
        return Totals(
            arrived=float(self._arrivals[self._now]),
            consumed=processed,
            queued=waiting,
            expired=0.0,
            buffered=0.0,
            delivered=processed,
            operators={SOURCE: source, self._pool: through, SINK: through},
        )


def _beside(pool: str, node: str) -> Slot:
    return Slot(id=f"{pool}-0", node=node, operator=pool)


def _maps(network: LatencyMap | Fluctuating, seconds: int) -> Floats:
    """Round trips of every second; a single map where they never change."""
    if isinstance(network, LatencyMap):
        return network.rtt[None, :, :]
    swing = tuple(network.swing.items())
    return _fluctuating(network.base, swing, network.period, network.seed, seconds)


@lru_cache(maxsize=4)  # runs of several jobs meet the same network
def _fluctuating(
    base: LatencyMap, swing: tuple[tuple[str, float], ...], period: float, seed: int, seconds: int
) -> Floats:
    network = Fluctuating(base=base, swing=dict(swing), period=period, seed=seed)
    maps = np.stack([network.at(float(second)).rtt for second in range(seconds)])
    maps.setflags(write=False)
    return maps


def slot_id(pool: str, node: str) -> str:
    """The name of the instance on a node."""
    return f"{pool}-{node}"


def placed(pool: str, nodes: Sequence[str], present: Sequence[str], change: Change) -> list[str]:
    """The nodes that a change leads to, in the order in which they were added.

    ``nodes`` all there are · ``present`` those with an instance. Named nodes are added and named
    slots removed; then the first nodes that are free are taken, or those go that came last.

    >>> placed("map", ["a", "b", "c", "d"], ["a", "b"], Change(before=2, slots=3, raw=3.0))
    ['a', 'b', 'c']
    """
    if not 1 <= change.slots <= len(nodes):
        raise EngineError(
            f"pool {pool}: {change.slots} slots asked for, possible are 1 to {len(nodes)}, one "
            "per node"
        )
    ids = {slot_id(pool, node): node for node in present}
    for slot in change.remove:
        if slot not in ids:
            raise unknown(f"slot of {pool}", slot, ids)
    gone = {ids[slot] for slot in change.remove}
    if len(set(change.add_on)) < len(change.add_on):
        raise InputError(f"pool {pool}: a node stands twice in {', '.join(change.add_on)}")
    for node in change.add_on:
        if node not in nodes:
            raise unknown("node", node, nodes)
        if node in present and node not in gone:
            raise InputError(f"node {node} has an instance of {pool} already")
    stay = [node for node in present if node not in gone]
    after = [*stay[: max(0, change.slots - len(change.add_on))], *change.add_on]
    after += [node for node in nodes if node not in {*after, *present}]
    after += [node for node in nodes if node in gone and node not in after]
    return after[: change.slots]
