"""What importing loads. The direction of imports is checked by ``make lint`` (import-linter)."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import penstock
from penstock.core.errors import EXTRAS

PROJECT = tomllib.loads((Path(penstock.__file__).parents[2] / "pyproject.toml").read_text())
MOST = 75  # modules of ours that an Autoscaler loads
UPSTAIRS = ("cli", "papers", "bench", "lab", "compare", "report", "simulator")
# As on a machine where only penstock itself is installed.
PLAIN = f"""
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def find_spec(name, *others):
    return None if name.partition(".")[0] in {sorted(EXTRAS)} else found(name, *others)
PathFinder.find_spec = find_spec
"""


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True
    )


def modules_after(script: str) -> set[str]:
    done = python(f"{script}\nimport json, sys; print(json.dumps(sorted(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_package_and_its_command_load_nothing_heavy() -> None:
    loaded = modules_after(
        "import penstock, penstock.policies, penstock.history.journal, penstock.cli"
    )
    assert not loaded & set(EXTRAS)


def test_an_autoscaler_is_light() -> None:
    loaded = modules_after(f"{PLAIN}\nimport penstock; penstock.Autoscaler")
    ours = {name for name in loaded if name.partition(".")[0] == "penstock"}
    assert not {name for name in ours if name.split(".")[1:2] in [[room] for room in UPSTAIRS]}
    assert not loaded & {"rich", "typer", "prometheus_client"}, "those are of the command line"
    assert len(ours) <= MOST, sorted(ours)


@pytest.mark.parametrize("command", [["--help"], ["policies"], ["config"]])
def test_a_plain_installation_runs(command: list[str]) -> None:
    done = python(f"{PLAIN}\nfrom penstock.cli import main; main()", *command)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "extra"), [(["simulate", "--policy", "ds2"], "sim"), (["demo"], "spark")]
)
def test_what_needs_an_extra_says_so_by_name(command: list[str], extra: str) -> None:
    done = python(f"{PLAIN}\nfrom penstock.cli import main; main()", *command)
    assert done.returncode == 3, done.stderr
    assert f"pip install 'penstock[{extra}]'" in done.stderr


def test_every_package_that_may_be_missing_is_in_the_extra_that_is_named() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        wanted = "pyspark" if package == "py4j" else package.replace("_", "-")
        assert any(line.startswith(wanted) for line in extras[extra]), package
        assert any(line.startswith(wanted) for line in extras["lab"]), package
    assert not [d for d in PROJECT["project"]["dependencies"] if d.startswith(tuple(EXTRAS))]


def test_every_package_of_ours_has_its_storey() -> None:
    here = {p.parent.name for p in Path(penstock.__file__).parent.glob("*/__init__.py")}
    (layers,) = [c for c in PROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    assert here <= {name.strip("()") for name in layers["layers"]}
