"""Choose the least CPU that keeps a response time: the search of MEAD. [russo21, Fig. 5]"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.pipeline import Pipeline

Path = tuple[str, ...]
Shares = dict[str, float]
Predict = Callable[[Path, Mapping[str, float]], float]
"""Response time of a path with these CPU shares; infinite where there is no steady state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Shares, and the response times predicted with them: of each path, of each operator."""

    shares: Shares
    predicted: Mapping[Path, float]
    alone: Mapping[str, float]


def paths_of(pipeline: Pipeline, operators: Sequence[str]) -> tuple[Path, ...]:
    """From a source to a sink, every way there is; of those only the named operators."""
    found: list[Path] = []

    def walk(path: Path) -> None:
        below = pipeline.downstream[path[-1]]
        for name in below:
            walk((*path, name))
        if not below:
            found.append(tuple(name for name in path if name in operators))

    for source in pipeline.sources:
        walk((source,))
    return tuple(dict.fromkeys(path for path in found if path))


def search(
    paths: Sequence[Path],
    levels: Sequence[float],
    target: float,
    delta: float,
    predict: Predict,
) -> Choice:
    """All operators begin at the lowest level; the slowest of a path that is too slow goes up.

    A step that gains less than ``delta`` of the target, and does not reach it, is taken back and
    the path is left: more CPU for operators that have little to do would not help it.
    """
    at = {name: 0 for path in paths for name in path}

    def shares() -> Shares:
        return {name: levels[level] for name, level in at.items()}

    for path in paths:
        response = predict(path, shares())
        while response > target and any(at[name] < len(levels) - 1 for name in path):
            now = shares()
            slowest = max(
                (name for name in path if at[name] < len(levels) - 1),
                key=lambda name: predict((name,), now),
            )
            at[slowest] += 1
            after = predict(path, shares())
            if after > target and math.isfinite(response) and response - after < delta * target:
                at[slowest] -= 1
                break
            response = after
    final = shares()
    return Choice(
        shares=final,
        predicted={path: predict(path, final) for path in paths},
        alone={name: predict((name,), final) for name in final},
    )
