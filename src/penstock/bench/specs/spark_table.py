"""The table ``[spark]`` of a spec, and what a spec may not say with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from penstock.bench.spark.settings import SparkSettings
from penstock.core.errors import InputError, unknown
from penstock.core.toml_file import Place, TomlFile, mentioned, seconds
from penstock.spark.local.cluster_spec import ClusterSpec

ENGINES = ("simulated", "spark")
TABLE = "spark"
_DURATIONS = ("minute", "trigger")
_WHOLE = ("slots", "partitions")
_SIMULATED = {"shared": "pipeline", "spec": "pipeline", "profile": ""}  # keys and their tables


def engine_settings(file: TomlFile) -> SparkSettings | None:
    """How the bench runs on Spark; ``None`` if it is simulated."""
    engine = file.document.get("engine", "simulated")
    if not isinstance(engine, str):
        file.fail(f"engine = {engine!r} must be a text", Place(key="engine"))
    if engine not in ENGINES:
        file.fail(str(unknown("engine", engine, ENGINES)), Place(key="engine"))
    if engine == "simulated":
        if TABLE in file.document:
            file.fail('[spark] needs engine = "spark" at the top', Place(table=TABLE))
        return None
    _refuse_simulated_keys(file)
    return _settings(file)


def _settings(file: TomlFile) -> SparkSettings:
    table = file.document.get(TABLE, {})
    if not isinstance(table, Mapping):
        file.fail(f"spark = {table!r} must be written as a table, [spark]", Place(key=TABLE))
    known = [f.name for f in dataclasses.fields(SparkSettings)]
    for key in table:
        if key not in known:
            file.fail(str(unknown("key of [spark]", key, known)), Place(table=TABLE, key=key))
    if "peak" in table and "peak_rate" in table:
        file.fail(
            "peak and peak_rate both say how high the load is; give one of them",
            Place(table=TABLE, key="peak_rate"),
        )
    try:
        settings = SparkSettings(**{key: _typed(key, value) for key, value in table.items()})
        ClusterSpec(slots=settings.slots, cpu_share=settings.cpu_share)  # can this machine do it
    except InputError as error:
        file.fail(str(error), Place(table=TABLE, key=mentioned(table, str(error))))
    return settings


def _refuse_simulated_keys(file: TomlFile) -> None:
    for key, table in _SIMULATED.items():
        if not table:
            if key in file.document:
                file.fail(f"{key} is for simulated benches; Spark is real", Place(key=key))
            continue
        found: Any = file.document.get(table, [])
        for number, one in enumerate(found if isinstance(found, list) else [found]):
            if isinstance(one, Mapping) and key in one:
                place = Place(table=table, number=number, key=key)
                file.fail(f"{key} is for simulated benches; Spark is real", place)


def _typed(key: str, value: Any) -> Any:
    if key in _DURATIONS:
        found = seconds(value)
        if found is None:
            raise InputError(f'{key} = {value!r} must be a duration such as "1s"')
        return found
    if key == "cpu_share" and value == "none":
        return None
    if key == "check":
        if not isinstance(value, bool):
            raise InputError(f"check = {value!r} must be true or false")
        return value
    whole = key in _WHOLE
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise InputError(f"{key} = {value!r} must be a {'whole ' if whole else ''}number")
    return value if whole else float(value)
