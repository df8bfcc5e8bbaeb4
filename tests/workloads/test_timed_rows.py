"""Rides and messages of sensors from a seed, released on the clock."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.lab.sources.geo import GeoSource
from penstock.workloads.patterns import Constant, Cosine, Trace
from penstock.workloads.rides import Rides, pickups
from penstock.workloads.sensors import Sensors
from penstock.workloads.timed_rows import Content, TimedRows

START = 1_700_000_000.0
SECOND = 1_000_000
CONTENTS: list[Content] = [Rides(seed=3), Sensors(sensors=37, values=11, seed=3)]


def timed(content: Content, **other: Any) -> TimedRows:
    given: dict[str, Any] = {"pattern": Cosine(low=50.0, high=400.0, period=7.0), "seconds": 20.0}
    return TimedRows(content=content, start=START, **given | other)


@pytest.mark.parametrize("content", CONTENTS)
@given(st.integers(0, 3000), st.integers(0, 500))
def test_any_range_is_a_part_of_the_same_rows(content: Content, first: int, count: int) -> None:
    rows = timed(content)
    whole = rows.rows(0, rows.total)
    assert rows.rows(first, first + count).equals(whole.slice(first, count))
    assert whole.schema == content.schema.arrow


@pytest.mark.parametrize("content", CONTENTS)
def test_what_a_row_says_does_not_depend_on_when_it_comes(content: Content) -> None:
    one, other = timed(content), timed(content, pattern=Constant(rps=100.0))
    for column in content.schema.columns:
        same = one.rows(0, 1000).column(column) == other.rows(0, 1000).column(column)
        assert same == (column != "time")


@pytest.mark.parametrize("content", CONTENTS)
def test_rows_come_when_the_pattern_has_offered_one_more(content: Content) -> None:
    rows = timed(content)
    times = rows.rows(0, rows.total).column("time").cast(pa.int64()).to_numpy()
    assert (np.diff(times) >= 0).all()
    for after in (0.0, 0.3, 4.2, 11.111, 20.0):
        released = rows.released(START + after)
        assert released == np.count_nonzero(times <= round((START + after) * SECOND))
        assert released == pytest.approx(rows.pattern.offered(after), abs=1.5)
    assert rows.released(START - 1) == 0
    assert rows.released(START + 1e6) == rows.total


@pytest.mark.parametrize(
    "rows",
    [
        timed(Rides(seed=9)),
        timed(Sensors(sensors=5, values=2, stream="s2", seed=1), max_rows=7, until=START + 2.5),
        timed(Rides(), pattern=Trace(file="taxi", scale=30.0, speed=10.0), partitions=3),
    ],
)
def test_options_make_the_same_rows_again(rows: TimedRows) -> None:
    texts = rows.options()
    assert TimedRows.from_options(texts) == rows
    assert TimedRows.from_options({key.upper(): text for key, text in texts.items()}) == rows
    assert GeoSource(texts).schema() == rows.content.schema.ddl


def test_options_as_a_user_writes_them() -> None:
    rows = TimedRows.from_options({"content": "sensors", "start": "5", "sensors": "20"})
    assert rows.content == Sensors(sensors=20)
    assert (rows.start, rows.seconds, rows.max_rows, rows.until) == (5.0, 3600.0, None, None)
    assert rows.pattern == Constant()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "1"}, "option content is missing: give one of rides, sensors"),
        ({"content": "rides"}, "option start is missing: give the epoch second"),
        ({"content": "ride", "start": "1"}, "did you mean 'rides'"),
        ({"content": "rides", "start": "1", "sensors": "3"}, "option of rides"),
        ({"content": "sensors", "start": "1", "sensors": "many"}, "'many' is not a whole number"),
        ({"content": "sensors", "start": "soon"}, "start = 'soon' is not a number"),
        ({"content": "sensors", "start": "1", "pattern": "{}"}, "must be the name of a workload"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TimedRows.from_options(options)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Sensors(sensors=0),
        lambda: Sensors(values=2**31),
        lambda: Sensors(seed=-1),
        lambda: Sensors(stream=""),
        lambda: Rides(seed=-1),
        lambda: timed(Rides(), seconds=0.0),
        lambda: timed(Rides(), partitions=0),
        lambda: timed(Rides(), max_rows=0),
        lambda: timed(Rides(), until=float("nan")),
        lambda: timed(Rides()).rows(5, 4),
        lambda: timed(Rides()).rows(0, 10**9),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        wrong()


class TestSensors:
    @given(st.integers(1, 50), st.integers(0, 200), st.integers(0, 100))
    def test_they_send_in_turn(self, sensors: int, first: int, count: int) -> None:
        rows = Sensors(sensors=sensors).rows(first, np.zeros(count, dtype=np.int64))
        expected = [n % sensors for n in range(first, first + count)]
        assert rows.column("id").to_pylist() == expected

    def test_each_sends_one_message_per_second(self) -> None:
        rows = timed(Sensors(sensors=40), pattern=Constant(rps=40.0), seconds=30.0)
        table = rows.rows(0, rows.total)
        times = table.column("time").cast(pa.int64()).to_numpy()
        ids = table.column("id").to_numpy()
        for sensor in (0, 17, 39):
            apart = np.diff(times[ids == sensor])
            assert len(apart) == 29
            assert np.abs(apart - SECOND).max() <= 1  # whole microseconds

    def test_values_are_even_and_differ_between_streams_and_seeds(self) -> None:
        times = np.zeros(50_000, dtype=np.int64)
        made = [
            Sensors(values=25, stream=stream, seed=seed).rows(0, times).column("value").to_numpy()
            for stream, seed in (("s1", 0), ("s2", 0), ("s1", 1))
        ]
        for values in made:
            counts = np.bincount(values, minlength=25)
            assert len(counts) == 25
            # χ² with 24 degrees of freedom exceeds 51.2 once in a thousand times.
            assert (((counts - 2000) ** 2) / 2000).sum() < 51.2
        for one, other in ((0, 1), (0, 2), (1, 2)):
            assert np.mean(made[one] == made[other]) == pytest.approx(1 / 25, abs=0.01)


class TestRides:
    def test_the_places_are_those_of_the_readme(self) -> None:
        places = pickups()
        assert places.shape == (52_561, 2)
        assert (places.min(axis=0) > (-74.3, 40.45)).all()
        assert (places.max(axis=0) < (-73.65, 40.95)).all()

    def test_every_place_is_as_likely(self) -> None:
        rows = Rides(seed=5).rows(0, np.zeros(200_000, dtype=np.int64))
        drawn = np.column_stack([rows.column(c).to_numpy() for c in ("lon", "lat")])
        known = pickups()
        assert {tuple(place) for place in drawn[:500]} <= {tuple(place) for place in known}
        # Means within five standard errors, and as many south of any line as there should be.
        error = known.std(axis=0) / np.sqrt(len(drawn))
        assert (np.abs(drawn.mean(axis=0) - known.mean(axis=0)) < 5 * error).all()
        for line in (40.70, 40.75, 40.78):
            share = np.mean(known[:, 1] < line)
            assert np.mean(drawn[:, 1] < line) == pytest.approx(share, abs=0.006)

    def test_they_are_numbered(self) -> None:
        rows = Rides().rows(70, np.zeros(4, dtype=np.int64))
        assert rows.column("id").to_pylist() == [70, 71, 72, 73]


def test_a_stream_of_now_has_a_backlog() -> None:
    rows = TimedRows(content=Rides(), pattern=Constant(rps=100.0), start=time.time(), seconds=60.0)
    assert rows.released(rows.start + 30.0) == 3000 < rows.total == 6000
