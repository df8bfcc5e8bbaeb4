"""How evenly a stage's work lies on its partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Reversible, Sequence
from dataclasses import dataclass

from penstock.batches.stages import StageLog
from penstock.batches.values import Batch, Stage, Task

MOST_TASKS = 64  # looked at of a stage, the longest first
MOST_TASK_LISTS = 2  # read per observation; the driver should not notice us


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Busy ``seconds`` of each partition of a stage, and the busiest over the mean (``skew``).

    In the order of the partitions; of a stage with very many only the busiest ones.
    """

    seconds: tuple[float, ...]
    skew: float | None


def busiest_stage(
    batches: Reversible[Batch], stages: Mapping[int, Sequence[Stage]]
) -> Stage | None:
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


class PartitionLog:
    """The partitions of the busiest stage of the newest batch, of the busiest queries.

    A stage's tasks are asked for once.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, Partitions | None]] = {}

    def read(
        self,
        queries: Mapping[str, Reversible[Batch]],
        stages: StageLog,
        tasks: Callable[[Stage], Sequence[Task]],
    ) -> None:
        """Look at queries by run id; ``tasks`` of a stage, at most ``MOST_TASKS``."""
        busiest = {run: busiest_stage(b, stages.of(run)) for run, b in queries.items()}
        chosen = sorted(
            ((run, stage) for run, stage in busiest.items() if stage is not None),
            key=lambda item: -item[1].busy,
        )
        known, self._found = self._found, {}
        for run, stage in chosen[:MOST_TASK_LISTS]:
            if run not in known or known[run][0] != stage.id:
                known[run] = (stage.id, partitions_of(stage, tasks(stage)))
            self._found[run] = known[run]

    def of(self, run_id: str) -> Partitions | None:
        """The partitions of a query; ``None`` where they were not looked at."""
        return self._found.get(run_id, (0, None))[1]
