"""``penstock reproduce thesis``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from penstock.comparison import runner
from penstock.comparison.cell import Cell
from penstock.papers import harness, pictures
from penstock.papers.harness import Reproduction
from penstock.papers.running import RunFolder
from penstock.papers.thesis import experiment, figures, paper
from penstock.papers.thesis.experiment import ThesisMeasured
from penstock.papers.thesis.paper import PAPER
from tests.fakes.paper_commands import invoke

Done = Reproduction[ThesisMeasured]
TINY = PAPER.asked(seeds=2, only=("7.3", "7.19"), minutes=6.0)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = harness.begin(PAPER, TINY, tmp_path_factory.mktemp("runs"))
    return harness.reproduce(PAPER, TINY, RunFolder(path=folder, workers=1))


def test_writes_the_page_the_text_the_figures_and_the_json(done: Done) -> None:
    names = {path.name for path in done.folder.iterdir()}
    assert {"config.json", "scores.jsonl", "thesis.json", "thesis.md", "report.html"} <= names
    assert not list(done.folder.rglob("*.part"))
    drawn = {path.name for path in (done.folder / "figures").iterdir()}
    assert drawn == {f"figure-{id}.png" for id in ("7.3", "7.20", "7.21")}
    picture = imread(done.folder / "figures" / "figure-7.3.png")
    assert picture.shape[:2] == (figures.HEIGHT, pictures.WIDTH)
    assert picture.std() > 0.01  # something was drawn


def test_the_page_needs_nothing_else(done: Done) -> None:
    page = (done.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 3
    assert "http" not in page and "<script" not in page
    assert "Table 7.3" in page and "Table 7.19" in page


def test_json_is_findings_and_tables(done: Done) -> None:
    plain = json.loads((done.folder / "thesis.json").read_text(encoding="utf-8"))
    assert list(plain) == ["findings", "tables"]
    assert [f["id"] for f in plain["findings"]] == ["h"]  # the only one with all of its cells
    for finding in plain["findings"]:
        assert {"id", "claim", "paper", "ours", "holds"} <= finding.keys()
        assert isinstance(finding["holds"], bool)
    assert [t["id"] for t in plain["tables"]] == ["7.3", "7.19", "accuracy"]
    first = plain["tables"][0]["rows"][0]
    assert first["paper"]["latency_mean"] == 311.8
    assert first["ours"]["slots_mean"].keys() == {"mean", "half_width"}
    assert first["ours"]["slots_mean"]["mean"] >= 3.0


def test_the_figures_are_those_of_the_bench(done: Done) -> None:
    row = done.document()["tables"][0]["rows"][1]
    values = done.measured.results.values(row["cell"], "slots_mean")
    assert len(values) == 2
    assert row["ours"]["slots_mean"]["mean"] == pytest.approx(values.mean())


def test_a_second_call_runs_nothing_again(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("it ran again")

    monkeypatch.setattr(Cell, "run", never)
    asked = harness.resume(PAPER, done.folder)
    again = harness.reproduce(PAPER, asked, RunFolder(path=done.folder, workers=1))
    assert again.document() == done.document()


def test_an_interrupted_run_goes_on_where_it_stopped(
    done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = harness.begin(PAPER, TINY, tmp_path)
    kept = (done.folder / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "cells.json").write_bytes((done.folder / "cells.json").read_bytes())
    (folder / "scores.jsonl").write_text("\n".join(kept[:-3]) + "\n", encoding="utf-8")
    for trace in (done.folder / "traces").iterdir():
        (folder / "traces").mkdir(exist_ok=True)
        (folder / "traces" / trace.name).write_bytes(trace.read_bytes())
    result = invoke("thesis", "--resume", str(folder), "--workers", "1", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == json.loads(
        (done.folder / "thesis.json").read_text(encoding="utf-8")
    )
    assert "3000 to 3001" in result.stderr and "below 3000" in result.stderr


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", interrupted)
    result = invoke("thesis", "--seeds", "2", "--only", "7.3", "--out", str(tmp_path))
    assert result.exit_code == 130
    (folder,) = tmp_path.iterdir()
    assert f"--resume {folder}" in result.stderr.replace("\n", "")
    assert harness.resume(PAPER, folder) == PAPER.asked(seeds=2, only=("7.3",))


def test_documents(done: Done, tmp_path: Path) -> None:
    written = {path.name for path in harness.publish(done, tmp_path / "docs")}
    assert written == {"thesis.md", "thesis-figure-7.3.png", "thesis-figure-7.20.png"}
    text = (tmp_path / "docs" / "thesis.md").read_text(encoding="utf-8")
    assert "--seeds 2" in text and "seeds 3000 to 3001" in text
    assert "| DS2 1.0 | 6.5 / " in text
    for name in written - {"thesis.md"}:
        assert f"({name})" in text
    assert sum(p.stat().st_size for p in (tmp_path / "docs").iterdir()) < 1_000_000
    assert "figures/figure-7.3.png" in paper.texts(done, "figures/")["thesis.md"]


def test_every_picture_of_the_thesis_has_a_drawing() -> None:
    drawn = figures.drawings()
    assert [d.id for d in drawn] == [f"7.{n}" for n in range(1, 22)]
    latency = {d.id for d in drawn if d.panels[0].what == "latency"}
    assert latency == {"7.10", "7.12", "7.15"}
    known = {cell.key for cell in experiment.all_cells(PAPER.asked())}
    for drawing in drawn:
        assert drawing.keys <= known
