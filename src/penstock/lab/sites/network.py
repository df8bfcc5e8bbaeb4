"""Sites on this machine: networks of their own with delays between them, and nothing left behind.

::

    near, far = Site(name="near"), Site(name="far", delay=0.025)
    with Sites(SitesSpec(sites=(near, far))) as sites:
        print(sites.rtt.between("near", "far"))         # 0.0252, measured
        sites.change(replace(far, delay=0.1))           # while it runs; measured again

Every site but the home is a network namespace with one device and one address. The home is the
network of this machine itself: it gets one more device with an address, so that this process (and
with it the driver of a Spark session) is at a site without being moved. Addresses are from
198.18.0.0/15, which is set aside for tests of networks and never in use elsewhere.

Namespaces, devices and settings live by descriptors of this process and of the switch, so the
kernel removes them when this process ends, however it ends; the folder and the record of a killed
run are cleaned at the next start (:mod:`penstock.lab.host.leftovers`).
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from penstock.core.errors import EngineError, InputError
from penstock.core.latency import LatencyMap
from penstock.lab.host import leftovers, processes
from penstock.lab.sites import namespaces, requirements
from penstock.lab.sites.link import Emulator, Station
from penstock.lab.sites.netem import Netem
from penstock.lab.sites.ping import Mesh, Pair, open_socket, tolerance
from penstock.lab.sites.spec import Site, SitesSpec
from penstock.lab.sites.tun_switch import TunSwitch

NETWORKS = 512  # of 256 addresses in 198.18.0.0/15
ROUTES = Path("/proc/net/route")
TRIES = 5  # measurements until a wrong round trip is believed


class Sites:
    """Running sites; a context manager, or :meth:`start` and :meth:`stop`.

    spec: as it is now, after changes
    emulation: how delays are made
    realtime: whether that is at real-time priority
    addresses: by site
    rtt: the round trips as last measured
    say: gets one line per step of progress
    """

    def __init__(self, spec: SitesSpec, *, say: Callable[[str], None] = lambda line: None) -> None:
        self.spec = spec
        self.emulation = ""
        self.realtime = False
        self.addresses: Mapping[str, str] = {}
        self._say = say
        self._owner = os.getpid()
        self._run: leftovers.OwnedRun | None = None
        self._nursery = processes.Nursery()
        self._signals = processes.NormalExit()
        self._open = contextlib.ExitStack()
        self._namespaces: dict[str, int | None] = {}
        self._emulator: Emulator | None = None
        self._mesh: Mesh | None = None
        self._rtt: LatencyMap | None = None

    @property
    def rtt(self) -> LatencyMap:
        """Round trips in seconds, as last measured."""
        self._running()
        assert self._rtt is not None
        return self._rtt

    def namespace(self, name: str) -> int | None:
        """The descriptor of a site's namespace; ``None``: the home, which is where we are."""
        self._running()
        return self._namespaces[self.spec[name].name]

    def entrance(self, name: str) -> str | None:
        """A path by which other programs of root get in: ``nsenter --net=PATH``."""
        namespace = self.namespace(name)
        return None if namespace is None else f"/proc/{self._owner}/fd/{namespace}"

    def state(self) -> Mapping[str, Any]:
        """What the emulator knows of its links: packets, bytes, dropped."""
        return self._running().state()

    def change(self, *sites: Site) -> LatencyMap:
        """Other delays, jitter or bandwidth for sites of these names, measured before it returns.

        Packets that are under way keep the delay they set out with.
        """
        emulator = self._running()
        spec = self.spec.changed(sites)
        if self.emulation == "netem" and any(site.jitter for site in sites):
            raise InputError("netem reorders packets under jitter: start with emulation 'tun'")
        emulator.set({site.name: site.conditions for site in sites})
        self.spec = spec
        return self.measure()

    def measure(self) -> LatencyMap:
        """Ping between all sites; fails if a round trip is off by more than 2 ms and 5 %."""
        self._running()
        assert self._mesh is not None
        names = [site.name for site in self.spec.sites]
        longest = max(self._longest(pair) for pair in self._mesh.pairs)
        for left in reversed(range(TRIES)):
            measured = self._mesh.measure(longest)
            wrong = _wrong(measured, self.spec)
            if not wrong:
                break
            if not left:
                slow = "" if self.realtime else " without real-time priority"
                raise EngineError(
                    f"the delays are not as asked for: {'; '.join(wrong[:3])}. The machine may be "
                    f"too busy for emulation by {self.emulation}{slow}: run less, or fewer sites"
                )
        times = [[measured.get((a, b), measured.get((b, a), 0.0)) for b in names] for a in names]
        self._rtt = LatencyMap(names, times)
        return self._rtt

    def ping(self, one: str, other: str, *, seconds: float = 0.0) -> float:
        """The round trip between two sites in seconds, the median over so many seconds.

        Whatever it is: under load it may be longer than it should be.
        """
        self._running()
        assert self._mesh is not None
        pair = (one, other) if (one, other) in self._mesh.pairs else (other, one)
        return self._mesh.measure(self._longest(pair), pairs=[pair], seconds=seconds)[pair]

    def _longest(self, pair: Pair) -> float:
        return self.spec.rtt(*pair) + self.spec.sway(*pair)

    # ---- start and stop --------------------------------------------------------------------

    def start(self) -> Self:
        """Clean up after killed runs, make the sites and measure; a failure leaves nothing."""
        if self._run is not None:
            raise InputError("these sites are running already")
        jitter = any(site.jitter for site in self.spec.sites)
        self.emulation = requirements.choose(self.spec.emulation, jitter=jitter)
        cache = leftovers.cache_folder()
        leftovers.clean(cache, self._say)
        self._run = leftovers.open_run(cache)
        self._nursery = processes.Nursery()
        atexit.register(self.stop)
        self._signals.take()
        try:
            self._connect(self._run)
            self.measure()
        except BaseException:
            self.stop()
            raise
        how = self.emulation if self.realtime else f"{self.emulation}, without real-time priority"
        self._say(f"{len(self.spec.sites)} sites are up ({how})")
        return self

    def stop(self) -> None:
        """Remove the sites; what still runs inside them loses its network. Idempotent."""
        run = self._run
        if run is None or os.getpid() != self._owner:  # a forked child must not end our sites
            return
        try:
            self._open.close()
        finally:
            self._emulator = self._mesh = None
            self._nursery.close()
            if left := run.clear():
                self._say(f"could not remove {', '.join(left)}; the next start will try again")
            self._run = None
            self._signals.restore()
            atexit.unregister(self.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _running(self) -> Emulator:
        if self._emulator is None:
            raise EngineError(
                "the sites are not running: call start(), or use them in a with block"
            )
        return self._emulator

    def _connect(self, run: leftovers.OwnedRun) -> None:
        """Make namespaces, devices and sockets; ``_open`` closes them again, the last first."""
        number = self._claim()
        names = [self.spec.home]
        names += [site.name for site in self.spec.sites if site.name != self.spec.home]
        stations = []
        for place, name in enumerate(names, 1):
            home = name == self.spec.home
            namespace = self._namespaces[name] = None if home else namespaces.make()
            if namespace is not None:
                self._open.callback(os.close, namespace)
            stations.append(
                Station(
                    name=name,
                    address=address(number, place),
                    namespace=namespace,
                    device=f"penstock{number}" if home else "site",
                    conditions=self.spec[name].conditions,
                )
            )
        self.addresses = {station.name: station.address for station in stations}
        emulator = Netem() if self.emulation == "netem" else TunSwitch(self._nursery, run)
        self._open.callback(emulator.close)
        emulator.connect(stations)
        self._emulator = emulator
        self.realtime = bool(emulator.state()["realtime"])
        sockets = {}
        for station in stations:
            sockets[station.name] = open_socket(station.namespace)
            self._open.callback(sockets[station.name].close)
        self._mesh = Mesh(sockets, self.addresses)

    def _claim(self) -> int:
        """A network that nobody uses, held by a name that only one process at a time can have."""
        taken = routed()
        for number in range(NETWORKS):
            if number in taken:
                continue
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(f"\0penstock-network-{number}")
            except OSError as problem:
                claim.close()
                if problem.errno != errno.EADDRINUSE:
                    raise
            else:
                self._open.callback(claim.close)
                return number
        raise EngineError(f"all {NETWORKS} networks of 198.18.0.0/15 are in use on this machine")


def address(network: int, place: int) -> str:
    """The address of a place in one of the networks.

    >>> address(0, 1), address(300, 2)
    ('198.18.0.1', '198.19.44.2')
    """
    return f"198.{18 + network // 256}.{network % 256}.{place}"


def routed(routes: Path = ROUTES) -> set[int]:
    """Networks of 198.18.0.0/15 that this machine has a route to already."""
    first = int.from_bytes(socket.inet_aton("198.18.0.0"), "big") >> 8
    taken: set[int] = set()
    for line in routes.read_text().splitlines()[1:]:
        fields = line.split()
        target, mask = (int.from_bytes(bytes.fromhex(fields[i]), "little") for i in (1, 7))
        if mask == 0:  # the default route leads everywhere
            continue
        low = (target >> 8) - first
        high = ((target | ~mask & 0xFFFFFFFF) >> 8) - first
        taken.update(range(max(0, low), min(NETWORKS - 1, high) + 1))
    return taken


def _wrong(measured: Mapping[Pair, float], spec: SitesSpec) -> list[str]:
    """A sentence about every pair whose round trip is not what it should be."""
    found = []
    for (one, other), seconds in measured.items():
        wanted = spec.rtt(one, other)
        most = tolerance(wanted) + spec.sway(one, other)
        if abs(seconds - wanted) > most:
            found.append(
                f"{one}–{other} takes {seconds * 1e3:.2f} ms instead of {wanted * 1e3:.2f} "
                f"± {most * 1e3:.2f} ms"
            )
    return found
