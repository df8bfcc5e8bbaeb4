"""Runs that need the whole machine, one after the other; what is finished is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.compare.results import SCORES
from penstock.compare.runner import Book
from penstock.core.codec import to_json
from penstock.papers import running
from penstock.papers.running import Outcome, Progress, Task


def run(
    tasks: Sequence[Task],
    work: Callable[[Task], Outcome],
    kind: type[Outcome],
    folder: Path,
    *,
    progress: Progress = lambda finished, total: None,
) -> tuple[Outcome, ...]:
    """Do what the folder does not hold yet; all outcomes. A second call goes on after Ctrl-C."""
    done = {(outcome.key, outcome.seed) for outcome in running.load(kind, folder)}
    left = [task for task in tasks if (task.key, task.seed) not in done]
    progress(len(tasks) - len(left), len(tasks))
    with Book(folder / SCORES) as book:
        for number, task in enumerate(left, len(tasks) - len(left) + 1):
            outcome = work(task)
            book.add(outcome.key, outcome.seed, to_json(outcome))
            progress(number, len(tasks))
    return running.load(kind, folder)
