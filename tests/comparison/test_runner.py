"""The runner: the same results whatever the order, interrupted or not, on one core or two."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import policies
from penstock.comparison import runner
from penstock.comparison.cell import THESIS_GUARDS, Cell
from penstock.comparison.results import SCORES, Results
from penstock.comparison.runner import Add, Task, run, run_one
from penstock.core.errors import EngineError, InputError
from penstock.core.guards import Guards
from penstock.core.model import Proposal, Snapshot
from penstock.history import journal

SEEDS = (3, 5)


def cells(minutes: float = 20.0) -> list[Cell]:
    return [
        Cell(key=f"q1-{policy}", query="q1", workload="random", policy=policy, minutes=minutes)
        for policy in ("ds2", "hpa-cpu")
    ]


def all_scores(results: Results) -> dict[tuple[str, int], Mapping[str, float | None]]:
    return {(c.key, s): results.scores(c.key, s) for c in results.cells for s in results.seeds}


class StopAfter:
    """A progress report that is interrupted, as by Ctrl-C, once so many runs are done."""

    def __init__(self, runs: int) -> None:
        self.runs = runs

    def __call__(self, done: int, total: int) -> None:
        if done == self.runs:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two cells, two seeds, one process, undisturbed."""
    return run(cells(), SEEDS, tmp_path_factory.mktemp("bench"), workers=1, journals=True)


def test_a_bench_runs_every_cell_with_every_seed(whole: Results) -> None:
    assert whole.complete and whole.done == 4
    assert [c.key for c in whole.cells] == ["q1-ds2", "q1-hpa-cpu"]
    assert whole.seeds_of("q1-ds2") == SEEDS
    latency = whole.values("q1-ds2", "latency_mean")
    assert latency.shape == (2,) and latency[0] != latency[1]
    assert whole.estimate("q1-ds2", "latency_mean").mean == pytest.approx(latency.mean())
    # Different policies under the same seed saw the same load, so the oracle is the same.
    np.testing.assert_array_equal(
        whole.values("q1-ds2", "oracle_slot_seconds"),
        whole.values("q1-hpa-cpu", "oracle_slot_seconds"),
    )


def test_results_are_those_of_single_runs(whole: Results) -> None:
    for cell in cells():
        for seed in SEEDS:
            assert whole.scores(cell.key, seed) == cell.run(seed).scores


def test_a_folder_reads_back_as_it_was(whole: Results) -> None:
    assert whole.folder is not None
    again = Results.load(whole.folder)
    assert again.cells == whole.cells and again.seeds == whole.seeds
    assert all_scores(again) == all_scores(whole)


def test_the_first_seed_leaves_journal_and_trace(whole: Results) -> None:
    assert whole.folder is not None
    header, entries = journal.read(whole.folder / "journals" / "q1-ds2.jsonl")
    assert header.policy == "ds2" and header.seed == SEEDS[0] and len(entries) == 80
    trace = whole.trace("q1-ds2")
    assert len(trace.time) == 80 and trace.time[-1] == 1200.0
    scores = whole.scores("q1-ds2", SEEDS[0])
    assert trace.slots.mean() == pytest.approx(scores["slots_mean"])
    assert trace.oracle.mean() == pytest.approx(scores["oracle_slots_mean"])
    assert len(trace.actions) == scores["actions"]
    applied = [e.decision.seen.time for e in entries if e.decision.applied]
    assert trace.actions.tolist() == applied
    assert set(trace.pools) == {"source", "map", "sink"}


def test_worker_processes_give_the_same_and_end_when_interrupted(
    whole: Results, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(cells(), SEEDS, tmp_path, workers=2, progress=StopAfter(3))
    assert multiprocessing.active_children() == []
    assert 3 <= Results.load(tmp_path).done <= 4
    again = run(cells(), SEEDS, tmp_path, workers=1)
    assert again.complete and all_scores(again) == all_scores(whole)


def test_an_interrupted_bench_goes_on_where_it_stopped(whole: Results, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(cells(), SEEDS, tmp_path, workers=1, progress=StopAfter(3))
    partial = Results.load(tmp_path)
    assert partial.done == 3 and not partial.complete
    assert partial.paired("q1-ds2", "q1-hpa-cpu", "slots_mean").count == 1
    reported: list[tuple[int, int]] = []
    again = run(cells(), SEEDS, tmp_path, workers=1, progress=lambda *d: reported.append(d))
    assert reported == [(3, 4), (4, 4)]
    assert all_scores(again) == all_scores(whole)


def test_a_torn_last_line_is_run_again(whole: Results, tmp_path: Path) -> None:
    run(cells(), SEEDS, tmp_path, workers=1)
    path = tmp_path / SCORES
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:40])
    assert Results.load(tmp_path).done == 3
    again = run(cells(), SEEDS, tmp_path, workers=1)
    assert all_scores(again) == all_scores(whole)
    assert [json.loads(line)["cell"] for line in path.read_text().splitlines()].count("q1-ds2") == 2


def test_a_broken_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    run(cells(5.0)[:1], (0, 1), tmp_path, workers=1)
    path = tmp_path / SCORES
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0][:40] + "\n" + lines[1])
    with pytest.raises(InputError, match=r"scores\.jsonl, line 1"):
        Results.load(tmp_path)


@pytest.mark.parametrize(
    ("changed", "seeds", "words"),
    [
        pytest.param(cells(10.0), SEEDS, "other cells", id="other cells"),
        pytest.param(cells(), (3, 5, 7), "other seeds", id="other seeds"),
    ],
)
def test_a_different_bench_is_not_mixed_in(
    whole: Results, changed: Sequence[Cell], seeds: Sequence[int], words: str
) -> None:
    assert whole.folder is not None
    before = (whole.folder / SCORES).read_bytes()
    with pytest.raises(InputError, match=words):
        run(changed, seeds, whole.folder, workers=1)
    assert (whole.folder / SCORES).read_bytes() == before


def test_another_version_is_not_mixed_in(whole: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    assert whole.folder is not None
    monkeypatch.setattr(runner, "__version__", "99.0")
    run(cells(), SEEDS, whole.folder, workers=1)  # figures are still those of 0.1
    monkeypatch.setattr(runner, "SAME_FIGURES", ())
    with pytest.raises(InputError, match=r"this is 99\.0"):
        run(cells(), SEEDS, whole.folder, workers=1)


@dataclass(frozen=True, kw_only=True)
class Faulty:
    """Raises at its third decision, as a policy with a mistake would."""

    def start(self, seed: int) -> int:
        return 0

    def decide(self, seen: Snapshot, memory: int) -> tuple[Proposal, int]:
        if memory == 2:
            raise ZeroDivisionError("no slots")
        return Proposal(reason="wait"), memory + 1


@dataclass(frozen=True, kw_only=True)
class Forecaster:
    """Keeps a figure of itself."""

    def start(self, seed: int) -> int:
        return 0

    def decide(self, seen: Snapshot, memory: int) -> tuple[Proposal, int]:
        return Proposal(reason="wait"), memory + 1

    def figures(self, memory: int) -> Mapping[str, float]:
        return {"forecast_error": memory / 100}


@pytest.fixture
def with_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {
        "faulty": policies.Registered("faulty", __name__, "Faulty"),
        "forecaster": policies.Registered("forecaster", __name__, "Forecaster"),
    }
    monkeypatch.setattr(policies, "POLICIES", {**policies.POLICIES, **extra})


@pytest.mark.usefixtures("with_policies")
def test_a_policy_that_raises_stops_the_bench(tmp_path: Path) -> None:
    cell = Cell(key="x", query="q1", workload="constant", policy="faulty", minutes=5)
    with pytest.raises(EngineError, match="x, seed 4: the policy raised ZeroDivisionError"):
        run([cell], [4], tmp_path, workers=1, journals=True)
    assert Results.load(tmp_path).done == 0
    assert not (tmp_path / "journals" / "x.jsonl").exists()


@pytest.mark.usefixtures("with_policies")
def test_figures_of_a_policy_become_scores() -> None:
    cell = Cell(
        key="x", query="q1", workload="constant", policy="forecaster", minutes=5, guards=Guards()
    )
    assert cell.run(0).scores["forecast_error"] == pytest.approx(0.20)
    assert cells(5.0)[0].run(0).scores["forecast_error"] is None


def test_another_way_to_run_may_answer_in_any_order_and_twice(
    whole: Results, tmp_path: Path
) -> None:
    def backwards_and_twice(tasks: Sequence[Task], add: Add) -> None:
        for task in [*reversed(tasks), *tasks]:
            add([(cell.key, task.seed, run_one(task, cell)) for cell in task.cells])

    reported: list[tuple[int, int]] = []
    again = run(
        cells(), SEEDS, tmp_path, way=backwards_and_twice, progress=lambda *d: reported.append(d)
    )
    assert all_scores(again) == all_scores(whole)
    assert len((tmp_path / SCORES).read_text().splitlines()) == 4
    assert reported[0] == (0, 4) and reported[-1] == (4, 4)


def test_another_way_to_run_gets_only_what_is_left(whole: Results, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(cells(), SEEDS, tmp_path, workers=1, progress=StopAfter(3))
    left: list[tuple[str, int, bool]] = []

    def in_turn(tasks: Sequence[Task], add: Add) -> None:
        for task in tasks:
            left.extend((cell.key, task.seed, task.traces) for cell in task.cells)
            add([(cell.key, task.seed, run_one(task, cell)) for cell in task.cells])

    assert all_scores(run(cells(), SEEDS, tmp_path, way=in_turn)) == all_scores(whole)
    assert left == [("q1-hpa-cpu", SEEDS[1], False)]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"minutes": 0.0}, "minutes = 0.0 must be above 0"),
        ({"period": 0.5}, "period = 0.5 s must be at least 1"),
        ({"period": 4000.0}, "at most the 1200 s"),
        ({"start": 0}, "start = 0 must be ≥ 1"),
        ({"profile": "reboot"}, "unknown profile 'reboot'"),
        ({"slo": -1.0}, "slo = -1.0"),
        ({"key": "../x"}, "safe as a file name"),
    ],
)
def test_a_cell_that_cannot_be_is_refused(changed: dict[str, Any], words: str) -> None:
    fields: dict[str, Any] = {
        "key": "a", "query": "q1", "workload": "cosine", "policy": "ds2", "minutes": 20.0
    }  # fmt: skip
    with pytest.raises(InputError, match=words):
        Cell(**{**fields, **changed})


@pytest.mark.parametrize(
    ("seeds", "twice", "workers", "words"),
    [
        ((), False, 1, "no seeds"),
        ((1, 1), False, 1, "must be different"),
        ((-1,), False, 1, "≥ 0"),
        ((1,), True, 1, "same key 'q1-ds2'"),
        ((1,), False, 0, "workers 0 must be ≥ 1"),
    ],
)
def test_a_bench_that_cannot_be_writes_nothing(
    seeds: tuple[int, ...], twice: bool, workers: int, words: str, tmp_path: Path
) -> None:
    given = cells()[:1] * (2 if twice else 1)
    with pytest.raises(InputError, match=words):
        run(given, seeds, tmp_path / "new", workers=workers)
    assert not (tmp_path / "new").exists()


def test_a_cell_survives_json() -> None:
    cell = Cell(
        key="q3-spikes-ds2-1.4",
        query="q3",
        workload="spikes",
        policy="ds2",
        workload_parameters={"height": 3.0},
        policy_parameters={"over_provisioning": 1.4},
        guards=THESIS_GUARDS,
        profile="live",
        start=2,
        spec={"hot_shares": {"join": 0.1}, "capacity_noise": 0.0},
    )
    assert Cell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell
    assert hash(cell) == hash(Cell.from_dict(cell.to_dict()))
    spec = cell.fluid_spec()
    assert spec.hot_shares["join"] == 0.1 and spec.capacity_noise == 0.0
    assert set(spec.start.values()) == {2} and spec.profile.name == "live"


@pytest.mark.parametrize("query", ["q1", "q3"])
def test_loads_fit_the_query_unless_given(query: str) -> None:
    def peak(workload: str, **given: Any) -> float:
        cell = Cell(
            key="a", query=query, workload=workload, policy="ds2", workload_parameters=given
        )
        pattern = cell.pattern(seed=1)
        return max(pattern.rate(float(t)) for t in range(0, 8400, 30))

    high = {"q1": 2.2e6, "q3": 33e3}[query]
    assert peak("cosine") == pytest.approx(high, rel=0.1)
    assert peak("convergence") == pytest.approx(high * 2.0 / 2.2)
    assert peak("step") == high
    assert peak("trace", file="taxi", speed=60.0) == pytest.approx(high, rel=0.3)
    assert peak("constant", rps=7.0) == 7.0
