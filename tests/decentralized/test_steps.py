"""The paper's simulator: timing by hand, and two engines that agree draw for draw."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.decentralized import Probabilistic, counted_steps, message_steps
from penstock.decentralized.draws import Floats, draw, draws, salt
from penstock.decentralized.steps import Course, Setup, brownian, rising, stepped

ENGINES = pytest.mark.parametrize(
    "simulate", [message_steps.simulate, counted_steps.simulate], ids=["messages", "counted"]
)
THREE = (Probabilistic(),) * 3
Simulate = Callable[[Setup, Floats, int], Course]
FIELDS = ("load", "instances", "known", "ideal", "throughput", "messages", "tried", "grown", "left")


def constant(steps: int, *loads: float) -> Floats:
    return np.tile(np.array(loads), (steps, 1))


def same(a: Course, b: Course) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


# ---- by hand --------------------------------------------------------------------------------


@ENGINES
def test_growing_takes_three_steps(simulate: Simulate) -> None:
    """Twice the load for the middle operator: p = 2/0.7 − 1, at least one each at step 5."""
    setup = Setup(policies=THREE, instances=2)
    course = simulate(setup, constant(9, 700.0, 2000.0, 700.0), 1)
    grown = int(course.grown[5, 1])
    assert grown in (2, 3, 4) and course.grown.sum() == grown
    assert course.instances[:, 1].tolist() == [2] * 7 + [2 + grown] * 2
    assert course.known[:, 1].tolist() == [2] * 6 + [2 + grown] * 3
    # Two initiators with four neighbours: duplication, acknowledgements, starts.
    assert course.messages[:, 1].tolist() == [0] * 5 + [8, 8, grown, 0]
    assert course.messages[:, [0, 2]].sum() == 0
    assert course.throughput[:, 1].tolist() == [1000.0] * 7 + [min(2000.0, 500 * (2 + grown))] * 2


@ENGINES
def test_leaving_takes_two_steps_and_the_keeper_stays(simulate: Simulate) -> None:
    """Hardly any load: every instance but the keeper leaves at its first trial."""
    setup = Setup(policies=THREE, instances=4)
    course = simulate(setup, constant(8, 1400.0, 1e-9, 1400.0), 1)
    assert course.left[:, 1].tolist() == [0] * 5 + [3, 0, 0]
    assert course.instances[:, 1].tolist() == [4] * 6 + [1] * 2
    assert course.messages[:, 1].tolist() == [0] * 5 + [3 * 8, 3 * 8, 0]


@ENGINES
def test_the_first_messages_of_the_paper(simulate: Simulate) -> None:
    """30 messages at iteration 5: one instance begins, 16 before it and 14 after it know."""
    policies = (Probabilistic(), Probabilistic(), Probabilistic())
    setup = Setup(policies=policies, instances=15)
    for seed in range(60):
        load = constant(8, 350.0 * 15, 0.8 * 500.0 * 15, 350.0 * 15)
        course = simulate(setup, load, seed)
        begun = int(course.grown[5, 1])
        assert course.messages[5, 1] == 30 * begun and course.messages[6, 1] == 30 * begun
        assert course.messages[7, 1] == begun


@ENGINES
def test_nothing_happens_between_the_thresholds(simulate: Simulate) -> None:
    course = simulate(Setup(), constant(50, *[2450.0] * 5), 3)
    assert course.messages.sum() == 0 and np.all(course.instances == 7)
    assert course.ideal == pytest.approx(np.full((50, 5), 7.0))


@ENGINES
def test_a_new_instance_tries_a_period_after_its_start(simulate: Simulate) -> None:
    """All first instances grow at 5 and 10; those that started at 7 try at 12."""
    setup = Setup(policies=THREE[:2], instances=1)
    load = rising(14, [350.0, 350.0], slope=0.0)
    load[5:, 1] = 350.0 * 3  # p = 2 at step 5, none later
    load[11:, 1] = 500.0 * 3 * 1.4  # p = 1 for each of three, only two of them may try
    course = simulate(setup, load, 1)
    assert course.grown[:, 1].nonzero()[0].tolist() == [5, 12]
    assert course.grown[[5, 12], 1].tolist() == [2, 2]


def test_spread_trials_begin_at_different_steps() -> None:
    setup = Setup(instances=50, spread=True)
    load = constant(6, *[50 * 500.0] * 5)
    grown = counted_steps.simulate(setup, load, 1).grown.sum(axis=1)
    assert grown[0] == 0 and np.all(grown[1:5] > 0)
    together = counted_steps.simulate(Setup(instances=50), load, 1).grown.sum(axis=1)
    assert together[:5].sum() == 0 and together[5] > 0


# ---- both engines ---------------------------------------------------------------------------


@st.composite
def experiments(draw: st.DrawFn) -> tuple[Setup, Floats]:
    ratios = draw(st.lists(st.sampled_from([0.5, 0.7, 0.9]), min_size=2, max_size=4))
    setup = Setup(
        policies=tuple(Probabilistic(ratio=r, up=r + 0.1, down=r - 0.1) for r in ratios),
        instances=draw(st.integers(1, 6)),
        capacity=draw(st.sampled_from([1.0, 500.0])),
        period=draw(st.integers(1, 6)),
        spread=draw(st.booleans()),
    )
    shares = draw(
        st.lists(
            st.lists(st.floats(0.05, 12.0), min_size=len(ratios), max_size=len(ratios)),
            min_size=1,
            max_size=12,
        )
    )
    return setup, np.repeat(np.array(shares) * setup.capacity, 3, axis=0)


@settings(max_examples=150)
@given(experiments(), st.integers(0, 2**40))
def test_counting_by_the_formula_is_what_messages_give(
    experiment: tuple[Setup, Floats], seed: int
) -> None:
    setup, load = experiment
    assert same(
        message_steps.simulate(setup, load, seed), counted_steps.simulate(setup, load, seed)
    )


@pytest.mark.parametrize("seed", range(3))
def test_engines_agree_on_the_paper_s_experiment(seed: int) -> None:
    setup = Setup()
    load = brownian(seed, 200, setup.starts, deviation=250.0, least=350.0)
    course = message_steps.simulate(setup, load, seed)
    assert same(course, counted_steps.simulate(setup, load, seed))
    assert course.instances.min() >= 1
    growth = np.cumsum(course.grown - course.left, axis=0)
    assert np.array_equal(course.known[1:], 7 + growth[:-1])


def test_a_large_pipeline_reaches_the_right_size() -> None:
    """A hundred thousand instances: chance evens out, the size is L / (r·C) within a percent."""
    setup = Setup(instances=20_000)
    load = stepped(30, setup.starts, factor=1.5, at=10)
    course = counted_steps.simulate(setup, load, 1)
    assert course.instances[-1].sum() == pytest.approx(150_000, rel=0.01)
    assert course.messages.sum() == pytest.approx(2 * 50_000 * 20_000 * 8 / 5, rel=0.02)


# ---- draws and loads ------------------------------------------------------------------------


@given(st.integers(0, 2**63), st.lists(st.integers(0, 2**62), min_size=1))
def test_draws_are_the_same_one_by_one_and_together(seed: int, places: list[int]) -> None:
    key = salt(seed, 3)
    together = draws(key, np.array(places))
    assert together.tolist() == [draw(key, place) for place in places]
    assert np.all((together >= 0.0) & (together < 1.0))


def test_draws_are_even_and_do_not_repeat() -> None:
    values = np.concatenate([draws(salt(1, n), np.arange(20_000)) for n in range(5)])
    assert values.mean() == pytest.approx(0.5, abs=0.005)
    assert np.histogram(values, 10, (0, 1))[0] == pytest.approx(10_000, abs=500)
    assert len(np.unique(values)) == len(values)


def test_a_brownian_load_has_its_deviation_and_its_bound() -> None:
    load = brownian(1, 2000, [1e6, 1e6], deviation=250.0, least=350.0)
    moves = np.diff(load, axis=0)
    assert moves.std() == pytest.approx(250.0, rel=0.05)
    assert abs((moves[:, 0] * moves[:, 1]).mean()) < 0.1 * moves.var()
    low = brownian(1, 500, [400.0], deviation=250.0, least=350.0)
    assert low.min() >= 350.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Setup(policies=(Probabilistic(),)), "needs two operators"),
        (lambda: Setup(instances=0), "instances 0 and period 5"),
        (lambda: Setup(capacity=0.0), "capacity 0.0 must be above 0"),
        (lambda: brownian(1, 5, [300.0], deviation=1.0, least=350.0), "it has 350.0"),
        (lambda: counted_steps.simulate(Setup(), np.ones((5, 2)), 1), r"the shape \(5, 2\)"),
        (lambda: counted_steps.simulate(Setup(), np.zeros((5, 5)), 1), "must be above 0"),
        (lambda: Probabilistic(ratio=0.9), r"0 ≤ down 0.6 < ratio 0.9 < up 0.8"),
        (lambda: Probabilistic(up=math.inf), "up inf finite"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
