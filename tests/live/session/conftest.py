"""One running cluster and session for all tests of this folder.

Python allows one Spark session per process, so tests that start a cluster of their own stand
outside. Executors are not limited: these tests are about what happens, not about how fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster

SLOTS = 3


@pytest.fixture(scope="package")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(ClusterSpec(slots=SLOTS, cpu_share=None)) as started:
        yield started


@pytest.fixture(scope="package")
def spark(cluster: LocalCluster) -> Any:
    conf = {"spark.sql.shuffle.partitions": str(SLOTS)}
    return cluster.session("tests", start_with=1, conf=conf)
