"""``penstock reproduce mead``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner, Result

from penstock.bench import lanes
from penstock.bench.mead import command, document, figures, runner
from penstock.bench.mead.cells import all_cells
from penstock.bench.mead.command import Plan
from penstock.bench.reproduction import Reproduction
from penstock.cli.app import build
from penstock.cli.reproduce import reproduce as cli
from penstock.core.errors import InputError
from tests.waiting import children, ended, until

APP = build({"reproduce": cli, "other": lambda: None})
TINY = Plan(seeds=1, first_seed=3, minutes=2.0)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(APP, ["reproduce", *arguments])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Every cell, two minutes long."""
    folder = command.begin(TINY, tmp_path_factory.mktemp("runs"))
    return command.reproduce(TINY, folder)


def test_writes_the_page_the_text_the_figures_and_the_json(done: Reproduction) -> None:
    names = {path.name for path in done.folder.iterdir()}
    assert names == {
        "config.json", "scores.jsonl", "figures", "mead.json", "mead.md", "report.html"
    }  # fmt: skip
    assert {path.name for path in done.pictures} == set(document.CAPTIONS)
    for path in done.pictures:
        assert imread(path).std() > 0.01  # something was drawn
    page = (done.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(done.pictures)
    assert "http" not in page and "<script" not in page


def test_json_is_findings_and_tables(done: Reproduction) -> None:
    plain = json.loads((done.folder / "mead.json").read_text(encoding="utf-8"))
    assert plain == done.document()
    assert [f["id"] for f in plain["findings"]] == list("abcdefghi")
    assert [len(t["rows"]) for t in plain["tables"]] == [16, 27, 12, 9, 6, 15, 4]
    for table in plain["tables"]:
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}


def test_a_finished_run_is_shown_again_without_running(
    done: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "_spread", lambda *_: pytest.fail("it ran again"))
    monkeypatch.setattr(figures, "draw_all", lambda *_: list(done.pictures))
    monkeypatch.setenv("COLUMNS", "80")
    docs = tmp_path / "docs"
    result = invoke("mead", "--resume", str(done.folder), "--docs", str(docs))
    assert result.exit_code == 0, result.output
    assert "54 cells × 1 seeds" in result.stderr and str(docs / "mead.md") in result.stderr
    held = sum(f.holds for f in done.findings)
    assert f"{held} of 9 findings held" in result.stdout
    places = ("run     ", "page    ")  # paths are not broken
    lines = [line for line in result.stdout.splitlines() if not line.startswith(places)]
    assert max(map(len, lines)) <= 80
    written = {path.name for path in docs.iterdir()}
    assert written == {"mead.md", *(f"mead-{name}" for name in document.SHOWN)}
    text = (docs / "mead.md").read_text(encoding="utf-8")
    assert all(f"({name})" in text for name in written - {"mead.md"})


def test_json_is_all_there_is_on_standard_output(
    done: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "reproduce", lambda *_, **__: done)
    result = invoke("mead", "--resume", str(done.folder), "--json")
    assert json.loads(result.stdout) == done.document()


def test_the_plan_comes_from_the_folder(done: Reproduction, tmp_path: Path) -> None:
    assert command.planned(done.folder) == TINY
    config = json.loads((done.folder / "config.json").read_text())
    for changed, words in (
        ({"reproduces": "thesis"}, "is not a run of `penstock reproduce mead`"),
        ({"penstock": "0.0.1"}, "was begun with penstock 0.0.1"),
        ({"seeds": "many"}, "is not a run of"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changed}))
        with pytest.raises(InputError, match=words):
            command.planned(tmp_path)


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
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_help_and_plans_that_cannot_be() -> None:
    assert "mead" in invoke("--help").stdout
    with pytest.raises(InputError, match="minutes 1 must be ≥ 2"):
        replace(TINY, minutes=1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_a_signal_leaves_what_is_finished_and_no_process(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    plan = Plan(seeds=1, minutes=10.0)
    folder = command.begin(plan, tmp_path)
    arguments = ["reproduce", "mead", "--resume", str(folder), "--workers", "1", "--json"]
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
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code and out == ""
    until("the workers have ended", lambda: all(map(ended, workers)))
    assert command.planned(folder) == plan
    assert 1 <= len(runner.load(folder).runs) < len(all_cells())
    if number is signal.SIGINT:
        assert f"--resume {folder}" in err.replace("\n", "") and "Traceback" not in err
