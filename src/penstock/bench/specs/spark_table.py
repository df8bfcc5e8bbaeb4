"""The table ``[spark]`` of a spec, and what a spec may not say with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from penstock.bench.cell import EngineName
from penstock.core.errors import InputError, unknown
from penstock.lab.clusters.standalone.spec import ClusterSpec
from penstock.lab.rig.settings import SparkSettings
from penstock.spark.settings.toml_file import Place, TomlFile, mentioned, seconds

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
TABLE = "spark"
_DURATIONS = ("minute", "trigger")
_WHOLE = ("slots", "partitions")
_SIMULATED = {"shared": "pipeline", "spec": "pipeline", "profile": ""}  # keys and their tables


def engine_of(file: TomlFile) -> EngineName:
    """What a bench runs on."""
    engine = file.document.get("engine", "simulated")
    if not isinstance(engine, str):
        file.fail(f"engine = {engine!r} must be a text", Place(key="engine"))
    if engine not in ENGINES:
        file.fail(str(unknown("engine", engine, ENGINES)), Place(key="engine"))
    return ENGINES[ENGINES.index(engine)]


def engine_settings(file: TomlFile) -> SparkSettings | None:
    """How the bench runs on Spark or on its twin; ``None`` if it is simulated otherwise."""
    engine = engine_of(file)
    if engine == "simulated":
        if TABLE in file.document:
            file.fail(
                '[spark] needs engine = "spark" or "micro-batch" at the top', Place(table=TABLE)
            )
        return None
    real = engine == "spark"
    why = "Spark is real" if real else "profiles say what the query costs"
    _refuse_simulated_keys(file, why)
    return _settings(file, real=real)


def _settings(file: TomlFile, *, real: bool) -> SparkSettings:
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
        if real:  # can this machine do it
            ClusterSpec(slots=settings.slots, cpu_share=settings.cpu_share)
    except InputError as error:
        file.fail(str(error), Place(table=TABLE, key=mentioned(table, str(error))))
    return settings


def _refuse_simulated_keys(file: TomlFile, why: str) -> None:
    for key, table in _SIMULATED.items():
        if not table:
            if key in file.document:
                file.fail(f"{key} is for simulated benches; {why}", Place(key=key))
            continue
        found: Any = file.document.get(table, [])
        for number, one in enumerate(found if isinstance(found, list) else [found]):
            if isinstance(one, Mapping) and key in one:
                place = Place(table=table, number=number, key=key)
                file.fail(f"{key} is for simulated benches; {why}", place)


def _typed(key: str, value: Any) -> Any:
    if key in _DURATIONS:
        found = seconds(value)
        if found is None:
            raise InputError(f'{key} = {value!r} must be a duration such as "1s"')
        return found
    if key == "cpu_share" and value == "none":
        return None
    if key == "source":
        if not isinstance(value, str):
            raise InputError(f"source = {value!r} must be a text")
        return value
    if key == "check":
        if not isinstance(value, bool):
            raise InputError(f"check = {value!r} must be true or false")
        return value
    whole = key in _WHOLE
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise InputError(f"{key} = {value!r} must be a {'whole ' if whole else ''}number")
    return value if whole else float(value)
