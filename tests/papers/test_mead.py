"""The runs behind ``penstock reproduce mead``: cells, traces, and a runner that loses nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.comparison.processes import Stopped
from penstock.comparison.results import SCORES
from penstock.comparison.runner import ScoresFile
from penstock.core.codec import to_json
from penstock.core.errors import EngineError, InputError
from penstock.papers import running
from penstock.papers.mead import cells, published
from penstock.papers.mead.cells import MeadCell
from penstock.papers.mead.experiment import (
    CDF,
    MeadOutcome,
    MeadOutcomes,
    groups,
    run,
    run_on,
)
from penstock.papers.mead.traces import arrivals
from penstock.papers.running import RunFolder
from penstock.policies.mead.mead import Mead
from penstock.simulator.tuples import log_analysis

SECONDS = 180.0
SEEDS = (4, 7)
TINY = [
    MeadCell(trace="lm", policy="full"),
    MeadCell(trace="lm", policy="cpu-threshold"),
    MeadCell(trace="lm", policy="mead-mg1", target=1.5),
    MeadCell(trace="taxi", policy="full"),
]


def test_all_cells_have_names_of_their_own_and_policies() -> None:
    found = cells.all_cells(extended=True)
    assert len({cell.key for cell in found}) == len(found) == 69
    assert set(found) - set(cells.all_cells()) == set(cells.beyond())
    assert all(cell.create() is not None for cell in found if cell.policy != "full")
    quick = ("cpu-threshold", "mead+")
    assert {cell.period for cell in found if cell.policy in quick} == {10.0}
    assert {cell.period for cell in found if cell.policy not in quick} == {60.0}


def test_mead_plus_has_the_targets_of_mead() -> None:
    def targets(policy: str) -> set[tuple[str, float | None, bool]]:
        every = [*cells.table_1(), *cells.table_2(), *cells.beyond()]
        return {(c.trace, c.target, c.p95) for c in every if c.policy == policy}

    assert targets("mead+") == targets("mead")
    assert len(targets("mead")) == len(published.TABLE_1) + len(published.TABLE_2) == 15


def test_a_cell_says_what_its_policy_is_asked_for() -> None:
    cell = MeadCell(trace="bc", policy="mead", target=0.5, p95=True, window=25_000)
    assert cell.create() == Mead(target=0.5, percentile=0.95, windows="25000")
    assert cell.arrivals == 25_000 and replace(cell, window=None).arrivals == 50_000
    assert TINY[0].arrivals == TINY[1].arrivals == 2
    assert (cell.key, cell.figure, cell.wanted) == ("bc-mead-p95-0.5-25000", "p95", "p95 ≤ 0.5")


def test_traces_differ_by_seed_unless_recorded() -> None:
    assert arrivals("bc", 0, 60.0).tolist() == arrivals("bc", 1, 60.0).tolist()
    for name, rate in (("synt", 300.0), ("lm", 60.0), ("taxi", 65.0)):
        one, other = arrivals(name, 0, SECONDS), arrivals(name, 1, SECONDS)
        assert one.tolist() == arrivals(name, 0, SECONDS).tolist() != other.tolist()
        assert one[-1] < SECONDS and (np.diff(one) >= 0.0).all()
        assert len(one) / SECONDS == pytest.approx(rate, rel=0.3)
    with pytest.raises(InputError, match="unknown trace"):
        arrivals("syn", 0)


def one_after_the_other(times: np.ndarray, demands: np.ndarray) -> np.ndarray:
    """When each leaves a server at full speed."""
    free, leaves = 0.0, []
    for arrival, demand in zip(times.tolist(), demands.tolist(), strict=True):
        free = max(arrival, free) + demand
        leaves.append(free)
    return np.array(leaves)


def test_full_cpu_is_a_plain_recursion() -> None:
    times = arrivals("lm", 3, SECONDS)
    found = run_on(MeadCell(trace="lm", policy="full"), 3, times, detailed=True)
    application = log_analysis(float((times[-1] - times[0]) / (len(times) - 1)))
    draws = {}
    for number, name in enumerate(application.pipeline.order):
        rng = np.random.default_rng([3, number])
        if name in application.demands:
            draws[name] = rng.gamma(2.0, application.demands[name] / 2.0, len(times))
        if name == "parser":
            kept = rng.random(len(times)) < 0.99
    parsed = one_after_the_other(times, draws["parser"])[kept]
    stays = one_after_the_other(parsed, draws["matcher"][kept]) - times[kept]
    assert found.mean == pytest.approx(stays.mean())
    assert found.p95 == pytest.approx(np.quantile(stays, 0.95))
    assert (found.cpu, found.decisions) == (100.0, 0)
    minutes = [stays[times[kept] // 60 == m].sum() for m in range(3)]
    assert found.worst == pytest.approx(max(minutes) / stays.sum())
    assert found.below[-1] == 1.0
    assert np.interp(stays.mean(), CDF, found.below) == pytest.approx(
        (stays <= stays.mean()).mean(), abs=0.05
    )
    assert [time for time, _, _ in found.course] == [10.0 * k for k in range(18)]


def test_a_run_can_be_left_before_any_decision() -> None:
    asked: list[None] = []

    def check() -> None:
        asked.append(None)
        if len(asked) == 3:
            raise Stopped

    with pytest.raises(Stopped):
        run_on(TINY[1], 0, arrivals("lm", 0, SECONDS), check=check)


def run_all(
    chosen: Sequence[MeadCell],
    seeds: Sequence[int],
    folder: Path,
    *,
    seconds: float = SECONDS,
    **how: Any,
) -> MeadOutcomes:
    """Run what the folder does not hold yet."""
    place, work = RunFolder(path=folder, **how), partial(run, seconds=SECONDS)
    return MeadOutcomes(runs=place.in_processes(groups(chosen, seeds), work, MeadOutcome))


def plain(outcomes: MeadOutcomes) -> dict[tuple[str, int], MeadOutcome]:
    """By cell and seed, without what depends on the machine."""
    return {(r.key, r.seed): replace(r, decision_seconds=0.0) for r in outcomes.runs}


class Interrupted:
    """A progress report that does something once so many runs are done."""

    def __init__(self, runs: int, action: str) -> None:
        self.runs, self.action = runs, action

    def __call__(self, what: str, done: int, total: int) -> None:
        if done == self.runs:
            if self.action == "Ctrl-C":
                raise KeyboardInterrupt
            for child in multiprocessing.active_children():
                os.kill(int(child.pid or 0), signal.SIGKILL)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> MeadOutcomes:
    folder = tmp_path_factory.mktemp("mead")
    return run_all(TINY, SEEDS, folder, workers=2)


def test_every_cell_runs_with_every_seed(whole: MeadOutcomes) -> None:
    assert set(plain(whole)) == {(cell.key, seed) for cell in TINY for seed in SEEDS}
    assert [r.seed for r in whole.of(TINY[0].key)] == list(SEEDS)
    for r in whole.runs:
        assert 0.0 < r.mean < r.p95 and 40.0 <= r.cpu <= 100.0
        assert bool(r.course) == bool(r.below) == (r.seed == SEEDS[0])
    found = whole.estimate(TINY[0].key, "mean")
    assert found is not None and found.count == 2
    assert found.mean == pytest.approx(np.mean([r.mean for r in whole.of(TINY[0].key)]))
    assert whole.estimate(MeadCell(trace="bc", policy="full").key, "mean") is None


def test_processes_change_no_figure(whole: MeadOutcomes) -> None:
    times = arrivals("lm", SEEDS[1], SECONDS)
    alone = run_on(TINY[2], SEEDS[1], times)
    assert plain(whole)[alone.key, alone.seed] == replace(alone, decision_seconds=0.0)


@pytest.mark.parametrize(
    ("action", "error", "workers"),
    [("Ctrl-C", KeyboardInterrupt, 2), ("kill", EngineError, 1)],
)
def test_what_is_finished_is_kept_and_the_rest_is_run_later(
    whole: MeadOutcomes, action: str, error: type[BaseException], workers: int, tmp_path: Path
) -> None:
    with pytest.raises(error):
        run_all(
            TINY,
            SEEDS,
            tmp_path,
            workers=workers,
            progress=Interrupted(3, action),
        )
    assert multiprocessing.active_children() == []
    kept = running.load(MeadOutcome, tmp_path)
    assert 3 <= len(kept) < 8
    path = tmp_path / SCORES
    path.write_text(path.read_text() + '{"cell":"lm-full","se')  # torn by a crash
    reported: list[tuple[int, int]] = []
    again = run_all(
        TINY,
        SEEDS,
        tmp_path,
        workers=1,
        progress=lambda what, *done: reported.append(done),
    )
    assert reported == [(n, 8) for n in range(len(kept), 9)]
    assert plain(again) == plain(whole)
    assert len(path.read_text().splitlines()) == 8


def test_nothing_is_run_twice(
    whole: MeadOutcomes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScoresFile(tmp_path / SCORES) as file:
        for r in whole.runs:
            file.add(r.key, r.seed, to_json(r))
    monkeypatch.setattr(running, "spread", lambda *_: pytest.fail("it ran again"))
    assert plain(run_all(TINY, SEEDS, tmp_path)) == plain(whole)


def test_an_error_names_its_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown trace 'nowhere'"):
        run_all([MeadCell(trace="nowhere", policy="full")], [0], tmp_path, workers=1)


def test_scores_of_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / SCORES).write_text('{"cell":"a","seed":1,"scores":{"latency":1.0}}\n')
    with pytest.raises(InputError, match=r"scores\.jsonl cannot be read"):
        run_all(TINY, SEEDS, tmp_path)
    with pytest.raises(InputError, match="--workers 0 must be ≥ 1"):
        run_all(TINY, SEEDS, tmp_path / "new", workers=0)
    assert not (tmp_path / "new").exists()
