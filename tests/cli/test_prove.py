"""``penstock lab prove`` as a user runs it, without Spark."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.prove import ALL
from penstock.core.errors import EngineError
from penstock.lab.host import java
from penstock.lab.proofs import source
from penstock.lab.proofs.proof import Check, Proof
from tests.fakes.shell import Shell


@pytest.fixture
def prove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setattr(java, "find_java", lambda: None)  # none of these tests starts Spark
    return Shell.at(tmp_path, monkeypatch, capsys, "prove")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["faults", "--query", "q7"], "unknown query 'q7'"),
        (["faults", "--query", ","], "--query names none"),
        (["faults", "--seconds", "1"], "--seconds 1 must lie between 10 and 3600"),
        (["reaction", "--actions", "0"], "--actions 0 must lie between 1 and 1000"),
        (["overhead", "--pairs", "1"], "--pairs 1 must lie between 2 and 1000"),
        (["overhead", "--seconds", "6"], "--seconds 6 must lie between 8, two decisions"),
        (["scaling", "--repeats", "0"], "--repeats 0 must lie between 1 and 100"),
        (["soak", "--minutes", "0.5"], "0.5 minutes must last from a minute to a week"),
        (["producer", "--repeats", "0"], "--repeats 0 must lie between 1 and 100"),
        (["broker", "--kills", "0"], "must lie between"),
        (["agents", "--seconds", "10"], "--seconds 10 must lie between 60 and 3600"),
        (["agents", "--period", "99"], "--period 99 must lie between 12"),
        (["replay", "--only", "no"], "unknown example 'no'; there are windowed"),
        (["replay", "--policies", "hpa-cpu,dhalian"], "did you mean 'dhalion'"),
        (["source", "--seconds", "0"], "--seconds 0 must lie between 1 and 3599"),
    ],
)
def test_wrong_values_are_refused_before_anything_starts(
    prove: Shell, arguments: list[str], said: str, tmp_path: Path
) -> None:
    done = prove(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


def pretend(patch: pytest.MonkeyPatch, proof: Proof | Exception) -> None:
    """Let the proof of the source come to this at once."""

    def come_to(spec: Any, *, folder: Path, say: Any) -> Proof:
        if isinstance(proof, Exception):
            raise proof
        say("working…")
        return proof

    patch.setattr(source, "prove", come_to)


HELD = Proof(name="source", title="Source", checks=(Check(figure="f", value=1, bound=2),))


@pytest.mark.parametrize(
    ("proof", "code", "verdict"),
    [
        (HELD, 0, "held"),
        (replace(HELD, checks=(Check(figure="f", value=3, bound=2),)), 1, "not held"),
        (replace(HELD, interrupted=True), 130, "ended early by Ctrl-C"),
    ],
)
def test_the_exit_code_is_the_verdict(
    prove: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    proof: Proof, code: int, verdict: str,
) -> None:  # fmt: skip
    pretend(monkeypatch, proof)
    done = prove("source")
    assert (done.code, verdict in done.out, "working…" in done.err) == (code, True, True)
    (folder,) = (tmp_path / "runs").iterdir()
    assert json.loads((folder / "proof.json").read_text())["held"] is (code != 1)
    assert json.loads((folder / "config.json").read_text())["command"] == "prove source"


@pytest.mark.parametrize("how", [[], ["--quick"]])
def test_all_is_what_the_single_commands_do(
    prove: Shell, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    specs: list[Any] = []

    def noted(spec: Any, *, folder: Path, say: Any) -> Proof:
        specs.append(spec)
        return HELD

    for name in ALL:
        module = importlib.import_module(f"penstock.lab.proofs.{name}")
        monkeypatch.setattr(module, "prove", noted)
    for name in ALL:
        assert prove(name, "--no-save", *how).code == 0
    alone = specs.copy()
    specs.clear()
    assert prove("all", "--no-save", *how).code == 0
    assert specs == alone
    assert len(specs) == len(ALL)


def test_json_is_one_document(
    prove: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, HELD)
    done = prove("source", "--json", "--no-save")
    assert (done.code, done.json["held"], done.json["run"]) == (0, True, None)
    assert list(tmp_path.iterdir()) == []


def test_a_proof_that_fails_at_once_leaves_no_folder(
    prove: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, EngineError("no luck"))
    done = prove("source")
    assert (done.code, "no luck" in done.err) == (1, True)
    assert list((tmp_path / "runs").iterdir()) == []
