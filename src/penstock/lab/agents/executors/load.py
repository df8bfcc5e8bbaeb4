"""The load of one executor: the share of its CPU quota that it used over the last seconds.

Executors of micro-batches work in bursts, one per trigger, so a moment says nothing: what counts
is a window of several triggers. While it has a task, a limited executor uses all of its quota, so
over such a window the share it used is the share of the time in which it worked; but other than
the time of its tasks, which only its driver knows, it can be read beside it, and a task that waits
for Kafka does not count as work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock.core.errors import InputError
from penstock.lab.host.cgroups import Groups, Hierarchy
from penstock.lab.host.processes import tree_cpu_seconds

SAMPLES = 12  # in a window
STALE = 0.4  # of a window: over a longer gap between two samples, or after the newest, none counts
MOST = 1.25  # of its quota: the kernel lets a group exceed it by a little; more is no load
LEAST_SPAN = 0.9  # of the window that must be covered


@dataclass(frozen=True, slots=True)
class _Sample:
    time: float
    seconds: float
    quota: float


class LoadMeter:
    """Samples an account; ``window`` seconds are looked back, and ``every`` so many one is due."""

    def __init__(self, account: Account, window: float, clock: Callable[[], float]) -> None:
        if not window > 0.0:
            raise InputError(f"window {window:g} s must be above 0")
        self._account = account
        self._window = window
        self._stale = STALE * window
        self.every = window / SAMPLES  # seconds between two samples
        self._clock = clock
        self._samples: deque[_Sample] = deque()

    def sample(self) -> None:
        """Read the account once.

        What cannot be read, an executor that warms up without a limit, one whose quota has
        changed, and a counter that runs backwards: the window begins anew.
        """
        now = self._clock()
        seconds, quota = self._account.seconds(), self._account.quota()
        if seconds is None or quota is None or quota <= 0.0:
            self._samples.clear()
            return
        last = self._samples[-1] if self._samples else None
        if last is not None and (
            seconds < last.seconds or quota != last.quota or now - last.time > self._stale
        ):
            self._samples.clear()
        self._samples.append(_Sample(now, seconds, quota))
        while len(self._samples) > 1 and self._samples[1].time <= now - self._window:
            self._samples.popleft()

    def load(self) -> float | None:
        """The load, 1 at full quota; ``None`` if it is not known well enough to decide by it."""
        if not self._samples:
            return None
        first, last = self._samples[0], self._samples[-1]
        span = last.time - first.time
        if span < LEAST_SPAN * self._window or self._clock() - last.time > self._stale:
            return None
        used = (last.seconds - first.seconds) / (span * last.quota)
        return used if used <= MOST else None


# The account of one executor: CPU seconds it has used, and the share of a core it may use.
#
# Read on the machine where it runs, from its control group, or from its processes where it has
# none. Nobody is asked for it.

ONE_CORE = 1.0


class Account(Protocol):
    """What is known of an executor's CPU."""

    def seconds(self) -> float | None:
        """CPU seconds used so far; ``None`` if that cannot be read."""

    def quota(self) -> float | None:
        """The share of a core that it may use; ``None`` while it has no limit: it warms up."""

    def document(self) -> dict[str, Any]:
        """As plain values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAccount:
    """An executor in a control group; its Python workers are in it, too."""

    groups: Groups
    key: str

    def seconds(self) -> float | None:
        """What the kernel has counted."""
        return self.groups.cpu_seconds(self.key)

    def quota(self) -> float | None:
        """What the kernel allows."""
        return self.groups.share(self.key)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        where = self.groups.hierarchy
        return {
            "group": self.key,
            "of": self.groups.name,
            "version": where.version,
            "cpu": str(where.cpu),
            "account": str(where.account),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessAccount:
    """An executor without a limit: a process and its children, on one core."""

    pid: int

    def seconds(self) -> float | None:
        """What the kernel has counted for each of them."""
        return tree_cpu_seconds([self.pid]).get(self.pid)

    def quota(self) -> float | None:
        """Executors have one core each."""
        return ONE_CORE

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {"pid": self.pid}


def account_of(document: Mapping[str, Any]) -> Account:
    """An account from plain values."""
    match document:
        case {"pid": int(pid)}:
            return ProcessAccount(pid=pid)
        case {"group": str(key), "of": str(name), "version": (1 | 2) as version}:
            hierarchy = Hierarchy(
                version=version, cpu=Path(document["cpu"]), account=Path(document["account"])
            )
            return GroupAccount(groups=Groups(hierarchy=hierarchy, name=name), key=key)
    raise InputError(f"{dict(document)!r:.80} is no account of an executor")
