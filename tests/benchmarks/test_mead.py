"""The speed of MEAD: what is measured, its arithmetic, its exit code."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import mead
from benchmarks.costs import Cost
from penstock.core.model import Arrivals, Proposal, Snapshot
from penstock.policies.mead.demands import Demands
from penstock.policies.mead.mead import Mead
from penstock.queueing import map_ph_1

BC = mead.windows("bc", most=2)


def test_windows_are_spread_over_a_trace() -> None:
    assert [len(times) for times in BC] == [50_001, 50_001]
    assert all(times[0] == 0.0 and (np.diff(times) >= 0).all() for times in BC)
    assert not np.array_equal(BC[0], BC[1])
    assert len(mead.windows("taxi", most=20)) == 2  # there are no more


def test_every_decision_is_under_arrivals_that_were_never_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Arrivals] = []
    decide = Mead.decide

    def watched(self: Mead, seen: Snapshot, memory: Demands) -> tuple[Proposal, Demands]:
        arrivals = seen.operators["source"].arrivals
        assert arrivals is not None
        asked.append(arrivals)
        return decide(self, seen, memory)

    monkeypatch.setattr(Mead, "decide", watched)
    times = BC[0][:5_001]
    costs = mead.measure_decisions({"bc": [times]}, runs=1)
    assert [cost.what for cost in costs] == ["decision by the mean", "decision by the p95"]
    assert all(0.0 < cost.quiet <= cost.worst for cost in costs)
    assert len(set(asked)) == len(asked) == 4  # each once to warm up
    for arrivals in asked:
        assert arrivals.intervals == pytest.approx(np.diff(times)[-len(arrivals) :], rel=1e-7)


def test_a_queue_is_solved_every_time() -> None:
    before = map_ph_1.solve.cache_info()
    costs = mead.measure_queues([mead.of_order(1)], runs=2)
    assert [cost.pieces for cost in costs] == [len(mead.LOADS)] * 2
    assert map_ph_1.solve.cache_info() == before


def test_what_is_seen_is_the_whole_window() -> None:
    seen = mead.seen_under(BC[0])
    window = seen.operators["source"].arrivals
    assert window is not None and len(window) >= 49_999
    assert {"parser", "counter", "matcher"} < set(seen.operators)


def test_the_orders_are_those_of_the_table() -> None:
    found = mead.measure_orders(runs=1)
    assert [order for order, _, _ in found] == [2, 4, 8, 16]
    assert [row[0] for row in mead.orders_table(found).rows] == ["2", "4", "8", "16"]


@pytest.mark.parametrize(("quiet", "code"), [(99.0, 0), (101.0, 1)])
def test_a_missed_budget_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quiet: float,
    code: int,
) -> None:
    cost = Cost(what="fit, BC", pieces=1, quiet=quiet, mean=200.0, worst=300.0, budget=100.0)
    monkeypatch.setattr(mead, "windows", lambda trace, most: BC[:1])
    monkeypatch.setattr(mead, "measure_fits", lambda pieces: [cost])
    for name in ("measure_queues", "measure_decisions"):
        monkeypatch.setattr(mead, name, lambda pieces: [])
    monkeypatch.setattr(mead, "measure_orders", list)
    assert mead.main() == code
    assert ("missed: fit, BC" in capsys.readouterr().out) == bool(code)
