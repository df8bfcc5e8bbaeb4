"""The file of a split pipeline, and the controller that a user starts."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.core.codec import to_json
from penstock.core.errors import InputError
from penstock.core.loop import Decision
from penstock.core.model import OperatorSeen, QuerySeen, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.spark.controller import Controller
from penstock.spark.settings.settings import load
from penstock.spark.split.engine import SplitEngine
from penstock.spark.split.pipeline_file import read_pipeline
from penstock.spark.split.wire import Address, Server
from tests.fakes.shell import Shell
from tests.fakes.waiting import until

FILE = """
[operators.source]
listen = "{folder}/source"

[operators.map]
listen = "{folder}/map"
reads = ["source"]
partitions = 4
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(FILE.format(folder=tmp_path))
    return path


def test_a_file_names_operators_addresses_and_who_reads_whom(file: Path, tmp_path: Path) -> None:
    found = read_pipeline(file)
    assert found.pipeline.edges == (("source", "map"),)
    assert found.pipeline.operators["map"] == Operator(pool="map", partitions=4)
    assert str(found.members["source"].place) == str(tmp_path / "source")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"describe each in a table, \[operators.NAME\]"),
        ("[operator.a]\n", "did you mean 'operators'"),
        ("[operators.a]\nreads = []\n", r"line 1: a has no listen"),
        ("[operators.a]\nlisten = 5\n", r"line 2: listen = 5 must be a text"),
        ("[operators.a]\nlisten = 'x:y'\n", r"line 2: 'x:y' is no address"),
        ("[operators.a]\nlisten = 'x:1'\nread = ['b']\n", r"line 3: .*did you mean 'reads'"),
        ("[operators.a]\nlisten = 'x:1'\nreads = ['b']\n", r"line 1: .*'b'"),
        ("[operators.a]\nlisten = 'x:1'\npartitions = 0\n", "partitions 0 must be ≥ 1"),
        ("[operators.a]\nlisten = 'x:1'\nreads = ['a']\n", "has a cycle"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_pipeline(path)


class Application:
    """A member without Spark; its executors follow what it is told."""

    def __init__(self, place: Path, rate: float) -> None:
        self.slots, self.rate = 1, rate
        self.server = Server(Address.parse(place), self.answer)

    def answer(self, question: Any) -> Any:
        match question["ask"]:
            case "status":
                return {"taken": {}, "watermark": None}
            case "apply":
                self.slots = question["change"]["slots"]
                return {}
        slots = tuple(Slot(id=str(n)) for n in range(self.slots))
        seen = OperatorSeen(parallelism=1.0, arrival_rate=self.rate, service_rate=100.0, busy=0.9)
        rates = {"offered_rate": self.rate, "processed_rate": self.rate, "output_rate": self.rate}
        snapshot = Snapshot(
            time=time.time(),
            window=10.0,
            pipeline=Pipeline(operators={"read": Operator(pool="executors")}),
            operators={"read": seen},
            pools={"executors": slots},
            queries={"q": QuerySeen(batches=1, rows=9, lag=0.0, **rates)},  # type: ignore[arg-type]
            execution="micro-batch",
        )
        return {
            "seen": to_json(snapshot),
            "slots": to_json(slots),
            "most_rows": 100,
            "application": "a",
        }


@pytest.fixture
def applications(tmp_path: Path) -> Iterator[dict[str, Application]]:
    both = {name: Application(tmp_path / name, 250.0) for name in ("source", "map")}
    yield both
    for one in both.values():
        one.server.close()


def test_one_controller_sizes_every_application(
    file: Path, applications: dict[str, Application], tmp_path: Path
) -> None:
    found = read_pipeline(file)
    heard: list[Decision] = []
    settings = load(
        environment={},
        given={"mode": "act", "period": 0.1, "max_executors": 9, "guards.cool_down": 0.0,
               "parameters": {"over_provisioning": 1.0}, "journal": tmp_path / "j.jsonl"},
    )  # fmt: skip
    controller = Controller(
        SplitEngine(found.pipeline, found.members),
        settings,
        what="test",
        record=lambda decision, state: heard.append(decision),
    )
    with controller:
        until("both have three", lambda: {a.slots for a in applications.values()} == {3})
        until("it rests", lambda: len(heard) > 3 and not heard[-1].changes)
    assert {pool: c.slots for pool, c in heard[0].targets.items()} == {"source": 3, "map": 3}
    assert (tmp_path / "j.jsonl").read_text().count("\n") >= len(heard)


def spoken(file: Path, *wanted: str) -> tuple[int, str]:
    """What the command says until all of ``wanted`` was said; then it is interrupted."""
    command = [sys.executable, "-m", "penstock", "control", str(file), "--period", "0.2"]
    with subprocess.Popen([*command, "--max", "9"], stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        said = ""
        while not all(text in said for text in wanted):
            line = child.stderr.readline()
            assert line, f"it ended, and said: {said}"
            said += line
        child.send_signal(signal.SIGINT)
        said += child.stderr.read()
        return child.wait(), said


def test_the_command_says_what_it_would_do_until_ctrl_c(
    file: Path, applications: dict[str, Application]
) -> None:
    code, said = spoken(file, "would do: source 1→3, map 1→3")
    assert code == 130
    assert "Traceback" not in said
    assert {a.slots for a in applications.values()} == {1}  # advise is the default


def test_one_that_is_missing_is_waited_for(file: Path) -> None:
    code, said = spoken(file, "source: ", "cannot be reached", "waiting for it")
    assert code == 130
    assert "Traceback" not in said


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.delenv("PENSTOCK_KEY", raising=False)
    return Shell.at(tmp_path, monkeypatch, capsys, "control")


def test_a_port_without_a_key_is_refused_before_anything_starts(
    shell: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[operators.a]\nlisten = "127.0.0.1:7071"\n')
    outcome = shell(str(path))
    assert outcome.code == 2
    assert "PENSTOCK_KEY" in outcome.err


def test_the_configuration_can_be_printed(shell: Shell, file: Path) -> None:
    outcome = shell(str(file), "--print-config", "--max", "7")
    assert outcome.code == 0
    assert re.search(r"max_executors +7 +--max", outcome.out)
