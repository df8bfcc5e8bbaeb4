"""What an instance does with records: an operator's work, the source, or the sink."""

from __future__ import annotations

from typing import Protocol

from penstock.agents.channel import Done


class Stage(Protocol):
    """Records come to it; it works when it has been started."""

    @property
    def waiting(self) -> int:
        """Records that wait for it."""

    @property
    def processed(self) -> int:
        """Records that it is through with."""

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do."""

    def put(self, ids: bytes, done: Done) -> None:
        """Records have come."""

    def start(self) -> None:
        """It may work."""

    async def run(self) -> None:
        """Work."""
