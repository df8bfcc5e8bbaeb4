"""All runs of the experiment."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compare.statistics import Difference, Estimate, estimate, paired
from penstock.papers.gesscale.spark.taxi import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """All that a folder holds."""

    runs: tuple[Outcome, ...]

    def of(self, policy: str) -> list[Outcome]:
        """The runs of a policy, by seed."""
        return sorted((run for run in self.runs if run.key == policy), key=lambda run: run.seed)

    def values(self, policy: str, figure: str) -> list[float]:
        """A figure by seed; runs that do not have it are left out."""
        found = (getattr(run, figure) for run in self.of(policy))
        return [float(value) for value in found if value is not None]

    def estimate(self, policy: str, figure: str) -> Estimate | None:
        """Mean and interval of a figure."""
        values = self.values(policy, figure)
        return estimate(values) if values else None

    def paired(self, policy: str, base: str, figure: str) -> Difference:
        """The difference of two policies."""
        return paired(self.values(policy, figure), self.values(base, figure))
