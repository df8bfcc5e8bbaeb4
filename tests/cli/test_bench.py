"""``penstock bench``: what it prints and writes, and what it leaves when it is stopped."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.cli.bench import report_bench
from penstock.comparison import runner
from penstock.comparison.cell import Cell
from penstock.comparison.folder import finish
from penstock.comparison.results import Results
from penstock.core.errors import InputError
from tests.fakes.shell import Shell

SPEC = """\
name = "tiny"
seeds = 2
minutes = 10
[[pipeline]]
query = "q1"
[[workload]]
name = ["cosine", "spikes"]
[[policy]]
name = ["ds2", "hpa-cpu"]
"""


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    (tmp_path / "tiny.toml").write_text(SPEC)
    return Shell.at(tmp_path, monkeypatch, capsys, "bench")


def only_run() -> Path:
    (folder,) = (p for p in Path("runs").iterdir() if not p.is_symlink())
    return folder


def test_a_bench_from_start_to_finish(shell: Shell) -> None:
    done = shell("tiny.toml", "--workers", "1")
    assert done.code == 0, done.err
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert "q1 · cosine" in done.out and "q1 · spikes" in done.out
    assert re.search(r"ds2 .*±", done.out) and "oracle" in done.out
    folder = only_run()
    assert Path("runs/latest").resolve() == folder.resolve()
    assert {p.name for p in folder.iterdir()} == {
        "config.json", "cells.json", "scores.jsonl", "metrics.parquet", "journals", "traces",
        "report.html", "report.png", "tables.txt", "tables.md",
    }  # fmt: skip
    assert {p.stem for p in (folder / "journals").iterdir()} == {
        f"q1-{w}-{p}" for w in ("cosine", "spikes") for p in ("ds2", "hpa-cpu")
    }
    table = pq.read_table(folder / "metrics.parquet").to_pylist()
    assert len(table) == 8
    results = Results.load(folder)
    for row in table:
        scores = results.scores(row["cell"], row["seed"])
        assert row["latency_p95"] == scores["latency_p95"] and row["forecast_error"] is None
    config = json.loads((folder / "config.json").read_text())
    assert config["command"] == "bench" and config["seeds"] == [0, 1]
    cell = config["cells"][0]  # with every effective parameter
    assert cell["policy"]["over_provisioning"] == 1.2 and cell["workload"]["high"] == 2.2e6
    page = (folder / "report.html").read_text()
    assert "data:image/png;base64" in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)  # it needs no other file
    assert "| ds2" in (folder / "tables.md").read_text()
    assert "against ds2" in (folder / "tables.txt").read_text()


def test_what_a_user_wrote_is_text_on_the_page(shell: Shell) -> None:
    Path("tiny.toml").write_text(SPEC.replace('"tiny"', '"</script><b>$x$"'))
    assert shell("tiny.toml", "--workers", "1", "--seeds", "1").code == 0
    page = (only_run() / "report.html").read_text()
    assert "&lt;b&gt;$x$" in page and "<b>$x$" not in page


def test_json_is_all_that_is_printed(shell: Shell) -> None:
    done = shell("tiny.toml", "--workers", "1", "--seeds", "1", "--json")
    document = done.json
    assert done.code == 0 and document["complete"] and document["seeds"] == [0]
    assert [g["title"] for g in document["groups"]] == ["q1 · cosine", "q1 · spikes"]
    group = document["groups"][0]
    assert [p["label"] for p in group["policies"]] == ["ds2", "hpa-cpu"]
    score = group["policies"][0]["scores"]["slots_mean"]
    assert score["half_width"] is None and score["mean"] > 0  # one seed has no interval
    assert group["differences"][0]["scores"]["slots_mean"]["verdict"] == "tie"
    assert any(p["front"] for p in group["policies"])
    assert Path(document["files"]["page"]).is_file()


def test_a_dry_run_writes_nothing(shell: Shell) -> None:
    done = shell("tiny.toml", "--dry-run")
    assert done.code == 0 and "q1-spikes-hpa-cpu" in done.out
    assert "4 cells × 2 seeds = 8 runs" in done.out
    assert not Path("runs").exists()
    plan = shell("tiny.toml", "--dry-run", "--json").json
    assert plan["runs"] == 8 and plan["seconds"] > 0


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Cell.run, 0

    def interrupted(*given: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return real(*given, **options)

    monkeypatch.setattr(Cell, "run", interrupted)
    stopped = shell("tiny.toml", "--workers", "1")
    folder = only_run()
    assert stopped.code == 130
    assert "5 of 8 runs" in stopped.err and f"penstock bench --resume {folder}" in stopped.err
    assert Results.load(folder).done == 5
    partial = finish(folder)  # a report of what there is
    assert partial.files["page"].is_file() and not partial.results.complete
    again = shell("--resume", "latest", "--workers", "1", "--json")
    assert again.json["complete"] and calls == 6 + 3
    assert only_run() == folder


def test_resume_refuses_another_spec(shell: Shell) -> None:
    assert shell("tiny.toml", "--workers", "1", "--seeds", "1").code == 0
    before = (only_run() / "scores.jsonl").read_bytes()
    other = shell("tiny.toml", "--workers", "1", "--resume", "latest")
    assert other.code == 2 and "other seeds" in other.err
    assert (only_run() / "scores.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give a bench spec"),
        (("absent.toml",), "no file absent.toml"),
        (("tiny.toml", "--seeds", "0"), "--seeds = 0"),
        (("tiny.toml", "--workers", "0"), "--workers 0"),
        (("tiny.toml", "--resume", "nowhere"), "no bench at"),
        (("--resume", "latest"), "no run"),
        (("wrong.toml",), "wrong.toml, line 3: minutes = -10"),
        (("tiny.toml", "--out", "tiny.toml"), "cannot write a run"),
    ],
)
def test_bad_input_is_exit_code_2_and_writes_nothing(
    shell: Shell, arguments: tuple[str, ...], words: str
) -> None:
    Path("wrong.toml").write_text(SPEC.replace("= 10", "= -10"))
    done = shell(*arguments)
    assert done.code == 2 and words in done.err
    assert "Traceback" not in done.err and done.out == ""
    assert not Path("runs").exists()


def test_a_bench_without_a_finished_run_has_no_report(shell: Shell, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    from penstock.bench.specs.spec import load

    spec = load(Path("tiny.toml"))
    with pytest.raises(KeyboardInterrupt):
        runner.run(spec.cells, spec.seeds, tmp_path / "empty", workers=1, progress=stop)
    with pytest.raises(InputError, match="no finished run"):
        report_bench(tmp_path / "empty")
