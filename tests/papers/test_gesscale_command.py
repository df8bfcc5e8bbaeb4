"""``penstock reproduce gesscale``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from penstock.cli.reproduce import PAPERS
from penstock.core.errors import InputError
from penstock.papers import harness
from penstock.papers.gesscale.simulated import figures, runner
from penstock.papers.gesscale.simulated import paper as command
from penstock.papers.gesscale.simulated.paper import Plan
from penstock.papers.gesscale.simulated.setups import all_cells
from penstock.papers.harness import Reproduction
from tests.fakes.paper_commands import (
    check_json,
    check_refused,
    check_written,
    interrupted,
    invoke,
    shown_again,
)

TINY = Plan(seeds=1, first_seed=2000)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Every cell, in one fog."""
    folder = harness.begin("gesscale", TINY, tmp_path_factory.mktemp("runs"))
    return command.reproduce(TINY, folder, workers=1)


def test_writes_the_page_the_text_the_figures_and_the_json(done: Reproduction) -> None:
    check_written(done, command.CAPTIONS)
    check_json(done, findings="abcdefg", rows=[14, 5, 4, 14, len(all_cells())])


def test_a_finished_run_is_shown_again_without_running(
    done: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "draw_all", lambda *_: list(done.pictures))
    text = shown_again(
        done, tmp_path / "docs", monkeypatch, cells=len(all_cells()), shown=command.SHOWN
    )
    assert "`penstock reproduce gesscale --seeds 1 --first-seed 2000`" in text
    assert "drop-offs" in text and "pick-ups" in text


def test_what_goes_beyond_the_paper_can_be_added_later(
    done: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Plan] = []

    def reproduce(plan: Plan, *_: object, **__: object) -> Reproduction:
        asked.append(plan)
        return done

    monkeypatch.setattr(command, "reproduce", reproduce)
    assert invoke("gesscale", "--resume", str(done.folder), "--extended").exit_code == 0
    assert invoke("gesscale", "--resume", str(done.folder)).exit_code == 0
    assert invoke("gesscale", "--out", str(tmp_path), "--seeds", "2").exit_code == 0
    assert asked == [Plan(seeds=1, first_seed=2000, extended=True), TINY, Plan(seeds=2)]


def test_json_and_nothing_else_on_standard_output(
    done: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "reproduce", lambda *_, **__: done)
    result = invoke("gesscale", "--resume", str(done.folder), "--json")
    assert json.loads(result.stdout) == done.document()


def test_the_plan_comes_from_the_folder(done: Reproduction, tmp_path: Path) -> None:
    assert harness.planned("gesscale", Plan, done.folder) == TINY
    assert Plan() == Plan(seeds=30, first_seed=3000)
    config = json.loads((done.folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "reproduces": "mead"}))
    with pytest.raises(InputError, match="is not a run of `penstock reproduce gesscale`"):
        harness.planned("gesscale", Plan, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gesscale", "--seeds", "0"], "--seeds 0 must be ≥ 1"),
        (["geo", "--seeds", "0"], "--seeds 0 must be ≥ 1"),
        (["gesscale", "--workers", "0"], "--workers 0 must be ≥ 1"),
        (["gesscale", "--only", "7.1"], "--only is for the thesis"),
        (["geo", "--extended"], "geo has nothing beyond the paper"),
        (["gesscale", "--resume", "nothing-here"], "is not a run of"),
        (["gesscale", "--docs", "/proc/docs"], "/proc/docs"),
        (["geskale"], "did you mean 'gesscale'"),
    ],
)
def test_refused_before_anything_is_written(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_refused(arguments, words, tmp_path, monkeypatch)


def test_help_names_every_paper() -> None:
    text = invoke("--help").stdout
    assert all(paper in text for paper in PAPERS)


def test_ctrl_c_leaves_what_is_finished_and_no_process(tmp_path: Path) -> None:
    plan = Plan(seeds=20, first_seed=2000)
    folder = harness.begin("gesscale", plan, tmp_path)

    def runs() -> int:
        return len(runner.load(folder).runs)

    code, said = interrupted("gesscale", folder, signal.SIGINT, runs)
    assert code == 130 and f"--resume {folder}" in said
    assert 1 <= runs() < len(all_cells()) * plan.seeds
