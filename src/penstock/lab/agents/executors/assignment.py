"""Which agent stands beside which executor of one operator. Pure; the host does what it says."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from penstock.decentralized.messages import Address

MOST_LIVES = 10  # agents that an executor may have; one that always crashes has a fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """An agent to be started.

    ``creator`` who starts it by the protocol, ``None`` for the keeper · ``asked`` whether that one
    has asked for the executor; else nobody has, and the keeper announces it.
    """

    address: Address
    executor: str
    life: int = 1
    creator: Address | None = None
    asked: bool = False


class Assignments:
    """The executors of one operator and their agents.

    The first executor gets the keeper. When the keeper is gone, by a crash of its agent or with its
    executor, the next executor without an agent gets its role. Any other executor is given to the
    agent that has waited longest for one, at most ``arrival`` seconds; to the keeper if nobody has:
    Spark has replaced an executor that was lost.
    """

    def __init__(self, operator: str, *, arrival: float, clock: Callable[[], float]) -> None:
        self._keeper = Address(operator, 0)
        self._arrival = arrival
        self._clock = clock
        self._assignments: dict[Address, str] = {}
        self._leaving: set[str] = set()
        self._expectations: deque[tuple[Address, float]] = deque()
        self._lives: Counter[str] = Counter()  # agents that an executor has had
        self._keepers = 0
        self._next = 1

    @property
    def addresses(self) -> list[Address]:
        """The agents that there are."""
        return sorted(self._assignments)

    def executor_of(self, address: Address) -> str | None:
        """The executor that an agent stands beside."""
        return self._assignments.get(address)

    def expect(self, creator: Address) -> None:
        """An agent has been granted an executor."""
        self._expectations.append((creator, self._clock() + self._arrival))

    def ended(self, address: Address, *, left: bool) -> None:
        """An agent has ended; ``left``: by the protocol, and its executor goes."""
        executor = self._assignments.pop(address, None)
        if left and executor is not None:
            self._leaving.add(executor)

    def look(self, executors: Collection[str]) -> tuple[list[Address], list[Assignment]]:
        """The agents to end, and those to start, now that these executors are there."""
        self._leaving &= set(executors)
        over = [who for who, executor in self._assignments.items() if executor not in executors]
        for who in over:
            del self._assignments[who]
        alone = set(executors) - set(self._assignments.values()) - self._leaving
        found = [self._assigned(executor) for executor in sorted(alone, key=_age)]
        return over, [assignment for assignment in found if assignment is not None]

    def _assigned(self, executor: str) -> Assignment | None:
        if self._lives[executor] >= MOST_LIVES:
            return None
        self._lives[executor] += 1
        if self._keeper not in self._assignments:
            self._keepers += 1
            assignment = Assignment(address=self._keeper, executor=executor, life=self._keepers)
        else:
            address = Address(self._keeper.operator, self._next)
            self._next += 1
            creator = self._expectant()
            assignment = Assignment(
                address=address,
                executor=executor,
                creator=creator or self._keeper,
                asked=creator is not None,
            )
        self._assignments[assignment.address] = executor
        return assignment

    def _expectant(self) -> Address | None:
        while self._expectations:
            creator, until = self._expectations.popleft()
            if creator in self._assignments and self._clock() <= until:
                return creator
        return None


def _age(executor: str) -> tuple[int, str]:
    """Spark numbers executors as they come.

    >>> sorted(["10", "2"], key=_age)
    ['2', '10']
    """
    return (int(executor), "") if executor.isdigit() else (1 << 62, executor)
