"""``penstock.simulate`` and ``penstock.compare``: what they take, and what they return."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.comparison.results import Results
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.model import Need, Proposal, Snapshot
from penstock.policies import DS2, HpaCpu
from penstock.workloads import Constant, Cosine, Spikes, Trace
from penstock.workloads.patterns import PATTERNS
from tests.fakes.shell import Shell

compare, simulate = penstock.compare, penstock.simulate
SHORT: Any = {"query": "q1", "minutes": 20, "seeds": 2}


@dataclass(frozen=True)
class Four:
    """A user's own policy: four slots, always."""

    slots: int = 4

    def start(self, seed: int) -> None: ...

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        needs = {name: Need(slots=self.slots) for name in seen.operators}
        return Proposal(needs=needs, reason="four"), None


class Bare:
    """Only what the protocol asks for."""

    def start(self, seed: int) -> None: ...

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        return Proposal(reason="nothing"), None


# ---- what is given ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "names"),
    [
        ([DS2(over_provisioning=1.4), HpaCpu()], ["ds2:over_provisioning=1.4", "hpa-cpu"]),
        ([DS2(), "hpa-cpu"], ["ds2", {"name": "hpa-cpu"}]),
    ],
)
def test_a_policy_is_an_object_or_a_name(objects: list[Any], names: list[Any]) -> None:
    assert compare(objects, **SHORT).to_dict() == compare(names, **SHORT).to_dict()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (Cosine(), "cosine"),
        (Spikes(base=50_000.0), "spikes:base=50000"),
        (Constant(rps=1e6), {"name": "constant", "rps": 1e6}),
        (Trace("nasa"), {"name": "trace", "file": "nasa"}),
        (Trace(file="nasa", speed=2.0), "trace:file=nasa:speed=2"),
    ],
)
def test_a_workload_is_an_object_or_a_name(given: Any, named: Any) -> None:
    assert compare(["ds2"], given, **SHORT).to_dict() == compare(["ds2"], named, **SHORT).to_dict()


def test_a_policy_of_the_user_is_compared_like_any_other(tmp_path: Path) -> None:
    found = compare([Four(), Four(slots=6), Bare(), "ds2"], out=tmp_path, **SHORT)
    assert [row.label for row in found.groups[0].rows] == [
        "Four",
        "Four 6",
        "Bare",
        "ds2",
        "static (peak)",
    ]
    slots = {row.label: row.figures["slots_max"].mean for row in found.groups[0].rows}
    assert slots["Four 6"] > slots["Four"] > 0
    assert simulate(Four(), minutes=10).header.policy == "Four"


@pytest.mark.parametrize(
    ("policies", "more", "words"),
    [
        (["ds3"], {}, "did you mean 'ds2'"),
        ([object()], {}, "it needs `start` and `decide`"),
        (["ds2:x"], {}, "must look like KEY=VALUE"),
        (["ds2", DS2()], {}, "has 'ds2' twice"),
        ([{"slots": 3}], {}, "needs a name"),
        (["ds2"], {"workload": 7}, "is no workload"),
        (["ds2"], {"guards": "some"}, "unknown guards"),
        (["ds2"], {"base": "hpa-cpu"}, "no policy 'hpa-cpu' to compare with"),
        (["ds2"], {"seeds": 0}, "seeds = 0"),
        (["ds2"], {"seeds": (1, 1)}, "must be different"),
        ([], {}, "no cells to run"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    policies: list[Any], more: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        compare(policies, **{**SHORT, "out": tmp_path / "runs", **more})
    assert not (tmp_path / "runs").exists()


# ---- what is returned -------------------------------------------------------------------------


def test_a_comparison_as_table_figure_and_document(tmp_path: Path) -> None:
    found = compare([DS2(), HpaCpu()], Trace("taxi"), **SHORT)
    text = found.table()
    assert "against ds2" in text and max(map(len, text.splitlines())) <= 80
    assert str(found) == text and "<table>" in found._repr_html_()
    figure = found.figure(tmp_path / "a.png")
    assert len(figure.axes) == 1 and (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert found.files == {} and found.results.folder is None
    assert found.to_dict()["groups"][0]["base"] == "ds2"


def test_a_simulation_as_table_figure_and_document(tmp_path: Path) -> None:
    found = simulate(DS2(), query="q5", minutes=30, guards=Guards(maximum=20), profile="live")
    text = found.table()
    assert "ds2 · act" in text and max(map(len, text.splitlines())) <= 80
    assert str(found) == text and "<table>" in found._repr_html_()
    assert len(found.figure(tmp_path / "a.png").axes) == 3 and (tmp_path / "a.png").is_file()
    assert found.finished is None and found.to_dict()["run"] is None
    assert len(found.entries) == 120 and found.summary.slots_max <= 60


def test_what_is_kept_is_a_run_as_the_command_keeps_one(tmp_path: Path) -> None:
    kept = simulate("ds2", minutes=10, out=tmp_path)
    assert kept.finished is not None and kept.finished.page.is_file()
    assert Path(kept.to_dict()["run"]).is_dir()
    found = compare(["ds2"], out=tmp_path, **SHORT)
    assert found.files["page"].is_file() and found.results.folder == found.files["run"]


# ---- the commands are shells over it ------------------------------------------------------------


def test_the_commands_print_the_same_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Shell.at(tmp_path, monkeypatch, capsys, "compare")(
        "--policies", "ds2,hpa-cpu", "--minutes", "20", "--seeds", "2", "--no-save", "--json"
    )
    found = compare(["ds2", "hpa-cpu"], **SHORT)
    assert done.json == json.loads(json.dumps(found.to_dict()))
    done = Shell.at(tmp_path, monkeypatch, capsys, "simulate")(
        "--minutes", "20", "--seed", "3", "--no-save", "--json"
    )
    assert done.json == json.loads(json.dumps(simulate(minutes=20, seed=3).to_dict()))


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    compare(["ds2"], progress=lambda done, total: told.append((done, total)), **SHORT)
    assert told[-1] == (4, 4)  # the fixed size that covers the peak runs beside it
    told.clear()
    simulate(minutes=10, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (40, 40)


# ---- where it is found --------------------------------------------------------------------------


def test_the_function_is_not_hidden_by_a_package() -> None:
    assert Results.__module__ == "penstock.comparison.results"  # imported before, and still
    assert callable(penstock.compare) and callable(penstock.simulate)
    assert {"compare", "simulate"} <= set(penstock.__all__)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import sys; sys.modules['numba'] = None\n"
        "import penstock\n"
        "try: penstock.simulate\n"
        "except penstock.PenstockError as error: print(error, error.exit_code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "numba is not installed. pip install 'penstock[sim]' 3\n", done.stderr


def test_patterns_are_loaded_by_name() -> None:
    import penstock.workloads as workloads

    assert set(workloads.__all__) == {kind.__name__ for kind in PATTERNS.values()}
    for name in workloads.__all__:
        assert getattr(workloads, name) in PATTERNS.values()
    with pytest.raises(AttributeError, match="Sawtooth"):
        workloads.Sawtooth  # type: ignore[attr-defined]  # noqa: B018
