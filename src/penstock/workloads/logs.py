"""Lines of a web server's log, made from a seed: any range of them, always the same.

A line is in Apache's combined format. A few in a hundred ask for what an attacker asks for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.pattern import Floats
from penstock.workloads.recorded import bellcore

BLOCK = 256  # lines that are drawn together
ATTACKS = 0.04  # share of lines
STATUSES = ("200", "301", "304", "404", "500")
PATTERN = (
    r'^(\S+) \S+ (\S+) \[([^\]]+)\] "(\S+) (\S+) (HTTP/\d\.\d)" (\d{3}) (\d+|-) "([^"]*)" "([^"]*)"'
)
"""Host, user, time, method, path, protocol, status, bytes, referrer and agent of a line."""

SIGNATURES = (
    r"(?i)union[^a-z]+select",
    r"(?i)(%27|')\s*(or|and)\s*\d+=\d+",
    r"(?i);\s*drop\s+table",
    r"(?i)information_schema",
    r"(?i)sleep\(\d+\)",
    r"(?i)benchmark\(\d+,",
    r"(?i)<script[^>]*>",
    r"(?i)%3cscript",
    r"(?i)onerror\s*=",
    r"(?i)javascript:",
    r"\.\./\.\./",
    r"(?i)%2e%2e%2f",
    r"(?i)/etc/(passwd|shadow)",
    r"(?i)/proc/self/environ",
    r"(?i)boot\.ini",
    r"(?i)\.(git|svn|hg)/(config|HEAD|entries)",
    r"(?i)\.env(\.[a-z]+)?$",
    r"(?i)wp-(login|config|admin)[^ ]*\.php",
    r"(?i)phpmyadmin[-_\d.]*/",
    r"(?i)(cmd|shell|c99|r57)\.(php|asp|jsp)",
    r"(?i)\$\{jndi:(ldap|rmi|dns)",
    r"(?i)\(\)\s*\{\s*:;\s*\}",
    r"(?i)/cgi-bin/.*\.(sh|pl|cgi)",
    r"(?i)eval\(.*\)",
    r"(?i)base64_decode\(",
    r"(?i)(nikto|sqlmap|nmap|masscan|zgrab)/",
    r"(?i)python-requests/\d",
    r"(?i)allow_url_include",
    r"(?i)/solr/admin/(cores|info)",
    r"(?i)/actuator/(env|heapdump)",
    r"(?i)/\.aws/credentials",
    r"(?i)xmlrpc\.php",
)
"""What a matcher looks for in path and agent."""

_ATTACKS = (
    "/item?id=1+UNION+SELECT+name",
    "/login?user=%27+OR+1=1",
    "/search?q=<script>alert(1)</script>",
    "/download?f=../../../../etc/passwd",
    "/.git/config",
    "/.env",
    "/wp-login.php",
    "/phpmyadmin-4.8/",
    "/?x=${jndi:ldap://10.0.0.1/a}",
    "/actuator/heapdump",
    "/cgi-bin/status.sh",
    "/xmlrpc.php",
)
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    "curl/8.8.0",
    "sqlmap/1.8.6 (https://sqlmap.org)",
)
_AGENT_SHARES = (0.4, 0.35, 0.2, 0.045, 0.005)
_STATUS_SHARES = (0.82, 0.05, 0.06, 0.06, 0.01)


@dataclass(frozen=True)
class LogLines:
    """The lines that a seed gives, by number from 0 on.

    >>> LogLines(seed=1).lines(7, 8) == LogLines(seed=1).lines(0, 9)[7:8]
    True
    """

    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"seed {self.seed} must be ≥ 0")

    def lines(self, first: int, end: int) -> list[str]:
        """Those from ``first`` up to, not including, ``end``."""
        if not 0 <= first <= end:
            raise InputError(f"lines {first} to {end}: 0 ≤ first ≤ end must hold")
        found: list[str] = []
        for block in range(first // BLOCK, -(-end // BLOCK)):
            begin = block * BLOCK
            found += _block(self.seed, block)[max(0, first - begin) : end - begin]
        return found

    def matches(self, first: int, end: int) -> int:
        """How often a signature is in path or agent of these lines, found by Python."""
        return sum(_matched(line) for line in self.lines(first, end))


def _matched(line: str) -> int:
    found = re.match(PATTERN, line)
    if found is None:
        return 0
    path, agent = found[5], found[10]
    return sum(bool(s.search(path) or s.search(agent)) for s in _signatures())


@cache
def _signatures() -> list[re.Pattern[str]]:
    return [re.compile(signature) for signature in SIGNATURES]


@lru_cache(maxsize=64)
def _block(seed: int, block: int) -> list[str]:
    rng = np.random.default_rng([seed, block])
    hosts = rng.integers(1, 255, (BLOCK, 4)).tolist()
    seconds = (np.arange(BLOCK) + block * BLOCK).tolist()
    methods = rng.choice(["GET", "GET", "GET", "POST", "HEAD"], BLOCK).tolist()
    pages = rng.integers(1, 5000, BLOCK).tolist()
    sizes = rng.integers(120, 90_000, BLOCK).tolist()
    statuses = rng.choice(STATUSES, BLOCK, p=_STATUS_SHARES).tolist()
    agents = rng.choice(len(_AGENTS), BLOCK, p=_AGENT_SHARES).tolist()
    attack = np.where(rng.random(BLOCK) < ATTACKS, rng.integers(0, len(_ATTACKS), BLOCK), -1)
    lines = []
    for i, kind in enumerate(attack.tolist()):
        a, b, c, d = hosts[i]
        path = _ATTACKS[kind] if kind >= 0 else f"/shop/category/{pages[i] % 40}/item/{pages[i]}"
        hour, minute, second = seconds[i] // 3600 % 24, seconds[i] // 60 % 60, seconds[i] % 60
        lines.append(
            f"{a}.{b}.{c}.{d} - - [16/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000] "
            f'"{methods[i]} {path} HTTP/1.1" {statuses[i]} {sizes[i]} '
            f'"https://shop.example/category/{pages[i] % 40}" "{_AGENTS[agents[i]]}"'
        )
    return lines


@dataclass(frozen=True)
class TimedLogs:
    """Log lines on the wall clock, released as the packets of BC-pAug89.

    ``start`` epoch seconds at which packet ``first`` comes · ``packets`` in all · ``lines`` that
    each brings · ``speed`` times as fast as they were recorded · ``seed`` of the lines.
    """

    start: float
    first: int = 0
    packets: int = 100_000
    lines: int = 10
    speed: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        most = len(bellcore())
        if not (self.first >= 0 and self.packets >= 1 and self.first + self.packets <= most):
            raise InputError(
                f"packets {self.first} to {self.first + self.packets} of the trace: there are "
                f"0 to {most}"
            )
        if not (self.lines >= 1 and self.speed > 0.0):
            raise InputError(f"lines {self.lines} must be ≥ 1 and speed {self.speed} above 0")

    @cached_property
    def times(self) -> Floats:
        """Epoch seconds of the packets."""
        gaps = bellcore()[self.first : self.first + self.packets]
        return np.asarray(self.start + (np.cumsum(gaps) - gaps[0]) / self.speed)

    @property
    def seconds(self) -> float:
        """From the first packet to the last."""
        return float(self.times[-1] - self.times[0])

    @property
    def rows(self) -> int:
        """Lines in all."""
        return self.packets * self.lines

    def released(self, now: float) -> int:
        """Lines that have come by then."""
        return int(np.searchsorted(self.times, now, side="right")) * self.lines

    def release_times(self, first: int, end: int) -> Floats:
        """When each of these lines came."""
        return np.asarray(self.times[np.arange(first, end) // self.lines])

    def texts(self, first: int, end: int) -> list[str]:
        """These lines."""
        return LogLines(self.seed).lines(first, end)

    def options(self) -> dict[str, str]:
        """As text, for a data source."""
        return {field.name: repr(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> TimedLogs:
        """What ``options`` has written."""
        kinds: dict[str, Any] = {"start": float, "speed": float}
        names = [field.name for field in fields(cls)]
        if missing := [name for name in names if name not in options]:
            raise InputError(f"the source of log lines needs the option {missing[0]!r}")
        return cls(**{name: kinds.get(name, int)(options[name]) for name in names})
