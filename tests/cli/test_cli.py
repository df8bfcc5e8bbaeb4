"""The command line: exit codes, streams, what is written and what is not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import penstock
from penstock.core.model import Proposal, Snapshot
from penstock.policies import DECIDING, POLICIES, Registered
from penstock.report import runs
from tests.fakes.shell import Shell

SHORT = ("simulate", "--minutes", "20")


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines())


class TestRoot:
    def test_no_arguments_print_help(self, shell: Shell) -> None:
        done = shell()
        assert done.code == 0
        assert "simulate" in done.out and done.err == ""

    def test_version(self, shell: Shell) -> None:
        assert shell("--version").out == f"penstock {penstock.__version__}\n"

    def test_bad_usage_is_2(self, shell: Shell) -> None:
        for arguments in (["nonsense"], ["simulate", "--nonsense"], ["simulate", "--min", "x"]):
            done = shell(*arguments)
            assert (done.code, done.out) == (2, "")

    def test_help_loads_nothing_heavy(self) -> None:
        script = (
            "import sys; sys.argv = ['penstock', '--help']\n"
            "from penstock.cli import main\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            "heavy = {'numpy', 'numba', 'matplotlib', 'pyarrow', 'pyspark'} & set(sys.modules)\n"
            "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


class TestErrors:
    def test_unexpected_ones_are_1_with_a_hint_and_no_traceback(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runs, "find", lambda name: 1 / 0)
        done = shell("report")
        assert (done.code, done.out) == (1, "")
        assert "PENSTOCK_DEBUG" in done.err and "Traceback" not in done.err
        monkeypatch.setenv("PENSTOCK_DEBUG", "1")
        assert "Traceback" in shell("report").err

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--policy", "ds3"], "did you mean 'ds2'"),
            (["--set", "over=1"], "unknown parameter of policy ds2 'over'"),
            (["--set", "over_provisioning"], "'over_provisioning' must look like KEY=VALUE"),
            (["--set", "=1"], "must look like KEY=VALUE"),
            (["--set", "over_provisioning=x"], "'x' is not a float"),
            (["--set", "over_provisioning=-1"], "-1.0 must be above 0"),
            (["--workload", "cosin"], "did you mean 'cosine'"),
            (["--workload-set", "lo=1"], "unknown parameter of workload cosine 'lo'"),
            (["--workload-set", "low=-1"], "low = -1.0 must be"),
            (["--workload-set", "low=x"], "'x' is not a number"),
            (["--min", "9", "--max", "8"], "minimum 9 is above maximum 8"),
            (["--min", "0"], "minimum 0 must be"),
            (["--period", "0"], "period = 0.0 s must be at least 1"),
            (["--period", "-5"], "period = -5.0 s"),
            (["--period", "nan"], "period = nan"),
            (["--minutes", "0"], "minutes = 0.0 must be above 0"),
            (["--minutes", "1", "--period", "90"], "at most the 60 s simulated"),
            (["--minutes", "1e9"], "100 days"),
            (["--seed", "-1"], "seed = -1"),
            (["--start", "81"], "start = 81 must lie within"),
            (["--cap", "2"], "cap = 2 is too small for 3 pools"),
            (["--step-up", "0"], "step_up 0 must be"),
            (["--cool-down", "-1"], "cool_down -1.0"),
            (["--tolerance", "nan"], "tolerance nan"),
            (["--over-provisioning", "0"], "over_provisioning 0.0"),
            (["--blackout", "nine to five"], "must look like 22:00-06:30"),
        ],
    )
    def test_bad_input_is_2_with_a_way_out_and_writes_nothing(
        self, shell: Shell, tmp_path: Path, arguments: list[str], words: str
    ) -> None:
        done = shell("simulate", *arguments)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
        assert done.err.startswith("error: ") and "Traceback" not in done.err
        assert list(tmp_path.iterdir()) == []

    def test_a_place_that_cannot_be_written(self, shell: Shell, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        done = shell(*SHORT, "--out", "file")
        assert done.code == 2
        assert "cannot write a run under file" in done.err


class TestSimulate:
    def test_prints_tables_and_leaves_a_run(self, shell: Shell, tmp_path: Path) -> None:
        done = shell(*SHORT)
        assert done.code == 0
        (folder,) = (p for p in (tmp_path / "runs").iterdir() if not p.is_symlink())
        assert {p.name for p in folder.iterdir()} == {
            "config.json",
            "decisions.jsonl",
            "metrics.parquet",
            "report.html",
            "report.png",
        }
        assert f"runs/{folder.name}/report.html" in done.out
        assert widest(done.out) <= 80
        assert done.err == ""

    def test_json_is_the_only_output(self, shell: Shell) -> None:
        done = shell(*SHORT, "--json")
        document = done.json
        assert (done.code, done.err) == (0, "")
        assert document["summary"]["ticks"] == 80
        assert document["summary"]["policy"] == "ds2"
        assert Path(document["page"]).is_file()

    def test_no_save_writes_nothing(self, shell: Shell, tmp_path: Path) -> None:
        done = shell(*SHORT, "--no-save", "--json")
        assert done.json["run"] is None
        assert widest(shell(*SHORT, "--no-save").out) <= 80
        assert list(tmp_path.iterdir()) == []

    def test_the_seed_decides(self, shell: Shell) -> None:
        first, same, other = (
            shell(*SHORT, "--no-save", "--json", "--seed", seed).out for seed in ("1", "1", "2")
        )
        assert first == same != other

    def test_options_reach_the_run(self, shell: Shell) -> None:
        done = shell(
            *SHORT, "--json", "--shared", "--profile", "live", "--set", "over_provisioning=1.4",
            "--workload", "step", "--workload-set", "at=300", "--min", "2", "--max", "9",
            "--step-up", "3", "--step-down", "2", "--cool-down", "60", "--tolerance", "0.1",
            "--drain", "20", "--over-provisioning", "1.1", "--cap", "30", "--at-cap", "cancel",
            "--blackout", "22:00-06:30", "--out", "elsewhere", "--seed", "7", "--period", "30",
        )  # fmt: skip
        run = runs.load(Path(done.json["run"]))
        assert run.folder.parent == Path("elsewhere")
        assert run.header.parameters == {"over_provisioning": 1.4, "strict": False}
        assert (run.header.seed, run.header.period) == (7, 30.0)
        guards = run.header.guards
        assert (guards.minimum, guards.maximum, guards.cap, guards.at_cap) == (2, 9, 30, "cancel")
        assert (guards.step_up, guards.step_down, guards.cool_down) == (3, 2, 60.0)
        assert (guards.tolerance, guards.drain, guards.over_provisioning) == (0.1, 20.0, 1.1)
        assert guards.blackouts[0].start == 22 * 3600.0
        assert run.config["workload"]["at"] == 300.0
        assert run.config["engine"]["profile"] == "live"
        assert run.entries[0].decision.seen.pipeline.pools == ("slots",)
        assert all(
            guards.minimum <= e.decision.seen.slots("slots") <= guards.maximum for e in run.entries
        )

    def test_a_policy_that_forecasts_says_how_well(self, shell: Shell) -> None:
        arguments = ("simulate", "--policy", "proactive", "--minutes", "60", "--no-save")
        error = shell(*arguments, "--json").json["summary"]["figures"]["forecast_error"]
        assert 0 < error < 1
        assert re.search(rf"forecast error +{error:.3g} +by the policy", shell(*arguments).out)

    @pytest.mark.parametrize("policy", DECIDING)
    @pytest.mark.parametrize("shared", [True, False])
    def test_every_policy_runs(self, shell: Shell, policy: str, shared: bool) -> None:
        more = ["--shared"] if shared else []
        done = shell(*SHORT, "--policy", policy, "--no-save", "--json", *more)
        assert done.code == 0
        assert done.json["summary"]["ticks"] == 80


@dataclass(frozen=True)
class Impatient:
    """Presses Ctrl-C after some ticks."""

    ticks: int = 0

    def start(self, seed: int) -> int:
        return 0

    def decide(self, seen: Snapshot, memory: int) -> tuple[Proposal, int]:
        if memory >= self.ticks:
            raise KeyboardInterrupt
        return Proposal(reason="wait"), memory + 1


class TestInterrupt:
    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = Registered("impatient", __name__, "Impatient")
        monkeypatch.setitem(POLICIES, "impatient", made)

    def test_leaves_a_valid_partial_run(self, shell: Shell, tmp_path: Path) -> None:
        done = shell(*SHORT, "--policy", "impatient", "--set", "ticks=3", "--json")
        assert (done.code, done.out) == (130, "")
        assert "the first 3 decisions" in done.err
        run = runs.load(runs.find("latest"))
        assert len(run.entries) == 3
        assert run.config["ended_by"] == "KeyboardInterrupt"
        again = shell("report")
        assert again.code == 0
        assert "KeyboardInterrupt" in again.err

    def test_before_the_first_tick_leaves_nothing(self, shell: Shell, tmp_path: Path) -> None:
        assert shell(*SHORT, "--policy", "impatient").code == 130
        assert list((tmp_path / "runs").iterdir()) == []


class TestPolicies:
    def test_lists_all(self, shell: Shell) -> None:
        done = shell("policies")
        assert done.code == 0
        assert all(name in done.out for name in POLICIES)
        assert "over_provisioning=1.2" in done.out
        assert widest(done.out) <= 80

    def test_explains_one_in_its_own_words(self, shell: Shell) -> None:
        done = shell("policies", "ds2")
        assert "[kalavri18, eq. 7]" in done.out  # brackets are not taken for markup
        assert widest(done.out) <= 80

    def test_json(self, shell: Shell) -> None:
        listed = shell("policies", "--json").json
        assert [p["name"] for p in listed] == list(POLICIES)
        assert all(p["idea"] for p in listed)
        assert shell("policies", "ds2", "--json").json["parameters"] == {
            "over_provisioning": 1.2,
            "strict": False,
        }

    def test_unknown(self, shell: Shell) -> None:
        done = shell("policies", "ds3")
        assert (done.code, done.out) == (2, "")
        assert "did you mean 'ds2'" in done.err


class TestReport:
    def test_rebuilds_what_was_deleted(self, shell: Shell) -> None:
        folder = Path(shell(*SHORT, "--json").json["run"])
        for name in ("report.html", "report.png", "metrics.parquet"):
            (folder / name).unlink()
        for name in ("latest", str(folder), folder.name):
            assert shell("report", name).code == 0
        assert (folder / "report.html").is_file() and (folder / "report.png").is_file()

    def test_says_the_same_as_the_run_did(self, shell: Shell) -> None:
        first = shell(*SHORT, "--json").json
        again = shell("report", "--json").json
        assert again["summary"] == first["summary"]
        assert again["changes"] == first["changes"]

    @pytest.mark.parametrize("name", ["latest", "runs/nothing", "nothing"])
    def test_no_such_run(self, shell: Shell, tmp_path: Path, name: str) -> None:
        done = shell("report", name)
        assert (done.code, done.out) == (2, "")
        assert re.search("no run (at|under)", done.err)
        assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True)
class FakeCheck:
    name: str
    ok: bool
    found: str = ""
    enables: str = "something that takes a long sentence to describe in full, [as] one does"
    fix: str = "apt-get install something-with-a-rather-long-name"


class TestDoctor:
    @pytest.fixture
    def machine(self, monkeypatch: pytest.MonkeyPatch) -> list[FakeCheck]:
        checks: list[FakeCheck] = []
        module = ModuleType("penstock.lab.host.probes")
        module.checks = lambda: checks  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "penstock.lab.host.probes", module)
        return checks

    def test_a_missing_option_is_no_error(self, shell: Shell, machine: list[FakeCheck]) -> None:
        machine += [FakeCheck("Java", True), FakeCheck("pyspark", True), FakeCheck("Kafka", False)]
        done = shell("doctor")
        assert done.code == 0
        assert "apt-get install" in done.out
        assert widest(done.out) <= 80

    @pytest.mark.parametrize("name", ["Java", "pyspark"])
    def test_without_java_or_pyspark_is_3(
        self, shell: Shell, machine: list[FakeCheck], name: str
    ) -> None:
        machine += [FakeCheck(n, n != name) for n in ("Java", "pyspark", "Kafka")]
        done = shell("doctor")
        assert done.code == 3
        assert f"{name} missing" in done.out

    def test_json(self, shell: Shell, machine: list[FakeCheck]) -> None:
        machine += [FakeCheck("Java", False), FakeCheck("pyspark", True)]
        done = shell("doctor", "--json")
        assert (done.code, done.err) == (3, "")
        assert done.json["missing"] == ["Java"]
        assert done.json["checks"][0]["fix"].startswith("apt-get")


def test_the_installed_command_keeps_its_streams_apart(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from penstock.cli import main; main()", *SHORT, "--json"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["ticks"] == 80
