"""Intervals and paired differences against scipy's own tests."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from penstock.comparison.groups import pareto
from penstock.core.errors import InputError
from penstock.report.statistics import estimate, paired

SAMPLE = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30)
PAIRS = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=3, max_size=30)


@given(SAMPLE)
def test_the_interval_is_students(values: list[float]) -> None:
    found = estimate(values)
    assume(stats.sem(values) > 1e-9)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=found.mean, scale=stats.sem(values))
    assert found.low == pytest.approx(low) and found.high == pytest.approx(high)
    assert found.low <= found.mean <= found.high


@given(PAIRS)
def test_paired_differences_decide_as_the_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    assume(stats.sem([x - y for x, y in pairs]) > 1e-6)
    test = stats.ttest_rel(a, b)
    found = paired(a, b)
    bounds = test.confidence_interval(0.95)
    assert found.low == pytest.approx(bounds.low, abs=1e-6)
    assert found.high == pytest.approx(bounds.high, abs=1e-6)
    assume(abs(test.pvalue - 0.05) > 1e-6)
    wanted = "tie" if test.pvalue > 0.05 else "lower" if test.statistic < 0 else "higher"
    assert found.verdict == wanted


@given(PAIRS)
def test_turning_a_comparison_round_turns_its_verdict(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    turned = {"lower": "higher", "higher": "lower", "tie": "tie"}
    assert paired(b, a).verdict == turned[paired(a, b).verdict]


def test_pairing_sees_what_the_means_alone_do_not() -> None:
    load = [10.0, 20.0, 30.0, 40.0]  # differs far more between seeds than policies do
    slower = [x + 1.0 + 0.01 * i for i, x in enumerate(load)]
    assert estimate(load).high > estimate(slower).mean
    assert paired(slower, load).verdict == "higher"
    assert paired(slower, load).relative == pytest.approx(1.015 / 25)


def test_equal_values_tie_and_one_pair_decides_nothing() -> None:
    assert paired([1.0, 2.0], [1.0, 2.0]).verdict == "tie"
    alone = paired([5.0], [1.0])
    assert alone.verdict == "tie" and alone.half_width is None and alone.mean == 4.0


def test_the_same_difference_every_time_is_a_difference() -> None:
    assert paired([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]).verdict == "higher"


def test_what_cannot_be_averaged_or_paired() -> None:
    with pytest.raises(InputError, match="no values"):
        estimate([])
    with pytest.raises(InputError, match="2 values cannot be paired with 1"):
        paired([1.0, 2.0], [1.0])


POINTS = st.lists(st.tuples(st.integers(0, 9).map(float), st.integers(0, 9).map(float)), min_size=1)


@given(POINTS)
def test_the_pareto_front(points: list[tuple[float, float]]) -> None:
    front = pareto(points)
    assert any(front)
    for (a, b), best in zip(points, front, strict=True):
        beaten = any(x <= a and y <= b and (x < a or y < b) for x, y in points)
        assert best != beaten
