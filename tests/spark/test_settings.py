"""The configuration: what wins, where it came from, what is refused and how it is said."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.core.errors import InputError
from penstock.core.guards import Blackout, Guards
from penstock.policies import DECIDING
from penstock.spark.settings.keys import KEYS, PRODUCTION, SPARK
from penstock.spark.settings.settings import OTHERS, Settings, load
from tests.fakes.shell import Shell

ROOT = Path(penstock.__file__).parents[2]
FILE = """\
mode = "act"
max_executors = 12
period = "30s"
blackouts = ["22:00-06:30"]

[policy]
name = "ds2+"
catch_up = "10 min"

[guards]
cool_down = "2 min"
step_up = "none"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "penstock.toml"
    path.write_text(FILE)
    return path


def loaded(
    file: Path | None = None,
    env: dict[str, str] | None = None,
    spark: dict[str, str] | None = None,
    **given: Any,
) -> Settings:
    return load(file, environment=env or {}, spark=spark, given=given)


def test_a_mapping_says_what_a_file_says(file: Path) -> None:
    document = tomllib.loads(FILE)
    flat: dict[str, Any] = {"guards.cool_down": "2 min", "guards.step_up": "none", "policy": "ds2+"}
    flat |= {"policy.catch_up": "10 min", "blackouts": ["22:00-06:30"], "period": "30s"}
    of_file = loaded(file)
    for config in (document, {**flat, "mode": "act", "max_executors": 12}):
        made = load(config, environment={})
        assert made == replace(of_file, file=None, origins=made.origins)
        assert set(made.origins.values()) == {"program", "default on Spark"}


def test_a_mapping_is_stronger_than_the_environment_and_weaker_than_a_single_value() -> None:
    env = {"PENSTOCK_MAX_EXECUTORS": "5", "PENSTOCK_PERIOD": "9s", "PENSTOCK_SEED": "4"}
    config = {"max_executors": 6, "period": "8s"}
    made = load(config, environment=env, given={"period": 7})
    assert (made.guards.maximum, made.period, made.seed) == (6, 7.0, 4)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"max_executor": 8}, "unknown key max_executor; did you mean 'max_executors'"),
        ({"guards": {"cooldown": 8}}, "unknown key guards.cooldown; did you mean 'guards.cool_d"),
        ({"guards": 8}, "guards = 8 must be Guards, or in config a table of them"),
        ({"policy": {"name": "ds2", "slots": 8}}, "unknown parameter of policy ds2 'slots'"),
        ({"guards": {"cool_down": "soon"}}, "guards.cool_down = 'soon' must be a duration"),
    ],
)
def test_a_mapping_with_a_mistake_is_refused(config: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        load(config, environment={})


def test_without_anything_the_guards_of_production_hold() -> None:
    settings = loaded()
    assert settings.guards == PRODUCTION == Guards(tolerance=0.1, cool_down=60.0, drain=30.0)
    assert (settings.policy, settings.mode, settings.period) == ("ds2", "advise", 15.0)
    assert settings.metrics_port is None and settings.journal is None
    assert {origin for _, _, origin in settings.rows()} == {"default"}


def test_a_file_says_what_and_where(file: Path) -> None:
    settings = loaded(file)
    assert settings.guards == Guards(
        maximum=12, tolerance=0.1, cool_down=120.0, drain=30.0,
        blackouts=(Blackout.parse("22:00-06:30"),),
    )  # fmt: skip
    assert (settings.mode, settings.period, settings.policy) == ("act", 30.0, "ds2+")
    assert settings.parameters["catch_up"] == 600.0
    assert settings.origins["mode"] == f"{file}, line 1"
    assert settings.origins["policy.catch_up"] == f"{file}, line 8"
    assert settings.origins["guards.cool_down"] == f"{file}, line 11"


def test_the_nearer_place_wins(file: Path) -> None:
    env = {"PENSTOCK_MAX_EXECUTORS": "11", "PENSTOCK_GUARDS_COOL_DOWN": "90", "PENSTOCK_SEED": "1"}
    spark = {"spark.penstock.max_executors": "10", "spark.penstock.seed": "2", "spark.app.id": "x"}
    settings = loaded(file, env, spark, max_executors=9)
    assert (settings.guards.maximum, settings.origins["max_executors"]) == (9, "program")
    assert (settings.seed, settings.origins["seed"]) == (2, "spark.penstock.seed")
    assert settings.guards.cool_down == 90.0
    assert settings.origins["guards.cool_down"] == "PENSTOCK_GUARDS_COOL_DOWN"
    assert loaded(file, env, spark).guards.maximum == 10
    assert loaded(file, env).guards.maximum == 11
    assert loaded(file).guards.maximum == 12


def test_guards_of_a_program_replace_all_of_them(file: Path) -> None:
    mine = Guards(minimum=2, maximum=3, tolerance=0.2)
    settings = loaded(file, {"PENSTOCK_GUARDS_DRAIN": "5"}, guards=mine, max_executors=4)
    assert settings.guards == Guards(minimum=2, maximum=4, tolerance=0.2)
    assert settings.origins["guards.drain"] == "program"


def test_another_policy_drops_the_parameters_of_the_one_before(file: Path) -> None:
    settings = loaded(file, {"PENSTOCK_POLICY": "hpa-cpu", "PENSTOCK_POLICY_TARGET": "0.6"})
    assert settings.policy == "hpa-cpu"
    assert settings.parameters["target"] == 0.6
    assert "policy.catch_up" not in settings.origins
    same = loaded(file, {"PENSTOCK_POLICY": "ds2+"})
    assert same.parameters["catch_up"] == 600.0


def test_a_policy_may_be_named_without_a_table(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('policy = "static"\n')
    settings = loaded(path, {"PENSTOCK_POLICY_SLOTS": "3"})
    assert settings.parameters == {"slots": 3, "pools": ""}


def test_the_file_is_found_by_argument_spark_or_environment(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("seed = 7\n")
    env, spark = {"PENSTOCK_CONFIG": str(other)}, {"spark.penstock.config": str(file)}
    assert loaded(None, env).seed == 7
    assert loaded(None, env, spark).file == file
    assert loaded(other, {}, spark).file == other
    with pytest.raises(InputError, match=r"no file .*none.toml; give the path of a configuration"):
        loaded(tmp_path / "none.toml")


def test_variables_that_are_no_configuration_are_left_alone() -> None:
    env = dict.fromkeys(OTHERS - {"PENSTOCK_CONFIG"}, "x") | {
        "PENSTOCK_METRICS_PORT": "tcp://10.0.0.1:9464",  # Kubernetes, of a service of that name
        "PENSTOCK_METRICS_PORT_9464_TCP_ADDR": "10.0.0.1",
        "PENSTOCK_METRICS_SERVICE_HOST": "10.0.0.1",
        "PENSTOCK_METRICS_SERVICE_PORT_HTTP": "9464",
        "PENSTOCK_MODE": "",  # empty: not set
        "HOME": "/",
    }
    assert loaded(env=env) == loaded()


def test_every_variable_of_the_project_is_a_key_or_known_not_to_be() -> None:
    found = set()
    for path in (ROOT / "src").rglob("*"):
        if path.suffix in (".py", ".sh") and not path.name.startswith("setting_"):
            text = path.read_text(encoding="utf-8")
            found |= set(re.findall(r"\bPENSTOCK_[A-Z][A-Z_]*[A-Z]\b", text))
    assert found > {"PENSTOCK_DEBUG", "PENSTOCK_START_WITH"}
    known = {key.variable for key in KEYS.values()} | OTHERS
    assert found - {"PENSTOCK_GUARDS_COOL_DOWN"} <= known


WRONG_FILES = {
    "key": ("perod = 3", r"line 1: unknown key 'perod'; did you mean 'period'\? Known: "),
    "key of guards": ("[guards]\ncooldown = 3", r"line 2: .*did you mean 'guards.cool_down'\?"),
    "limits among the guards": ("[guards]\nmaximum = 3", r"line 2: .*'max_executors'\?"),
    "parameter": ("[policy]\noverprovisioning = 1", r"line 2: .*'over_provisioning'\?"),
    "policy": ('policy = "ds3"', r"line 1: policy = 'ds3': unknown policy.*did you mean 'ds2'"),
    "policy's value": ("[policy]\nover_provisioning = -1", "line 2: ds2: over_provisioning = -1"),
    "number as text": ('max_executors = "8"', "line 1: max_executors = '8' must be a whole number"),
    "too few": ("min_executors = 0", "line 1: min_executors = 0 must be a whole number, ≥ 1"),
    "true is no number": ("seed = true", "line 1: seed = True must be a whole number"),
    "duration": ('period = "often"', r"line 1: period = 'often' must be seconds or a duration"),
    "no time at all": ('period = "0s"', r"line 1: period = '0s' must be .*, above 0"),
    "endless": ("period = inf", "line 1: period = inf must be"),
    "guard's bound": ("[guards]\nstep_up = 0", "line 2: step_up = 0 must be ≥ 1, or left out"),
    "guard's kind": ('[guards]\nuseful = "x"', "line 2: useful = 'x' must be true or false"),
    "blackout": ('blackouts = ["late"]', "line 1: .*'late' must look like 22:00-06:30"),
    "port": ("metrics_port = 65536", "line 1: metrics_port = 65536 must be .* ≤ 65535"),
    "flag": ("freeze_signals = 1", "line 1: freeze_signals = 1 must be true or false"),
    "guards no table": ("guards = 3", r"line 1: guards = 3 must be a table: \[guards\]"),
    "min above max": ("min_executors = 5\nmax_executors = 2",
                      "minimum 5 is above maximum 2.*min_executors: .*line 1, max.*line 2"),
    "not TOML": ("mode: act", "line 1: not TOML"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_wrong_file_is_refused_with_line_and_bound(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text + "\n")
    with pytest.raises(InputError, match=said):
        loaded(path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MAX_EXECTORS", "3", "unknown variable PENSTOCK_MAX_EXECTORS; did you mean "
                              "'PENSTOCK_MAX_EXECUTORS'"),
        ("MAX_EXECUTORS", "many", "PENSTOCK_MAX_EXECUTORS = 'many' must be a whole number, ≥ 1"),
        ("POLICY_TARGT", "3", "PENSTOCK_POLICY_TARGT: unknown parameter of policy ds2 'targt'"),
        ("POLICY_OVER_PROVISIONING", "x", "PENSTOCK_POLICY_OVER_PROVISIONING: ds2: over_provis"),
        ("GUARDS_COOL_DOWN", "soon", "PENSTOCK_GUARDS_COOL_DOWN = 'soon' must be a duration"),
        ("MODE", "auto", "PENSTOCK_MODE = 'auto' must be advise or act"),
        ("PERIOD", "nan", "PENSTOCK_PERIOD = 'nan' must be"),
    ],
)  # fmt: skip
def test_a_wrong_variable_or_spark_key_is_refused_by_its_name(
    name: str, value: str, said: str
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        loaded(env={"PENSTOCK_" + name: value})
    by_variable = {key.variable: key.name for key in KEYS.values()}
    key = by_variable.get("PENSTOCK_" + name) or name.lower().replace("policy_", "policy.")
    with pytest.raises(InputError, match=rf"spark\.penstock\.{re.escape(key)}"):
        loaded(spark={"spark.penstock." + key: value})


@given(
    least=st.integers(1, 50), more=st.integers(0, 50), seconds=st.integers(1, 10**6),
    step=st.none() | st.integers(1, 99), useful=st.booleans(), policy=st.sampled_from([*DECIDING]),
)  # fmt: skip
def test_every_place_means_the_same(
    least: int, more: int, seconds: int, step: int | None, useful: bool, policy: str
) -> None:
    values: dict[str, Any] = {
        "min_executors": least, "max_executors": least + more, "period": f"{seconds}s",
        "guards.step_up": "none" if step is None else step, "guards.useful": useful,
        "policy": policy, "blackouts": "22:00-06:30,12:00-13:00",
    }  # fmt: skip
    texts = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in values.items()}
    by_env = loaded(env={KEYS[k].variable: v for k, v in texts.items()})
    by_spark = loaded(spark={f"spark.penstock.{k}": v for k, v in texts.items()})
    values["blackouts"] = values["blackouts"].split(",")
    by_program = load(environment={}, given=values)
    for f in fields(Settings):
        if f.name != "origins":
            assert getattr(by_env, f.name) == getattr(by_spark, f.name)
            assert getattr(by_env, f.name) == getattr(by_program, f.name)
    assert by_env.guards.minimum == least and by_env.period == seconds


def test_every_guard_has_a_key() -> None:
    named = {f"guards.{f.name}" for f in fields(Guards)}
    apart = {"guards.minimum", "guards.maximum", "guards.blackouts"}
    assert {key for key in KEYS if key.startswith("guards.")} == named - apart


def test_the_documentation_names_every_key_as_the_code_does() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = [
        f"| `{key.name}` | {key.shown(key.default)} | {key.text} | `{key.variable}` "
        f"| `{SPARK}{key.name}` |"
        for key in KEYS.values()
    ]
    head = ["| key | default | meaning | environment | Spark |", "|---|---|---|---|---|"]
    table = "\n".join([*head, *rows])
    assert table in text, f"put this table into docs/configuration.md:\n{table}"


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell.at(tmp_path, monkeypatch, capsys)


def test_config_prints_what_holds_with_its_origin(
    shell: Shell, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_MODE", "advise")
    done = shell("config", str(file.name))
    assert done.code == 0
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.out.splitlines()}
    assert lines["mode"] == ["advise", "PENSTOCK_MODE"]
    assert lines["period"] == ["30s", "penstock.toml, line 3"]
    assert lines["blackouts"] == ["22:00-06:30", "penstock.toml, line 4"]
    assert set(lines) >= set(KEYS)
    document = json.loads(shell("config", str(file.name), "--json").out)
    assert document["max_executors"] == {"value": 12, "origin": "penstock.toml, line 2"}
    assert document["blackouts"]["value"] == ["22:00-06:30"]


def test_flags_of_run_win_and_the_configuration_can_be_printed(shell: Shell, file: Path) -> None:
    done = shell("run", "x.py", "--config", file.name, "--max", "5", "--set", "catch_up=7",
                 "--cool-down", "9", "--metrics-port", "0", "--print-config")  # fmt: skip
    assert done.code == 0
    for line in (
        "max_executors +5 +--max",
        "policy.catch_up +7 +--set",
        "mode +act +penstock",
        "guards.cool_down +9s +--cool-down",
        "metrics_port +0 +--metrics-port",
    ):
        assert re.search(f"^{line}", done.out, re.MULTILINE), line
    done = shell("run", "x.py", "--local-cluster", "3", "--print-config")
    assert re.search(r"max_executors +3 +--local-cluster", done.out)
    done = shell("run", "x.py", "--config", file.name, "--local-cluster", "3")
    assert (done.code, "line 2 12 is above --local-cluster 3" in done.err) == (2, True)


def test_a_wrong_configuration_stops_a_run_before_it_starts(shell: Shell, file: Path) -> None:
    file.write_text("perod = 3\n")
    (file.parent / "x.py").write_text("raise SystemExit('ran')")
    done = shell("run", "x.py", "--config", file.name)
    assert done.code == 2
    assert "penstock.toml, line 1: unknown key 'perod'; did you mean 'period'?" in done.err
    assert shell("config", file.name).code == 2
