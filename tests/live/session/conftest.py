"""One running cluster and session for all tests of this folder.

Python allows one Spark session per process, so tests that start a cluster of their own stand
outside. Executors are not limited: these tests are about what happens, not about how fast.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from tests.fakes.waiting import until
from tests.live.session.daily import Daily, resize

SLOTS = 3


@pytest.fixture(scope="package")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(ClusterSpec(slots=SLOTS, cpu_share=None)) as started:
        yield started


@pytest.fixture(scope="package")
def spark(cluster: LocalCluster) -> Any:
    events = cluster.folder / "events"
    events.mkdir()
    conf = {
        "spark.sql.shuffle.partitions": str(SLOTS),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "true",  # by zstd; it is rolled over, too, by default
    }
    return cluster.session("tests", start_with=1, conf=conf)


@pytest.fixture(scope="module")
def grown(spark: Any) -> Iterator[None]:
    """Three executors while the tests of a file run; one again afterwards."""
    resize(spark, 3)
    yield
    resize(spark, 1)


@pytest.fixture
def daily(
    spark: Any, cluster: LocalCluster, grown: None, caplog: pytest.LogCaptureFixture
) -> Iterator[Daily]:
    """A query's day: three executors before, and after."""
    caplog.set_level(logging.INFO, logger="penstock")
    folder = cluster.folder / f"daily-{time.monotonic_ns()}"
    folder.mkdir()
    found = Daily(spark, folder, caplog)
    until("three executors", lambda: found.executors == 3)
    yield found
    for query in spark.streams.active:
        query.stop()
    assert found.executors == 3
