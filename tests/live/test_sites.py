"""Spark at sites: executors where they were asked for, added and removed while a query runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.batches.snapshot import POOL
from penstock.core.errors import EngineError, NotReady
from penstock.core.model import Change, Snapshot
from penstock.lab.host import leftovers, processes
from penstock.lab.sites import requirements as needs
from penstock.lab.sites.cluster import SiteCluster
from penstock.lab.sites.engine import SiteEngine
from penstock.lab.sites.spec import Site, SitesSpec
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

SPEC = SitesSpec(
    sites=(
        Site(name="home", cpu=1.0, slots=1),
        Site(name="near", cpu=0.9, delay=0.005, slots=2, price=2.0),
        Site(name="far", cpu=0.8, delay=0.025, slots=1, price=0.5),
    )
)


@pytest.fixture(scope="module")
def cluster(class_data: None) -> Iterator[SiteCluster]:
    if (missing := needs.probe().missing) is not None:
        pytest.skip(missing)
    with SiteCluster(SPEC, start_on=("near",), warm_up=0) as started:
        yield started


@pytest.fixture(scope="module")
def engine(cluster: SiteCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteEngine]:
    spark = cluster.session("sites", conf={"spark.sql.shuffle.partitions": "2"})
    made = SiteEngine(spark, cluster, window=5.0)
    made.attach()
    (
        spark.readStream.format("rate")
        .load()
        .selectExpr("value % 7 AS key")
        .groupBy("key")
        .count()
        .writeStream.format("noop")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path_factory.mktemp("checkpoint")))
        .start()
    )
    yield made  # the session ends with the cluster


def seen(engine: SiteEngine) -> Snapshot:
    """The first observation there is."""
    found: list[Snapshot] = []

    def observed() -> bool:
        try:
            found.append(engine.observe())
        except NotReady:
            return False
        return True

    until("a batch was finished", observed)
    return found[0]


def nodes(snapshot: Snapshot) -> dict[str, str]:
    return {slot.id: slot.node for slot in snapshot.pools[POOL]}


def settled(engine: SiteEngine) -> Snapshot:
    def done() -> bool:
        assert engine.advance(0.1)
        return not engine.acting

    until("the action has taken effect", done)
    return seen(engine)


def change(engine: SiteEngine, slots: int, **places: Any) -> None:
    before = len(engine.slots())
    engine.apply({POOL: Change(before=before, slots=slots, raw=float(slots), **places)})


def test_a_snapshot_names_sites(engine: SiteEngine, cluster: SiteCluster) -> None:
    snapshot = seen(engine)
    assert list(nodes(snapshot).values()) == ["near"]
    assert Counter(snapshot.free_nodes) == {"home": 1, "near": 1, "far": 1}
    assert snapshot.prices == {"home": 1.0, "near": 2.0, "far": 0.5}
    assert snapshot.rtt is not None
    assert snapshot.rtt.between("near", "far") == pytest.approx(0.030, abs=0.002)


def test_a_worker_runs_in_the_network_of_its_site(engine: SiteEngine, cluster: SiteCluster) -> None:
    (pid,) = cluster.spark.executors().values()
    namespace = cluster.sites.namespace("near")
    assert namespace is not None
    there = Path(f"/proc/{pid}/ns/net").stat().st_ino
    assert there == os.fstat(namespace).st_ino != Path("/proc/self/ns/net").stat().st_ino


@pytest.mark.long
def test_a_slot_is_added_where_it_was_asked_for_and_removed(
    engine: SiteEngine, cluster: SiteCluster
) -> None:
    change(engine, 2, add_on=("far",))
    with pytest.raises(EngineError, match="still in flight"):
        change(engine, 3)
    assert seen(engine).acting
    snapshot = settled(engine)
    assert Counter(nodes(snapshot).values()) == {"near": 1, "far": 1}
    assert Counter(snapshot.free_nodes) == {"home": 1, "near": 1}
    shares = {nodes(snapshot)[id]: cluster.spark.share(id) for id in cluster.spark.executors()}
    assert shares == {"near": 0.9, "far": 0.8} or not cluster.spark.limited
    with pytest.raises(EngineError, match="site far has no room"):
        change(engine, 3, add_on=("far",))

    (old,) = (id for id, node in nodes(snapshot).items() if node == "near")
    change(engine, 2, add_on=("home",), remove=(old,))  # a move: add first, then remove
    snapshot = settled(engine)
    assert old not in nodes(snapshot)
    assert Counter(nodes(snapshot).values()) == {"home": 1, "far": 1}
    assert Counter(cluster.workers().values()) == {"home": 1, "far": 1}

    change(engine, 1)
    assert len(nodes(settled(engine))) == 1
    assert len(cluster.workers()) == 1
    costs = [(cost.before, cost.after) for cost in seen(engine).rescales]
    assert costs == [(1, 2), (2, 3), (3, 2), (2, 1)]


def test_after_the_end_nothing_is_left(engine: SiteEngine, cluster: SiteCluster) -> None:
    cache = cluster.folder.parents[1]
    mine = [run for run in leftovers.runs(cache) if run.owner == leftovers.Owner.me()]
    assert len(mine) == 2 and all(run.processes() for run in mine)
    engine.detach()
    cluster.stop()
    assert not any(run.processes() for run in mine)
    assert not any(place.exists() for run in mine for place in (run.folder, run.record))
    assert not any(group.exists() for run in mine for group in run.groups)
    # Its own device: others on this machine may have sites too.
    _, second, third, _ = map(int, cluster.sites.addresses["home"].split("."))
    device = f"penstock{(second - 18) * 256 + third}:"
    assert device not in Path("/proc/net/dev").read_text()
    assert not processes.with_variable(leftovers.RUN_VARIABLE, mine[0].id)
