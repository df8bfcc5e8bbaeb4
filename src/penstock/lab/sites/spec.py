"""What sites there are: names, one-way delays, room for slots. From text, from a file, in code."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import InputError, unknown
from penstock.lab.clusters.standalone.spec import check_share
from penstock.lab.sites.link import Conditions
from penstock.spark.settings.toml_file import Place, TomlFile, mentioned, seconds

Emulation = Literal["auto", "netem", "tun"]
EMULATIONS = ("auto", "netem", "tun")
MOST_SITES = 64
MOST_DELAY, MOST_JITTER = 5.0, 0.5  # seconds one way
LEAST_BANDWIDTH = 10_000.0  # bytes/s: a packet of 64 KB would take longer than TCP waits
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(k|m|g)bit")
_BITS = {"k": 1e3, "m": 1e6, "g": 1e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place with a network of its own.

    delay: seconds that every packet *into* the site takes longer, one way: the round trip
        between two sites is the sum of their delays
    jitter: seconds by which the delay wanders up and down, smoothly
    bandwidth: bytes/s into the site, None: no limit
    slots: the most executors that may run there
    cpu: the share of one core of each
    price: of a slot, in any one unit

    >>> Site.parse("oslo=25ms,cpu=0.5,bandwidth=100mbit").bandwidth
    12500000.0
    """

    name: str
    delay: float = 0.0
    jitter: float = 0.0
    bandwidth: float | None = None
    slots: int = 1
    cpu: float = 0.2
    price: float = 1.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"name {self.name!r} of a site: up to 32 of a–z, 0–9 and dashes, such as 'oslo-1'"
            )
        where = f"site {self.name}"
        if not 0 <= self.delay <= MOST_DELAY:
            raise InputError(
                f"{where}: delay is {self.delay:g} s one way; it must be from 0 to {MOST_DELAY:g}"
            )
        if not 0 <= self.jitter <= min(self.delay, MOST_JITTER):
            raise InputError(
                f"{where}: jitter is {self.jitter:g} s; it must be from 0 to the delay "
                f"({self.delay:g} s), at most {MOST_JITTER:g}"
            )
        rate = self.bandwidth
        if rate is not None and not (math.isfinite(rate) and rate >= LEAST_BANDWIDTH):
            raise InputError(
                f"{where}: bandwidth is {rate:g} bytes/s; it must be at least "
                f"{LEAST_BANDWIDTH:g} (80 kbit/s), or left out for no limit"
            )
        if not 1 <= self.slots <= 256:
            raise InputError(f"{where}: slots is {self.slots}; it must be between 1 and 256")
        try:
            check_share(self.cpu)
        except InputError as problem:
            raise InputError(f"{where}: {problem}") from None
        if not (math.isfinite(self.price) and self.price >= 0):
            raise InputError(f"{where}: price is {self.price:g}; it must be a finite number ≥ 0")

    @property
    def conditions(self) -> Conditions:
        """What its link does to packets."""
        return Conditions(delay=self.delay, jitter=self.jitter, bandwidth=self.bandwidth)

    @staticmethod
    def parse(text: str) -> Site:
        """A site from ``NAME=DELAY[,KEY=VALUE…]``, such as ``oslo=25ms,slots=2,cpu=0.5``."""
        name, values = _split(text)
        return _site({"name": name} | values, f"site {text!r}")

    def changed(self, text: str) -> Site:
        """This site with other values, from the same notation: ``oslo=80ms``."""
        name, values = _split(text)
        if name != self.name:
            raise InputError(f"site {text!r} is not {self.name!r}")
        return replace(self, **_values(values, f"site {text!r}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesSpec:
    """Two sites or more.

    ``home`` is where this machine itself stands: the driver and the master of a Spark cluster run
    there; the first site unless said otherwise · ``emulation`` how delays are made: ``netem`` in
    the kernel, ``tun`` by a process of ours, ``auto`` the first where it can.

    >>> spec = SitesSpec(sites=(Site(name="a"), Site(name="b", delay=0.025)))
    >>> spec.home, spec.rtt("a", "b")
    ('a', 0.025)
    """

    sites: tuple[Site, ...]
    home: str = ""
    emulation: Emulation = "auto"

    def __post_init__(self) -> None:
        names = [site.name for site in self.sites]
        if not 2 <= len(names) <= MOST_SITES:
            raise InputError(f"{len(names)} sites; there must be from 2 to {MOST_SITES}")
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"there are two sites named {twice[0]!r}")
        if not self.home:
            object.__setattr__(self, "home", names[0])
        if self.home not in names:
            raise unknown("home site", self.home, names)
        if self.emulation not in EMULATIONS:
            raise InputError(f"emulation {self.emulation!r} must be one of {', '.join(EMULATIONS)}")
        if self.emulation == "netem" and any(site.jitter for site in self.sites):
            raise InputError(
                "netem reorders packets under jitter: leave the jitter out, or use emulation 'tun'"
            )

    def __getitem__(self, name: str) -> Site:
        for site in self.sites:
            if site.name == name:
                return site
        raise unknown("site", name, [site.name for site in self.sites])

    def rtt(self, one: str, other: str) -> float:
        """The round trip between two sites that their delays make, in seconds."""
        return 0.0 if one == other else self[one].delay + self[other].delay

    def sway(self, one: str, other: str) -> float:
        """Seconds by which jitter can move that round trip, up or down."""
        return 0.0 if one == other else self[one].jitter + self[other].jitter

    @property
    def slots(self) -> int:
        """The most executors that all sites together have room for."""
        return sum(site.slots for site in self.sites)

    def nearest(self, slots: int) -> tuple[str, ...]:
        """The sites of so many slots, once per slot: home first, then by delay."""
        if not 1 <= slots <= self.slots:
            raise InputError(f"{slots} slots; the sites have room for 1 to {self.slots}")
        near = sorted(self.sites, key=lambda site: (site.name != self.home, site.delay))
        return tuple(site.name for site in near for _ in range(site.slots))[:slots]

    def changed(self, sites: Iterable[Site]) -> SitesSpec:
        """The same sites with other values for some."""
        new = {site.name: site for site in sites}
        for name in new:
            self[name]  # raises for a name that there is not
        return replace(self, sites=tuple(new.get(site.name, site) for site in self.sites))

    @staticmethod
    def read(path: Path) -> SitesSpec:
        """The sites in a TOML file: ``home``, ``emulation``, and a table ``[[site]]`` for each."""
        file = TomlFile.read(path, "file of sites")
        document = file.document
        file.known(document, ("home", "emulation", "site"), Place())
        tables = document.get("site", [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            file.fail("every site needs a table [[site]]", Place(key="site"))
        sites = []
        for number, table in enumerate(tables):
            here = Place(table="site", number=number)
            file.known(table, _KEYS, here)
            try:
                sites.append(_site(table, f"site {number + 1}"))
            except InputError as problem:
                key = mentioned(table, str(problem))
                file.fail(str(problem), replace(here, key=key))
        others = {key: document[key] for key in ("home", "emulation") if key in document}
        try:
            return SitesSpec(sites=tuple(sites), **others)
        except InputError as problem:
            file.fail(str(problem), Place(key=mentioned(others, str(problem))))


_KEYS = tuple(field.name for field in fields(Site))


def _split(text: str) -> tuple[str, dict[str, str]]:
    """``oslo=25ms,cpu=0.5`` as a name and values; ``oslo,cpu=0.5`` has no delay."""
    first, *rest = (part.strip() for part in text.split(","))
    name, equals, delay = first.partition("=")
    values = {"delay": delay.strip()} if equals else {}
    for part in rest:
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or key not in _KEYS or key == "name":
            known = ", ".join(key for key in _KEYS if key != "name")
            raise InputError(f"site {text!r}: {part!r} must look like KEY=VALUE; keys: {known}")
        values[key] = value.strip()
    return name.strip(), values


def _site(table: Mapping[str, Any], what: str) -> Site:
    values = _values({key: value for key, value in table.items() if key != "name"}, what)
    name = table.get("name")
    if not isinstance(name, str):
        raise InputError(f"{what}: name is {name!r}; give each site a name")
    return Site(name=name, **values)


def _values(table: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Texts and numbers as the fields of a site."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("delay", "jitter"):
            found[key] = seconds(value)
            example = "'25ms'"
        elif key == "bandwidth":
            found[key] = _bytes_per_second(value)
            example = "'100mbit'"
        else:
            found[key] = _number(value, whole=key == "slots")
            example = "2" if key == "slots" else "0.5"
        if found[key] is None:
            raise InputError(f"{what}: {key} is {value!r}; write it like {example}")
    return found


def _bytes_per_second(value: Any) -> float | None:
    match = _RATE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    return None if match is None else float(match[1]) * _BITS[match[2]] / 8


def _number(value: Any, *, whole: bool) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return int(value) if whole and not isinstance(value, float) else float(value)
    except (TypeError, ValueError):
        return None
