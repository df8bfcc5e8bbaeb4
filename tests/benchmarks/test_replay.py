"""What a week of replay costs: a part of it is played, and the budget is for time and memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import replay
from benchmarks.replay import BUDGET, CASES, MOST_MEMORY, Replay, main, play


def test_a_part_of_a_week_is_scaled_up() -> None:
    """Batches every 10 s: 60,480 a week."""
    found = play(CASES[2], "ds2", 60.0, days=0.02)
    assert found.batches == pytest.approx(60_480, rel=0.05)
    assert found.seconds > 0
    assert found.memory > 0


def test_time_or_memory_above_the_budget_is_told_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = Replay(case="q", policy="ds2", period=60.0, batches=9, seconds=BUDGET, memory=99.0)
    assert good.within_budget
    slow, large = replace(good, seconds=BUDGET + 1), replace(good, memory=MOST_MEMORY + 1)
    for measured, code in (([good], 0), ([good, slow], 1), ([large], 1)):
        monkeypatch.setattr(replay, "measure", lambda days, runs, m=measured: m)
        assert main(["--days", "1"]) == code
        assert ("missed" in capsys.readouterr().out) == bool(code)
