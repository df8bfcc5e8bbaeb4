"""What is known of an application that ran: its executors, and the batches of its queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.batches.values import Batch, Executor, Stage, Task
from penstock.core.errors import unknown
from penstock.core.facts import JoinTime
from penstock.core.model import Rescale
from penstock.history.demand import Demand, Plannings
from penstock.history.profiling.experiment import Detail, Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedQuery:
    """One run of a streaming query.

    batches: oldest first, moments of idleness included
    stages: by batch
    tasks: by stage id, of some of the batches
    details: by batch, what its progress document tells beyond ``Batch``
    means: by batch, of how many it is the mean, where that is not 1; its number is the last one's
    plannings: what was told of all batches, where ``batches`` are only some of them
    demand: what came to each source, where that was told rather than follows from the batches
    trigger: seconds between batches as the query was told; ``None`` where it is not known
    most_rows: what a batch takes of each source at most; empty where that is not known
    """

    name: str
    run_id: str
    batches: tuple[Batch, ...]
    stages: Mapping[int, Sequence[Stage]] = field(default_factory=dict)
    tasks: Mapping[int, Sequence[Task]] = field(default_factory=dict)
    details: Mapping[int, Detail] = field(default_factory=dict)
    means: Mapping[int, int] = field(default_factory=dict)
    plannings: Plannings | None = field(default=None, compare=False)
    demand: Mapping[str, Demand] = field(default_factory=dict, compare=False)
    trigger: float | None = None
    most_rows: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedApplication:
    """An application as some file or server tells of it.

    source: where this comes from
    executors: all that were there at any time
    rescales: actions that are known, and what they cost
    remarks: what was not told, or was left out
    kind: of the source, in words
    settings: of Spark, as far as they were told
    join: how long new executors take to be there, where that was told
    warm: by executor, when it was seen to be warm, where that was told
    """

    source: str
    id: str
    name: str
    executors: tuple[Executor, ...]
    queries: tuple[RecordedQuery, ...]
    rescales: tuple[Rescale, ...] = ()
    remarks: tuple[str, ...] = ()
    kind: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    join: JoinTime | None = None
    warm: Mapping[str, float] = field(default_factory=dict)

    def query(self, name: str) -> RecordedQuery:
        """The last run of a query by its name, or a run by its id."""
        found = [q for q in self.queries if name in (q.name, q.run_id)]
        if not found:
            raise unknown(f"query of {self.source}", name, [q.name for q in self.queries])
        return found[-1]

    def experiment(self, query: RecordedQuery) -> Experiment:
        """A run of a query with the executors that it ran on."""
        return Experiment(
            batches=query.batches,
            stages=query.stages,
            executors=self.executors,
            tasks=query.tasks,
            rescales=self.rescales,
            details=query.details,
            means=query.means,
            warm=self.warm,
        )
