"""The speed benchmark: what it runs, its arithmetic, its exit code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import speed
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.policies import DS2


def test_linear_cost_reads_as_one() -> None:
    scaling = speed.Scaling(what="x", sizes=(3, 12, 48), ms=(2.0, 8.0, 64.0))
    assert scaling.relative == (1.0, 1.0, 2.0)


def test_the_measured_run_does_what_it_says() -> None:
    result = speed.measure_speed(runs=2, minutes=10, budget=1e6)
    assert result.runs == 2 and result.within_budget
    assert 0 < result.quiet <= result.mean
    engine = speed.simulate(speed.chain(4), 10, 0)
    assert engine.series.delivered.size == 600
    assert engine.totals().imbalance < 1e-9


def test_one_decision_sizes_every_operator_of_a_large_graph() -> None:
    spec = speed.graph(60)
    seen = speed.snapshot(spec)
    assert [len(seen.pipeline.upstream[f"o{i}"]) for i in (0, 9, 10, 59)] == [0, 0, 2, 2]
    decision, _ = plan(DS2(over_provisioning=1.0), Guards(maximum=10**6), seen, State())
    assert len(decision.proposal.needs) == len(decision.targets) == 60
    demand = sum(seen.operators[s].offered_rate or 0.0 for s in seen.pipeline.sources) / 10
    for change in decision.targets.values():  # every layer passes on what it gets
        assert change.raw == pytest.approx(demand / 100e3, rel=0.25)
    with pytest.raises(InputError, match="at least 10"):
        speed.graph(9)


@pytest.mark.parametrize(
    ("quiet", "ms", "code"),
    [(29.0, (1.0, 4.0, 16.0), 0), (31.0, (1.0, 4.0, 16.0), 1), (29.0, (1.0, 4.0, 40.0), 1)],
)
def test_a_missed_budget_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, quiet: float, ms: tuple[float, ...], code: int
) -> None:
    measured = replace(speed.measure_decision(runs=2, operators=20), quiet=quiet, budget=30.0)
    scaling = speed.Scaling(what="seeds", sizes=(1, 4, 16), ms=ms)
    monkeypatch.setattr(speed, "measure_speed", lambda: measured)
    monkeypatch.setattr(speed, "measure_decision", lambda: replace(measured, quiet=1.0))
    monkeypatch.setattr(speed, "measure_scaling", lambda: (scaling,))
    assert speed.main() == code
