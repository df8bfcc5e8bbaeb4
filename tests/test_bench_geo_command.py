"""``penstock reproduce geo``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner, Result

from penstock.bench import lanes
from penstock.bench.geo import command, document, figures
from penstock.bench.geo.cells import all_cells
from penstock.bench.geo.command import Plan
from penstock.bench.reproduction import Reproduction
from penstock.cli.app import build
from penstock.cli.reproduce import PAPERS
from penstock.cli.reproduce import reproduce as cli
from penstock.core.errors import InputError

APP = build({"reproduce": cli, "other": lambda: None})
TINY = Plan(seeds=1, first_seed=101)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(APP, ["reproduce", *arguments])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Every cell once."""
    folder = command.begin(TINY, tmp_path_factory.mktemp("runs"))
    return command.reproduce(TINY, folder, workers=1)


def test_it_is_a_paper_that_can_be_asked_for() -> None:
    assert "geo" in PAPERS


def test_writes_the_page_the_text_the_figures_and_the_json(done: Reproduction) -> None:
    names = {path.name for path in done.folder.iterdir()}
    assert names == {
        "config.json", "scores.jsonl", "figures", "geo.json", "geo.md", "report.html"
    }  # fmt: skip
    assert {path.name for path in done.pictures} == set(document.CAPTIONS)
    for path in done.pictures:
        assert imread(path).std() > 0.01  # something was drawn
    page = (done.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(done.pictures)
    assert "http" not in page and "<script" not in page
    plain = json.loads((done.folder / "geo.json").read_text(encoding="utf-8"))
    assert plain == done.document()
    assert [f["id"] for f in plain["findings"]] == list("abcdefghijklmno")
    assert [len(t["rows"]) for t in plain["tables"]] == [10, 10, 10, 10, 9, 9, 9, 9, 5, 10, 11]


def test_a_finished_run_is_shown_again_without_running(
    done: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "_spread", lambda *_: pytest.fail("it ran again"))
    monkeypatch.setattr(figures, "draw_all", lambda *_: list(done.pictures))
    monkeypatch.setenv("COLUMNS", "80")
    docs = tmp_path / "docs"
    result = invoke("geo", "--resume", str(done.folder), "--docs", str(docs))
    assert result.exit_code == 0, result.output
    assert f"{len(all_cells())} cells × 1 seeds" in result.stderr
    assert "of 15 findings held" in result.stdout and "…" not in result.stdout
    places = ("run     ", "page    ")  # paths are not broken
    lines = [line for line in result.stdout.splitlines() if not line.startswith(places)]
    assert max(map(len, lines)) <= 80
    written = {path.name for path in docs.iterdir()}
    assert written == {"geo.md", *(f"geo-{name}" for name in document.CAPTIONS)}
    text = (docs / "geo.md").read_text(encoding="utf-8")
    assert "`penstock reproduce geo --seeds 1 --first-seed 101`" in text
    assert all(f"(geo-{name})" in text for name in document.CAPTIONS)
    assert "seeds 100 to 139" in text  # what the constants were chosen on


def test_what_is_missing_is_run_and_nothing_else(
    done: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cut"
    folder.mkdir()
    lines = (done.folder / "scores.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "scores.jsonl").write_text("".join(lines[:-2]) + lines[-1][:40], encoding="utf-8")
    (folder / "config.json").write_bytes((done.folder / "config.json").read_bytes())
    ran: list[int] = []
    spread = lanes._spread

    def watched(groups: object, *rest: object) -> None:
        ran.append(sum(map(len, groups)))  # type: ignore[call-overload]
        spread(groups, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(lanes, "_spread", watched)
    again = command.reproduce(TINY, folder, workers=1)
    assert ran == [2]
    assert again.document() == done.document()


def test_seeds_of_its_own() -> None:
    plan = command.wanted(None, None, False)
    assert (plan.seeds, plan.first_seed) == (25, 4000)
    assert not set(plan.numbers) & {*range(100), *range(100, 140), *range(1000, 1030)}
    assert command.wanted(3, 7, False).numbers == [7, 8, 9]


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="--seeds 0"):
        Plan(seeds=0)


def test_a_folder_of_another_paper_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"reproduces": "mead"}), encoding="utf-8")
    with pytest.raises(InputError, match="penstock reproduce geo"):
        command.planned(tmp_path)
