"""What a link between two sites carries, and how long round trips take while it does."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass
from statistics import median

from penstock.spark.sites import namespaces
from penstock.spark.sites.network import Sites

PIECE = 1 << 20  # bytes
LONGEST = 10.0  # seconds for a connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Round trips in seconds without and with one TCP flow, and what that carried in bytes/s.

    The flow goes from ``one`` to ``other``; its first half, in which TCP finds its pace, is not
    counted.
    """

    one: str
    other: str
    expected: float
    idle: float
    loaded: float
    throughput: float


def loads(sites: Sites, seconds: float) -> list[Load]:
    """Every pair of sites in turn, for so many seconds each."""
    idle = sites.measure()
    names = [site.name for site in sites.spec.sites]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return [_load(sites, a, b, idle.between(a, b), seconds) for a, b in pairs]


def _load(sites: Sites, one: str, other: str, idle: float, seconds: float) -> Load:
    where = sites.namespace(other)
    listener = namespaces.inside(where, lambda: socket.create_server((sites.addresses[other], 0)))
    with listener:
        target = listener.getsockname()
        source = namespaces.inside(
            sites.namespace(one), lambda: socket.create_connection(target, LONGEST)
        )
        with source:
            drain, _ = listener.accept()
            with drain:
                return _flow(sites, Load(one=one, other=other, expected=sites.spec.rtt(one, other),
                                         idle=idle, loaded=0.0, throughput=0.0), source, drain, seconds)
