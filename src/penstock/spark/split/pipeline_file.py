"""A split pipeline in a file: its operators, where their applications listen, who reads whom.

::

    [operators.source]
    listen = "/run/penstock/source.sock"

    [operators.enrich]
    listen = "worker-7:7071"
    reads = ["source"]
    partitions = 12
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import InputError
from penstock.core.pipeline import Operator, Pipeline
from penstock.spark.settings.toml_file import Place, TomlFile, mentioned
from penstock.spark.split.wire import Address

TABLE = "operators"
KEYS = ("listen", "reads", "selectivity", "stateful", "partitions")
_KINDS: Mapping[str, tuple[Any, str]] = {
    "listen": (str, "a text: host:port, or the path of a socket"),
    "reads": (list, "a list of operators"),
    "selectivity": (int | float, "a number"),
    "stateful": (bool, "true or false"),
    "partitions": (int, "a whole number"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPipeline:
    """A pipeline in which every operator is an application, and where each listens."""

    pipeline: Pipeline
    members: Mapping[str, Address]


def read_pipeline(path: Path) -> SplitPipeline:
    """What a file says; errors name the line."""
    file = TomlFile.read(path, what="pipeline")
    file.known(file.document, [TABLE], Place())
    tables = file.document.get(TABLE)
    if not isinstance(tables, Mapping) or not tables:
        file.fail(f"no operators; describe each in a table, [{TABLE}.NAME]")
    members = {name: _member(file, name, table) for name, table in tables.items()}
    edges = [(above, name) for name, table in tables.items() for above in table.get("reads", ())]
    try:
        operators = {name: _operator(name, table) for name, table in tables.items()}
        return SplitPipeline(pipeline=Pipeline(operators=operators, edges=edges), members=members)
    except InputError as error:
        named = next((n for n in tables if n in str(error)), next(iter(tables)))
        file.fail(str(error), Place(table=f"{TABLE}.{named}"))


def _member(file: TomlFile, name: str, table: Any) -> Address:
    place = f"{TABLE}.{name}"
    if not isinstance(table, Mapping):
        file.fail(f"{name} = {table!r} must be a table, [{place}]", Place(table=TABLE, key=name))
    file.known(table, KEYS, Place(table=place))
    for key, value in table.items():
        kind, words = _KINDS[key]
        wrong = isinstance(value, bool) and key != "stateful"
        if wrong or not isinstance(value, kind):
            file.fail(f"{key} = {value!r} must be {words}", Place(table=place, key=key))
    if "listen" not in table:
        file.fail(f"{name} has no listen: where does its application listen?", Place(table=place))
    try:
        return Address.parse(table["listen"])
    except InputError as error:
        file.fail(str(error), Place(table=place, key=mentioned(KEYS, str(error)) or "listen"))


def _operator(name: str, table: Mapping[str, Any]) -> Operator:
    return Operator(
        pool=name,
        selectivity=float(table.get("selectivity", 1.0)),
        stateful=table.get("stateful", False),
        partitions=table.get("partitions"),
    )
