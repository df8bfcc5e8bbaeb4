"""``penstock lab sites`` on the command line."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.lab.sites import requirements as needs
from penstock.lab.sites.ping import tolerance
from tests.fakes.shell import Shell
from tests.places import ROOT

WHY_NOT = needs.probe().missing
real = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
COMMAND = (sys.executable, "-m", "penstock", "sites")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "penstock"


@real
def test_it_measures_once_and_leaves(cache: Path, shell: Shell) -> None:
    asked = ("--site", "a=0ms", "--site", "b=5ms", "--check", "--jitter", "1ms")
    done = shell("sites", *asked, "--json")
    assert done.code == 0, done.err
    document = done.json
    assert [site["jitter_seconds"] for site in document["sites"]] == [0.0, 0.001]
    assert document["expected_rtt_seconds"] == [[0.0, 0.005], [0.005, 0.0]]
    assert document["rtt_seconds"][0][1] == pytest.approx(0.005, abs=tolerance(0.005) + 0.001)
    assert list((cache / "runs").iterdir()) == []
    table = shell("sites", *asked, "--load", "0.5").out
    assert "198.18." in table and "5 ± 1" in table and "MB/s" in table
    assert max(map(len, table.splitlines())) <= 80


@real
def test_it_stays_obeys_lines_and_ends_with_ctrl_c(cache: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--site", "a=0ms", "--site", "b=5ms"],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        head = [process.stdout.readline() for _ in range(6)]
        assert "delay in" in head[2] and head[5].split()[2] == "5"
        process.stdin.write("b=20ms\n")
        process.stdin.flush()
        again = [process.stdout.readline() for _ in range(6)]
        assert again[5].split()[2] == "20"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        said = process.stderr.read()
    assert "nsenter --net=/proc/" in said and "penstock run --sites" in said
    assert list((cache / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either a file of sites or several --site"),
        (("x.toml", "--site", "a"), "give either a file"),
        (("x.toml",), "no file x.toml"),
        (("--site", "a"), "1 sites"),
        (("--site", "a", "--site", "b=25"), "write it like '25ms'"),
        (("--site", "a", "--site", "b", "--home", "c"), "unknown home site 'c'"),
        (("--site", "a", "--site", "b", "--jitter", "3"), "--jitter '3' must look like 10ms"),
        (("--site", "a", "--site", "b", "--emulation", "tc"), "must be one of"),
        (("--site", "a", "--site", "b", "--load", "0"), "--load 0 s must be above 0"),
    ],
)
def test_bad_input_is_2(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    done = shell("sites", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_missing_is_3(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = needs.Possible(namespaces="cannot make them", netem="-", tun="-", realtime=False)
    monkeypatch.setattr(needs, "probe", lambda: nothing)
    done = shell("sites", "--site", "a", "--site", "b")
    assert (done.code, done.out) == (3, "")
    assert "run as root" in done.err and "penstock simulate" in done.err


EXAMPLE = str(ROOT / "examples" / "sites.toml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--local-cluster", "2"), "give either --local-cluster or --sites, not both"),
        (("--max", "9"), "--max 9 is above --sites 8"),
        (("--min", "9"), "minimum 9 is above maximum 8"),
    ],
)
def test_a_script_on_sites_that_do_not_fit_is_2(
    shell: Shell, arguments: tuple[str, ...], said: str
) -> None:
    done = shell("run", "job.py", "--sites", EXAMPLE, *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_the_room_of_the_sites_is_the_limit_of_a_script_on_them(shell: Shell) -> None:
    done = shell("run", "job.py", "--sites", EXAMPLE, "--print-config")
    assert done.code == 0
    assert re.search(r"^max_executors +8 +--sites", done.out, re.M)
