"""``penstock reproduce gesscale``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner, Result

from penstock.bench import lanes
from penstock.bench.gesscale import command, document, figures, runner
from penstock.bench.gesscale.cells import all_cells
from penstock.bench.gesscale.command import Plan
from penstock.bench.reproduction import Reproduction
from penstock.cli.app import build
from penstock.cli.reproduce import PAPERS
from penstock.cli.reproduce import reproduce as cli
from penstock.core.errors import InputError
from tests.waiting import children, ended, until

APP = build({"reproduce": cli, "other": lambda: None})
TINY = Plan(seeds=1, first_seed=2000)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(APP, ["reproduce", *arguments])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Every cell, in one fog."""
    folder = command.begin(TINY, tmp_path_factory.mktemp("runs"))
    return command.reproduce(TINY, folder, workers=1)


def test_writes_the_page_the_text_the_figures_and_the_json(done: Reproduction) -> None:
    names = {path.name for path in done.folder.iterdir()}
    assert names == {
        "config.json", "scores.jsonl", "figures", "gesscale.json", "gesscale.md", "report.html"
    }  # fmt: skip
    assert {path.name for path in done.pictures} == set(document.CAPTIONS)
    for path in done.pictures:
        assert imread(path).std() > 0.01  # something was drawn
    page = (done.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(done.pictures)
    assert "http" not in page and "<script" not in page
    plain = json.loads((done.folder / "gesscale.json").read_text(encoding="utf-8"))
    assert plain == done.document()
    assert [f["id"] for f in plain["findings"]] == list("abcdefg")
    assert [len(t["rows"]) for t in plain["tables"]] == [14, 5, 4, 14, len(all_cells())]


def test_a_finished_run_is_shown_again_without_running(
    done: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "_spread", lambda *_: pytest.fail("it ran again"))
    monkeypatch.setattr(figures, "draw_all", lambda *_: list(done.pictures))
    monkeypatch.setenv("COLUMNS", "80")
    docs = tmp_path / "docs"
    result = invoke("gesscale", "--resume", str(done.folder), "--docs", str(docs))
    assert result.exit_code == 0, result.output
    assert f"{len(all_cells())} cells × 1 seeds" in result.stderr
    assert "of 7 findings held" in result.stdout and "…" not in result.stdout
    places = ("run     ", "page    ")  # paths are not broken
    lines = [line for line in result.stdout.splitlines() if not line.startswith(places)]
    assert max(map(len, lines)) <= 80
    written = {path.name for path in docs.iterdir()}
    assert written == {"gesscale.md", *(f"gesscale-{name}" for name in document.SHOWN)}
    text = (docs / "gesscale.md").read_text(encoding="utf-8")
    assert "`penstock reproduce gesscale --seeds 1 --first-seed 2000`" in text
    assert all(f"(gesscale-{name})" in text for name in document.SHOWN)
    assert "drop-offs" in text and "pick-ups" in text


def test_json_and_nothing_else_on_standard_output(
    done: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "reproduce", lambda *_, **__: done)
    result = invoke("gesscale", "--resume", str(done.folder), "--json")
    assert json.loads(result.stdout) == done.document()


def test_the_plan_comes_from_the_folder(done: Reproduction, tmp_path: Path) -> None:
    assert command.planned(done.folder) == TINY
    assert command.wanted(None, None, False) == Plan(seeds=30, first_seed=3000)
    config = json.loads((done.folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "reproduces": "mead"}))
    with pytest.raises(InputError, match="is not a run of `penstock reproduce gesscale`"):
        command.planned(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gesscale", "--seeds", "0"], "--seeds 0 must be ≥ 1"),
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
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_paper() -> None:
    text = invoke("--help").stdout
    assert all(paper in text for paper in PAPERS)


def test_ctrl_c_leaves_what_is_finished_and_no_process(tmp_path: Path) -> None:
    plan = Plan(seeds=20, first_seed=2000)
    folder = command.begin(plan, tmp_path)
    arguments = ["reproduce", "gesscale", "--resume", str(folder), "--workers", "1", "--json"]
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        until("a run is finished", lambda: bool(runner.load(folder).runs))
        workers = children(process.pid)
        assert workers
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130 and out == ""
    until("the workers have ended", lambda: all(map(ended, workers)))
    assert 1 <= len(runner.load(folder).runs) < len(all_cells()) * plan.seeds
    assert f"--resume {folder}" in err.replace("\n", "") and "Traceback" not in err
