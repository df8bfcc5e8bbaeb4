"""What Spark knows of an application's stages and executors, however it is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.batches.values import Executor, Stage, Task
from penstock.spark.read.documents import executor_of, stage_of

Document = dict[str, Any]
DRIVER = "driver"  # the id of the driver among the executors
LOOK_AHEAD = 3  # stage ids that may be missing before we believe that there are no newer ones
MOST_STAGES = 400  # read at one look; more have run since the last one only if it was long ago
DOUBTED = 4  # looks without any stage until the newest id is asked for


class Status(ABC):
    """Reads one application: its executors, its stages while they run and once they have ended.

    Ids of stages are consecutive, so that the next ones are asked for instead of the long list of
    all that Spark still knows. Spark forgets old stages; where those that we wait for are gone, we
    go on at the newest.

    running: the stages that ran, or waited to run, when ``new_stages`` was last called
    resynchronised: how often stages had to be passed over because Spark forgot them
    """

    def __init__(self) -> None:
        self.running: tuple[Stage, ...] = ()
        self.resynchronised = 0
        self._next: int | None = None
        self._open: set[int] = set()
        self._without = 0

    @abstractmethod
    def executor_documents(self) -> list[Document]:
        """All executors, those that are gone and the driver included."""

    @abstractmethod
    def active_documents(self) -> list[Document]:
        """The stages that run or wait to run, one document per attempt."""

    @abstractmethod
    def newest_stage(self) -> int:
        """The id of the newest stage that Spark knows; −1 if there is none."""

    @abstractmethod
    def stage(self, stage_id: int) -> Stage | None:
        """One stage as it is now; ``None`` if Spark does not know it, or no more."""

    @abstractmethod
    def tasks(self, stage: Stage) -> list[Task]:
        """The tasks of the newest attempt of a stage, at most 64 of them, the longest first."""

    def executors(self) -> list[Executor]:
        """All executors but the driver, those that are gone included."""
        return [executor_of(e) for e in self.executor_documents() if e["id"] != DRIVER]

    def driver_cores(self) -> int:
        """Cores of the driver: the slots of a local[n] session."""
        documents = self.executor_documents()
        return next(int(e["totalCores"]) for e in documents if e["id"] == DRIVER)

    def new_stages(self) -> list[Stage]:
        """Stages that ended since the last call; the first begins with those that run then."""
        active = self._active()
        self.running = tuple(active.values())
        if self._next is None:
            self._next = max(self.newest_stage(), *active, -1) + 1
            self._open = set(active)
            return []
        ended = self._ended_of_open(active)
        ended += self._ended_of_new(active)
        self._find_gap(active, bool(ended))
        return ended

    def _active(self) -> dict[int, Stage]:
        attempts: dict[int, list[Document]] = {}
        for document in self.active_documents():
            attempts.setdefault(int(document["stageId"]), []).append(document)
        # A stage that is tried again has earlier attempts too, which count when it has ended.
        return {id: stage_of(of_one) for id, of_one in sorted(attempts.items())}

    def _ended_of_open(self, active: dict[int, Stage]) -> list[Stage]:
        ended = []
        for id in sorted(self._open - active.keys()):
            found = self.stage(id)
            if found is None or found.done:
                self._open.discard(id)
            if found is not None and found.done:
                ended.append(found)
        return ended

    def _ended_of_new(self, active: dict[int, Stage]) -> list[Stage]:
        assert self._next is not None
        ended: list[Stage] = []
        missing = asked = 0
        while missing < LOOK_AHEAD and asked < MOST_STAGES:
            id = self._next + missing
            found = active.get(id)
            if found is None:
                found, asked = self.stage(id), asked + 1
            if found is None:
                missing += 1
                continue
            self._next, missing = id + 1, 0
            if found.done:
                ended.append(found)
            else:
                self._open.add(id)
        return ended

    def _find_gap(self, active: dict[int, Stage], found_any: bool) -> None:
        """Go on at the newest stage where the next ones are gone, or too many."""
        assert self._next is not None
        newest = max(active, default=-1)
        if newest < self._next:
            self._without = 0 if found_any or active else self._without + 1
            if self._without < DOUBTED:
                return
            self._without = 0
            newest = self.newest_stage()
            # One that has begun since we asked for the next ones is no gap.
            next_ones = range(self._next, self._next + LOOK_AHEAD)
            if newest < self._next or any(self.stage(id) is not None for id in next_ones):
                return
        self.resynchronised += 1
        self._next = newest + 1
        self._open = set(active)
