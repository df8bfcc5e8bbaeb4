"""Sites on this machine: real namespaces and packets. Needs root and TUN; seconds, no Spark."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.core.errors import EngineError
from penstock.lab.host import leftovers, processes
from penstock.lab.sites import namespaces, network, requirements
from penstock.lab.sites import switch as tun
from penstock.lab.sites.link_load import loads
from penstock.lab.sites.network import Sites
from penstock.lab.sites.ping import tolerance
from penstock.lab.sites.spec import Site, SitesSpec
from penstock.spark.read.rest import Rest
from tests.fakes.waiting import until

pytestmark = pytest.mark.alone

POSSIBLE = requirements.probe()
NO_TUN = POSSIBLE.tun or (None if POSSIBLE.realtime else "no real-time priority for it")
real = pytest.mark.skipif(NO_TUN is not None, reason=f"no TUN: {NO_TUN}")
netem = pytest.mark.skipif(POSSIBLE.netem is not None, reason=f"no netem: {POSSIBLE.netem}")
SPEC = SitesSpec(
    sites=(
        Site(name="home"),
        Site(name="near", delay=0.025),
        Site(name="far", delay=0.1),
    ),
    emulation="tun",
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "penstock"


@pytest.fixture(
    scope="module", params=[pytest.param("tun", marks=real), pytest.param("netem", marks=netem)]
)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sites]:
    """Sites that several tests look at; each leaves them as they were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with Sites(replace(SPEC, emulation=request.param)) as sites:
            yield sites


def devices() -> set[str]:
    """Devices of ours in the network of this process."""
    names = {line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()}
    return {name for name in names if name.startswith("penstock")}


def residents(namespace: int) -> list[str]:
    """Every process and every open file that keeps a namespace alive."""
    return [
        str(link)
        for link in (*Path("/proc").glob("[0-9]*/ns/net"), *Path("/proc").glob("[0-9]*/fd/*"))
        if _inode(link) == namespace
    ]


def _inode(link: Path) -> int | None:
    try:
        text = str(link.readlink())
    except OSError:
        return None
    return int(text[5:-1]) if text.startswith("net:[") else None


# ---- what is there --------------------------------------------------------------------------


def test_round_trips_are_the_sum_of_the_delays(shared: Sites) -> None:
    for one, other, expected in (
        ("home", "near", 0.025),
        ("home", "far", 0.1),
        ("near", "far", 0.125),
    ):
        assert shared.rtt.between(one, other) == pytest.approx(expected, abs=tolerance(expected))
    assert shared.rtt.nodes == ("home", "near", "far")


def test_delays_change_while_it_runs_and_are_measured_again(shared: Sites) -> None:
    near, far = shared.spec["near"], shared.spec["far"]
    jitter = 0.002 if shared.emulation == "tun" else 0.0
    rtt = shared.change(replace(near, delay=0.0), replace(far, delay=0.01, jitter=jitter))
    assert rtt is shared.rtt
    assert rtt.between("home", "near") < tolerance(0.0)
    assert rtt.between("near", "far") == pytest.approx(0.01, abs=tolerance(0.01) + jitter)
    assert shared.spec["far"].jitter == jitter
    assert shared.change(near, far).between("near", "far") == pytest.approx(0.125, rel=0.05)


def test_a_site_reaches_other_sites_and_nothing_else(shared: Sites) -> None:
    """No route leads out, and nothing answers at any other address."""
    namespace = shared.namespace("near")

    def connect(address: str) -> OSError | None:
        with socket.socket() as outward:
            outward.settimeout(0.2)
            try:
                outward.connect((address, 9))
            except OSError as problem:
                return problem
        return None

    def to(address: str) -> OSError | None:
        return namespaces.inside(namespace, lambda: connect(address))

    assert isinstance(to(shared.addresses["home"]), ConnectionRefusedError)  # it was there
    outside = to("192.0.2.1")
    assert outside is not None and "unreachable" in str(outside)
    before = shared.state().get("refused", -1)
    nobody = shared.addresses["home"].rsplit(".", 1)[0] + ".200"
    assert isinstance(to(nobody), TimeoutError)
    assert shared.state().get("refused", 0) > before


def test_home_is_asked_directly_whatever_proxy_there_is(
    shared: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    class Driver(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer((shared.addresses["home"], 0), Driver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host, port = server.server_address[:2]
        assert Rest(f"http://{host!s}:{port}", "app-1").executors() == []
        server.shutdown()


def test_a_limited_site_gets_what_it_was_given(shared: Sites) -> None:
    near = shared.spec["near"]
    shared.change(replace(near, delay=0.005, bandwidth=2.5e6))
    found = {(load.one, load.other): load for load in loads(shared, 1.5)}
    shared.change(near)
    limited, free = found["home", "near"], found["home", "far"]
    assert limited.throughput == pytest.approx(2.5e6, rel=0.2)
    assert limited.loaded >= limited.idle
    assert free.throughput > 5e6


def test_two_at_a_time_do_not_meet(shared: Sites) -> None:
    with Sites(SitesSpec(sites=(Site(name="home"), Site(name="b")), emulation="tun")) as second:
        assert not set(second.addresses.values()) & set(shared.addresses.values())
        assert len(devices()) >= 2


# ---- nothing is left ------------------------------------------------------------------------


@real
def test_after_an_exception_nothing_is_left(cache: Path) -> None:
    before = devices()
    inodes = []
    sites = Sites(SPEC)
    with pytest.raises(ZeroDivisionError), sites:
        for name in ("near", "far"):
            namespace = sites.namespace(name)
            assert namespace is not None
            inodes.append(os.fstat(namespace).st_ino)
        (run,) = leftovers.runs(cache)
        assert run.processes() and len(devices() - before) == 1
        raise ZeroDivisionError
    assert not run.processes() and devices() == before
    assert list((cache / "runs").iterdir()) == []
    until("the namespaces are gone", lambda: not any(map(residents, inodes)), 10)
    sites.stop()
    with pytest.raises(EngineError, match="the sites are not running"):
        sites.measure()


@real
def test_a_failure_on_the_way_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = devices()

    def broken(namespace: int | None) -> socket.socket:
        raise PermissionError("no raw sockets")

    monkeypatch.setattr(network, "open_socket", broken)
    with pytest.raises(PermissionError):
        Sites(SPEC).start()
    assert devices() == before
    assert list((cache / "runs").iterdir()) == []


@real
def test_a_wrong_round_trip_is_an_error_that_names_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "tolerance", lambda expected: -1.0)
    monkeypatch.setattr(network, "TRIES", 1)
    with pytest.raises(EngineError, match=r"home–near takes \d.* instead of 25.00") as caught:
        Sites(SPEC).start()
    assert caught.value.exit_code == 1
    assert list((cache / "runs").iterdir()) == []


CHILD = """
import sys, time
from penstock.lab.sites.network import Sites
from penstock.lab.sites.spec import Site, SitesSpec
with Sites(SitesSpec(sites=(Site(name="a"), Site(name="b", delay=0.001)), emulation="tun")) as s:
    print(next(iter(s.addresses.values())), s.entrance("b"), flush=True)
    time.sleep(600)
"""


def child() -> tuple[subprocess.Popen[str], int, str]:
    """Sites owned by another process: it, the inode of its namespace, its device."""
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    home, entrance = process.stdout.readline().split()
    inode = _inode(Path(entrance))
    assert inode is not None
    _, second, third, _ = map(int, home.split("."))
    return process, inode, f"penstock{(second - 18) * 256 + third}"


@real
def test_a_killed_owner_leaves_only_a_record_that_the_next_start_removes(cache: Path) -> None:
    process, inode, device = child()
    with process:
        (run,) = leftovers.runs(cache)
        assert device in devices() and len(run.processes()) == 1
        process.kill()
    until("the switch has ended", lambda: not run.processes(), 10)
    until("the namespace and the device are gone",
          lambda: not residents(inode) and device not in devices(), 10)  # fmt: skip
    assert run.record.exists()
    with Sites(SPEC):
        assert not run.record.exists() and not run.folder.exists()
    assert list((cache / "runs").iterdir()) == []


@real
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_an_owner_that_is_told_to_end_cleans_up(
    cache: Path, number: signal.Signals, code: int
) -> None:
    process, inode, device = child()
    with process:
        (run,) = leftovers.runs(cache)
        process.send_signal(number)
        assert process.wait(10) == code
    assert not run.processes() and device not in devices()
    assert list((cache / "runs").iterdir()) == []
    until("the namespace is gone", lambda: not residents(inode), 10)


@real
def test_a_dead_switch_is_noticed(cache: Path) -> None:
    with Sites(SPEC) as sites:
        (run,) = leftovers.runs(cache)
        (switch,) = run.processes()
        os.kill(switch, signal.SIGKILL)
        until("it is gone", lambda: not processes.running(switch), 10)
        with pytest.raises(EngineError, match="the switch does not answer"):
            sites.state()
    assert list((cache / "runs").iterdir()) == []


@real
def test_a_device_takes_the_name_of_no_other() -> None:
    namespace = namespaces.make()
    try:
        first = namespaces.inside(namespace, lambda: tun.open_device("site"))
        with pytest.raises(OSError, match="busy"):
            namespaces.inside(namespace, lambda: tun.open_device("site"))
        os.close(first)
        os.close(namespaces.inside(namespace, lambda: tun.open_device("site")))
        with pytest.raises(ValueError, match="at most 15"):
            namespaces.inside(namespace, lambda: namespaces.bring_up("a-very-long-name-1"))
    finally:
        os.close(namespace)
