"""The benchmark of runs on Spark: its arithmetic, its exit code, what it refuses."""

from __future__ import annotations

import pytest

from benchmarks import spread as spread_speed
from benchmarks.spread import DAY, SHORT, Spread, Took, measure
from penstock.core.errors import InputError, MissingError

ALONE = Took(wall=32.0, start=0.0)


def spread(wall: float) -> Spread:
    took = Took(wall=wall, start=4.0)
    plain = Took(wall=20.0, start=0.0)
    return Spread(
        alone=[ALONE] * 3,
        spread=[took] * 3,
        plain=[plain] * 3,
    )


def test_the_start_of_spark_stands_beside_the_speed_up() -> None:
    result = spread(20.0)
    assert result.speed_up.mean == pytest.approx(32 / 16)
    assert result.whole.mean == pytest.approx(32 / 20)
    assert result.by_processes.mean == pytest.approx(32 / 20)


@pytest.mark.parametrize(("wall", "code"), [(23.9, 0), (24.1, 1)])
def test_runs_of_a_day_that_miss_the_budget_are_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, wall: float, code: int
) -> None:
    found = {SHORT: spread(32.0), DAY: spread(wall)}
    monkeypatch.setattr(spread_speed, "measure", lambda minutes, say: found[minutes])
    assert spread_speed.main() == code


def test_what_cannot_be_measured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="runs 3 must be ≥ 4"):
        measure(SHORT, runs=3)
    monkeypatch.setattr(spread_speed, "cores", lambda: 1)
    with pytest.raises(MissingError, match="1 core here"):
        measure(SHORT)
