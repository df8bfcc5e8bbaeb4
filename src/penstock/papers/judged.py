"""A finding before it has its letter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypedDict

from penstock.papers.judging import Verdict, bound


class Judged(TypedDict):
    """The fields of a finding, all but its letter."""

    claim: str
    paper: str
    ours: str
    verdict: Verdict
    why: str


def judged(*, claim: str, paper: str, ours: str, good: bool | Verdict, why: str = "") -> Judged:
    """With its verdict."""
    verdict = bound(good) if isinstance(good, bool) else good
    return {"claim": claim, "paper": paper, "ours": ours, "verdict": verdict, "why": why}


def counted(sizes: Iterable[int]) -> str:
    """Sizes and how many runs have each.

    >>> counted([8, 7, 8])
    '7 (1 run), 8 (2 runs)'
    """
    return ", ".join(f"{n} ({k} run{'s' * (k > 1)})" for n, k in sorted(Counter(sizes).items()))
