"""The keys ``profiles`` and ``capacities`` of a spec: folders that Spark's twin is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.bench.specs.spark_table import engine_of
from penstock.bench.twin.profiles import read_twins
from penstock.bench.twin.twin import Twin
from penstock.core.errors import InputError
from penstock.lab.rig.capacity_file import CAPACITY, Capacity, read_capacities
from penstock.lab.rig.settings import SparkSettings
from penstock.spark.settings.toml_file import Place, TomlFile

PROFILES, CAPACITIES = "profiles", "capacities"
KEYS = (PROFILES, CAPACITIES)


def twins(
    file: TomlFile, settings: SparkSettings | None, queries: Sequence[str]
) -> Mapping[str, Twin]:
    """By query; none where the engine is not ``micro-batch``."""
    if settings is None or engine_of(file) != "micro-batch":
        for key in KEYS:
            if key in file.document:
                file.fail(f'{key} needs engine = "micro-batch" at the top', Place(key=key))
        return {}
    if PROFILES not in file.document:
        file.fail(
            'engine = "micro-batch" needs profiles = "FOLDER" with a QUERY.json for each query, '
            "as `penstock calibrate --profile` writes them",
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
