"""One executor more, or this one less: what the agents of an application ask its driver for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.batches.values import Executor
from penstock.core.errors import InputError, PenstockError
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.split.wire import ROSTER, Document


class Wishes:
    """Carries out ±1 and nothing else: who wants it, and why, is not its business.

    Refused is what would go beyond the pool's limits, and an executor that is not there. Asked
    twice for the same executor to leave, it says yes twice: an answer may have been lost.
    """

    def __init__(self, pool: ExecutorPool, executors: Callable[[], Sequence[Executor]]) -> None:
        self._pool = pool
        self._executors = executors
        self._added = 0
        self._removed: list[str] = []
        self._refused = 0

    def answer(self, question: Document) -> Document:
        """The new total; or how many wishes there were, and which executors came and went."""
        if question["ask"] == ROSTER:
            return self._roster()
        try:
            return {"total": self._carried_out(question)}
        except PenstockError:
            self._refused += 1
            raise

    def _carried_out(self, question: Document) -> int | None:
        match question:
            case {"ask": "add"}:
                total = self._pool.one_more(self._executors())
                self._added += 1
                return total
            case {"ask": "remove", "executor": str(leaving)}:
                if leaving in self._removed:
                    return None
                total = self._pool.one_fewer(leaving, self._executors())
                self._removed.append(leaving)
                return total
        raise InputError(f"{question!r:.80} is no wish; ask for add, or remove an executor")

    def _roster(self) -> Document:
        executors = self._executors()
        return {
            "added": self._added,
            "removed": list(self._removed),
            "refused": self._refused,
            "alive": [e.id for e in executors if e.alive],
            "gone": [e.id for e in executors if not e.alive],
            "failed_tasks": sum(e.failed_tasks for e in executors),
        }
