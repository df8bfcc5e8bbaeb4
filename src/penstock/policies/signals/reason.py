"""Reasons that a person can read, of large pipelines too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest

from penstock.core.model import Need

NAMED = 8  # a reason speaks of so many operators or pools


def foremost(needs: Mapping[str, Need], before: Callable[[str], float]) -> tuple[list[str], str]:
    """The names to speak of, and what to say of the rest: all, or those that change most.

    ``before`` gives the present slots of a name.

    >>> foremost({"map": Need(slots=3.0)}, {"map": 2.0}.__getitem__)
    (['map'], '')
    """
    names = list(needs)
    if len(names) <= NAMED:
        return names, ""
    names = nlargest(NAMED, names, lambda name: abs(needs[name].slots - before(name)))
    return names, f", and {len(needs) - NAMED} more that change less"


def listed(names: Sequence[str]) -> str:
    """Names as words, not too many of them.

    >>> listed(["a", "b"])
    'a, b'
    """
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
