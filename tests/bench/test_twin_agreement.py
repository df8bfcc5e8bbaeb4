"""Errors, spreads and the order of policies, on numbers by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.validation.agreement import (
    Sample,
    Tally,
    allowed_lag,
    error,
    orders,
    spread,
    tally,
    within,
)


def sample(*values: float) -> Sample:
    return dict(enumerate(values))


def test_an_error_is_a_share_of_what_spark_had() -> None:
    assert error(2.3, 2.0) == pytest.approx(0.15)
    assert within(error(2.3, 2.0), 0.15) and not within(error(2.31, 2.0), 0.15)
    assert within(error(1.7, 2.0), 0.15) and not within(error(1.69, 2.0), 0.15)
    assert error(0.0, 0.0) == 0.0 and error(1.0, 0.0) is None
    assert not within(None, 1e9)


def test_what_is_allowed_of_a_lag_grows_with_spark_s_own_spread() -> None:
    assert spread([50.0]) is None and spread([0.0, 0.0]) is None
    assert spread([50.0, 60.0, 70.0]) == pytest.approx(10 / 60)
    assert allowed_lag([50.0]) == 0.30
    assert allowed_lag([58.0, 60.0, 62.0]) == 0.30  # 2 · 3.3 % is less
    assert allowed_lag([50.0, 60.0, 70.0]) == pytest.approx(2 * 10 / 60)


SPARK = {
    "a": sample(1.0, 1.1, 0.9),
    "b": sample(2.0, 2.1, 2.0),  # above a at every seed
    "c": sample(2.1, 1.9, 2.2),  # as b
}


def test_the_order_of_every_pair() -> None:
    twin = {"a": sample(3.0, 3.0, 3.0), "b": sample(2.0, 2.0, 2.0), "c": sample(9.0, 9.0, 9.0)}
    found = {(o.a, o.b): o.verdict for o in orders(SPARK, twin)}
    assert found == {("a", "b"): "swapped", ("a", "c"): "same", ("b", "c"): "tie"}
    counted = tally(orders(SPARK, twin))
    assert counted == Tally(same=1, swapped=1, ties=1, alike=2)  # b < c by the means, on both
    assert (counted.told, counted.pairs, counted.wanted, counted.held) == (2, 3, 2, False)


def test_runs_with_themselves_have_the_same_order() -> None:
    counted = tally(orders(SPARK, SPARK))
    assert (counted.same, counted.swapped, counted.ties, counted.alike) == (2, 0, 1, 3)
    assert counted.held


def test_one_seed_has_no_interval_so_every_difference_counts() -> None:
    spark = {"a": sample(1.0), "b": sample(1.001), "c": sample(1.0)}
    found = {(o.a, o.b): o.verdict for o in orders(spark, spark)}
    assert found == {("a", "b"): "same", ("a", "c"): "tie", ("b", "c"): "same"}


def test_a_twin_that_makes_two_policies_equal_has_not_their_order() -> None:
    twin = {name: sample(5.0, 5.0, 5.0) for name in SPARK}
    assert tally(orders(SPARK, twin)) == Tally(same=0, swapped=2, ties=1, alike=0)


def test_only_seeds_that_all_have_are_compared() -> None:
    spark = {"a": sample(1.0, 9.0), "b": sample(2.0)}
    twin = {"a": sample(1.0, 9.0), "b": sample(2.0, 2.0)}
    (order,) = orders(spark, twin)
    assert (order.spark, order.twin) == (-1, -1)  # with a's second seed it would be the other way
    assert orders({"a": sample(1.0), "b": {7: 2.0}}, twin) == []


def test_twelve_of_fifteen_is_enough_and_nothing_told_is_not_judged() -> None:
    assert Tally(same=12, swapped=3, ties=0, alike=12).held is True
    assert Tally(same=11, swapped=4, ties=0, alike=11).held is False
    assert Tally(same=8, swapped=2, ties=5, alike=13).held is True
    assert Tally(same=0, swapped=0, ties=15, alike=15).held is None


SAMPLES = st.lists(st.floats(0.0, 1e3), min_size=3, max_size=3).map(lambda v: sample(*v))


@given(st.lists(SAMPLES, min_size=2, max_size=5), st.lists(SAMPLES, min_size=5, max_size=5))
def test_every_pair_is_counted_once(real: list[Sample], played: list[Sample]) -> None:
    names = "abcde"[: len(real)]
    spark, twin = dict(zip(names, real, strict=True)), dict(zip("abcde", played, strict=True))
    counted = tally(orders(spark, twin))
    assert counted.pairs == len(real) * (len(real) - 1) // 2
    assert counted.same <= counted.alike <= counted.pairs - counted.swapped
    turned = tally(orders(dict(reversed(spark.items())), twin))
    assert turned == counted
