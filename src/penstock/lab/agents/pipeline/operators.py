"""What agents run: operators in a row between a source and a sink."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.errors import InputError
from penstock.decentralized.policy import Probabilistic

SOURCE, SINK = "source", "sink"
INDEX_BITS = 40  # records a run may have, as a power of two; what is above is for copies
ID_BITS = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator.

    ``capacity`` C: records/s that an instance takes; its work is waiting, so that many instances
    fit on few cores · ``selectivity`` records out per record in · ``instances`` at the start, its
    keeper among them · ``policy`` by which each of them decides.
    """

    name: str
    capacity: float = 4000.0
    selectivity: float = 1.0
    instances: int = 2
    policy: Probabilistic = field(default_factory=Probabilistic)

    def __post_init__(self) -> None:
        if not self.name.isalpha() or self.name in (SOURCE, SINK):
            raise InputError(
                f"operator {self.name!r}: a name is letters only, and not {SOURCE} or {SINK}"
            )
        if not (self.capacity > 0.0 and math.isfinite(self.capacity)):
            raise InputError(f"operator {self.name}: capacity {self.capacity} must be above 0")
        if not (self.selectivity > 0.0 and math.isfinite(self.selectivity)):
            raise InputError(
                f"operator {self.name}: selectivity {self.selectivity} must be above 0"
            )
        if self.instances < 1:
            raise InputError(
                f"operator {self.name} has {self.instances} instances; it needs its keeper"
            )

    @property
    def copies(self) -> int:
        """The most records that one record becomes."""
        return math.ceil(self.selectivity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Operators in a row, and the load: from ``low`` up to ``high`` records/s and back.

    ``seconds`` how long the load lasts · ``sources`` instances of the source · ``period`` seconds
    between two trials of an instance, ``None`` for no trials · ``in_flight`` seconds of its own
    capacity that an instance may have sent without an answer from the sink.

    >>> Pipeline(low=100.0, high=400.0, seconds=60.0).records
    15000
    """

    operators: tuple[Operator, ...] = tuple(Operator(name=name) for name in "ABCDE")
    low: float = 4000.0
    high: float = 16000.0
    seconds: float = 120.0
    sources: int = 1
    period: float | None = 5.0
    in_flight: float = 3.0

    def __post_init__(self) -> None:
        names = [o.name for o in self.operators]
        if not names or len(set(names)) < len(names):
            raise InputError(f"a pipeline needs operators of different names; it has {names}")
        if not (0.0 <= self.low <= self.high < math.inf and self.high > 0.0):
            raise InputError(
                f"0 ≤ low {self.low} ≤ high {self.high} must hold, and high be above 0"
            )
        if not 0.0 < self.seconds < math.inf:
            raise InputError(f"seconds {self.seconds} must be above 0")
        if self.period is not None and not self.period > 0.0:
            raise InputError(f"period {self.period} must be above 0")
        if self.sources < 1 or not self.in_flight > 0.0:
            raise InputError(
                f"sources {self.sources} must be 1 or more and in_flight {self.in_flight} above 0"
            )
        copies = math.prod(o.copies for o in self.operators)
        if self.records >= 2**INDEX_BITS or copies > 2 ** (ID_BITS - INDEX_BITS):
            raise InputError(
                f"{self.records} records with {copies} copies of each do not fit into 63 bits"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All in a row, with the source and the sink."""
        return (SOURCE, *(o.name for o in self.operators), SINK)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs of operators of which the second follows the first."""
        return list(zip(self.names, self.names[1:], strict=False))

    @property
    def sizes(self) -> dict[str, int]:
        """How many instances each operator has at the start."""
        return {
            SOURCE: self.sources,
            **{o.name: o.instances for o in self.operators},
            SINK: 1,
        }

    @property
    def records(self) -> int:
        """How many the source emits in all: (low + high) / 2 · seconds."""
        return int((self.low + self.high) / 2.0 * self.seconds)

    def operator(self, name: str) -> Operator | None:
        """The operator of that name; ``None`` for the source and the sink."""
        return next((o for o in self.operators if o.name == name), None)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Pipeline:
        """From plain values.

        >>> Pipeline.of(Pipeline().document()) == Pipeline()
        True
        """
        operators = tuple(
            Operator(**{**o, "policy": Probabilistic(**o["policy"])}) for o in document["operators"]
        )
        return cls(**{**document, "operators": operators})
