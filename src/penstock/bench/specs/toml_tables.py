"""The tables of a bench spec, read one by one; lists in them are sweeps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.comparison.cell import workload_minutes
from penstock.comparison.groups import key_of, value_text
from penstock.comparison.guards_table import PRESETS, guards_of
from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards
from penstock.simulator import PROFILES
from penstock.simulator.queries import QUERIES
from penstock.spark.settings.toml_file import Place, TomlFile, mentioned
from penstock.workloads.patterns import PATTERNS

_PIPELINE = ("query", "start", "shared", "spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecTable:
    """A variant of a table, which table of its kind it came from, and its part of the key."""

    number: int
    value: Mapping[str, Any]
    label: str = ""


def profiles(file: TomlFile) -> list[str]:
    """What a change of size costs: one name or several."""
    value = file.document.get("profile", "restart")
    names = value if isinstance(value, list) else [value]
    if not names:
        file.fail("profile = [] must name at least one", Place(key="profile"))
    for name in names:
        if not isinstance(name, str) or name not in PROFILES:
            file.fail(str(unknown("profile", str(name), PROFILES)), Place(key="profile"))
    return names


def guards(file: TomlFile) -> list[tuple[Guards, str]]:
    """Limits by preset or by table, each with its part of a key."""
    value = file.document.get("guards", "default")
    found = []
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        whole = (
            expand(item, whole=("blackouts",))
            if isinstance(item, Mapping)
            else [Variant(value=item)]
        )
        if not whole:
            file.fail(
                "an empty list in guards; give a value or leave the key out", Place(key="guards")
            )
        for variant in whole:
            try:
                limits, label = guards_of(variant.value)
            except InputError as error:
                place = Place(key="guards")
                if isinstance(item, Mapping):
                    key = mentioned(item, str(error))
                    place = Place(table="guards", number=number, key=key)
                file.fail(str(error), place)
            found.append((limits, "-".join([label, *variant.chosen])))
    if not found:
        file.fail(
            f"guards = [] must hold at least one of {', '.join(PRESETS)} or a table",
            Place(key="guards"),
        )
    return found


def _tables(file: TomlFile, kind: str) -> Sequence[Mapping[str, Any]]:
    found = file.document.get(kind)
    if isinstance(found, Mapping):
        found = [found]
    if not found:
        file.fail(f"no [[{kind}]]; a bench needs at least one", Place(key=kind))
    if not (isinstance(found, list) and all(isinstance(t, Mapping) for t in found)):
        file.fail(f"{kind} must be written as [[{kind}]] tables", Place(key=kind))
    return found


def _variants(file: TomlFile, kind: str, number: int, table: Mapping[str, Any]) -> list[Variant]:
    for key, value in table.items():
        if not expand(value):
            file.fail(
                f"{key} = {value} holds an empty list; give a value, or leave the key out",
                Place(table=kind, number=number, key=key),
            )
    return expand(table)


def named(file: TomlFile, kind: str, known: Mapping[str, Any]) -> list[SpecTable]:
    """Tables of a name and parameters: policies and workloads."""
    parts = []
    for number, table in enumerate(_tables(file, kind)):
        for variant in _variants(file, kind, number, table):
            value = dict(variant.value)
            name = value.pop("name", None)
            if not isinstance(name, str):
                file.fail(
                    f"[[{kind}]] needs a name, one of {', '.join(known)}",
                    Place(table=kind, number=number),
                )
            if name not in known:
                place = Place(table=kind, number=number, key="name")
                file.fail(str(unknown(kind, name, known)), place)
            chosen = [text for text in variant.chosen if text != name]
            parts.append(
                SpecTable(
                    number=number,
                    value={"name": name, "parameters": value},
                    label=key_of(name, *chosen),
                )
            )
    return parts


def workloads(file: TomlFile) -> list[SpecTable]:
    """Workloads with their length; a trace's file may lie beside the spec."""
    parts = []
    for part in named(file, "workload", PATTERNS):
        parameters = dict(part.value["parameters"])
        place = Place(table="workload", number=part.number)
        minutes = parameters.pop("minutes", file.document.get("minutes"))
        beside = file.path.parent / str(parameters.get("file", ""))
        if "file" in parameters and beside.is_file():
            parameters["file"] = str(beside)
        try:
            own = workload_minutes(part.value["name"], parameters)
        except InputError as error:
            file.fail(str(error), replace(place, key=mentioned(parameters, str(error))))
        if minutes is None:
            minutes = own
        if isinstance(minutes, bool) or not isinstance(minutes, int | float):
            at = Place(key="minutes") if "minutes" in file.document else place
            file.fail(f"minutes = {minutes!r} must be a number above 0", at)
        value = {**part.value, "parameters": parameters, "minutes": float(minutes)}
        parts.append(SpecTable(number=part.number, value=value, label=part.label))
    return parts


def pipelines(file: TomlFile) -> list[SpecTable]:
    """Queries with their start sizes and overrides."""
    parts = []
    for number, table in enumerate(_tables(file, "pipeline")):
        file.known(table, _PIPELINE, Place(table="pipeline", number=number))
        for variant in _variants(file, "pipeline", number, table):
            value = variant.value
            query = value.get("query")
            place = Place(table="pipeline", number=number, key="query")
            if not isinstance(query, str):
                file.fail(f"[[pipeline]] needs a query, one of {', '.join(QUERIES)}", place)
            if query not in QUERIES:
                file.fail(str(unknown("query", query, QUERIES)), place)
            for key, kind, words in (
                ("start", int, "a whole number ≥ 1"),
                ("shared", bool, "true or false"),
                ("spec", dict, "a table"),
            ):
                given = value.get(key)
                wrong = kind is int and isinstance(given, bool)
                if given is not None and (wrong or not isinstance(given, kind)):
                    place = Place(table="pipeline", number=number, key=key)
                    file.fail(f"{key} = {given!r} must be {words}", place)
            chosen = [t for t in variant.chosen if t not in (query, "True", "False")]
            shared = "shared" if value.get("shared") else ""
            label = key_of(query, shared, *chosen)
            parts.append(SpecTable(number=number, value=value, label=label))
    return parts


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
