"""The two things that are exchangeable: the policy, and the engine it runs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from penstock.core.model import Change, Proposal, Snapshot


class Policy(Protocol):
    """An auto-scaler. Parameters are frozen fields; memory is a plain JSON value.

    A policy reads no clock, does no I/O, never rounds and never guards: it says how many slots
    each operator (or pool) needs, and why. What it cannot size it leaves out.

    It may also have ``figures(memory) -> Mapping[str, float]``: figures that it kept of itself,
    such as ``{"forecast_error": 0.08}``. They are read at the end of a run where they exist.
    """

    def start(self, seed: int) -> Any:
        """The memory before the first decision."""
        ...

    def decide(self, seen: Snapshot, memory: Any) -> tuple[Proposal, Any]:
        """A proposal and the memory to pass to the next decision; neither input is changed."""
        ...


class Engine(Protocol):
    """A simulated or a real pipeline."""

    def observe(self) -> Snapshot:
        """What happened since the last observation."""
        ...

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Ask for new pool sizes; returns at once, the effect shows in later snapshots."""
        ...

    def advance(self, seconds: float) -> bool:
        """Simulate or wait; false when the pipeline has ended."""
        ...
