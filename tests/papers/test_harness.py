"""What all papers have in common: their folders of version 0.1, and how they are called."""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.reproduce import ON_SPARK, PAPERS
from penstock.comparison import runner
from penstock.core.errors import InputError
from penstock.papers import harness, running
from penstock.papers.geo.simulated.experiment import GeoOutcome
from penstock.papers.gesscale.simulated.experiment import GesscaleOutcome
from penstock.papers.harness import Paper
from tests.fakes.paper_commands import check_refused

RECORDED = Path(__file__).parent / "recorded-0.1"
"""What ``penstock reproduce`` of version 0.1 left: all of config.json, two lines of the scores."""
ASKED: dict[str, dict[str, Any]] = {
    "thesis": {"seeds": 2, "first_seed": 3000},
    "mead": {"seeds": 1, "first_seed": 0},
    "gesscale": {"seeds": 2, "first_seed": 3000},
    "geo": {"seeds": 2, "first_seed": 4000},
    "decentralized": {"seeds": 3, "first_seed": 0},
}
EVERY = [(name, False) for name in PAPERS] + [(name, True) for name in ON_SPARK]


def paper(name: str, *, on_spark: bool = False) -> Paper[Any]:
    package = (ON_SPARK if on_spark else PAPERS)[name]
    found: Paper[Any] = import_module(f"penstock.papers.{package}.paper").PAPER
    return found


@pytest.mark.parametrize("name", PAPERS)
def test_a_folder_of_0_1_can_be_resumed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a later version, whose figures are the same."""
    expected = paper(name).asked(**ASKED[name])
    assert harness.resume(paper(name), RECORDED / name) == expected
    monkeypatch.setattr(runner, "__version__", "0.2.0")
    assert harness.resume(paper(name), RECORDED / name) == expected
    # and a new folder says the same in the same words
    folder = harness.begin(paper(name), expected, tmp_path)
    configs = [json.loads((f / "config.json").read_text()) for f in (folder, RECORDED / name)]
    assert [list(config) for config in configs] == [list(configs[1])] * 2
    assert {**configs[0], "created": ""} == {**configs[1], "created": ""}


def test_a_folder_on_spark_of_0_1_can_be_resumed(tmp_path: Path) -> None:
    config: dict[str, Any] = {"name": "geo-on-spark", "created": "2026-01-01T00:00:00+00:00"}
    config |= {"reproduces": "geo-on-spark", "penstock": "0.1.0", "seeds": 1, "first_seed": 7}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    geo = paper("geo", on_spark=True)
    assert harness.resume(geo, tmp_path) == geo.asked(seeds=1, first_seed=7)
    with pytest.raises(InputError, match="is not a run of `penstock reproduce geo`"):
        harness.resume(paper("geo"), tmp_path)


def test_runs_of_0_1_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, name in ((GesscaleOutcome, "gesscale"), (GeoOutcome, "geo")):
        shutil.copytree(RECORDED / name, tmp_path / name)
        kept = running.load(kind, tmp_path / name)
        assert len(kept) == 2
        left: list[tuple[str, int]] = []
        monkeypatch.setattr(
            running,
            "spread",
            lambda groups, *_, left=left: left.extend((r.key, r.seed) for g in groups for r in g),
        )
        asked = harness.resume(paper(name), tmp_path / name)
        found = paper(name).measure(asked, running.RunFolder(path=tmp_path / name))
        assert found.runs == kept
        assert left and not {(run.key, run.seed) for run in kept} & set(left)


@pytest.mark.parametrize(("name", "on_spark"), EVERY)
def test_a_paper_says_how_it_is_called(name: str, on_spark: bool) -> None:
    found = paper(name, on_spark=on_spark)
    assert (found.name, found.on_spark) == (name, on_spark)
    assert found.key == (f"{name}-on-spark" if on_spark else name)
    asked = found.asked(seeds=7, first_seed=8)
    spark = " --on-spark" if on_spark else ""
    assert found.command(asked) == f"penstock reproduce {name}{spark} --seeds 7 --first-seed 8"
    assert set(found.shown) <= set(found.captions)
    assert ("runs" if on_spark else "× 7 seeds") in found.amount(asked)


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seeds", "0"], "--seeds 0 must be ≥ 1"),
        (["--first-seed", "-1"], "--first-seed -1 must be ≥ 0"),
        (["--workers", "0"], "--workers 0 must be ≥ 1"),
        (["--resume", "nothing-here"], "is not a run of"),
        (["--resume", "x", "--seeds", "3"], "--seeds was fixed"),
        (["--docs", "/proc/docs"], "/proc/docs"),
    ],
)
def test_refused_before_anything_is_written(
    name: str, arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_refused([name, *arguments], words, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["maed"], "did you mean 'mead'"),
        (["geskale"], "did you mean 'gesscale'"),
        (["theses"], "did you mean 'thesis'"),
        (["mead", "--on-spark"], "mead is simulated only"),
        (["mead", "--only", "7.1"], "--only is for the thesis"),
        (["gesscale", "--only", "7.1"], "--only is for the thesis"),
        (["geo", "--extended"], "geo has nothing beyond the paper"),
        (["thesis", "--only", "7.17"], "unknown table '7.17'"),
        (["thesis", "--only", "7.1", "--extended"], "leave --only out"),
    ],
)
def test_what_a_paper_does_not_have_is_refused(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_refused(arguments, words, tmp_path, monkeypatch)
