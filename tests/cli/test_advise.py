"""``penstock advise`` against a driver on loopback that answers as a recorded application did."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.history import journal
from tests.fakes.foreign_driver import EARLY, LOOKS, Driver, ForeignDriver, drivers
from tests.fakes.shell import Shell
from tests.fakes.waiting import until

# With this DS2 wants one of the two executors gone at every look.
SMALLER = ("--window", "15", "--set", "over_provisioning=0.6")


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    return Shell.at(tmp_path, monkeypatch, capsys, "advise", "--period", "0.01")


@pytest.fixture
def driver() -> Iterator[Driver]:
    with drivers() as start:
        yield start


class TestCommand:
    def test_every_tick_says_a_decision_and_why(self, shell: Shell, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        done = shell("--app-url", ui.url, "--ticks", "3", *SMALLER)
        assert done.code == 0, done.err
        assert " ".join(done.out.split()).startswith(
            f"watching web shop ({ui.id}): Spark 4.3.0 on local-cluster[2,1,512], 2 executors of "
            "1 core, dynamic allocation off, queries: counts, clicks "
        )
        assert "REST does not show the backlog" in done.out
        assert done.out.count("would do: executors 2→1: ") == 3
        assert "3 decisions" in done.out and "3 would have acted" in done.out
        table = done.out[done.out.index("least") :].splitlines()
        assert max(map(len, table)) <= 80

    def test_json_is_one_document(self, shell: Shell, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        done = shell("--app-url", ui.url, "--ticks", "2", *SMALLER, "--json")
        document = done.json
        assert document["watched"]["application"]["id"] == ui.id
        assert [d["target"] for d in document["decisions"]] == [1, 1]
        assert document["summary"]["acted"] == 2
        assert document["summary"]["hours"] < 0
        assert document["ended_by"] == "ticks"
        assert "watching" in done.err

    def test_dynamic_allocation_is_said(self, shell: Shell, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        ui.properties["spark.dynamicAllocation.enabled"] = "true"
        done = shell("--app-url", ui.url, "--once")
        assert "Spark's own allocation sizes this application" in done.out

    def test_without_queries_it_waits_and_says_so_once(self, shell: Shell, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS, ends="completed")
        ui.sql = ui.stages = []
        done = shell("--app-url", ui.url)
        assert done.code == 0
        assert done.err.count("waiting: no streaming query has begun and finished a batch") == 1
        assert "none yet" in done.out
        assert "0 decisions" in done.out

    def test_an_application_that_ends_ends_it_with_a_summary(
        self, shell: Shell, driver: Driver
    ) -> None:
        ui = driver(EARLY, *LOOKS[:2], ends="completed")
        done = shell("--app-url", ui.url, *SMALLER)
        assert done.code == 0
        assert "the application has ended" in done.err
        assert "2 decisions" in done.out

    def test_another_application_at_the_address_is_an_end(
        self, shell: Shell, driver: Driver
    ) -> None:
        ui = driver(EARLY, *LOOKS[:2], ends="gone")
        done = shell("--app-url", ui.url, *SMALLER)
        assert done.code == 0
        assert "ended or cannot be reached any more" in done.err
        assert "2 decisions" in done.out

    @pytest.mark.parametrize(
        "answer",
        [
            (500, "oops"),
            (503, ""),
            (200, '{"id": '),
            (200, "null"),
            (200, "[" * 100_000),
            (200, '{"id": 1, "id": 2}'),
            (200, '{"id": NaN}'),
        ],
        ids=lambda answer: f"{answer[0]} {answer[1][:10]}",
    )
    def test_trouble_is_said_once_and_passes(
        self, shell: Shell, driver: Driver, answer: tuple[int, str]
    ) -> None:
        ui = driver(EARLY, 2.0, 4.0, *LOOKS)
        ui.broken[f"{ui.id}/sql/"] = [answer] * 2
        done = shell("--app-url", ui.url, "--once", *SMALLER)
        assert done.code == 0
        assert done.err.count("no decision this time") == 1
        assert "1 decision in" in done.out

    def test_rows_that_nobody_counts_are_said_and_not_guessed(
        self, shell: Shell, driver: Driver
    ) -> None:
        ui = driver(EARLY, *LOOKS)
        for e in ui.sql:
            e["nodes"] = [n for n in e["nodes"] if "Scan" not in n["nodeName"]]
        done = shell("--app-url", ui.url, "--ticks", "2", "--json", *SMALLER)
        assert "cannot size it" in done.err
        assert [d["target"] for d in done.json["decisions"]] == [None, None]
        assert done.json["summary"]["target"] is None

    def test_the_journal_can_be_replayed(
        self, shell: Shell, driver: Driver, tmp_path: Path
    ) -> None:
        ui = driver(EARLY, *LOOKS)
        shell("--app-url", ui.url, "--ticks", "2", *SMALLER, "--journal", "d.jsonl")
        header, entries = journal.read(tmp_path / "d.jsonl")
        assert (header.policy, header.mode, len(entries)) == ("ds2", "advise", 2)

    def test_a_configuration_file_holds_what_no_flag_says(
        self, shell: Shell, driver: Driver, tmp_path: Path
    ) -> None:
        ui = driver(EARLY, *LOOKS)
        text = 'max_executors = 9\nmode = "act"\nwindow = "15s"\n'
        text += '[policy]\nname = "static"\nslots = 4\n'
        (tmp_path / "penstock.toml").write_text(text)
        done = shell("--app-url", ui.url, "--once", "--config", "penstock.toml", "--max", "3")
        assert "static in mode advise, 1 to 3 executors" in done.out
        assert "would do: executors 2→3: the size is fixed at 4" in done.out

    def test_prometheus_is_told_where_to_look(self, shell: Shell, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        done = shell("--app-url", ui.url, "--once", "--metrics-port", "0", *SMALLER)
        assert done.code == 0, done.err
        assert "metrics at http://127.0.0.1:" in done.err

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (["--ticks", "0"], "--ticks 0 must be ≥ 1"),
            (["--ticks", "2", "--once"], "give one of them"),
            (["--policy", "ds3"], "did you mean 'ds2'"),
            (["--set", "over_provisioning"], "must look like KEY=VALUE"),
            (["--set", "overprovisioning=2"], "did you mean 'over_provisioning'"),
            (["--min", "5", "--max", "3"], "minimum 5 is above maximum 3"),
            (["--period", "-1"], "--period"),
            (["--window", "0"], "--window"),
        ],
    )
    def test_a_wrong_flag_asks_the_application_nothing(
        self, shell: Shell, driver: Driver, flags: list[str], said: str
    ) -> None:
        ui = driver()
        done = shell("--app-url", ui.url, *flags)
        assert done.code == 2
        assert said in " ".join(done.err.split())
        assert ui.asked == []

    def test_nothing_listens_is_3(self, shell: Shell) -> None:
        ui = ForeignDriver()
        ui.close()
        done = shell("--app-url", ui.url)
        assert (done.code, done.out) == (3, "")

    def test_limits_hold(self, shell: Shell, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        done = shell("--app-url", ui.url, "--once", "--min", "2", *SMALLER)
        assert "executors 2 stays" in done.out
        assert "0 would have acted" in done.out


def test_it_runs_where_pyspark_is_not_installed(driver: Driver) -> None:
    ui = driver(EARLY, *LOOKS)
    script = (
        "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None\n"
        "from penstock.cli import main\nmain()"
    )
    arguments = ["advise", "--app-url", ui.url, "--once", "--period", "0.01", *SMALLER]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "would do: executors 2→1" in done.stdout


def test_ctrl_c_leaves_a_summary_and_130(driver: Driver, tmp_path: Path) -> None:
    ui = driver(EARLY, *LOOKS)
    written = tmp_path / "out"
    command = [sys.executable, "-m", "penstock", "advise", "--app-url", ui.url]
    with written.open("w") as out:
        process = subprocess.Popen(
            [*command, "--period", "0.05", *SMALLER], stdout=out, stderr=subprocess.PIPE
        )
    try:
        until("a decision", lambda: "would do" in written.read_text())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "would have acted" in written.read_text()
    assert b"interrupted" in err
