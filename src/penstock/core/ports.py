"""The two things that are exchangeable: the policy, and the engine it runs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

from penstock.core.model import Change, Proposal, Snapshot


class Policy(Protocol):
    """An auto-scaler. Parameters are frozen fields; memory is a plain JSON value.

    A policy reads no clock, does no I/O, never rounds and never guards: it says how many slots
    each operator (or pool) needs, and why. What it cannot size it leaves out.

    It may offer more: see ``ReportsFigures`` and ``WantsArrivals``.
    """

    def start(self, seed: int) -> Any:
        """The memory before the first decision."""
        ...

    def decide(self, seen: Snapshot, memory: Any) -> tuple[Proposal, Any]:
        """A proposal and the memory to pass to the next decision; neither input is changed."""
        ...


@runtime_checkable
class ReportsFigures(Protocol):
    """A policy that keeps figures of itself; they are read at the end of a run."""

    def figures(self, memory: Any) -> Mapping[str, float]:
        """The figures by name, such as ``{"forecast_error": 0.08}``."""
        ...


@runtime_checkable
class WantsArrivals(Protocol):
    """A policy that may need the newest arrivals one by one, which are kept for no other."""

    single_arrivals: ClassVar[bool]


def figures_of(policy: Policy, memory: Any) -> Mapping[str, float]:
    """What a policy kept of itself; empty for one that keeps nothing."""
    return policy.figures(memory) if isinstance(policy, ReportsFigures) else {}


def wants_arrivals(policy: Policy) -> bool:
    """Whether a policy needs the newest arrivals one by one."""
    return isinstance(policy, WantsArrivals) and policy.single_arrivals


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
