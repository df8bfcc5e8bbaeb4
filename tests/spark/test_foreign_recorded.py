"""Recordings by REST: what a Spark UI or a History Server still tells of an application."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.comparison.sources import read_source
from penstock.core.errors import EngineError, InputError, MissingError
from penstock.history.learning.learn import learn
from penstock.spark.foreign.recorded import read_address
from penstock.spark.read.http import Limits
from tests.fakes.foreign_driver import Driver, drivers

END = 40.0  # seconds after the recording's start: all has happened


@pytest.fixture
def driver() -> Iterator[Driver]:
    with drivers() as start:
        yield start


def test_what_an_address_tells(driver: Driver) -> None:
    spark = driver(END)
    told: list[tuple[int, int]] = []
    found = read_address(spark.url, progress=lambda done, total: told.append((done, total)))
    assert (found.id, found.kind) == (spark.id, "Spark's REST interface")
    assert len(told) > 1 and told[-1] == (len(spark.sql), len(spark.sql))
    assert {q.name for q in found.queries} == {"counts", "clicks"}
    assert len(found.executors) == 2 and found.settings["spark.master"]
    counts = found.query("counts")
    rows = {p["batchId"]: p["numInputRows"] for p in spark.progress if p["name"] == "counts"}
    seen = {b.id: b.rows for b in counts.batches}
    assert len(seen) > 5 and all(rows[id] == n for id, n in seen.items() if id in rows)
    assert all(s.done and s.batch == id for id, some in counts.stages.items() for s in some)
    assert spark.methods == {"GET"}


def test_an_application_that_has_ended_in_a_history_server(driver: Driver) -> None:
    spark = driver(END)
    (attempt,) = spark.application["attempts"]
    spark.application["attempts"] = [{**attempt, "completed": True}]
    assert read_source(f"{spark.url}/history/{spark.id}/jobs/").id == spark.id


def test_a_profile_of_few_batches_is_refused_or_made_but_never_crashes(driver: Driver) -> None:
    found = read_source(driver(END).url)
    try:
        learned = learn(found, queries=["counts"])
    except InputError as error:
        assert "counts" in str(error) and "12" in str(error)
    else:
        assert learned.profile.queries[0].name == "counts"


def test_several_applications_need_a_choice(driver: Driver) -> None:
    spark = driver(END)
    spark.others = [{**spark.application, "id": "app-other", "name": "other"}]
    with pytest.raises(InputError, match="choose one with --app ID"):
        read_source(spark.url)
    assert read_source(spark.url, app=spark.id).id == spark.id


def test_nothing_there_too_much_and_strange(driver: Driver) -> None:
    with pytest.raises(MissingError, match="nothing listens"):
        read_source("http://127.0.0.1:9")
    spark = driver(END)
    with pytest.raises(EngineError, match="An event log of the application has no such limit"):
        read_address(spark.url, limits=Limits(requests=2))
    spark.broken["/allexecutors"] = [(200, '[{"id": 7}]')]
    with pytest.raises(EngineError, match="answered strangely"):
        read_address(spark.url)
    with pytest.raises(InputError, match="must look like http"):
        read_source("http://")


def test_an_application_without_a_batch(driver: Driver) -> None:
    spark = driver(END)
    spark.sql = []
    with pytest.raises(InputError, match="no finished batch of a streaming query"):
        read_source(spark.url)
