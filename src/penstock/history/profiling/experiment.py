"""What is observed of a query in order to make a profile of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.batches.values import Batch, Executor, Stage, Task
from penstock.core.model import Rescale

COMMIT = ("commitOffsets", "commitBatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What a progress document tells of a batch beyond ``Batch``.

    ``commit`` seconds of the driver after the last stage, as far as Spark counts them apart ·
    ``state`` rows and bytes of each stateful operator, in the order of the flow.
    """

    commit: float
    state: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One run of a query, on executors that were warm when it began.

    batches: oldest first, moments of idleness included
    stages: by batch
    executors: all that were there at any time
    rescales: the actions that changed their number
    tasks: by stage id, where they were read
    cpu: pairs of the share of time that an executor had a task and the share of its CPU that
        it used
    details: by batch, what its progress document tells beyond ``Batch``
    means: by batch, of how many it is the mean, where that is not 1; its number is the last one's
    warm: by executor, when it was seen to be warm, where that was told
    """

    batches: tuple[Batch, ...]
    stages: Mapping[int, Sequence[Stage]]
    executors: tuple[Executor, ...]
    tasks: Mapping[int, Sequence[Task]] = field(default_factory=dict)
    rescales: tuple[Rescale, ...] = ()
    cpu: tuple[tuple[float, float], ...] = ()
    details: Mapping[int, Detail] = field(default_factory=dict)
    means: Mapping[int, int] = field(default_factory=dict)
    warm: Mapping[str, float] = field(default_factory=dict)

    @property
    def start(self) -> float:
        """When its first batch was planned."""
        return self.batches[0].start

    @property
    def inputs(self) -> int:
        """How many sources its batches mostly had."""
        often = Counter(len(b.inputs) for b in self.batches if not b.idle)
        return often.most_common(1)[0][0] if often else 1

    def executors_at(self, moment: float) -> int:
        """How many executors were registered and not gone."""
        return len(self._there(moment))

    def slots_at(self, moment: float) -> int:
        """How many tasks they worked on at once."""
        return sum(e.tasks_at_once for e in self._there(moment))

    def _there(self, moment: float) -> list[Executor]:
        return [
            e
            for e in self.executors
            if e.added <= moment and (e.removed is None or e.removed > moment)
        ]


def detail_of(progress: Mapping[str, Any]) -> Detail:
    """The detail in a progress document (``StreamingQueryProgress.json``)."""
    millis = progress.get("durationMs", {})
    operators = progress.get("stateOperators", [])
    return Detail(
        commit=sum(float(millis.get(name, 0)) for name in COMMIT) / 1e3,
        # Spark lists them from the sink upwards.
        state=tuple(
            (int(o.get("numRowsTotal", 0)), int(o.get("memoryUsedBytes", 0)))
            for o in reversed(operators)
        ),
    )
