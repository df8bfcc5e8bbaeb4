"""Sweeps: a list where a value is expected stands for one variant per item."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.compare.labels import value_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One choice from every list, and the chosen values as text."""

    value: Any
    chosen: tuple[str, ...] = ()


def expand(value: Any, *, whole: Iterable[str] = ()) -> list[Variant]:
    """All variants of a value, the last list turning fastest; an empty list gives none.

    Keys in ``whole`` hold lists that are values themselves.

    >>> [v.value for v in expand({"a": [1, 2], "b": 3})]
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    if isinstance(value, Mapping):
        kept = set(whole)
        choices = [[Variant(value=v)] if name in kept else expand(v) for name, v in value.items()]
        return [
            Variant(
                value={name: p.value for name, p in zip(value, picked, strict=True)},
                chosen=tuple(text for p in picked for text in p.chosen),
            )
            for picked in itertools.product(*choices)
        ]
    if isinstance(value, list):
        return [
            Variant(value=v.value, chosen=(*_name(item), *v.chosen))
            for item in value
            for v in expand(item)
        ]
    return [Variant(value=value)]


def _name(item: Any) -> tuple[str, ...]:
    return () if isinstance(item, Mapping | list) else (value_text(item),)
