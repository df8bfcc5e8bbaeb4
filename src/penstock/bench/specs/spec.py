"""A bench as a TOML file: pipelines × workloads × policies × profiles × guards × seeds.

Everything is checked before anything runs: a wrong key, value or file is an ``InputError`` that
names the file, the line, the value and what is allowed. The format is in docs/bench.md.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

from penstock.bench.cell import EngineName, SparkCell
from penstock.bench.specs import toml_tables
from penstock.bench.twin.profiles import read_twins
from penstock.bench.twin.twin import Twin
from penstock.comparison.cell import Cell
from penstock.comparison.check import check_cell
from penstock.comparison.experiment import Experiment, seed_range
from penstock.comparison.groups import key_of, policy_label
from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards
from penstock.lab.clusters.standalone.spec import ClusterSpec
from penstock.lab.rig.capacity_file import CAPACITY, Capacity, read_capacities
from penstock.lab.rig.settings import SparkSettings
from penstock.policies import POLICIES
from penstock.spark.settings.toml_file import Place, TomlFile, mentioned, seconds

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
SPARK_TABLE = "spark"
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
        if SPARK_TABLE in file.document:
            file.fail(
                '[spark] needs engine = "spark" or "micro-batch" at the top',
                Place(table=SPARK_TABLE),
            )
        return None
    real = engine == "spark"
    why = "Spark is real" if real else "profiles say what the query costs"
    _refuse_simulated_keys(file, why)
    return _settings(file, real=real)


def _settings(file: TomlFile, *, real: bool) -> SparkSettings:
    table = file.document.get(SPARK_TABLE, {})
    if not isinstance(table, Mapping):
        file.fail(f"spark = {table!r} must be written as a table, [spark]", Place(key=SPARK_TABLE))
    known = [f.name for f in dataclasses.fields(SparkSettings)]
    for key in table:
        if key not in known:
            file.fail(str(unknown("key of [spark]", key, known)), Place(table=SPARK_TABLE, key=key))
    if "peak" in table and "peak_rate" in table:
        file.fail(
            "peak and peak_rate both say how high the load is; give one of them",
            Place(table=SPARK_TABLE, key="peak_rate"),
        )
    try:
        settings = SparkSettings(**{key: _setting(key, value) for key, value in table.items()})
        if real:  # can this machine do it
            ClusterSpec(slots=settings.slots, cpu_share=settings.cpu_share)
    except InputError as error:
        file.fail(str(error), Place(table=SPARK_TABLE, key=mentioned(table, str(error))))
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


def _setting(key: str, value: Any) -> Any:
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


PROFILES, CAPACITIES = "profiles", "capacities"
TWIN = (PROFILES, CAPACITIES)


def twins(
    file: TomlFile, settings: SparkSettings | None, queries: Sequence[str]
) -> Mapping[str, Twin]:
    """By query; none where the engine is not ``micro-batch``."""
    if settings is None or engine_of(file) != "micro-batch":
        for key in TWIN:
            if key in file.document:
                file.fail(f'{key} needs engine = "micro-batch" at the top', Place(key=key))
        return {}
    if PROFILES not in file.document:
        file.fail(
            'engine = "micro-batch" needs profiles = "FOLDER" with a QUERY.json for each query, '
            "as `penstock lab calibrate --profile` writes them",
            Place(key="engine"),
        )
    folder = _folder(file, PROFILES)
    known = _capacities(file, folder, queries)
    try:
        return read_twins(folder, queries, settings, known)
    except InputError as error:
        file.fail(str(error), Place(key=PROFILES))


def _capacities(file: TomlFile, profiles: Path, queries: Sequence[str]) -> Mapping[str, Capacity]:
    """Those of a bench if its folder is named; else those that lie beside the profiles."""
    if CAPACITIES not in file.document:
        return read_capacities(profiles)
    folder = _folder(file, CAPACITIES)
    known = read_capacities(folder)
    for query in queries:
        if query not in known:
            file.fail(
                f"{folder / CAPACITY} has no capacity of {query}; name the folder of a bench that "
                f"ran it on Spark, or leave {CAPACITIES} out to take the profile's own",
                Place(key=CAPACITIES),
            )
    return known


def _folder(file: TomlFile, key: str) -> Path:
    """A folder, looked for beside the spec first."""
    value = file.document[key]
    if not (isinstance(value, str) and value):
        file.fail(f"{key} = {value!r} must be the path of a folder", Place(key=key))
    beside = file.path.parent / value
    path = beside if beside.is_dir() else Path(value)
    if not path.is_dir():
        file.fail(f"{key} = {value!r}: no such folder", Place(key=key))
    return path


T = TypeVar("T")

TABLES = ("pipeline", "workload", "policy")
_TOP = (
    "name", "engine", "seeds", "minutes", "period", "profile", "slo", "journals", "guards",
    SPARK_TABLE, *TWIN, *TABLES,
)  # fmt: skip


def load(path: Path, *, seeds: int | None = None) -> Experiment:
    """The bench in a file; ``seeds`` replaces the file's."""
    file = TomlFile.read(path)
    document = file.document
    file.known(document, _TOP, Place())
    settings = engine_settings(file)
    name = _typed(file, "name", str, "a text", path.stem)
    chosen = _seeds(file) if seeds is None else seed_range(seeds, "--seeds")
    cells = _cells(file, settings)
    return Experiment(
        name=name or path.stem,
        cells=cells,
        seeds=chosen,
        journals=_typed(file, "journals", bool, "true or false", True),
        document={**document, "seeds": list(chosen)},
    )


def _cells(file: TomlFile, settings: SparkSettings | None) -> tuple[Cell, ...]:
    profiles, guards = toml_tables.profiles(file), _guards(file, settings)
    period, slo = _duration(file, "period", 15.0), _duration(file, "slo", 60.0)
    pipelines = toml_tables.pipelines(file)
    doubles = twins(file, settings, [part.value["query"] for part in pipelines])
    cells: list[Cell] = []
    keys: set[str] = set()
    for pipeline, workload, profile, (limits, limits_label), policy in itertools.product(
        pipelines,
        toml_tables.workloads(file),
        profiles,
        guards,
        toml_tables.named(file, "policy", POLICIES),
    ):
        try:
            fields: dict[str, Any] = {
                "key": "new",
                **pipeline.value,
                "workload": workload.value["name"],
                "workload_parameters": workload.value["parameters"],
                "minutes": workload.value["minutes"],
                "profile": profile,
                "guards": limits,
                "policy": policy.value["name"],
                "policy_parameters": policy.value["parameters"],
                "period": period,
                "slo": slo,
            }
            cell = _cell(fields, settings, doubles.get(pipeline.value["query"]))
            check_cell(cell)
        except InputError as error:
            _blame(file, error, {"pipeline": pipeline, "workload": workload, "policy": policy})
        parts = (
            pipeline.label,
            workload.label,
            profile if len(profiles) > 1 else "",
            limits_label if len(guards) > 1 else "",
            policy_label(cell),
        )
        cells.append(replace(cell, key=_fresh(key_of(*parts), keys)))
    return tuple(cells)


def _cell(fields: dict[str, Any], settings: SparkSettings | None, twin: Twin | None) -> Cell:
    if settings is None:
        return Cell(**fields)
    return SparkCell(**fields, spark=settings, twin=twin)


def _guards(file: TomlFile, settings: SparkSettings | None) -> list[tuple[Guards, str]]:
    given = toml_tables.guards(file)
    if settings is None:
        return given
    try:
        return [(settings.guards(limits), label) for limits, label in given]
    except InputError as error:
        file.fail(f"{error}; slots = {settings.slots} is the maximum here", Place(key="guards"))


def _blame(
    file: TomlFile, error: InputError, parts: Mapping[str, toml_tables.SpecTable]
) -> NoReturn:
    """Raise an error again with the line of the key it is about."""
    text = str(error)
    about: str = getattr(error, "about", "")
    for table in [about] if about else parts:
        found, number = file.document[table], parts[table].number
        given = _keys(found[number] if isinstance(found, list) else found)
        key = mentioned((key for key in given if key != "name"), text)
        if key or about:
            file.fail(text, Place(table=table, number=number, key=key))
    key = mentioned((key for key in file.document if key not in TABLES), text)
    if key:
        file.fail(text, Place(key=key))
    file.fail(text)


def _keys(table: Mapping[str, Any]) -> list[str]:
    """The keys of a table and of the tables in it, the inner ones first."""
    inner = [key for value in table.values() if isinstance(value, Mapping) for key in _keys(value)]
    return [*inner, *table]


def _fresh(key: str, taken: set[str]) -> str:
    """A key that is not taken yet."""
    name, number = key, 1
    while name in taken:
        number += 1
        name = f"{key}-{number}"
    taken.add(name)
    return name


def _seeds(file: TomlFile) -> tuple[int, ...]:
    value = file.document.get("seeds", 10)
    if not isinstance(value, list):
        try:
            return seed_range(value, "seeds")
        except InputError as error:
            file.fail(str(error), Place(key="seeds"))
    good = all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in value)
    if not (value and good and len(set(value)) == len(value)):
        file.fail(
            f"seeds = {value} must be a number ≥ 1, or a list of different whole numbers ≥ 0",
            Place(key="seeds"),
        )
    return tuple(value)


def _typed(file: TomlFile, key: str, kind: type[T], words: str, default: T) -> T:
    value = file.document.get(key, default)
    if not isinstance(value, kind):
        file.fail(f"{key} = {value!r} must be {words}", Place(key=key))
    return value


def _duration(file: TomlFile, key: str, default: float) -> float:
    value = file.document.get(key, default)
    found = seconds(value)
    if found is None:
        file.fail(f'{key} = {value!r} must be a duration such as "15s"', Place(key=key))
    return found
