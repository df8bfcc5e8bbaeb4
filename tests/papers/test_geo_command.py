"""``penstock reproduce geo``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.comparison import processes
from penstock.papers import harness, running
from penstock.papers.geo.simulated import figures
from penstock.papers.geo.simulated.cells import all_cells
from penstock.papers.geo.simulated.experiment import GeoOutcomes
from penstock.papers.geo.simulated.paper import PAPER
from penstock.papers.harness import Reproduction
from penstock.papers.running import RunFolder
from tests.fakes.paper_commands import check_json, check_written, shown_again

Done = Reproduction[GeoOutcomes]
TINY = PAPER.asked(seeds=1, first_seed=101)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Every cell once."""
    folder = harness.begin(PAPER, TINY, tmp_path_factory.mktemp("runs"))
    return harness.reproduce(PAPER, TINY, RunFolder(path=folder, workers=1))


def test_writes_the_page_the_text_the_figures_and_the_json(done: Done) -> None:
    check_written(done)
    check_json(done, findings="abcdefghijklmno", rows=[10, 10, 10, 10, 9, 9, 9, 9, 5, 10, 11])


def test_a_finished_run_is_shown_again_without_running(
    done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "draw_all", lambda *_: list(done.report.pictures))
    text = shown_again(done, tmp_path / "docs", monkeypatch, cells=len(all_cells()))
    assert "`penstock reproduce geo --seeds 1 --first-seed 101`" in text
    assert "seeds 100 to 139" in text  # what the constants were chosen on


def test_what_is_missing_is_run_and_nothing_else(
    done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cut"
    folder.mkdir()
    lines = (done.folder / "scores.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "scores.jsonl").write_text("".join(lines[:-2]) + lines[-1][:40], encoding="utf-8")
    (folder / "config.json").write_bytes((done.folder / "config.json").read_bytes())
    ran: list[int] = []
    spread = processes.spread

    def watched(groups: object, *rest: object) -> None:
        ran.append(sum(map(len, groups)))  # type: ignore[call-overload]
        spread(groups, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "spread", watched)
    again = harness.reproduce(PAPER, TINY, RunFolder(path=folder, workers=1))
    assert ran == [2]
    assert again.document() == done.document()


def test_seeds_of_its_own() -> None:
    asked = PAPER.asked()
    assert (asked.seeds, asked.first_seed) == (25, 4000)
    assert not set(asked.numbers) & {*range(100), *range(100, 140), *range(1000, 1030)}
    assert PAPER.asked(seeds=3, first_seed=7).numbers == [7, 8, 9]
