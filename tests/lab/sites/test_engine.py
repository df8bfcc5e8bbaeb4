"""The engine of a cluster with sites, on workers and executors that only pretend."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.batches.actions import GIVE_UP
from penstock.batches.snapshot import POOL
from penstock.batches.values import Executor
from penstock.core.errors import EngineError, InputError
from penstock.core.latency import LatencyMap
from penstock.core.model import Change, Slot, Snapshot
from penstock.lab.sites import engine as module
from penstock.lab.sites.engine import SiteEngine
from penstock.lab.sites.spec import Site, SitesSpec
from penstock.spark.act.executors import ExecutorPool
from tests.fakes.spark import FakeSpark, executor, look

SPEC = SitesSpec(sites=(Site(name="home", slots=2), Site(name="far", delay=0.1, slots=2, price=3)))
HOSTS = {"home": "198.18.0.1", "far": "198.18.0.2"}


@dataclass
class World:
    """Workers by name with their site, executors with their worker; nothing comes by itself."""

    workers: dict[str, str] = field(default_factory=lambda: {"home.1": "home", "far.2": "far"})
    executors: list[Executor] = field(default_factory=list)
    worker_by: dict[str, str] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    now: float = 1000.0
    spec: SitesSpec = SPEC
    sparkContext: FakeSpark = field(default_factory=FakeSpark)  # noqa: N815 (Spark's name)

    def __post_init__(self) -> None:
        self.cpu: Any = None
        self.home = self.spec.home
        self.rtt = LatencyMap(["home", "far"], [[0, 0.1], [0.1, 0]])
        self.prices = {site.name: site.price for site in self.spec.sites}
        for worker in list(self.workers):
            self.come(worker)

    # what a SiteCluster does

    def room(self) -> dict[str, int]:
        used = list(self.workers.values())
        return {site.name: site.slots - used.count(site.name) for site in self.spec.sites}

    def site_at(self, host: str) -> str:
        return next(name for name, at in HOSTS.items() if at == host)

    def add_slot(self, site: str) -> str:
        name = f"{site}.{len(self.workers) + len(self.ended) + 1}"
        self.workers[name] = site
        return name

    def remove_worker(self, name: str) -> None:
        self.ended.append(name)
        del self.workers[name]

    def worker_of(self, executor_id: str, app: str | None = None) -> str:
        if executor_id not in self.worker_by:
            raise InputError("no such executor")
        return self.worker_by[executor_id]

    # what Spark does

    def come(self, worker: str) -> None:
        id = len(self.executors)
        host = HOSTS[self.workers[worker]]
        self.executors.append(executor(id, added=self.now, host=host))
        self.worker_by[str(id)] = worker

    def leave(self, id: str) -> None:
        self.executors = [
            replace(e, alive=False, removed=self.now) if e.id == id else e for e in self.executors
        ]


class Spark:
    """A SparkEngine whose time is that of the world."""

    def __init__(self, world: World, *, window: float, cluster: Any, arrivals: bool) -> None:
        self._world = world
        self.pool = ExecutorPool(world.sparkContext)
        self.stopped = threading.Event()
        self.shares: Any = SimpleNamespace(set=lambda share: setattr(self, "share", share))

    def executors(self) -> list[Executor]:
        return self._world.executors

    def slots(self) -> tuple[Slot, ...]:
        return tuple(Slot(id=e.id, node=e.host) for e in self._world.executors if e.alive)

    def observe(self) -> Snapshot:
        self.advance(0.0)
        return replace(look(self._world.now), pools={POOL: self.slots()}, acting=self.pool.acting)

    def advance(self, seconds: float) -> bool:
        self._world.now += seconds
        self.pool.track(self._world.executors, self._world.now)
        return not self.stopped.is_set()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()
    monkeypatch.setattr(module, "SparkEngine", Spark)
    clock = SimpleNamespace(time=lambda: made.now, monotonic=lambda: made.now)
    monkeypatch.setattr(module, "time", clock)
    yield made


@pytest.fixture
def engine(world: World) -> SiteEngine:
    return SiteEngine(world, world)


def acting(engine: SiteEngine) -> bool:
    return engine.acting


def change(engine: SiteEngine, slots: int, **places: Any) -> None:
    engine.apply({POOL: Change(before=2, slots=slots, raw=float(slots), **places)})


def calls(world: World) -> list[tuple[Any, ...]]:
    made = list(world.sparkContext.calls)
    world.sparkContext.calls.clear()
    return made


def test_a_snapshot_has_sites_room_round_trips_and_prices(engine: SiteEngine) -> None:
    seen = engine.observe()
    assert [slot.node for slot in seen.pools[POOL]] == ["home", "far"]
    assert seen.free_nodes == ("home", "far")
    assert seen.rtt is not None and seen.rtt.between("home", "far") == 0.1
    assert seen.prices == {"home": 1.0, "far": 3.0}
    assert not seen.acting


def test_growing_starts_a_worker_at_the_site_and_raises_the_total(
    engine: SiteEngine, world: World
) -> None:
    change(engine, 3, add_on=("far",))
    assert list(world.workers) == ["home.1", "far.2", "far.3"]
    assert calls(world) == [("request", 3)]
    assert engine.observe().acting
    world.come("far.3")
    assert engine.advance(1.0)
    seen = engine.observe()
    assert not seen.acting
    assert [slot.node for slot in seen.pools[POOL]] == ["home", "far", "far"]
    assert seen.free_nodes == ("home",)


def test_a_worker_ends_only_after_its_executor_has_left(engine: SiteEngine, world: World) -> None:
    change(engine, 1, remove=("1",))
    assert calls(world) == [("request", 1), ("decommission", "1", False)]
    engine.advance(1.0)
    assert world.ended == [] and acting(engine)
    world.leave("1")
    engine.advance(1.0)
    assert world.ended == ["far.2"] and not acting(engine)
    assert engine.observe().free_nodes == ("home", "far", "far")


def test_a_move_adds_first_and_goes_over_no_limit_in_the_end(
    engine: SiteEngine, world: World
) -> None:
    engine.pool.limits = (2, 2)
    change(engine, 2, add_on=("home",), remove=("1",))
    assert calls(world) == [("request", 3)]
    engine.advance(1.0)
    assert calls(world) == []
    world.come("home.3")
    engine.advance(1.0)
    assert calls(world) == [("request", 2), ("decommission", "1", False)]
    assert acting(engine) and world.ended == []
    world.leave("1")
    engine.advance(1.0)
    assert world.ended == ["far.2"] and not acting(engine)
    with pytest.raises(EngineError, match="3 executors are outside the limits of 2 to 2"):
        change(engine, 3)
    assert calls(world) == []


def test_one_action_at_a_time(engine: SiteEngine, world: World) -> None:
    change(engine, 1, remove=("1",))
    world.leave("1")
    engine._spark.advance(0.0)  # Spark is done, the worker has not ended yet
    change(engine, 2, add_on=("home",))
    assert world.ended == ["far.2"], "else the new executor might start on the worker that leaves"
    with pytest.raises(EngineError, match="one at a time"):
        change(engine, 3)


def test_an_executor_that_never_comes_takes_its_worker_along_and_nobody_leaves(
    engine: SiteEngine, world: World
) -> None:
    change(engine, 3, add_on=("far", "home"), remove=("0",))
    world.come("home.4")
    engine.advance(GIVE_UP + 1.0)
    assert world.ended == ["far.3"]
    assert not any(call[0] == "decommission" for call in calls(world))
    assert not acting(engine)
    assert len(engine.observe().pools[POOL]) == 3


def test_spark_that_refuses_leaves_no_worker_behind(engine: SiteEngine, world: World) -> None:
    world.sparkContext.accepts = False
    with pytest.raises(EngineError, match="did not take the request"):
        change(engine, 3, add_on=("far",))
    assert world.ended == ["far.3"] and not acting(engine)


def test_frozen_on_the_way_a_move_waits(engine: SiteEngine, world: World) -> None:
    change(engine, 2, add_on=("home",), remove=("1",))
    world.come("home.3")
    engine.pool.frozen = lambda: "by a person"
    engine.advance(1.0)
    assert calls(world) == [("request", 3)] and acting(engine)
    with pytest.raises(EngineError, match="one at a time"):
        change(engine, 1)
    engine.pool.frozen = None
    engine.advance(1.0)
    assert calls(world) == [("request", 2), ("decommission", "1", False)]


def test_a_cpu_share_alone_moves_nothing(engine: SiteEngine, world: World) -> None:
    change(engine, 2, cpu_share=0.5)
    assert engine._spark.share == 0.5  # type: ignore[attr-defined]
    assert calls(world) == [] and not acting(engine)


def test_stopping_ends_the_wait(engine: SiteEngine) -> None:
    engine.stopped.set()
    assert not engine.advance(10.0)
