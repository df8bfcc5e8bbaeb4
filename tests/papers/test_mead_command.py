"""``penstock reproduce mead``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from penstock.core.errors import InputError
from penstock.papers import harness
from penstock.papers.harness import Reproduction
from penstock.papers.mead.cells import all_cells
from penstock.papers.mead.experiment import MeadOutcome
from penstock.papers.mead.paper import PAPER, MeadMeasured
from penstock.papers.running import RunFolder, load
from tests.fakes.paper_commands import (
    check_json,
    check_written,
    interrupted,
    shown_again,
)

Done = Reproduction[MeadMeasured]
TINY = PAPER.asked(seeds=1, first_seed=3, minutes=2.0)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Every cell, two minutes long."""
    folder = harness.begin(PAPER, TINY, tmp_path_factory.mktemp("runs"))
    return harness.reproduce(PAPER, TINY, RunFolder(path=folder))


def test_writes_the_page_the_text_the_figures_and_the_json(
    done: Done,
) -> None:
    check_written(done)
    check_json(done, findings="abcdefghi", rows=[16, 27, 12, 9, 6, 15, 4])


def test_a_finished_run_is_shown_again_without_running(
    done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown_again(done, tmp_path / "docs", monkeypatch, cells=54)
    assert "`penstock reproduce mead --seeds 1 --first-seed 3`" in text


def test_what_was_asked_comes_from_the_folder(done: Done, tmp_path: Path) -> None:
    assert harness.resume(PAPER, done.folder) == TINY
    config = json.loads((done.folder / "config.json").read_text())
    for changed, words in (
        ({"reproduces": "thesis"}, "is not a run of `penstock reproduce mead`"),
        ({"penstock": "0.0.1"}, "was begun with penstock 0.0.1"),
        ({"seeds": "many"}, "is not a run of"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changed}))
        with pytest.raises(InputError, match=words):
            harness.resume(PAPER, tmp_path)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(InputError, match="minutes 1 must be ≥ 2"):
        PAPER.asked(minutes=1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_a_signal_leaves_what_is_finished_and_no_process(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    asked = PAPER.asked(seeds=1, minutes=10.0)
    folder = harness.begin(PAPER, asked, tmp_path)

    def runs() -> int:
        return len(load(MeadOutcome, folder))

    returned, said = interrupted("mead", folder, number, runs)
    assert returned == code
    assert harness.resume(PAPER, folder) == asked
    assert 1 <= runs() < len(all_cells())
    if number is signal.SIGINT:
        assert f"--resume {folder}" in said
