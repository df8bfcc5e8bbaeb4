"""``penstock replay``: a recorded run, what policies would have done with it, and the advice."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.comparison.profiled import ProfileCell
from penstock.comparison.replay import Replay
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.policies import create
from penstock.simulator.microbatch import Profile
from penstock.spark.settings.settings import load
from tests.fakes.microbatch_examples import EXECUTOR, counting
from tests.fakes.shell import Shell
from tests.places import ROOT

POLICIES = ["ds2", "hpa-cpu"]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``ds2`` did in twenty minutes, tick by tick."""
    path = tmp_path_factory.mktemp("recorded") / "decisions.jsonl"
    cell = ProfileCell(
        key="real",
        query="counts",
        workload="cosine",
        workload_parameters={"low": 300.0, "high": 2500.0, "period": 600.0, "noise": 0.0},
        policy="ds2",
        guards=Guards(minimum=1, maximum=6, cool_down=30.0, tolerance=0.1),
        minutes=20.0,
        profile="live",
        application=Profile(version=1, queries=(counting(),), executor=EXECUTOR),
    )
    cell.run(0, journal=path)
    return path


@pytest.fixture(scope="module")
def done(journal: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    out = tmp_path_factory.mktemp("runs")
    yield penstock.replay(journal, POLICIES, slo=20.0, seeds=2, out=out, price=0.4)


def test_what_ran_stands_beside_what_would_have(done: Replay) -> None:
    labels = [row.label for row in done.view.group.rows]
    assert labels == ["recorded", *POLICIES, "static (peak)", "as recorded", "ds2 (ran)"]
    text = done.table()
    assert max(map(len, text.splitlines())) <= 80
    for words in ("Advice:", "How sure:", "Played beside recorded:", "min_executors ="):
        assert words in text


def test_the_recorded_policy_decides_the_same_again(done: Replay) -> None:
    agreement = done.agreement
    assert agreement.decisions == agreement.same == len(done.recorded.entries) > 60
    assert abs(agreement.executors_error or 1.0) <= 0.15
    mean = done.comparison.results.estimate("recorded-played", "slots_mean").mean
    assert mean == pytest.approx(done.recorded.scores["slots_mean"], rel=0.05)


def test_the_demand_is_that_of_the_recording(done: Replay) -> None:
    offered = done.learned.demand["bids"]
    assert offered.mean == pytest.approx(1400.0, rel=0.05)
    assert offered.peak == pytest.approx(2500.0, rel=0.1)


def test_the_advice_can_be_pasted(done: Replay, tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(done.advice.settings)
    assert tomllib.loads(file.read_text())["policy"]["name"] == done.advice.policy
    settings = load(file, environment={})
    assert settings.guards.minimum == done.advice.minimum
    assert settings.guards.maximum == done.advice.maximum
    create(settings.policy, settings.parameters)
    assert f"--max {done.advice.maximum}" in done.advice.command


def test_everything_is_kept(done: Replay) -> None:
    assert {"run", "page", "picture", "demand", "tables"} <= set(done.files)
    page = done.files["page"].read_text()
    assert "Can it be trusted?" in page and "://" not in page.split("<script>")[0]
    assert done.files["picture"].read_bytes().startswith(b"\x89PNG")
    assert done.files["tables"].read_text() == done.table()
    document = done.to_dict()
    assert json.loads(json.dumps(document))["advice"]["policy"] == done.advice.policy


def test_the_command_prints_the_same(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    shell = Shell.at(tmp_path, monkeypatch, capsys)
    run = ("replay", str(journal), "--policies", "ds2", "--seeds", "1", "--workers", "1")
    printed = shell(*run, "--no-save", "--json")
    assert printed.code == 0, printed.err
    assert printed.json["recorded"]["policy"] == "ds2"
    assert printed.json["files"] == {} and not (tmp_path / "runs").exists()
    shown = shell(*run)
    assert "Advice:" in shown.out and (tmp_path / "runs" / "latest" / "report.html").is_file()
    assert "play it again" in " ".join(shell("report", "latest").err.split())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"policies": []}, "no policies"),
        ({"policies": ["ds3"]}, "did you mean 'ds2'"),
        ({"minimum": 0}, "minimum 0"),
        ({"maximum": 0}, "above maximum 0"),
        ({"slo": -1.0}, "slo = -1.0"),
        ({"price": -1.0}, "price = -1.0"),
        ({"query": "orders"}, "counts"),
    ],
)
def test_bad_input_is_refused(journal: Path, more: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        penstock.replay(journal, **{"policies": POLICIES, "seeds": 1, **more})  # type: ignore[arg-type]


def test_the_recording_that_comes_along_is_played_as_it_ran() -> None:
    """A journal of real Spark: what the recorded policy does when it is played, beside the run."""
    found = penstock.replay(ROOT / "examples" / "replay" / "decisions.jsonl", POLICIES, seeds=3)
    agreement = found.agreement
    assert agreement.decisions == agreement.same == 55
    assert abs(agreement.executors_error or 1.0) <= 0.15
    played, recorded = agreement.behind or (0.0, 0.0)
    assert played == pytest.approx(recorded, rel=0.3)
