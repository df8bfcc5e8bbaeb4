"""The speed of geo-distributed scaling: what is measured, how it is judged, its exit code."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from benchmarks import costs, geo
from benchmarks.costs import Cost, measure
from penstock.capacity.exchange import Exchange
from penstock.capacity.learning import learn
from penstock.capacity.measurements import Measurement
from penstock.capacity.mst import Mst, calibrate
from penstock.capacity.readings import Reading
from penstock.core.model import Proposal, Snapshot
from penstock.policies.gesscale.gesscale import Gesscale, Memory
from penstock.policies.gesscale.gesscale_plus import GesscalePlus
from penstock.policies.gesscale.gesscale_plus import Memory as PlusMemory


def test_a_budget_is_judged_by_the_quiet_runs_of_the_slowest_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight runs of two pieces: 1 to 8 ms, and 11 to 18 ms after a warm-up."""
    lasting = itertools.chain([9.0], range(1, 9), [9.0], range(11, 19))
    monkeypatch.setattr(costs, "_milliseconds", lambda piece: float(next(lasting)))
    cost = measure("x", [lambda: list, lambda: list], runs=8, budget=11.5)
    assert (cost.pieces, cost.quiet, cost.mean, cost.worst) == (2, 11.5, 9.5, 18.0)
    assert cost.within_budget


def test_every_fit_is_of_measurements_that_were_never_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[tuple[Measurement, ...]] = []

    def watched(measured: Sequence[Measurement]) -> Mst:
        fitted.append(tuple(measured))
        return calibrate(measured)

    monkeypatch.setattr(geo, "calibrate", watched)
    found = geo.measure_fits((1, 3), runs=3)
    assert [cost.what for cost in found] == ["fit of 1", "fit of 3"]
    assert len(fitted) == len(set(fitted)) == 8  # each once to warm up
    assert [len(f) for f in fitted] == [1] * 4 + [3] * 4


def test_placements_and_decisions_are_what_they_are_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(geo, "FEW", 5)
    monkeypatch.setattr(geo, "MANY", 20)
    maps = geo.networks(40)
    assert {len(rtt) for rtt in maps.values()} == {40}
    said: list[Proposal] = []
    decide = Gesscale.decide

    def watched(self: Gesscale, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        proposal, after = decide(self, seen, memory)
        said.append(proposal)
        return proposal, after

    monkeypatch.setattr(Gesscale, "decide", watched)
    found = geo.measure_placements(maps, runs=1) + geo.measure_decisions(maps, runs=1)
    assert [cost.pieces for cost in found] == [4] * 9
    assert all(0.0 < cost.quiet <= cost.worst for cost in found)
    assert [row[0] for row in geo.table(found).rows][-1] == "gesscale+ removes many"
    up, down = said[:8], said[8:]
    assert all(p.needs["map"].slots == 6 and len(p.place["map"].add_on) == 1 for p in up)
    assert all(p.needs["map"].slots < 18 for p in down)


def test_gesscale_plus_learns_what_was_never_seen_and_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learnt: list[tuple[Reading, ...]] = []

    def watched(readings: Sequence[Reading]) -> Exchange:
        learnt.append(tuple(readings))
        return learn(readings)

    monkeypatch.setattr(geo, "learn", watched)
    found = geo.measure_learning((1, 3), runs=3)
    assert [cost.what for cost in found] == ["learning from 1", "learning from 3"]
    assert len(learnt) == len(set(learnt)) == 8
    monkeypatch.setattr(geo, "FEW", 5)
    monkeypatch.setattr(geo, "MANY", 20)
    said: list[Proposal] = []
    decide = GesscalePlus.decide

    def heard(
        self: GesscalePlus, seen: Snapshot, memory: PlusMemory
    ) -> tuple[Proposal, PlusMemory]:
        proposal, after = decide(self, seen, memory)
        said.append(proposal)
        return proposal, after

    monkeypatch.setattr(GesscalePlus, "decide", heard)
    geo.measure_decisions(geo.networks(40), runs=1)
    up, down = said[:8], said[8:]
    assert all(p.needs["map"].slots > 5 for p in up)
    assert all(p.needs["map"].slots < 20 for p in down)


@pytest.mark.parametrize(("quiet", "code"), [(4.9, 0), (5.1, 1)])
def test_a_missed_budget_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quiet: float,
    code: int,
) -> None:
    cost = Cost(what="fit of 3", pieces=1, quiet=quiet, mean=9.0, worst=9.0, budget=5.0)
    monkeypatch.setattr(geo, "measure_fits", lambda: [cost])
    monkeypatch.setattr(geo, "measure_learning", list)
    monkeypatch.setattr(geo, "networks", dict)
    for name in ("measure_placements", "measure_decisions"):
        monkeypatch.setattr(geo, name, lambda maps: [])
    assert geo.main() == code
    assert ("missed: fit of 3" in capsys.readouterr().out) == bool(code)
