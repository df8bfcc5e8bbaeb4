"""The runs of a bench on Spark without Spark: resumption, failures, the command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.batches.snapshot import POOL
from penstock.bench.cell import SparkCell, read_cell
from penstock.bench.spark import runner, worker
from penstock.comparison.cell import CellRun
from penstock.comparison.results import Results
from penstock.core.errors import EngineError, InputError, MissingError, NotReady
from penstock.lab.rig.settings import SparkSettings
from tests.fakes.shell import Shell
from tests.fakes.spark_bench_examples import SPEC, real_cell, simulated


class Fake:
    """Runs cells in the simulator; the n-th call may fail."""

    def __init__(self, faults: Mapping[int, BaseException] | None = None) -> None:
        self.faults = faults or {}
        self.runs: list[tuple[str, int]] = []
        self.calls = self.recovered = 0

    def run(self, cell: SparkCell, seed: int, *, journal: Path | None, first: bool) -> CellRun:
        self.calls += 1
        if self.calls in self.faults:
            raise self.faults[self.calls]
        self.runs.append((cell.key, seed))
        return simulated(cell).run(seed, journal=journal, trace=True)

    def recover(self) -> None:
        self.recovered += 1


def real_cells() -> list[SparkCell]:
    return [real_cell(key=policy, policy=policy, minutes=5.0) for policy in ("ds2", "hpa-cpu")]


def test_every_run_leaves_scores_a_journal_and_a_trace(tmp_path: Path) -> None:
    fake = Fake()
    assert runner.run(real_cells(), (4, 7), tmp_path, fake) == []
    assert fake.runs == [("ds2", 4), ("hpa-cpu", 4), ("ds2", 7), ("hpa-cpu", 7)]
    results = Results.load(tmp_path, read=read_cell)
    assert results.complete and len(results.trace("ds2").time) == 20
    names = {"ds2", "hpa-cpu", "ds2-seed7", "hpa-cpu-seed7"}
    assert {p.stem for p in (tmp_path / "journals").iterdir()} == names
    assert {p.stem for p in (tmp_path / "traces").iterdir()} == names


def test_an_interrupted_bench_runs_only_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        runner.run(real_cells(), (0, 1), tmp_path, Fake({3: KeyboardInterrupt()}))
    assert Results.load(tmp_path, read=read_cell).done == 2
    seen: list[tuple[str, int]] = []
    fake = Fake()
    runner.run(
        real_cells(), (0, 1), tmp_path, fake, finished=lambda cell, s: seen.append((cell.key, s))
    )
    assert fake.runs == [("ds2", 1), ("hpa-cpu", 1)] and len(seen) == 4
    nothing = Fake()
    assert runner.run(real_cells(), (0, 1), tmp_path, nothing) == [] and not nothing.calls
    with pytest.raises(InputError, match="other cells"):
        runner.run([real_cell(spark=SparkSettings(minute=6.0))], (0, 1), tmp_path, nothing)


def test_a_run_that_fails_is_tried_again_on_a_new_cluster(tmp_path: Path) -> None:
    fake = Fake({2: EngineError("the query stopped\nand more")})
    told: list[tuple[str, bool]] = []
    failures = runner.run(
        real_cells(), (0,), tmp_path, fake, failed=lambda f, again: told.append((str(f), again))
    )
    assert (
        failures == [] and Results.load(tmp_path, read=read_cell).complete and fake.recovered == 1
    )
    assert told == [("hpa-cpu, seed 0: EngineError: the query stopped", True)]


def test_a_run_that_fails_twice_is_left_out_and_the_bench_goes_on(tmp_path: Path) -> None:
    fake = Fake({1: OSError("gone"), 2: NotReady("nothing")})
    (failure,) = runner.run(real_cells(), (0,), tmp_path, fake)
    assert (failure.key, failure.seed, failure.why) == ("ds2", 0, "NotReady: nothing")
    assert fake.runs == [("hpa-cpu", 0)]
    assert runner.run(real_cells(), (0,), tmp_path, Fake()) == []  # and can be made up for
    assert Results.load(tmp_path, read=read_cell).complete


@pytest.mark.parametrize("error", [MissingError("no Java"), InputError("wrong")])
def test_what_cannot_get_better_is_not_tried_again(error: Exception, tmp_path: Path) -> None:
    fake = Fake({1: error})
    with pytest.raises(type(error)):
        runner.run(real_cells(), (0,), tmp_path, fake)
    assert fake.calls == 1


# ---- the command ----------------------------------------------------------------------------


class FakeWorker(Fake):
    """In the place of the one with a cluster."""

    next_faults: Mapping[int, BaseException] = {}

    def __init__(self, settings: SparkSettings, folder: Path, **_: Any) -> None:
        super().__init__(self.next_faults)

    def __enter__(self) -> FakeWorker:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    (tmp_path / "real.toml").write_text(SPEC)
    monkeypatch.setattr(worker, "SparkWorker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "next_faults", {})
    return Shell.at(tmp_path, monkeypatch, capsys, "bench")


def test_a_dry_run_says_what_every_time_becomes(shell: Shell) -> None:
    done = shell("real.toml", "--dry-run")
    assert done.code == 0 and not Path("runs").exists()
    assert "q5-random-hpa-cpu" in done.out and "2 cells × 2 seeds = 4 runs" in done.out
    for line in ("period 15 s → 0.75 s", "cool-down 5 min → 15 s", "q5 window 5 min → 15 s"):
        assert line in " ".join(done.out.split())
    assert all(len(line) <= 80 for line in done.out.splitlines())
    plan = shell("real.toml", "--dry-run", "--json").json
    assert plan["spark"]["seconds"]["cool_down"] == {"thesis": 300.0, "clock": 15.0}
    assert plan["seconds"] > 4 * 60


def test_a_bench_on_spark_reports_like_any_other(shell: Shell) -> None:
    done = shell("real.toml")
    assert done.code == 0, done.err
    assert "a minute of thesis time lasts 3 s" in done.err
    assert "q5 · random" in done.out and "20 s of latency are 1 s on the clock" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    folder = Path("runs/latest")
    page = (folder / "report.html").read_text()
    assert "2 cells × 2 seeds, on Spark, one minute = 3 s, 8 executors of 0.2 of a core" in page
    config = json.loads((folder / "config.json").read_text())
    assert config["engine"] == "spark" and config["spark"]["speed"] == 20.0
    assert config["cells"][0]["start"] == {POOL: 1}
    assert json.loads(shell("--resume", "latest", "--json").out)["complete"]


def test_missing_runs_are_exit_code_1_after_the_report(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeWorker, "next_faults", {1: EngineError("lost"), 2: EngineError("lost")})
    done = shell("real.toml")
    assert done.code == 1 and "q5 · random" in done.out
    assert "q5-random-ds2, seed 0: EngineError: lost" in done.err
    assert "1 run failed twice and is missing" in done.err and "--resume" in done.err


def test_ctrl_c_says_how_to_go_on(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeWorker, "next_faults", {3: KeyboardInterrupt()})
    done = shell("real.toml")
    assert done.code == 130 and "stopped after 2 of 4 runs" in done.err
    assert "penstock bench --resume runs/" in done.err


def test_workers_are_for_simulated_benches(shell: Shell) -> None:
    done = shell("real.toml", "--workers", "2")
    assert done.code == 2 and "one cell at a time" in done.err and not Path("runs").exists()
