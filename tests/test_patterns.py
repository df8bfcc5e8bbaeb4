"""Patterns: the integral really is the integral of the rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.workloads.patterns import (
    PATTERNS,
    Constant,
    Cosine,
    Pattern,
    Step,
    create,
    describe,
    per_second,
)

EXAMPLES = [
    Constant(rps=70.0),
    Step(low=10, high=90, at=20, hold=15),
    Step(low=50, high=5, at=7),
    Cosine(low=5, high=95, period=30),
]


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
@given(t=st.floats(0, 200))
def test_offered_is_the_integral_of_the_rate(pattern: Pattern, t: float) -> None:
    grid = np.linspace(0, t, 20_001)
    middle = (grid[1:] + grid[:-1]) / 2
    numeric = float(np.mean([pattern.rate(float(x)) for x in middle])) * t
    assert pattern.offered(t) == pytest.approx(numeric, abs=0.02 + 1e-4 * t * 90)


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
def test_offered_never_decreases_and_per_second_adds_up(pattern: Pattern) -> None:
    counts = per_second(pattern, 100)
    assert counts.min() >= 0
    assert counts.sum() == pytest.approx(pattern.offered(100.0))


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
def test_description_makes_the_same_pattern(pattern: Pattern) -> None:
    words = describe(pattern)
    assert create(words.pop("name"), words) == pattern


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("cosin", {}, "did you mean 'cosine'"),
        ("cosine", {"lo": 3}, "unknown parameter of workload cosine 'lo'"),
        ("cosine", {"low": 9, "high": 3}, "low = 9.0 is above high = 3.0"),
        ("cosine", {"period": 0}, "period = 0"),
        ("constant", {"rps": -1}, "rps = -1.0 must be a finite number ≥ 0"),
        ("constant", {"rps": "nan"}, "rps = nan"),
        ("step", {"at": "noon"}, "'noon' is not a number"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(
    name: str, parameters: dict[str, float | str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        create(name, parameters)


def test_every_pattern_has_an_example() -> None:
    assert {type(p) for p in EXAMPLES} == set(PATTERNS.values())
