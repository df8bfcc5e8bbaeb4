"""The model of work, waiting and exchange: what it says, and what it learns from few readings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.capacity.exchange import DIVIDED, GRID, Exchange
from penstock.capacity.learning import learn, teaches
from penstock.capacity.readings import MOST, Layout, Reading, remember
from penstock.capacity.slowest import stretched
from penstock.core.errors import InputError

WORK, SOURCE, SENDING = 60e-6, 0.5e-6, 2e-6


def layout(slots: int, delay: float = 0.0, exchange: float = 0.0) -> Layout:
    """Even work; the first slot is beside the source."""
    rest = 1.0 / slots if slots > 1 else 0.0
    return Layout(slots=slots, hosts=1, host=1.0 / slots, rest=rest, delay=delay, exchange=exchange)


def truth(at: Layout, *, theta: float = 0.0, rho: float = 0.0) -> Reading:
    """A full pool, without noise: worked out by hand, not by the model."""
    n = at.slots
    host = WORK * at.host + SOURCE + SENDING * (1 - at.host)
    slot = max(host, WORK * at.rest) + rho * at.most * at.delay
    longer, later = map(float, stretched(theta * at.exchange / slot))
    rate = 1.0 / (slot * longer)
    return Reading(
        layout=at,
        rate=rate,
        full=True,
        busiest=rate * max(host, WORK * at.rest),
        host=rate * host,
        rest=rate * WORK * (1 - at.host) if n > 1 else None,
        rest_share=1 - at.host,
        source=rate * (SOURCE + SENDING * (1 - at.host)),
        waits=later,
    )


def known(*, weights: Any = None, noise: float = 0.05) -> Exchange:
    """A model with the true parameters."""
    return Exchange(
        work=np.array([WORK, 0.0, SOURCE, SENDING]),
        covariance=np.zeros((4, 4)),
        waiting=np.array([0.0, 1e-6]),
        weights=weights,
        noise=noise,
        freedom=4.0,
    )


def test_the_busiest_slot_decides() -> None:
    """The first of 4 does 15 + 0.5 + 1.5 µs for a record; one with 0.3 of the work 18."""
    even, skewed = layout(4), replace(layout(4), rest=0.3)
    assert 1.0 / known().at(even) == pytest.approx(17e-6)
    assert 1.0 / known().at(skewed) == pytest.approx(18e-6)


def test_waiting_is_per_record_and_second() -> None:
    """A quarter of the records, 0.2 s, 1 µs each: 0.05 µs more for a record of the stream."""
    assert 1.0 / known().at(layout(4, delay=0.2)) == pytest.approx(17.05e-6)


@pytest.mark.parametrize(("row", "part"), [(0, 1.0), (1, 1.125), (2, 1.25)])
def test_an_exchange_costs_what_the_later_of_both_does(row: int, part: float) -> None:
    """θ·D = 17 µs, as long as the work; a quarter of the work is 1.25 times the usual share."""
    weights = np.zeros((len(DIVIDED), len(GRID)))
    weights[row, 20] = 1.0
    theta = math.exp(GRID[20]) * WORK
    at = layout(4, exchange=17e-6 / theta)
    assert 1.0 / known(weights=weights).at(at) == pytest.approx(17e-6 * float(stretched(part)[0]))


def test_the_interval_is_students() -> None:
    """Noise alone, 4 degrees of freedom: 2.776 · 5 %."""
    found = known().expected(layout(4))
    assert found.half_width == pytest.approx(2.776 * 0.05 * found.rate, rel=1e-3)
    assert found.doubt == 0.0


def test_one_reading_is_enough_for_a_start() -> None:
    """57 records of work per slot; the source tells its own."""
    model = learn([truth(layout(1))])
    assert model.at(layout(2)) == pytest.approx(truth(layout(2)).rate, rel=0.05)
    assert model.expected(layout(10)).half_width > 0.3 * model.at(layout(10))  # and it knows


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_two_levels_give_the_work_of_all(levels: int) -> None:
    model = learn([truth(layout(n)) for n in range(1, levels + 1)])
    assert model.at(layout(10)) == pytest.approx(truth(layout(10)).rate, rel=0.03)


@pytest.mark.parametrize("levels", [3, 5])
def test_throughput_alone_gives_the_concave_curve(levels: int) -> None:
    """1/T = (w − e)/n + s + e: what is learnt where nobody tells who is busy."""
    bare = [
        Reading(layout=layout(n), rate=truth(layout(n)).rate, full=True)
        for n in range(1, levels + 1)
    ]
    found = learn(bare).at(layout(8))
    assert found == pytest.approx(truth(layout(8)).rate, rel=0.07)
    assert found < 0.95 * 8 * bare[0].rate


def test_skew_that_was_never_seen_is_foreseen() -> None:
    """Learnt at even levels; a layout whose busiest slot has half of the work does 2/w."""
    model = learn([truth(layout(n)) for n in (1, 2, 3)])
    skewed = Layout(slots=4, hosts=1, host=0.1, rest=0.5)
    assert model.at(skewed) == pytest.approx(1.0 / (0.5 * WORK), rel=0.03)


def test_an_exchange_is_learnt_from_the_levels_that_have_it() -> None:
    theta = 7.0 * WORK  # more than what is usual
    near = [truth(layout(n, 0.0005, 0.0005), theta=theta) for n in range(1, 6)]
    far = [truth(layout(n, 0.05, 0.02 + 0.006 * (n - 6)), theta=theta) for n in (6, 7, 8)]
    later_one = layout(9, 0.05, 0.045)
    model = learn([*near, *far])
    assert model.at(later_one) == pytest.approx(truth(later_one, theta=theta).rate, rel=0.1)
    blind = learn(near)
    assert blind.expected(later_one).doubt > 2.0 * model.expected(later_one).doubt


def test_an_exchange_is_told_from_waiting_by_who_is_held_back() -> None:
    """The same loss of throughput; once while the source is held back, once while it idles."""
    far = layout(6, 0.05, 0.03)
    near = [truth(layout(n)) for n in (1, 2, 3, 4, 5)]
    waiting, exchange = truth(far, rho=3e-5), truth(far, theta=5.0 * WORK)
    more = layout(6, 0.05, 0.12)
    assert learn([*near, waiting]).waiting[1] > 3.0 * learn([*near, exchange]).waiting[1]
    assert learn([*near, exchange]).at(more) < 0.8 * learn([*near, waiting]).at(more)


def test_without_state_nothing_is_exchanged() -> None:
    readings = [truth(layout(n, 0.05, 0.03)) for n in (1, 2, 3)]
    model = learn(readings, stateful=False)
    assert model.weights is None
    assert (
        model.expected(layout(8, 0.2, 0.2)).doubt
        < learn(readings).expected(layout(8, 0.2, 0.2)).doubt
    )


def test_a_pool_that_keeps_up_teaches_too() -> None:
    """Half of the load: half as busy, the same work for a record."""
    full = truth(layout(4))
    half = replace(
        full, full=False, waits=None, rate=full.rate / 2, busiest=0.5,
        host=(full.host or 0) / 2, rest=(full.rest or 0) / 2, source=(full.source or 0) / 2,
    )  # fmt: skip
    assert learn([half]).at(layout(4)) == pytest.approx(full.rate, rel=0.03)


def test_what_was_measured_there_counts_more_than_the_model() -> None:
    readings = [truth(layout(n)) for n in range(1, 6)]
    odd = replace(readings[2], rate=0.8 * readings[2].rate, count=5.0, busiest=0.8)
    found = learn([*readings[:2], odd, *readings[3:]]).at(layout(3))
    assert odd.rate < found < 0.9 * readings[2].rate


def test_a_steady_wait_costs_every_size() -> None:
    """Micro-batches: 5 s of driver per million records besides 20 µs of work each."""

    def batch(n: int) -> Reading:
        seconds = 5e-6 + 20e-6 / n
        return Reading(
            layout=Layout(slots=n, rest=1 / n), rate=1 / seconds, full=True,
            busiest=20e-6 / n / seconds, rest=20e-6 / seconds,
        )  # fmt: skip

    model = learn([batch(1), batch(2)])
    assert model.at(Layout(slots=4, rest=0.25)) == pytest.approx(1e5, rel=0.05)


rates = st.floats(1e-3, 1e7)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    levels=st.lists(st.integers(1, 12), min_size=1, max_size=6, unique=True),
    factor=st.floats(1e-3, 1e3),
    told=st.sampled_from(["all", "loads", "rate"]),
)
def test_records_have_no_unit_and_order_does_not_matter(
    seed: int, levels: list[int], factor: float, told: str
) -> None:
    random = np.random.default_rng(seed)
    readings = []
    for n in levels:
        r = truth(layout(n, 0.01 * n, 0.005 * n), theta=WORK)
        r = replace(r, rate=r.rate * float(random.uniform(0.9, 1.1)))
        if told != "all":
            r = replace(r, waits=None)
        if told == "rate":
            r = replace(r, busiest=None, host=None, rest=None, source=None)
        readings.append(r)
    at = layout(7, 0.05, 0.04)
    found = learn(readings).expected(at)
    assert math.isfinite(found.rate) and found.rate > 0.0 and found.doubt <= found.half_width
    again = learn([replace(r, rate=factor * r.rate) for r in reversed(readings)]).expected(at)
    assert again.rate == pytest.approx(factor * found.rate, rel=1e-5)
    assert again.half_width == pytest.approx(factor * found.half_width, rel=1e-4)


shares_of_time = st.none() | st.floats(0.0, 1.05)


@settings(max_examples=150)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(1, 9), st.integers(0, 9), st.floats(1e-3, 1e12), st.booleans(),
            shares_of_time, shares_of_time, shares_of_time, shares_of_time, shares_of_time,
            st.floats(1e-4, 1.0), st.floats(1e-4, 1.0), st.floats(0.0, 9.0), st.floats(0.0, 9.0),
        ),
        min_size=1,
        max_size=6,
    ),
    stateful=st.booleans(),
)  # fmt: skip
def test_whatever_is_read_something_finite_is_expected(
    rows: list[tuple[Any, ...]], stateful: bool
) -> None:
    readings = []
    for n, hosts, rate, full, busiest, host, rest, source, waits, a, b, delay, exchange in rows:
        at = Layout(
            slots=n, hosts=min(n, hosts), host=a, rest=b, delay=delay, exchange=exchange
        )  # fmt: skip
        readings.append(
            Reading(
                layout=at, rate=rate, full=full, busiest=busiest, host=host, rest=rest,
                rest_share=1.0 - a, source=source, waits=waits,
            )
        )  # fmt: skip
    if not any(map(teaches, readings)):
        return
    model = learn(readings, stateful=stateful)
    for reading in readings:
        found = model.expected(reading.layout)
        assert math.isfinite(found.rate) and found.rate > 0.0
        assert math.isfinite(found.half_width) and 0.0 <= found.doubt <= found.half_width


def test_readings_fall_into_the_interval_as_often_as_it_says() -> None:
    """Readings with 3 % of noise; the next level foretold from those before."""
    random = np.random.default_rng(5)
    inside = []
    for _ in range(40):
        readings: tuple[Reading, ...] = ()
        for n in range(1, 8):
            r = truth(layout(n, 0.01 * n, 0.004 * n), theta=3.0 * WORK)
            r = replace(r, rate=r.rate * float(1 + 0.03 * random.standard_normal()))
            if readings:
                found = learn(readings).expected(r.layout)
                inside.append(abs(found.rate - r.rate) <= found.half_width)
            readings = remember(readings, r)
    assert np.mean(inside) >= 0.93


def test_nothing_to_learn_from_is_refused() -> None:
    idle = Reading(layout=layout(2), rate=10.0, full=False)
    assert not teaches(idle)
    with pytest.raises(InputError, match="at least one reading"):
        learn([idle])


class TestReadings:
    """What is kept of many windows."""

    def test_like_layouts_become_one(self) -> None:
        one = truth(layout(3, 0.05))
        other = replace(truth(layout(3, 0.055)), rate=1.2 * one.rate)
        (mixed,) = remember(remember((), one), other)
        assert mixed.rate == pytest.approx(1.1 * one.rate)
        assert mixed.layout.delay == pytest.approx(0.0525)
        assert mixed.count == 2.0

    def test_full_and_idle_ones_are_kept_apart(self) -> None:
        one = truth(layout(3))
        assert len(remember((one,), replace(one, full=False))) == 2

    def test_far_and_near_ones_are_kept_apart(self) -> None:
        assert len(remember((truth(layout(3, 0.01)),), truth(layout(3, 0.05)))) == 2

    def test_others_fade_and_are_forgotten(self) -> None:
        readings: tuple[Reading, ...] = (truth(layout(2)),)
        for _ in range(100):
            readings = remember(readings, truth(layout(3)))
        assert readings[0].count == pytest.approx(0.995**100)
        for _ in range(400):
            readings = remember(readings, truth(layout(3)))
        assert [r.layout.slots for r in readings] == [3]

    def test_no_more_than_so_many(self) -> None:
        readings: tuple[Reading, ...] = ()
        for n in range(1, MOST + 9):
            readings = remember(readings, truth(layout(n)))
        assert [r.layout.slots for r in readings] == list(range(9, MOST + 9))

    def test_what_one_window_did_not_tell_another_may(self) -> None:
        blind = replace(truth(layout(3)), host=None, waits=None)
        (mixed,) = remember((truth(layout(3)),), blind)
        assert mixed.host == truth(layout(3)).host

    @pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
    def test_a_rate_that_is_none_is_refused(self, rate: float) -> None:
        with pytest.raises(InputError, match="throughput"):
            Reading(layout=layout(1), rate=rate, full=True)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"slots": 0},
            {"hosts": 3},
            {"rest": -0.1},
            {"delay": math.nan},
            {"host": 0.0, "rest": 0.0},
        ],
    )
    def test_a_layout_that_cannot_be_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            replace(layout(2), **wrong)
