"""How evenly a stage's work lies on its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.spark.measure.progress import Batch
from penstock.spark.measure.rest import Stage, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Busy ``seconds`` of each partition of a stage, and the busiest over the mean (``skew``).

    In the order of the partitions; of a stage with very many only the busiest ones.
    """

    seconds: tuple[float, ...]
    skew: float | None


def busiest_stage(batches: Sequence[Batch], stages: Mapping[int, Sequence[Stage]]) -> Stage | None:
    """The stage with most busy time of the newest batch that read anything."""
    for batch in reversed(batches):
        if batch.rows and (ran := [s for s in stages.get(batch.id, ()) if s.tasks]):
            return max(ran, key=lambda s: s.busy)
    return None


def partitions_of(stage: Stage, tasks: Sequence[Task]) -> Partitions | None:
    """A stage and its tasks, the busiest at least; ``None`` without any."""
    seconds: dict[int, float] = {}
    for task in tasks:
        seconds[task.partition] = seconds.get(task.partition, 0.0) + task.busy
    if not seconds:
        return None
    mean = stage.busy / stage.tasks
    return Partitions(
        seconds=tuple(round(seconds[p], 3) for p in sorted(seconds)),
        skew=max(seconds.values()) / mean if mean > 0 else None,
    )
