"""What emulated sites need of a machine, and what is said where it is missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.core.errors import InputError, MissingError
from penstock.lab.sites import requirements as needs
from penstock.lab.sites.network import Sites
from penstock.lab.sites.spec import Site, SitesSpec


def possible(**missing: str | None) -> needs.Possible:
    everything: dict[str, str | None] = {"namespaces": None, "netem": None, "tun": None}
    return needs.Possible(**(everything | missing), realtime=True)


@pytest.mark.parametrize(
    ("wanted", "jitter", "here", "chosen"),
    [
        ("auto", False, possible(), "netem"),
        ("auto", True, possible(), "tun"),
        ("auto", False, possible(netem="no netem"), "tun"),
        ("auto", False, possible(tun="no tun"), "netem"),
        ("tun", False, possible(), "tun"),
        ("netem", False, possible(), "netem"),
    ],
)
def test_netem_where_there_is_and_tun_under_jitter(
    monkeypatch: pytest.MonkeyPatch,
    wanted: str,
    jitter: bool,
    here: needs.Possible,
    chosen: str,
) -> None:
    monkeypatch.setattr(needs, "probe", lambda: here)
    assert needs.choose(wanted, jitter=jitter) == chosen


@pytest.mark.parametrize(
    ("wanted", "jitter", "here", "said"),
    [
        ("auto", False, possible(namespaces="cannot make them"), "cannot make them: run as root"),
        ("auto", False, possible(netem="no netem", tun="no tun"), "mknod /dev/net/tun"),
        ("netem", False, possible(netem="no netem"), "by netem: no netem. Use tun"),
        ("tun", False, possible(tun="no tun"), "by TUN: no tun"),
        ("auto", True, possible(tun="no tun"), "leave the jitter out"),
    ],
)
def test_what_is_missing_is_said_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
    wanted: str,
    jitter: bool,
    here: needs.Possible,
    said: str,
) -> None:
    monkeypatch.setattr(needs, "probe", lambda: here)
    with pytest.raises(MissingError, match=f"{said}.*penstock simulate") as caught:
        needs.choose(wanted, jitter=jitter)
    assert caught.value.exit_code == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root")
def test_without_root_nothing_is_made() -> None:
    program = (
        "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "from penstock.lab.sites import requirements; found = requirements.probe()\n"
        "print(found.missing)"
    )
    preload = "import penstock.lab.sites.requirements\n"  # the package may be in root's home
    done = subprocess.run(
        [sys.executable, "-c", preload + program], capture_output=True, text=True, check=True
    )
    assert "network namespaces cannot be made as user 65534" in done.stdout
    assert "run as root" in done.stdout


@pytest.mark.parametrize("ok", [True, False])
def test_the_doctor_says_how_or_why_not(monkeypatch: pytest.MonkeyPatch, ok: bool) -> None:
    here = possible(netem="no netem", **({} if ok else {"tun": "no tun"}))
    monkeypatch.setattr(needs, "probe", lambda: here)
    check = needs.check()
    assert check.ok == ok
    assert ("by TUN at real-time priority; not netem: no netem" in check.found) == ok
    assert (check.fix is None) == ok


def test_netem_cannot_be_given_jitter_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def set(self, conditions: object) -> None:
            raise AssertionError("nothing may be set")

    spec = SitesSpec(sites=(Site(name="home"), Site(name="far", delay=0.1)))
    sites = Sites(spec)
    sites.emulation = "netem"
    monkeypatch.setattr(sites, "_emulator", Silent())
    with pytest.raises(InputError, match="start with emulation 'tun'"):
        sites.change(Site(name="far", delay=0.1, jitter=0.01))
