"""The geo jobs on Spark: the streamed rows are those of a batch, and of plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from penstock.lab.queries.geo import (
    STATE,
    GeoJob,
    JobSettings,
    compare,
    create,
    start,
    stop,
    wait_until_final,
)
from penstock.lab.queries.geo_work import ATTRACTIONS, EAST, NORTH, fibonacci
from penstock.papers.geo.spark.measure import Course, measure
from penstock.workloads.patterns import Constant
from penstock.workloads.timed_rows import TimedRows

pytestmark = pytest.mark.spark

START = 1_700_000_001.0  # in the second of the four seconds of a window
SECONDS = 10.0
SECOND = 1_000_000  # microseconds
PATIENCE = 240.0  # seconds; much longer than it takes on a quiet machine
SETTINGS = JobSettings(scale=1000.0, values=7, work=50, seed=3)  # 100 sensors, or 50 and 50

Rows = Counter[tuple[Any, ...]]


def small(job: GeoJob) -> tuple[TimedRows, ...]:
    """Ten seconds of events that have all been released long ago, in several micro-batches."""
    pattern = Constant(rps=100.0) if job.name == "taxi" else None
    return job.events(start=START, seconds=SECONDS, partitions=2, max_rows=400, pattern=pattern)


def rides(events: Sequence[TimedRows]) -> Rows:
    """Every ride with the nearest attraction."""
    found: Rows = Counter()
    for ride in _rows(events[0]):
        away = {
            name: math.sqrt(((ride["lon"] - lon) * EAST) ** 2 + ((ride["lat"] - lat) * NORTH) ** 2)
            for name, (lon, lat) in ATTRACTIONS.items()
        }
        name = min(away, key=away.__getitem__)
        found[ride["id"], ride["time"], ride["lon"], ride["lat"], name, round(away[name], 6)] += 1
    return found


def messages(events: Sequence[TimedRows]) -> Rows:
    """Every message with its work."""
    return Counter(
        (m["id"], m["time"], m["value"], fibonacci(m["id"], m["value"] + 1, 50))
        for m in _rows(events[0])
    )


def pairs(key: str) -> Callable[[Sequence[TimedRows]], Rows]:
    """Every message of one stream beside every one of the other."""

    def found(events: Sequence[TimedRows]) -> Rows:
        size = 4 * SECOND
        first, second = (_rows(rows) for rows in events)
        return Counter(
            (
                *(a["id"], a["time"], a["value"], b["id"], b["time"], b["value"]),
                *(a["time"] // size * size, (a["time"] // size + 1) * size),
                max(a["time"], b["time"]),
                fibonacci(a["id"], b["value"] + 1, 50),
            )
            for a in first
            for b in second
            if a["id"] == b[key] and a["time"] // size == b["time"] // size
        )

    return found


ORACLES: dict[str, Callable[[Sequence[TimedRows]], Rows]] = {
    "taxi": rides,
    "map": messages,
    "id-id": pairs("id"),
    "id-value": pairs("value"),
}


@pytest.fixture
def state(spark: Any) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """Gives the session settings of the state, until the end of the test."""
    given: list[str] = []

    def give(settings: Mapping[str, str]) -> None:
        for key, value in settings.items():
            given.append(key)
            spark.conf.set(key, value)

    yield give
    for key in given:
        spark.conf.unset(key)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("taxi", {}, id="taxi", marks=pytest.mark.long),
        pytest.param("map", {}, id="map"),
        pytest.param("id-id", {}, id="id-id", marks=pytest.mark.long),
        pytest.param("id-value", STATE, id="id-value in RocksDB", marks=pytest.mark.long),
    ],
)
def test_the_streamed_rows_are_those_of_a_batch_and_of_plain_python(
    spark: Any, tmp_path: Path, state: Any, name: str, settings: Mapping[str, str]
) -> None:
    state(settings)
    job = create(name, SETTINGS)
    events = small(job)
    running = start(spark, job, events, folder=tmp_path, trigger=0.0)
    try:
        wait_until_final(running, events, START + SECONDS, within=PATIENCE)
        batches = [p for p in running.recentProgress if p["numInputRows"]]
    finally:
        stop(running)
    assert len(batches) >= 3
    # The last message of all comes at the very end, so nothing is cut off.
    result = compare(spark, job, events, folder=tmp_path, until=START + SECONDS + 1)
    assert result.exact, str(result)
    expected = ORACLES[name](events)
    assert result.rows == expected.total() > 900
    assert _found(spark.read.parquet(str(tmp_path / "result"))) == expected


def _rows(rows: TimedRows) -> list[dict[str, Any]]:
    made = rows.rows(0, rows.total).to_pylist()
    return [{**row, "time": round(row["time"].timestamp() * SECOND)} for row in made]


def _found(frame: Any) -> Rows:
    """Timestamps as microseconds; distances to the micrometre, as two ways to a root may differ."""
    kinds = {field.name: field.dataType.typeName() for field in frame.schema}
    columns = {n: F.unix_micros(n) for n, kind in kinds.items() if kind == "timestamp"}
    if "distance" in kinds:
        columns["distance"] = F.round("distance", 6)
    return Counter(tuple(row) for row in frame.withColumns(columns).collect())


def test_a_saturated_job_is_measured(spark: Any, cluster: Any) -> None:
    course = Course(rows=400, partitions=2, windows=2, seconds=0.1, skip=0, within=PATIENCE)
    found = measure(spark, cluster, create("map", SETTINGS), course)
    assert 0 < found.least <= found.mean <= found.most
    assert found.executors == len(found.busy) == len(found.cpu) == 1
    assert all(0 < share <= 1.01 for share in found.busy.values())
    assert len(found.durations) >= 2
    assert (found.rows, found.state_rows, found.fetch_wait) == (400, 0, 0.0)
