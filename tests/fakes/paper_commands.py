"""What the tests of ``penstock reproduce PAPER`` do alike, whatever the paper."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner, Result

from penstock.cli.app import build
from penstock.cli.reproduce import reproduce
from penstock.core.errors import InputError
from penstock.papers import running
from penstock.papers.harness import Reproduction
from tests.fakes.waiting import children, ended, until

APP = build({"reproduce": reproduce, "other": lambda: None})


def invoke(*arguments: str) -> Result:
    """``penstock reproduce …``."""
    return CliRunner().invoke(APP, ["reproduce", *arguments])


def check_written(done: Reproduction[Any], *, resumable: bool = True) -> None:
    """The files of a finished run, its pictures, its page, its JSON."""
    names = {path.name for path in done.folder.iterdir()}
    expected = {
        "config.json",
        "figures",
        f"{done.paper.key}.json",
        f"{done.paper.key}.md",
        "report.html",
    }
    assert names == expected | ({"scores.jsonl"} if resumable else set())
    assert {path.name for path in done.report.pictures} == set(done.paper.captions)
    for path in done.report.pictures:
        assert imread(path).std() > 0.01  # something was drawn
    page = (done.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(done.report.pictures)
    assert "http" not in page and "<script" not in page


def check_json(done: Reproduction[Any], *, findings: str, rows: list[int]) -> None:
    """``findings`` their letters, ``rows`` of each table."""
    plain = json.loads((done.folder / f"{done.paper.key}.json").read_text(encoding="utf-8"))
    assert plain == done.document()
    assert [f["id"] for f in plain["findings"]] == list(findings)
    assert [len(t["rows"]) for t in plain["tables"]] == rows
    for table in plain["tables"]:
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}


def shown_again(
    done: Reproduction[Any],
    docs: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    cells: int,
) -> str:
    """Resume a finished run: nothing runs, tables fit 80 columns; the document that it writes."""
    monkeypatch.setattr(running, "spread", lambda *_: pytest.fail("it ran again"))
    monkeypatch.setenv("COLUMNS", "80")
    result = invoke(done.paper.name, "--resume", str(done.folder), "--docs", str(docs))
    assert result.exit_code == 0, result.output
    assert f"{cells} cells × {done.asked.seeds} seeds" in result.stderr
    held = sum(finding.verdict == "held" for finding in done.report.findings)
    assert f"{held} of {len(done.report.findings)} findings held" in result.stdout
    assert "…" not in result.stdout
    places = ("run     ", "page    ")  # paths are not broken
    lines = [line for line in result.stdout.splitlines() if not line.startswith(places)]
    assert max(map(len, lines)) <= 80
    pictures = {f"{done.paper.key}-{name}" for name in done.paper.shown or done.paper.captions}
    assert {path.name for path in docs.iterdir()} == {f"{done.paper.key}.md", *pictures}
    text = (docs / f"{done.paper.key}.md").read_text(encoding="utf-8")
    assert all(f"({name})" in text for name in pictures)
    return text


def check_refused(
    arguments: list[str], words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad usage, said before anything is written."""
    monkeypatch.chdir(folder)
    result = invoke(*arguments)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
    assert list(folder.iterdir()) == []


def interrupted(
    paper: str, folder: Path, number: signal.Signals, runs: Callable[[], int]
) -> tuple[int, str]:
    """Go on with a run, end it by a signal after its first ``runs``; exit code and messages."""
    arguments = ["reproduce", paper, "--resume", str(folder), "--workers", "1", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )
    try:
        until("a run is finished", lambda: runs() > 0)
        workers = children(process.pid)
        assert workers
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert out == "" and "Traceback" not in err
    until("the workers have ended", lambda: all(map(ended, workers)))
    return process.returncode, err.replace("\n", "")
