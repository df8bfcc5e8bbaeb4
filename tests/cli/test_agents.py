"""``penstock lab agents`` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.shell import Shell


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell.at(tmp_path, monkeypatch, capsys, "agents")


SMALL = ("--operators", "2", "--capacity", "800", "--low", "500", "--high", "2000")


def test_a_short_run_is_shown_saved_and_exact(shell: Shell) -> None:
    done = shell(*SMALL, "--seconds", "4", "--period", "0.7", "--kill", "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["emitted"] == found["expected"] == found["delivered"] == 5000
    assert found["lost"] == found["unexpected"] == 0 and found["exact"]
    assert any(action["what"] == "killed" for action in found["actions"])
    assert found["duplications"] > 0
    folder = Path(found["run"])
    assert {p.name for p in folder.iterdir()} == {"config.json", "outcome.json", "report.png"}
    assert json.loads((folder / "outcome.json").read_text())["delivered"] == 5000
    assert "load" in done.err and "delivered" in done.err


def test_tables_say_what_became_of_the_records(shell: Shell) -> None:
    done = shell(*SMALL, "--seconds", "1", "--no-save")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert any(line.split() == ["1,250", "1,250", "1,250", "0", "0", "0"] for line in lines)
    for title in ("Records", "Instances", "Protocol"):
        assert title in done.out
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--operators", "0"), "--operators 0 must be 1 to 26"),
        (("--kill", "--kill-keeper"), "one of them at a time"),
        (("--set", "ratoi=0.5"), "did you mean 'ratio'"),
        (("--set", "ratio=high"), "must be a number"),
        (("--set", "ratio=0.9"), "must hold"),
        (("--low", "5", "--high", "4"), "low 5.0 ≤ high 4.0"),
        (("--max", "3"), "room for 3"),
        (("--site", "=x"), "must look like ADDRESS"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    shell: Shell, arguments: tuple[str, ...], why: str
) -> None:
    done = shell(*arguments)
    assert done.code == 2 and why in done.err
