"""``penstock reproduce mead``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.core.errors import InputError
from penstock.papers import harness
from penstock.papers.harness import Reproduction
from penstock.papers.mead import figures, paper, runner
from penstock.papers.mead.cells import all_cells
from penstock.papers.mead.paper import Plan
from tests.fakes.paper_commands import (
    check_json,
    check_refused,
    check_written,
    interrupted,
    invoke,
    shown_again,
)

TINY = Plan(seeds=1, first_seed=3, minutes=2.0)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Every cell, two minutes long."""
    folder = harness.begin("mead", TINY, tmp_path_factory.mktemp("runs"))
    return paper.reproduce(TINY, folder)


def test_writes_the_page_the_text_the_figures_and_the_json(done: Reproduction) -> None:
    check_written(done, paper.CAPTIONS)
    check_json(done, findings="abcdefghi", rows=[16, 27, 12, 9, 6, 15, 4])


def test_a_finished_run_is_shown_again_without_running(
    done: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "draw_all", lambda *_: list(done.pictures))
    text = shown_again(done, tmp_path / "docs", monkeypatch, cells=54, shown=paper.SHOWN)
    assert "`penstock reproduce mead --seeds 1 --first-seed 3`" in text


def test_json_is_all_there_is_on_standard_output(
    done: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "reproduce", lambda *_, **__: done)
    result = invoke("mead", "--resume", str(done.folder), "--json")
    assert json.loads(result.stdout) == done.document()


def test_the_plan_comes_from_the_folder(done: Reproduction, tmp_path: Path) -> None:
    assert harness.planned("mead", Plan, done.folder) == TINY
    config = json.loads((done.folder / "config.json").read_text())
    for changed, words in (
        ({"reproduces": "thesis"}, "is not a run of `penstock reproduce mead`"),
        ({"penstock": "0.0.1"}, "was begun with penstock 0.0.1"),
        ({"seeds": "many"}, "is not a run of"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changed}))
        with pytest.raises(InputError, match=words):
            harness.planned("mead", Plan, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mead", "--seeds", "0"], "--seeds 0 must be ≥ 1"),
        (["mead", "--first-seed", "-1"], "--first-seed -1 must be ≥ 0"),
        (["mead", "--workers", "0"], "--workers 0 must be ≥ 1"),
        (["mead", "--only", "7.1"], "--only is for the thesis"),
        (["mead", "--resume", "nothing-here"], "is not a run of"),
        (["mead", "--resume", "x", "--seeds", "3"], "--seeds was fixed"),
        (["mead", "--docs", "/proc/docs"], "/proc/docs"),
        (["maed"], "did you mean 'mead'"),
    ],
)
def test_refused_before_anything_is_written(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_refused(arguments, words, tmp_path, monkeypatch)


def test_plans_that_cannot_be() -> None:
    with pytest.raises(InputError, match="minutes 1 must be ≥ 2"):
        replace(TINY, minutes=1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_a_signal_leaves_what_is_finished_and_no_process(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    plan = Plan(seeds=1, minutes=10.0)
    folder = harness.begin("mead", plan, tmp_path)

    def runs() -> int:
        return len(runner.load(folder).runs)

    returned, said = interrupted("mead", folder, number, runs)
    assert returned == code
    assert harness.planned("mead", Plan, folder) == plan
    assert 1 <= runs() < len(all_cells())
    if number is signal.SIGINT:
        assert f"--resume {folder}" in said
