"""Patterns: the integral really is the integral, bounds hold for every seed, seeds mean it."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.workloads.patterns import (
    PATTERNS,
    Constant,
    Convergence,
    Cosine,
    Decreasing,
    Increasing,
    Pattern,
    Random,
    Spikes,
    Step,
    Trace,
    create,
    describe,
    duration,
    per_second,
)
from penstock.workloads.sampling import sample

EXAMPLES: list[Any] = [
    Constant(rps=70.0),
    Step(low=10, high=90, at=20, hold=15),
    Step(low=50, high=5, at=7),
    Cosine(low=5, high=95, period=30),
    Cosine(low=5, high=95, period=30, from_high=True),
    Cosine(low=5, high=95, period=60, noise=9, minute=4, seed=1),
    Cosine(low=5, high=95, period=60, steps=True, minute=4),
    Random(start=50, change=20, maximum=90, minute=3, seed=2),
    Increasing(maximum=90, minute=3, seed=3),
    Decreasing(maximum=90, minute=3, seed=4),
    Convergence(high=90, low=40, wait=10, stage=60),
    Spikes(base=30, height=3, spacing=40, length=6, minute=5, seed=5),
    Spikes(base=30, height=2, spacing=40, length=6, noise=8, minute=5, seed=6),
    Trace(file="taxi", speed=20, scale=7),
    Trace(file="nasa", speed=60 * 24, repeat=True),
]
MINUTELY = [
    p
    for p in EXAMPLES
    if isinstance(p, Random | Increasing | Decreasing)
    or (isinstance(p, Cosine) and (p.noise or p.steps))
]
SEEDED = [kind for kind in PATTERNS.values() if "seed" in kind.__dataclass_fields__]
SEEDS = st.integers(0, 2**40)


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
@settings(max_examples=6)
@given(t=st.floats(0, 200))
def test_offered_is_the_integral_of_the_rate(pattern: Pattern, t: float) -> None:
    grid = np.linspace(0, t, 1001)
    rates = np.array([pattern.rate(float(x)) for x in (grid[1:] + grid[:-1]) / 2])
    numeric = float(rates.mean()) * t
    # A jump inside a cell costs at most half the cell.
    slack = float(np.abs(np.diff(rates)).sum()) * t / 1000
    assert pattern.offered(t) == pytest.approx(numeric, rel=1e-4, abs=slack + 1e-6)


@pytest.mark.parametrize("pattern", MINUTELY, ids=repr)
@settings(max_examples=20)
@given(t=st.floats(0, 300))
def test_one_rate_per_minute_adds_up_exactly(pattern: Any, t: float) -> None:
    whole = math.floor(t / pattern.minute)
    before = sum(pattern.rate((k + 0.5) * pattern.minute) for k in range(whole)) * pattern.minute
    expected = before + pattern.rate(t) * (t - whole * pattern.minute)
    assert pattern.offered(t) == pytest.approx(expected, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
@given(t=st.floats(0, 5000), later=st.floats(0, 50))
def test_offered_never_decreases(pattern: Pattern, t: float, later: float) -> None:
    assert pattern.rate(t) >= 0
    # A smooth cosine rounds sin and product separately; pieces do not fall by a single bit.
    slack = 1e-9 if isinstance(pattern, Cosine) else 0.0
    assert pattern.offered(t + later) >= pattern.offered(t) - slack
    assert pattern.offered(0.0) == 0.0


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
def test_per_second_adds_up_and_agrees_with_offered(pattern: Any) -> None:
    counts = per_second(pattern, 900)
    assert counts.min() >= 0
    assert counts.sum() == pytest.approx(pattern.offered(900.0), rel=1e-12)
    one_by_one = [pattern.offered(float(t)) for t in range(901)]
    assert pattern.offered_many(np.arange(901.0)) == pytest.approx(one_by_one, rel=1e-12)


def test_per_second_takes_a_pattern_that_only_has_the_two_methods() -> None:
    class Ramp:
        def rate(self, t: float) -> float:
            return 2 * t

        def offered(self, t: float) -> float:
            return t * t

    assert per_second(Ramp(), 3).tolist() == [1.0, 3.0, 5.0]


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
def test_description_makes_the_same_pattern_also_through_json_and_as_text(pattern: Any) -> None:
    words = describe(pattern)
    name = words.pop("name")
    assert create(name, words) == pattern
    assert create(name, json.loads(json.dumps(words)), seed=99) == pattern
    texts = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in words.items()}
    assert create(name, texts) == pattern


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
def test_patterns_are_values(pattern: Any) -> None:
    twin = pickle.loads(pickle.dumps(pattern))
    assert twin == pattern and hash(twin) == hash(pattern)
    assert np.array_equal(per_second(twin, 100), per_second(pattern, 100))


@pytest.mark.parametrize("pattern", EXAMPLES, ids=repr)
def test_a_longer_look_does_not_change_what_was_seen(pattern: Pattern) -> None:
    short = per_second(pattern, 300)
    assert np.array_equal(per_second(pattern, 50_000)[:300], short)


def test_every_pattern_has_an_example() -> None:
    assert {type(p) for p in EXAMPLES} == set(PATTERNS.values())


class TestSeeds:
    @pytest.mark.parametrize("name", [n for n, k in PATTERNS.items() if k in SEEDED])
    def test_the_same_seed_is_the_same_load_and_another_is_not(self, name: str) -> None:
        noisy = {"noise": 1e5} if name == "cosine" else {}
        loads = [per_second(create(name, noisy, seed=s), 8400) for s in (0, 0, 1, 2)]
        assert np.array_equal(loads[0], loads[1])
        assert not np.array_equal(loads[0], loads[2])
        assert not np.array_equal(loads[2], loads[3])

    def test_a_seed_among_the_parameters_goes_first_and_others_have_none(self) -> None:
        assert create("random", {"seed": "4"}, seed=9) == Random(seed=4)
        assert create("random", seed=9) == Random(seed=9)
        assert create("constant", seed=9) == Constant()

    def test_patterns_with_the_same_seed_do_not_draw_the_same_numbers(self) -> None:
        rising = np.diff([Increasing(seed=1).rate(60.0 * k) for k in range(140)])
        falling = np.diff([Decreasing(seed=1).rate(60.0 * k) for k in range(140)])
        assert abs(np.corrcoef(rising, falling)[0, 1]) < 0.35  # 4 standard errors


class TestThesis:
    """The loads of Section 5.4.3, Figures 5.7 to 5.11 and Table 7.17."""

    def test_cosine(self) -> None:
        load = create("cosine", {"from_high": True, "noise": 100_000})
        rates = sample(load, 8400.0, 60.0).rates
        smooth = 1.2e6 + 1e6 * np.cos(2 * np.pi * np.arange(140) / 60)
        assert np.abs(rates - smooth).max() <= 100_000 * (1 + 1e-9)
        assert rates[0] == pytest.approx(2.2e6, abs=1e5)
        assert rates[30] == pytest.approx(2e5, abs=1e5)

    def test_cosine_noise_is_uniform(self) -> None:
        kinds = {"from_high": True, "noise": 100_000.0}
        smooth = 1.2e6 + 1e6 * np.cos(2 * np.pi * np.arange(140) / 60)
        noise = np.concatenate(
            [
                sample(create("cosine", kinds, seed=s), 8400.0, 60.0).rates - smooth
                for s in range(50)
            ]
        )
        shares = np.histogram(noise, bins=5, range=(-1e5, 1e5))[0] / len(noise)
        assert shares == pytest.approx([0.2] * 5, abs=0.02)  # 4 standard errors of 7,000 draws

    def test_random(self) -> None:
        rates = np.array([create("random").rate(60.0 * k) for k in range(140)])
        assert rates[0] == 1.25e6
        assert rates.max() <= 2.5e6
        assert 400e3 < np.abs(np.diff(rates)).max() <= 500e3

    @pytest.mark.parametrize(
        ("kind", "low", "high", "first"),
        [
            (Increasing, -2.5e6 / 30, 2.5e6 / 22, 0.0),
            (Decreasing, -2.5e6 / 21, 2.5e6 / 28, 2.5e6),
            (Random, -500e3, 500e3, 1.25e6),
        ],
    )
    def test_steps_of_the_walks(
        self, kind: Callable[..., Any], low: float, high: float, first: float
    ) -> None:
        walks = np.array(
            [sample(kind(seed=s), 8400.0, 60.0).rates for s in range(200)]
        )  # 200 seeds × 140 minutes
        assert (walks[:, 0] == first).all()
        steps = np.diff(walks, axis=1)
        assert steps.min() >= low * (1 + 1e-9) and steps.max() <= high * (1 + 1e-9)
        # Where no step can reach a bound, none was clamped.
        inside = (walks[:, :-1] + low > 0) & (walks[:, :-1] + high < 2.5e6)
        free = steps[inside]
        spread = (high - low) / math.sqrt(12)
        assert free.mean() == pytest.approx((low + high) / 2, abs=4 * spread / math.sqrt(len(free)))
        assert free.std() == pytest.approx(spread, rel=0.03)

    def test_increasing_and_decreasing_arrive(self) -> None:
        ends = [Increasing(seed=s).rate(8399.0) for s in range(300)]
        assert 1.9e6 < np.mean(ends) < 2.2e6
        ends = [Decreasing(seed=s).rate(8399.0) for s in range(300)]
        assert 0.4e6 < np.mean(ends) < 0.6e6

    def test_convergence(self) -> None:
        load = Convergence()
        assert list(load.stages) == [(600, 3000, 2e6), (3000, 5400, 1e6)]
        moments = (0.0, 599.9, 600.0, 2999.9, 3000.0, 5399.9, 9e9)
        assert [load.rate(t) for t in moments] == [0, 0, 2e6, 2e6, 1e6, 1e6, 1e6]
        assert load.offered(5400.0) == 2400 * 3e6
        assert duration(load) == 90 * 60

    def test_convergence_with_stages_of_three_hours(self) -> None:
        load = create("convergence", {"stage": "10800"})
        assert load.stages == ((600, 11400, 2e6), (11400, 22200, 1e6))  # type: ignore[attr-defined]

    def test_a_minute_may_be_shorter(self) -> None:
        slow, fast = Random(seed=7), Random(seed=7, minute=3.0)
        assert [fast.rate(3.0 * k + 1) for k in range(140)] == [
            slow.rate(60.0 * k + 20) for k in range(140)
        ]
        assert duration(fast) == 420 and duration(slow) == 8400


class TestBounds:
    @given(seed=SEEDS, change=st.floats(0, 1e7), maximum=st.floats(1, 1e7), start=st.floats(0, 1))
    def test_random(self, seed: int, change: float, maximum: float, start: float) -> None:
        load = Random(start=start * maximum, change=change, maximum=maximum, seed=seed)
        rates = np.array([load.rate(60.0 * k) for k in range(300)])
        assert rates.min() >= 0 and rates.max() <= maximum
        assert np.abs(np.diff(rates)).max() <= change * (1 + 1e-9) + 1e-6

    @pytest.mark.parametrize("kind", [Increasing, Decreasing])
    @given(seed=SEEDS, down=st.floats(1, 50), up=st.floats(1, 50))
    def test_drifts(self, kind: Callable[..., Any], seed: int, down: float, up: float) -> None:
        load = kind(maximum=100.0, down=down, up=up, seed=seed)
        rates = [load.rate(60.0 * k) for k in range(300)]
        assert min(rates) >= 0 and max(rates) <= 100

    @given(seed=SEEDS, noise=st.floats(0, 1e6), low=st.floats(0, 1e3))
    def test_noise_never_makes_a_rate_negative(self, seed: int, noise: float, low: float) -> None:
        load = Cosine(low=low, high=low + 10, noise=noise, steps=True, seed=seed)
        assert min(load.rate(60.0 * k) for k in range(100)) >= 0


class TestCosine:
    @given(rounds=st.integers(0, 50), period=st.floats(1, 1e5), from_high=st.booleans())
    def test_whole_periods_have_the_mean_rate(
        self, rounds: int, period: float, from_high: bool
    ) -> None:
        load = Cosine(low=20, high=80, period=period, from_high=from_high)
        assert load.offered(rounds * period) == pytest.approx(50 * rounds * period, rel=1e-9)

    @given(t=st.floats(0, 1e5))
    def test_from_high_is_the_mirror_image(self, t: float) -> None:
        up, down = Cosine(low=2, high=8), Cosine(low=2, high=8, from_high=True)
        assert up.rate(t) + down.rate(t) == pytest.approx(10)
        assert up.offered(t) + down.offered(t) == pytest.approx(10 * t)
        assert down.rate(0.0) == 8 and up.rate(0.0) == 2

    def test_steps_hold_the_rate_of_the_minute_s_start(self) -> None:
        smooth, steps = Cosine(), Cosine(steps=True)
        assert [steps.rate(60.0 * k + 59.0) for k in range(60)] == pytest.approx(
            [smooth.rate(60.0 * k) for k in range(60)]
        )


class TestSpikes:
    def test_the_share_of_time_in_a_spike(self) -> None:
        rates = np.concatenate(
            [per_second(Spikes(spacing=300, length=100, seed=s), 40_000)[1000:] for s in range(40)]
        )
        assert (rates > 1.6e6).mean() == pytest.approx(1 - math.exp(-1 / 3), abs=0.012)

    def test_their_number_is_that_of_a_poisson_process(self) -> None:
        """Short spikes hardly overlap: count the times at which one begins."""
        counts = [
            int((np.diff(per_second(Spikes(spacing=500, length=2, seed=s), 8400)) > 6e5).sum())
            for s in range(200)
        ]
        expected = 8400 / 500
        assert np.mean(counts) == pytest.approx(expected, abs=4 * math.sqrt(expected / 200))
        assert np.var(counts) == pytest.approx(expected, rel=0.4)

    @settings(max_examples=20)
    @given(seed=SEEDS)
    def test_there_are_two_rates_and_overlaps_do_not_add_up(self, seed: int) -> None:
        load = Spikes(base=10, height=3, spacing=20, length=30, seed=seed)
        assert {load.rate(t / 2) for t in range(2000)} == {10.0, 30.0}


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("cosin", {}, "did you mean 'cosine'"),
        ("cosine", {"lo": 3}, "unknown parameter of workload cosine 'lo'"),
        ("cosine", {"low": 9, "high": 3}, "low = 9.0 is above high = 3.0"),
        ("cosine", {"period": 0}, "period = 0"),
        ("cosine", {"from_high": "yes"}, "from_high = 'yes' must be true or false"),
        ("cosine", {"noise": -5}, "noise = -5.0 must be a finite number ≥ 0"),
        ("constant", {"rps": -1}, "rps = -1.0 must be a finite number ≥ 0"),
        ("constant", {"rps": "nan"}, "rps = nan"),
        ("constant", {"rps": True}, "rps = True is not a number"),
        ("constant", {"rps": None}, "rps = None is not a number"),
        ("step", {"at": "noon"}, "'noon' is not a number"),
        ("random", {"seed": "1.5"}, "seed = '1.5' is not a whole number"),
        ("random", {"seed": 1.5}, "seed = 1.5 is not a whole number"),
        ("random", {"seed": -1}, "seed = -1 must be a whole number ≥ 0"),
        ("random", {"start": 3, "maximum": 2}, "start = 3.0 is above maximum = 2.0"),
        ("random", {"minute": 0}, "minute = 0.0 must be at least 0.1 seconds"),
        ("increasing", {"up": 0}, "up = 0.0 must be ≥ 1: a step is maximum/up"),
        ("decreasing", {"down": 0.5}, "down = 0.5 must be ≥ 1"),
        ("convergence", {"stage": 0}, "stage = 0 must be above 0"),
        ("spikes", {"spacing": 0}, "spacing = 0.0 must be at least .* 1 seconds"),
        ("trace", {"file": 3}, "file = 3 is not a text"),
        ("trace", {"stamp": 3}, "unknown parameter of workload trace 'stamp'"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(
    name: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        create(name, parameters)


def test_a_wrong_seed_is_refused() -> None:
    with pytest.raises(InputError, match="seed = -1"):
        create("random", seed=-1)


class TestFigures:
    def test_of_a_step(self) -> None:
        figures = sample(Step(low=10, high=40, at=60), 120.0).figures
        assert dataclasses.asdict(figures) == {
            "seconds": 120.0,
            "total": 3000.0,
            "mean": 25.0,
            "lowest": 10.0,
            "highest": 40.0,
            "peak_to_mean": 1.6,
        }

    def test_of_nothing_there_is_no_peak(self) -> None:
        assert sample(Constant(rps=0), 60.0).figures.peak_to_mean is None

    def test_the_last_cell_may_be_shorter(self) -> None:
        assert sample(Constant(rps=4), 150.0, 60.0).rates.tolist() == [4, 4, 4]

    @pytest.mark.parametrize("seconds", [0.0, 1e12, math.nan])
    def test_lengths_that_cannot_be_drawn(self, seconds: float) -> None:
        with pytest.raises(InputError, match="cannot be drawn"):
            sample(Constant(), seconds)

    def test_too_many_cells(self) -> None:
        with pytest.raises(InputError, match="take a shorter part"):
            sample(Constant(), 1e9, 1.0)
