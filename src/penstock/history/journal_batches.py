"""The operators of a query in one window of a journal, as the stages of its mean batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.batches.stages import READABLE
from penstock.batches.values import Stage, Task
from penstock.core.model import Snapshot

_OPERATORS = {readable: name for name, readable in reversed(READABLE.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Works:
    """The operators of a query in one window.

    ``busy`` executor-seconds of the mean batch, ``per_batch`` seconds of the window for each.
    """

    names: Sequence[str]
    reading: Sequence[str]
    seen: Snapshot
    busy: float
    per_batch: float

    def shares(self, at_once: int) -> Iterator[tuple[str, float]]:
        """The busy seconds of each operator: slots are dealt out by them."""
        whole = sum(self.seen.operators[name].parallelism for name in self.names)
        for name in self.names:
            share = self.seen.operators[name].parallelism / whole if whole else 1 / len(self.names)
            yield name, self.busy * at_once * share

    def stateful(self) -> tuple[str, ...]:
        """The stateful operators by Spark's names, as far as the operators are called after them.

        Where they are not, they are several stages with one operator.
        """
        names = [
            name.rpartition("/")[2]
            for name in self.names
            if self.seen.pipeline.operators[name].stateful
        ]
        plain = [name.rstrip("0123456789").rstrip("-") for name in names]
        if names and all(name in _OPERATORS for name in plain):
            return tuple(_OPERATORS[name] for name in plain)
        return ("state",) if names else ()


def tasks_of(stage: Stage, seconds: Sequence[float]) -> tuple[Task, ...]:
    """The tasks of the mean batch, spread as those of its newest; none unless all are known."""
    total = sum(seconds)
    if len(seconds) != stage.tasks or not total > 0:
        return ()
    records = stage.input_records or stage.read_records
    return tuple(
        Task(
            partition=partition,
            executor="",
            busy=stage.busy * s / total,
            records=round(records * s / total),
        )
        for partition, s in enumerate(seconds)
    )
