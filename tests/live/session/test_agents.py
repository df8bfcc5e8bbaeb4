"""Agents beside real executors: one more and one fewer through the driver, that very one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.decentralized.policy import Probabilistic
from penstock.lab.agents.executors.host import Applications
from penstock.lab.agents.executors.local import LocalAgents, executors_of
from penstock.lab.agents.executors.setup import AgentSettings
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.rig.saturation import resize
from penstock.spark.split.member import Member
from penstock.spark.split.wire import ROSTER, Address, ask
from tests.fakes.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.long]

AGENT_SETTINGS = AgentSettings(
    policy=Probabilistic(ratio=0.2, up=0.3, down=0.1), period=2.0, window=1.5
)


@pytest.fixture
def _one_again(spark: Any) -> Iterator[None]:
    """Leave as many executors as other tests begin with."""
    yield
    resize(spark, 1)


@pytest.mark.usefixtures("_one_again")
def test_a_busy_executor_gets_a_sibling_and_an_idle_one_leaves(
    spark: Any, cluster: LocalCluster, tmp_path: Path
) -> None:
    context = spark.sparkContext
    first = set(cluster.executors(context.applicationId))
    listen = Address.parse(tmp_path / "q.sock")
    described = Applications(drivers={"q": str(listen)}, edges=())
    look = executors_of(cluster, {"q": context.applicationId})

    def work() -> None:
        with contextlib.suppress(Exception):  # it is cancelled
            spark.range(0, 10**13, 1, 1).selectExpr("sum(hash(id))").collect()

    busy = threading.Thread(target=work, daemon=True)
    with (
        Member(spark, listen=str(listen), max_executors=3, agents=True),
        LocalAgents(described, AGENT_SETTINGS, look) as agents,
    ):
        busy.start()
        try:
            until("one more by an agent's wish", lambda: ask(listen, {"ask": ROSTER})["added"] >= 1)
            until("an agent's executor left", lambda: bool(_gone(listen)))
        finally:
            context.cancelAllJobs()
            busy.join()
        counts, roster = agents.counts(), ask(listen, {"ask": ROSTER})
        assert counts["wishes"] - counts["refused additions"] == roster["added"]
        assert min(first, key=int) in roster["alive"]  # the keeper's
        with pytest.raises(Exception, match="a controller may not"):
            ask(listen, {"ask": "apply", "change": {}})


def _gone(listen: Address) -> set[str]:
    """Executors that left as they were asked to."""
    roster = ask(listen, {"ask": ROSTER})
    return set(roster["gone"]) & set(roster["removed"])
