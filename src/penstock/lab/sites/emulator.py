"""What puts delays between sites, and how it is told: by a switch of ours, or by netem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.lab.sites.link import Conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A site as an emulator sees it; ``namespace`` None is the one we are in."""

    name: str
    address: str
    namespace: int | None
    device: str
    conditions: Conditions


class Emulator(Protocol):
    """Connects stations, and changes what their links do while they are connected."""

    def connect(self, stations: Sequence[Station]) -> None:
        """Give every station its device and its address, and carry packets between them."""
        ...

    def set(self, conditions: Mapping[str, Conditions]) -> None:
        """Other conditions for some stations, for packets from now on."""
        ...

    def state(self) -> Mapping[str, Any]:
        """What is known of links and packets."""
        ...

    def close(self) -> None:
        """Carry nothing any more; the devices go too."""
        ...
