"""What sites are asked for: texts, files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import InputError
from penstock.lab.sites.network import routed
from penstock.lab.sites.ping import checksum
from penstock.lab.sites.spec import Site, SitesSpec

NEAR, FAR = Site(name="near", slots=2), Site(name="far", delay=0.025, slots=3, price=0.5)


@pytest.mark.parametrize(
    ("text", "site"),
    [
        ("oslo", Site(name="oslo")),
        ("oslo=25ms", Site(name="oslo", delay=0.025)),
        ("oslo = 0.1s , cpu = 0.5", Site(name="oslo", delay=0.1, cpu=0.5)),
        ("a-1=0ms,slots=3,price=2.5", Site(name="a-1", slots=3, price=2.5)),
        ("a=25ms,jitter=10ms", Site(name="a", delay=0.025, jitter=0.01)),
        ("a=0ms,bandwidth=1.5gbit", Site(name="a", bandwidth=187_500_000.0)),
        ("a,bandwidth=80kbit", Site(name="a", bandwidth=10_000.0)),
    ],
)
def test_a_site_from_text(text: str, site: Site) -> None:
    assert Site.parse(text) == site


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "name '' of a site"),
        ("Oslo=1ms", "name 'Oslo' of a site"),
        ("oslo=25", "delay is '25'; write it like '25ms'"),
        ("oslo=9s", "delay is 9 s one way; it must be from 0 to 5"),
        ("oslo=-1ms", "delay is -0.001 s one way"),
        ("oslo=10ms,jitter=20ms", r"jitter is 0.02 s; it must be from 0 to the delay \(0.01 s\)"),
        ("oslo=4s,jitter=1s", "jitter is 1 s.*at most 0.5"),
        ("oslo=1ms,speed=3", "'speed=3' must look like KEY=VALUE; keys: delay"),
        ("oslo=1ms,name=x", "'name=x' must look like KEY=VALUE"),
        ("oslo=1ms,bandwidth=100", "bandwidth is '100'; write it like '100mbit'"),
        ("oslo=1ms,bandwidth=1kbit", "at least 10000"),
        ("oslo=1ms,slots=1.5", "slots is '1.5'; write it like 2"),
        ("oslo=1ms,slots=0", "slots is 0; it must be between 1 and 256"),
        ("oslo=1ms,cpu=0", "site oslo: cpu_share is 0"),
        ("oslo=1ms,price=-1", "price is -1"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Site.parse(text)


def test_round_trips_are_the_sum_of_both_delays() -> None:
    spec = SitesSpec(sites=(NEAR, FAR, Site(name="off", delay=0.1, jitter=0.01)))
    assert spec.rtt("near", "far") == 0.025
    assert spec.rtt("far", "off") == spec.rtt("off", "far") == 0.125
    assert spec.rtt("far", "far") == 0.0
    assert (spec.sway("far", "off"), spec.sway("off", "off")) == (0.01, 0.0)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"sites": (NEAR,)}, "1 sites; there must be from 2 to 64"),
        ({"sites": (NEAR, NEAR)}, "two sites named 'near'"),
        ({"sites": (NEAR, FAR), "home": "fa"}, "unknown home site 'fa'; did you mean 'far'"),
        ({"sites": (NEAR, FAR), "emulation": "tc"}, "'tc' must be one of auto, netem, tun"),
        (
            {"sites": (NEAR, Site(name="x", delay=1.0, jitter=0.1)), "emulation": "netem"},
            "netem reorders packets under jitter",
        ),
    ],
)
def test_sites_that_do_not_go_together(values: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        SitesSpec(**values)


def test_slots_are_taken_from_home_outwards() -> None:
    spec = SitesSpec(sites=(Site(name="off", delay=0.1), FAR, NEAR), home="far")
    assert spec.slots == 6
    assert spec.nearest(5) == ("far", "far", "far", "near", "near")
    with pytest.raises(InputError, match="7 slots; the sites have room for 1 to 6"):
        spec.nearest(7)


def test_a_site_is_changed_by_the_same_notation() -> None:
    assert FAR.changed("far=80ms").delay == 0.08
    assert FAR.changed("far,bandwidth=8mbit") == Site(
        name="far", delay=0.025, slots=3, price=0.5, bandwidth=1e6
    )
    with pytest.raises(InputError, match="is not 'far'"):
        FAR.changed("near=1ms")
    spec = SitesSpec(sites=(NEAR, FAR)).changed([FAR.changed("far=80ms")])
    assert (spec["far"].delay, spec["near"]) == (0.08, NEAR)
    with pytest.raises(InputError, match="unknown site"):
        spec.changed([Site(name="nowhere")])


FILE = """\
home = "far"

[[site]]
name = "near"
slots = 2

[[site]]
name = "far"
delay = "25ms"
slots = 3
price = 0.5
"""


def test_sites_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    path.write_text(FILE)
    assert SitesSpec.read(path) == SitesSpec(sites=(NEAR, FAR), home="far")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"25ms"', '"fast"', "line 9: .*delay is 'fast'"),
        ("price", "prise", "line 11: unknown key 'prise'.*did you mean 'price'"),
        ('home = "far"', 'home = "here"', "line 1: unknown home site 'here'"),
        ('name = "near"', 'name = "far"', "two sites named 'far'"),
        ('name = "near"', "name = 3", "name is 3; give each site a name"),
        ("slots = 3", "slots = 1000", "line 10: .*slots is 1000"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "sites.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(InputError, match=f"sites.toml.*{said}"):
        SitesSpec.read(path)


def test_networks_that_are_in_use_are_passed_over(tmp_path: Path) -> None:
    """As the kernel writes them: addresses and masks in hexadecimal, the last byte first."""
    routes = tmp_path / "route"
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    lines = [
        ("00000000", "00000000"),  # default
        ("0002A8C0", "00FFFFFF"),  # 192.168.2.0/24
        ("000012C6", "00FFFFFF"),  # 198.18.0.0/24
        ("000013C6", "00FEFFFF"),  # 198.19.0.0/23
    ]
    rows = [f"eth0\t{to}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0\n" for to, mask in lines]
    routes.write_text(head + "".join(rows))
    assert routed(routes) == {0, 256, 257}


def test_the_checksum_of_a_message_with_its_checksum_is_zero() -> None:
    for message in (b"", b"\x08\x00\x00\x00\x12\x34\x00\x01", bytes(range(40))):
        assert checksum(message + checksum(message).to_bytes(2, "big")) == 0
