"""What a proof comes to: figures beside their bounds, a verdict for each, and one for all."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.history.files import write_text
from penstock.report.statistics import Estimate

RESULT = "proof.json"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One figure, what it may be, and whether it is.

    ``value`` is ``None`` where it could not be measured: then the bound does not hold. ``low`` and
    ``high`` are the ends of its 95 % confidence interval; ``by`` says which of the three has to
    keep the bound. ``unit`` is ``s``, ``%`` (the figure itself is a share: 0.5 is 50 %) or a noun.

    >>> Check(figure="p50", value=9.0, bound=10.0, unit="s").held
    True
    """

    figure: str
    value: float | None
    bound: float
    at_most: bool = True
    low: float | None = None
    high: float | None = None
    by: Literal["value", "low", "high"] = "value"
    unit: str = ""

    @property
    def held(self) -> bool:
        """Whether the bound holds."""
        judged = {"value": self.value, "low": self.low, "high": self.high}[self.by]
        if judged is None:
            return False
        return judged <= self.bound if self.at_most else judged >= self.bound

    @classmethod
    def of(cls, figure: str, estimate: Estimate, bound: float, **more: Any) -> Check:
        """A check of a mean with its interval; a single value has none."""
        ends = (None, None) if estimate.half_width is None else (estimate.low, estimate.high)
        return cls(
            figure=figure, value=estimate.mean, bound=bound, low=ends[0], high=ends[1], **more
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The result of one proof.

    details: one row per action, fault, pair or sample, all with the same keys
    tables: further ones, by their titles
    notes: what a reader has to know to judge the figures
    interrupted: whether it was ended early by Ctrl-C
    """

    name: str
    title: str
    checks: tuple[Check, ...]
    details: tuple[Mapping[str, Any], ...] = ()
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def held(self) -> bool:
        """Whether every bound holds; a proof without figures proves nothing."""
        return bool(self.checks) and all(check.held for check in self.checks)

    def document(self) -> dict[str, Any]:
        """The result as one JSON document."""
        checks = [dataclasses.asdict(check) | {"held": check.held} for check in self.checks]
        return dataclasses.asdict(self) | {"checks": checks, "held": self.held}


def keep(proof: Proof, folder: Path) -> Path:
    """Write the result into a folder as ``proof.json``."""
    path = folder / RESULT
    text = json.dumps(proof.document(), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")
    return path
