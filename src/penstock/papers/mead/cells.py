"""Every run of the MEAD experiments, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.ports import Policy
from penstock.papers.mead import published
from penstock.policies import create, parameters_of

PERIOD = 60.0  # seconds between decisions [russo21, §VII]
SHORT_PERIOD = 10.0  # of those that decide quickly
P95 = 0.95
LEAST = 2  # arrivals shown to a policy that does not look at them
MEAD, PLUS, FULL = "mead", "mead+", "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeadCell:
    """A policy on a trace: ``target`` of the mean or, with ``p95``, of the 95th percentile.

    ``window`` a single one of so many arrivals instead of the two that a policy uses by itself.
    """

    trace: str
    policy: str
    target: float | None = None
    p95: bool = False
    window: int | None = None

    @property
    def key(self) -> str:
        """A name for files."""
        parts = [self.trace, self.policy]
        if self.target is not None:
            parts.append(f"{self.figure}-{self.target:g}")
        if self.window is not None:
            parts.append(str(self.window))
        return "-".join(parts)

    @property
    def figure(self) -> str:
        """The figure of an outcome that the target is for."""
        return "p95" if self.p95 else "mean"

    @property
    def wanted(self) -> str:
        """The target in words."""
        return f"{self.figure} ≤ {self.target:g}" if self.target is not None else ""

    @property
    def period(self) -> float:
        """Seconds between decisions."""
        return SHORT_PERIOD if self.policy in ("cpu-threshold", PLUS) else PERIOD

    @property
    def arrivals(self) -> int:
        """How many of the newest arrivals the policy looks at, at most."""
        windows = str(parameters_of(self.create()).get("windows", LEAST))
        return max(int(float(size)) for size in windows.split(","))

    def create(self) -> Policy | None:
        """The policy; ``None`` for full CPU all the time."""
        if self.policy == FULL:
            return None
        parameters: dict[str, object] = {}
        if self.target is not None:
            parameters["target"] = self.target
        if self.p95:
            parameters["percentile"] = P95
        if self.window is not None:
            parameters["windows"] = str(self.window)
        return create(self.policy, parameters)


def all_cells(*, extended: bool = False) -> tuple[MeadCell, ...]:
    """Tables I to III, the threshold policy, full CPU; ``extended`` also ``mead+``."""
    more = beyond() if extended else []
    return tuple(dict.fromkeys([*table_1(), *table_2(), *table_3(), *others(), *more]))


def table_1() -> list[MeadCell]:
    """Cells of Table I, which have targets of the mean."""
    return [
        MeadCell(trace=trace, policy=model, target=target)
        for trace, target in published.TABLE_1
        for model in published.MODELS
    ]


def table_2() -> list[MeadCell]:
    """Cells of Table II, which have targets of the 95th percentile."""
    return [
        MeadCell(trace=trace, policy=model, target=target, p95=True)
        for trace, target in published.TABLE_2
        for model in ("mead-mg1", MEAD)
    ]


def table_3() -> list[MeadCell]:
    """Cells of Table III, which look at a single window."""
    return [
        MeadCell(trace=trace, policy=MEAD, target=target, window=window)
        for (trace, target), windows in published.TABLE_3.items()
        for window in windows
    ]


def beyond() -> list[MeadCell]:
    """``mead+`` with all targets that ``mead`` has."""
    return [
        MeadCell(trace=cell.trace, policy=PLUS, target=cell.target, p95=cell.p95)
        for cell in [*table_1(), *table_2()]
        if cell.policy == MEAD
    ]


def others() -> list[MeadCell]:
    """Cells without a target: the threshold policy, and full CPU."""
    policies: Sequence[str] = ("cpu-threshold", FULL)
    return [
        MeadCell(trace=trace, policy=policy) for trace in published.TRACES for policy in policies
    ]
