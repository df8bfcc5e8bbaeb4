"""What pieces of work cost on one core, beside their budgets.

Milliseconds are CPU time of this one process. Every piece of work is done several times with
nothing kept from before; it is judged by the fastest quarter of its runs, as other work on the
machine slows it down, and a budget by the slowest piece.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console

from penstock.report.table import NONE

THREADS = "OPENBLAS_NUM_THREADS"

Work = Callable[[], object]
Piece = Callable[[], Work]
"""Prepares work that has not been done yet; only the work itself is timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Milliseconds of one kind of work over several pieces of it.

    ``quiet`` mean of the fastest quarter of the runs of the slowest piece · ``mean`` and ``worst``
    of all runs · ``published`` what a paper says of its own.
    """

    what: str
    pieces: int
    quiet: float
    mean: float
    worst: float
    budget: float | None = None
    published: str = NONE

    @property
    def within_budget(self) -> bool:
        """Whether the slowest piece keeps the budget, if there is one."""
        return self.budget is None or self.quiet <= self.budget


def measure(
    what: str,
    pieces: Iterable[Piece],
    *,
    runs: int,
    budget: float | None = None,
    published: str = NONE,
) -> Cost:
    """Every piece so many times after a warm-up."""
    quiets, times = [], []
    for piece in pieces:
        _milliseconds(piece)
        mine = sorted(_milliseconds(piece) for _ in range(runs))
        quiet = mine[: max(1, runs // 4)]
        quiets.append(sum(quiet) / len(quiet))
        times += mine
    return Cost(
        what=what,
        pieces=len(quiets),
        quiet=max(quiets),
        mean=sum(times) / len(times),
        worst=max(times),
        budget=budget,
        published=published,
    )


def verdict(costs: Sequence[Cost], console: Console) -> int:
    """Print the budgets that were missed; 1 if any was, as an exit code."""
    missed = [cost for cost in costs if not cost.within_budget]
    for cost in missed:
        console.print(f"[red]missed: {cost.what}: {cost.quiet:.1f} ms, at most {cost.budget:g}")
    return 1 if missed else 0


def on_one_thread(module: str) -> None:
    """Start a module anew with linear algebra on one thread: it asks once, as numpy is imported."""
    if os.environ.get(THREADS) != "1":
        os.environ[THREADS] = "1"
        os.execv(sys.executable, [sys.executable, "-m", module])


def _milliseconds(piece: Piece) -> float:
    work = piece()
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3
