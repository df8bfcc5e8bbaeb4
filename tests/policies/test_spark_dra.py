"""Spark's own allocation as a policy: its settings, and every place that cannot run it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.cell import SparkCell
from penstock.bench.specs.spec import load as load_spec
from penstock.comparison.cell import Cell
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.lab.rig.settings import SparkSettings
from penstock.policies import DECIDING, POLICIES, SparkDra, create, parameters_of
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.settings.settings import load as load_settings
from tests.fakes.scenarios import healthy, with_all
from tests.fakes.shell import Shell
from tests.fakes.spark import FakeSession

REFUSED = 'policy spark-dra cannot run .* Use it in penstock bench with engine = "spark"'
SIMULATED = Cell(key="a", query="q1", workload="cosine", policy="spark-dra", minutes=5.0)


def test_its_defaults_are_those_that_spark_ships() -> None:
    assert parameters_of(SparkDra()) == {
        "backlog_timeout": 1.0,
        "sustained_backlog_timeout": 1.0,
        "idle_timeout": 60.0,
        "allocation_ratio": 1.0,
        "shuffle_tracking": True,
    }
    assert create("spark-dra", {"idle_timeout": "20"}) == SparkDra(idle_timeout=20.0)
    assert set(POLICIES) - set(DECIDING) == {"spark-dra"}


@pytest.mark.parametrize("name", ["backlog_timeout", "sustained_backlog_timeout", "idle_timeout"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_a_timeout_that_spark_would_not_take(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"spark-dra: {name} = {value} must be .* above 0"):
        create("spark-dra", {name: value})


@pytest.mark.parametrize("ratio", [0.0, -0.5, 1.01, math.nan])
def test_a_ratio_that_spark_would_not_take(ratio: float) -> None:
    with pytest.raises(InputError, match=rf"allocation_ratio = {ratio} must be in \(0, 1\]"):
        SparkDra(allocation_ratio=ratio)


def test_it_proposes_nothing_however_high_the_load() -> None:
    seen = with_all(healthy(), offered_rate=1e6, arrival_rate=1e6, cpu=1.0, busy=1.0, lag=1e9)
    decision, _ = plan(SparkDra(), Guards(), seen, State())
    assert decision.changes == {} and decision.proposal.needs == {}
    assert "Spark's own allocation decides" in decision.explain()


def test_a_simulation_refuses_it() -> None:
    with pytest.raises(InputError, match=REFUSED):
        SIMULATED.run(0)
    real = SparkCell(**{**SIMULATED.to_dict(), "guards": Guards(), "spark": SparkSettings()})
    assert real.create_policy() == SparkDra()


def test_an_autoscaler_refuses_it_by_name_and_as_an_object() -> None:
    session: Any = FakeSession([])
    for policy in ("spark-dra", SparkDra()):
        with pytest.raises(InputError, match=REFUSED):
            Autoscaler(session, policy)
    assert session.requests == []


def test_a_configuration_refuses_it_and_says_where_it_was_said(tmp_path: Path) -> None:
    path = tmp_path / "penstock.toml"
    path.write_text('mode = "advise"\npolicy = "spark-dra"\n')
    with pytest.raises(InputError, match=r"penstock\.toml, line 2.*" + REFUSED):
        load_settings(path, environment={})
    with pytest.raises(InputError, match="PENSTOCK_POLICY.*" + REFUSED):
        load_settings(environment={"PENSTOCK_POLICY": "spark-dra"})


def test_a_simulated_bench_refuses_it_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(
        '[[pipeline]]\nquery = "q1"\n[[workload]]\nname = "cosine"\n'
        '[[policy]]\nname = "ds2"\n[[policy]]\nname = "spark-dra"\n'
    )
    with pytest.raises(InputError, match=r"line 7: " + REFUSED):
        load_spec(path)


COMMANDS = [
    ["simulate", "--policy", "spark-dra"],
    ["compare", "--policies", "ds2,spark-dra"],
    ["advise", "--app-url", "http://127.0.0.1:1", "--policy", "spark-dra"],
    ["run", "job.py", "--policy", "spark-dra"],
    ["demo", "--policy", "spark-dra"],
]


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    (tmp_path / "job.py").write_text("print('ran')\n")
    return Shell.at(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_refuse_it_before_anything_starts(command: list[str], shell: Shell) -> None:
    done = shell(*command)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ") and 'bench with engine = "spark"' in done.err
    assert done.err.count("\n") == 1 and not Path("runs").exists()


def test_it_is_explained_without_a_command_that_would_refuse_it(shell: Shell) -> None:
    done = shell("policies", "spark-dra")
    assert 'It runs in penstock bench with engine = "spark" or "micro-batch".' in done.out
    assert "simulate" not in done.out
