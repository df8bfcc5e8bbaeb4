"""What is kept of the events of a log: stages that still run, and the batches of each query."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.batches.values import Batch, Stage, Task
from penstock.history.demand import Plannings
from penstock.history.profiling.experiment import Detail

MOST_TASKS = 150_000  # single ones that are kept
BLOCK = 16  # batches in a row that are kept together
FRESH, MOST_FRESH = 12, 240  # batches after an executor came that are kept, and in all of a query


@dataclass(slots=True)
class Attempts:
    """A stage with its attempts so far, summed over its tasks."""

    run_id: str | None = None
    batch: int | None = None
    tasks: int = 0
    attempt: int = 0
    failed: bool = False
    done: bool = False
    completed: int = 0
    run_time: int = 0
    cpu_time: int = 0
    fetch_wait: int = 0
    input_records: int = 0
    read_records: int = 0
    write_records: int = 0
    submitted: float | None = None
    ended: float | None = None
    single: list[Task] = field(default_factory=list)

    def stage(self, id: int) -> Stage:
        """As Spark's status tells of it."""
        passes = max(1.0, self.completed / self.tasks) if self.tasks else 1.0
        return Stage(
            id=id,
            run_id=self.run_id,
            batch=self.batch,
            done=True,
            tasks=self.tasks,
            run_time=self.run_time / 1e3,
            cpu_time=self.cpu_time / 1e9,
            fetch_wait=self.fetch_wait / 1e3,
            input_records=round(self.input_records / passes),
            read_records=round(self.read_records / passes),
            write_records=round(self.write_records / passes),
            attempt=self.attempt,
            failed=self.failed,
            completed=min(self.tasks, self.completed),
            submitted=self.submitted,
            ended=self.ended,
        )


@dataclass(slots=True)
class Run:
    """What is kept of one run of a query: ``every`` so many blocks of batches."""

    name: str = ""
    batches: list[Batch] = field(default_factory=list)
    details: dict[int, Detail] = field(default_factory=dict)
    stages: dict[int, list[Stage]] = field(default_factory=dict)
    tasks: dict[int, dict[int, list[Task]]] = field(default_factory=dict)
    plannings: Plannings = field(default_factory=Plannings)
    every: int = 1
    tasks_every: int = 1
    last: Batch | None = None
    again: int = 0
    back: float = 0.0
    fresh: set[int] = field(default_factory=set)  # batches after an executor came

    def keeps(self, id: int) -> bool:
        """Whether a batch is one of those that are kept."""
        return id // BLOCK % self.every == 0 or id in self.fresh

    def keeps_tasks(self, id: int) -> bool:
        """Whether its single tasks are."""
        return (self.keeps(id) and id // BLOCK % self.tasks_every == 0) or id in self.fresh

    def executor_came(self) -> None:
        """Keep the next batches whatever else is kept: they tell how executors warm up."""
        few = len(self.fresh) < MOST_FRESH and 2 * self.single < MOST_TASKS
        if self.last is not None and few:
            self.fresh |= set(range(self.last.id, self.last.id + FRESH))

    def thin(self) -> None:
        """Keep half as many batches."""
        self.every *= 2
        self.batches = [b for b in self.batches if self.keeps(b.id)]
        self.details = {id: d for id, d in self.details.items() if self.keeps(id)}
        self.stages = {id: s for id, s in self.stages.items() if self.keeps(id)}
        self.tasks = {id: t for id, t in self.tasks.items() if self.keeps(id)}

    def thin_tasks(self) -> None:
        """Keep the single tasks of half as many."""
        self.tasks_every *= 2
        self.tasks = {id: t for id, t in self.tasks.items() if self.keeps_tasks(id)}

    @property
    def single(self) -> int:
        """Single tasks that are kept."""
        return sum(len(tasks) for some in self.tasks.values() for tasks in some.values())
