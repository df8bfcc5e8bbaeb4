"""The account of one executor: CPU seconds it has used, and the share of a core it may use.

Read on the machine where it runs, from its control group, or from its processes where it has none.
Nobody is asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock.core.errors import InputError
from penstock.lab.host.cgroups import Groups, Hierarchy
from penstock.lab.host.processes import tree_cpu_seconds

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
