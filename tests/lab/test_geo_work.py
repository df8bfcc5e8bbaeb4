"""The operators of the geo jobs: real distances, real work, as much as is asked for."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.lab.queries.geo_jobs import JOBS, JobSettings, create
from penstock.lab.queries.geo_work import (
    ATTRACTIONS,
    fibonacci,
    fibonaccis,
    nearest,
    nearest_of,
)
from penstock.workloads.patterns import Constant, Step
from penstock.workloads.rides import pickups

MODULUS = 2**61
numbers = st.integers(0, MODULUS - 1)


def doubled(n: int) -> tuple[int, int]:
    """F(n) and F(n + 1) modulo 2^61 in log n steps: F(2k) = F(k)·(2F(k+1) − F(k)), and so on."""
    if n == 0:
        return 0, 1
    a, b = doubled(n // 2)
    even, odd = a * (2 * b - a) % MODULUS, (a * a + b * b) % MODULUS
    return (odd, (even + odd) % MODULUS) if n % 2 else (even, odd)


@given(numbers, numbers, st.integers(1, 3000))
def test_the_work_is_a_fibonacci_sequence(first: int, second: int, additions: int) -> None:
    """G(n) = F(n − 1)·G(0) + F(n)·G(1)."""
    before, here = doubled(additions - 1)
    expected = (before * first + here * second) % MODULUS
    assert fibonacci(first, second, additions) == expected


def test_no_additions_are_no_work() -> None:
    assert fibonacci(7, 9, 0) == 7
    assert fibonacci(7, 9, 1) == 9


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=20))
def test_each_record_has_its_own_sequence(pairs: list[tuple[int, int]]) -> None:
    firsts = pa.array([a for a, _ in pairs], pa.int64())
    seconds = pa.array([b for _, b in pairs], pa.int64())
    found = fibonaccis(25)(firsts, seconds)
    assert found.type == pa.int64()
    assert found.to_pylist() == [fibonacci(a, b + 1, 25) for a, b in pairs]


def haversine(lon: float, lat: float, to: tuple[float, float]) -> float:
    """Metres along a great circle."""
    x, y, x2, y2 = map(math.radians, (lon, lat, *to))
    chord = math.sin((y2 - y) / 2) ** 2 + math.cos(y) * math.cos(y2) * math.sin((x2 - x) / 2) ** 2
    return 2 * 6_371_000 * math.asin(math.sqrt(chord))


def test_distances_are_those_on_the_globe_but_for_a_thousandth() -> None:
    places = pickups()[::50]
    names = list(ATTRACTIONS)
    which, metres = nearest(places[:, 0], places[:, 1])
    wrong = 0
    for (lon, lat), place, found in zip(places.tolist(), which, metres, strict=True):
        away = [haversine(lon, lat, ATTRACTIONS[name]) for name in names]
        assert found == pytest.approx(away[place], rel=1.2e-3)
        wrong += away[place] > min(away) * 1.002
    assert wrong == 0


def test_every_attraction_is_the_nearest_of_some_rides() -> None:
    places = pickups()
    which, _ = nearest(places[:, 0], places[:, 1])
    shares = np.bincount(which, minlength=3) / len(which)
    assert (shares > 0.05).all()
    assert shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("additions", [0, 10])
def test_a_ride_at_an_attraction_is_nowhere_else(additions: int) -> None:
    lon, lat = (pa.array(values) for values in zip(*ATTRACTIONS.values(), strict=True))
    found = nearest_of(additions)(pa.array([1, 2, 3]), lon, lat).to_pylist()
    assert found == [{"attraction": name, "distance": 0.0} for name in ATTRACTIONS]
    empty = pa.array([], pa.float64())
    assert nearest_of(additions)(pa.array([], pa.int64()), empty, empty).to_pylist() == []


class TestJobs:
    def test_the_sensors_of_the_study_at_scale_1(self) -> None:
        settings = JobSettings(scale=1)
        assert create("map", settings).rate == 100_000
        for name in ("id-id", "id-value"):
            job = create(name, settings)
            assert [c.sensors for c in job.contents] == [50_000, 50_000]  # type: ignore[attr-defined]
            assert job.rate * len(job.contents) == 100_000
            assert job.cycle == 400_000

    def test_values_of_the_id_value_join_are_few(self) -> None:
        values = [c.values for c in create("id-value").contents]  # type: ignore[attr-defined]
        assert values == [16, 16]
        ids = [c.values for c in create("id-id").contents]  # type: ignore[attr-defined]
        assert ids == [1000, 1000]

    @pytest.mark.parametrize("phase", [0.0, 0.6, 2.0, 3.7])
    def test_batches_of_a_whole_window_make_two_pairs_per_message(self, phase: float) -> None:
        """Wherever they begin; those of a quarter do not, since late messages meet more."""
        job = create("id-id", JobSettings(scale=1000))
        assert job.cycle == 400
        start = 1_600_000_000.0 + phase
        events = job.events(start=start, seconds=40.0, partitions=2, max_rows=job.cycle)
        first, second = (rows.rows(0, rows.total) for rows in events)
        ids, others = first.column("id").to_numpy(), second.column("id").to_numpy()
        windows, opposite = (
            rows.column("time").cast(pa.int64()).to_numpy() // 4_000_000 for rows in (first, second)
        )
        meet = (ids[:, None] == others) & (windows[:, None] == opposite)
        later = np.maximum(*np.nonzero(meet))  # by row of a stream; a batch has 200 of each
        whole, quarter = np.bincount(later // 200)[1:], np.bincount(later // 50)[4:]
        assert whole == pytest.approx(2 * job.cycle, rel=0.03)
        assert quarter.max() > 1.5 * quarter.min()

    @pytest.mark.parametrize("name", JOBS)
    def test_a_batch_takes_an_equal_part_of_each_stream(self, name: str) -> None:
        job = create(name, JobSettings(work=5))
        assert job.work == 5
        events = job.events(start=0.0, seconds=10.0, partitions=7, max_rows=1001)
        assert {rows.max_rows for rows in events} == {1001 // len(events)}
        assert {rows.partitions for rows in events} == {7 // len(events)}
        assert {rows.total for rows in events} == {int(10 * job.rate)}
        other = job.events(start=0.0, seconds=10.0, partitions=3, pattern=Step())
        assert {rows.pattern for rows in other} == {Step()}
        assert {rows.pattern for rows in events} == {Constant(rps=job.rate)}

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"work": -1}, "work -1 must be ≥ 0"),
            ({"scale": 0.5}, "scale 0.5 must lie between 1"),
            ({"values": 0}, "values 0 must lie between 1"),
            ({"scale": 1000.0, "values": 51}, "the 50 sensors of a stream"),
        ],
    )
    def test_wrong_settings_are_refused(self, wrong: dict[str, float], message: str) -> None:
        with pytest.raises(InputError, match=message):
            JobSettings(**wrong)  # type: ignore[arg-type]

    def test_what_no_job_can_do_is_refused(self) -> None:
        with pytest.raises(InputError, match="did you mean 'id-id'"):
            create("id_id")
        with pytest.raises(InputError, match="max_rows 1 must be at least 2, one for each"):
            create("id-id").events(start=0.0, seconds=1.0, partitions=2, max_rows=1)
