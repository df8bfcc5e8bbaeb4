"""Values of the core to plain JSON and back, exactly.

Fields that hold their default are left out, so a journal line stays short, unless they are marked
as always written; unknown keys are refused, so a line written by something else is noticed. Of a
window of arrivals only the digest is written; who writes it keeps the values elsewhere.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from penstock.core.errors import InputError, unknown
from penstock.core.latency import LatencyMap
from penstock.core.model import Arrivals

T = TypeVar("T")

ALWAYS_WRITTEN = {"always_written": True}  # metadata of a field whose absence means an old writer


def to_json(value: Any) -> Any:
    """A plain JSON value for a dataclass, mapping, sequence or scalar.

    >>> from penstock.core.model import Need
    >>> to_json({"map": Need(slots=1.5)})
    {'map': {'slots': 1.5}}
    """
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Arrivals):
        each = {} if value.each == 1.0 else {"each": value.each}
        return {"digest": value.digest, "count": len(value)} | each
    if isinstance(value, LatencyMap):
        below = [row[:i] for i, row in enumerate(value.rtt.tolist())]
        return {"nodes": list(value.nodes), "rtt": below}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            name: to_json(item)
            for name, default in _written_fields(type(value))
            if (item := getattr(value, name)) != default
        }
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [to_json(v) for v in value]
    raise InputError(f"cannot write a {type(value).__name__} as JSON: {value!r}")


def from_json(kind: type[T], document: Any) -> T:
    """The value of a given type that ``to_json`` wrote.

    >>> from penstock.core.model import Need
    >>> from_json(Need, {"slots": 1.5})
    Need(slots=1.5, cpu_share=None)
    """
    reader: Callable[[Any], T] = _reader(cast(Any, kind))
    return reader(document)


@cache
def _written_fields(kind: type) -> tuple[tuple[str, Any], ...]:
    def default(f: dataclasses.Field[Any]) -> Any:
        if f.metadata.get("always_written"):
            return dataclasses.MISSING  # which equals no value
        if f.default_factory is not dataclasses.MISSING:
            return f.default_factory()
        return f.default

    return tuple((f.name, default(f)) for f in dataclasses.fields(kind) if f.init)


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    if kind is Arrivals:
        return _arrivals
    if kind is LatencyMap:
        return _latency_map
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _dataclass_reader(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = [_reader(a) for a in args if a is not type(None)]
        if len(inner) != 1:
            raise TypeError(f"only `X | None` can be read, not {kind}")
        return lambda doc: None if doc is None else inner[0](doc)
    if origin in (tuple, Sequence):
        if origin is tuple and args[-1] is not ...:
            return tuple
        item = _reader(args[0])
        return lambda doc: tuple(item(v) for v in doc)
    if origin is Mapping:
        item = _reader(args[1])
        return lambda doc: {k: item(v) for k, v in doc.items()}
    if kind is float:
        return float
    return lambda doc: doc


def _arrivals(document: Any) -> Arrivals:
    """The values themselves: a journal has put them where it had only their digest."""
    if isinstance(document, Mapping):
        raise InputError(f"the window of arrivals {document.get('digest')} is not here")
    return document if isinstance(document, Arrivals) else Arrivals(document)


def _latency_map(document: Any) -> LatencyMap:
    """Written as the half below the diagonal."""
    below = document["rtt"]
    size = range(len(below))
    full = [[0.0 if i == j else below[max(i, j)][min(i, j)] for j in size] for i in size]
    return LatencyMap(document["nodes"], full)


def _dataclass_reader(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    readers = {f.name: _reader(hints[f.name]) for f in dataclasses.fields(kind) if f.init}

    def read(document: Any) -> Any:
        if not isinstance(document, Mapping):
            raise InputError(f"expected an object for {kind.__name__}, found {document!r}")
        for key in document:
            if key not in readers:
                raise unknown(f"key of {kind.__name__}", key, readers)
        try:
            return kind(**{key: readers[key](value) for key, value in document.items()})
        except (TypeError, ValueError) as error:
            raise InputError(f"not a {kind.__name__}: {error}") from error

    return read
