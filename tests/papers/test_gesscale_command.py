"""``penstock reproduce gesscale``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.reproduce import PAPERS
from penstock.papers import harness
from penstock.papers.gesscale.simulated import figures
from penstock.papers.gesscale.simulated.experiment import GesscaleOutcomes
from penstock.papers.gesscale.simulated.paper import PAPER
from penstock.papers.gesscale.simulated.setups import all_cells
from penstock.papers.harness import Asked, Reproduction
from penstock.papers.running import RunFolder
from tests.fakes.paper_commands import (
    check_json,
    check_written,
    invoke,
    shown_again,
)

Done = Reproduction[GesscaleOutcomes]
TINY = PAPER.asked(seeds=1, first_seed=2000)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Every cell, in one fog."""
    folder = harness.begin(PAPER, TINY, tmp_path_factory.mktemp("runs"))
    return harness.reproduce(PAPER, TINY, RunFolder(path=folder, workers=1))


def test_writes_the_page_the_text_the_figures_and_the_json(done: Done) -> None:
    check_written(done)
    check_json(done, findings="abcdefg", rows=[14, 5, 4, 14, len(all_cells())])


def test_a_finished_run_is_shown_again_without_running(
    done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "draw_all", lambda *_: list(done.report.pictures))
    text = shown_again(done, tmp_path / "docs", monkeypatch, cells=len(all_cells()))
    assert "`penstock reproduce gesscale --seeds 1 --first-seed 2000`" in text
    assert "drop-offs" in text and "pick-ups" in text


def test_what_goes_beyond_the_paper_can_be_added_later(
    done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Asked] = []

    def reproduce(paper: object, wanted: Asked, *_: object) -> Done:
        asked.append(wanted)
        return done

    monkeypatch.setattr(harness, "reproduce", reproduce)
    assert invoke("gesscale", "--resume", str(done.folder), "--extended").exit_code == 0
    assert invoke("gesscale", "--resume", str(done.folder)).exit_code == 0
    assert invoke("gesscale", "--out", str(tmp_path), "--seeds", "2").exit_code == 0
    assert asked == [
        PAPER.asked(seeds=1, first_seed=2000, extended=True),
        TINY,
        PAPER.asked(seeds=2),
    ]


def test_json_and_nothing_else_on_standard_output(
    done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "reproduce", lambda *_, **__: done)
    result = invoke("gesscale", "--resume", str(done.folder), "--json")
    assert json.loads(result.stdout) == done.document()


def test_help_names_every_paper() -> None:
    text = invoke("--help").stdout
    assert all(paper in text for paper in PAPERS)
