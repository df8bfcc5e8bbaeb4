"""What a run writes down while it goes: its actions, its journal, and whether its policy failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.comparison.scores import Actions
from penstock.core.errors import EngineError
from penstock.core.loop import Decision, State
from penstock.core.model import Proposal, Snapshot
from penstock.core.ports import Policy
from penstock.history.journal import Header, Journal


class Watched:
    """A policy whose errors are kept: the loop goes on without it, a comparison must not."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.error: Exception | None = None

    def start(self, seed: int) -> Any:
        """The memory before the first decision."""
        return self._policy.start(seed)

    def decide(self, seen: Snapshot, memory: Any) -> tuple[Proposal, Any]:
        """What the policy says."""
        try:
            return self._policy.decide(seen, memory)
        except Exception as error:
            self.error = error
            raise

    def check(self, run: str) -> None:
        """Raise if the policy failed at any decision of a run."""
        if self.error is not None:
            problem = f"{type(self.error).__name__}: {self.error}"
            raise EngineError(f"{run}: the policy raised {problem}") from self.error


class Recording:
    """Counts the actions of a run and writes its journal, if there is to be one.

    The journal appears under its name only with ``keep``: a run that fails leaves none.
    """

    def __init__(self, journal: Path | None, header: Header) -> None:
        self.actions = Actions()
        self._path = journal
        self._journal: Journal | None = None
        if journal is not None:
            self._journal = Journal(journal.with_name(journal.name + ".part"), header)

    def __call__(self, decision: Decision, state: State) -> None:
        """Write one decision down."""
        if decision.applied:
            self.actions.add(decision)
        if self._journal is not None:
            self._journal.record(decision, state)

    def close(self) -> None:
        """Write no more."""
        if self._journal is not None:
            self._journal.close()

    def keep(self) -> None:
        """Give the journal its name."""
        if self._journal is not None and self._path is not None:
            self._journal.path.replace(self._path)
