"""What the benchmark of the Nexmark source makes of its rounds."""

from __future__ import annotations

import pytest

from penstock.lab.proofs.source import Rate, speeds


def test_a_speed_is_judged_by_its_mean_and_the_gain_pair_by_pair() -> None:
    def round_of(every: float, query: float, rows: float) -> dict[str, Rate]:
        figures = {"every": every, "query": query, "rows": rows}
        return {name: Rate(wall=value, cpu=2 * value) for name, value in figures.items()}

    found = speeds([round_of(4e5, 2e6, 1e6), round_of(6e5, 3e6, 5e5), round_of(4e5, 1e6, 5e5)])
    assert [f.measured.mean for f in found] == pytest.approx([4.667e5, 2e6, 10 / 3], rel=1e-3)
    assert [f.by_cpu.mean for f in found] == pytest.approx([9.333e5, 4e6, 10 / 3], rel=1e-3)
    assert [f.measured.mean >= f.budget for f in found] == [False, True, True]
