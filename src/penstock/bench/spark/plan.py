"""What a Spark bench will do, in words and figures, before it does anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from penstock.bench.cell import SparkCell, spark_cells
from penstock.comparison.cell import Cell
from penstock.comparison.groups import policy_label
from penstock.lab.rig.allocation import TIMEOUTS
from penstock.lab.rig.settings import KAFKA, SparkSettings
from penstock.report import units

START = 25.0  # seconds: cluster, driver and first executor
MEASURE = 90.0  # seconds: the capacity of a query
AGAIN = 45.0  # seconds: the same once more, before each further seed
BETWEEN = 15.0  # seconds: executors leave, a query starts and stops
CHECK = 20.0  # seconds: comparing a result
SESSION = 12.0  # seconds: another kind of session
WARM_UP = 20.0  # seconds: the first run of a query in it


def wall_seconds(cells: Sequence[SparkCell], seeds: int, settings: SparkSettings) -> float:
    """About how long a bench takes; known before it begins, as time is compressed by a factor."""
    run = sum(settings.clock(cell.seconds) + BETWEEN for cell in cells) * seeds
    checks = CHECK * len(cells) if settings.check else 0.0
    queries = len({cell.query for cell in cells})
    kinds = len({None, *(cell.allocation() for cell in cells)})
    sessions = (kinds - 1) * seeds * (SESSION + WARM_UP * queries)
    measured = (MEASURE + AGAIN * (seeds - 1)) * queries
    return START + measured + run + checks + sessions


def query_times(query: str) -> dict[str, float]:
    """The windows and the like of a query, in thesis seconds."""
    from penstock.lab.queries import nexmark_queries as q

    times: dict[str, dict[str, float]] = {
        "q3": {"join": q.JOIN_MINUTES * q.MINUTE},
        "q5": {"window": q.HOT_MINUTES * q.MINUTE, "slide": q.HOT_SLIDE_MINUTES * q.MINUTE},
        "q8": {"window": q.NEW_USER_SECONDS},
        "q11": {"session gap": q.SESSION_GAP_SECONDS},
    }
    return times.get(query, {})


def thesis_times(cells: Sequence[SparkCell]) -> dict[str, float]:
    """Every time that is compressed by the speed, by name, in thesis seconds."""
    found: dict[str, float] = {}
    for cell in cells:
        found |= {"period": cell.period, "slo": cell.slo}
        for name in ("cool_down", "drain"):
            value = getattr(cell.guards, name)
            if value:
                known = found.get(name, value)
                found[name if known == value else f"{name} of {cell.key}"] = value
        found |= {f"{cell.query} {name}": value for name, value in query_times(cell.query).items()}
    return found


def timeouts(cells: Sequence[SparkCell]) -> dict[str, dict[str, tuple[float, float]]]:
    """Those of Spark's own allocation, by policy and name: thesis seconds, and what Spark is told.

    It takes whole seconds, at least 1, so they are not compressed by exactly the speed.
    """
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for cell in cells:
        allocation = cell.allocation()
        if allocation is not None:
            given, told = cell.create_policy(), allocation.settings
            both = {name: (getattr(given, name), getattr(told, name)) for name in TIMEOUTS}
            found[policy_label(cell)] = both
    return found


def spark_config(cells: Sequence[Cell]) -> dict[str, Any]:
    """What ``config.json`` says of cells on Spark or its twin; empty for others.

    The settings, and every time of thesis and clock.
    """
    found = spark_cells(cells)
    if not found:
        return {}
    settings = found[0].spark
    scaled = {
        **dataclasses.asdict(settings),
        "speed": settings.speed,
        "seconds": {
            name: {"thesis": thesis, "clock": settings.clock(thesis)}
            for name, thesis in thesis_times(found).items()
        }
        | {
            f"{policy} {name}": {"thesis": thesis, "clock": told}
            for policy, both in timeouts(found).items()
            for name, (thesis, told) in both.items()
        },
    }
    return {"spark": scaled}


def plan_lines(cells: Sequence[SparkCell], settings: SparkSettings) -> list[str]:
    """The scaled figures for a person, in 80 columns."""
    speed, slo = settings.speed, cells[0].slo
    share = "" if settings.cpu_share is None else f" of {settings.cpu_share:g} of a core"
    peak = (
        f"{settings.peak * 100:g} % of the capacity"
        if settings.peak_rate is None
        else f"{settings.peak_rate:,.0f} records/s"
    )
    maximum = max(cell.guards.maximum for cell in cells)
    real = cells[0].twin is None
    where, first = ("On Spark", ", measured first") if real else ("On Spark's twin", "")
    lines = [
        f"{where}, a minute of thesis time lasts {settings.minute:g} s: {speed:g} times as fast.",
        f"Executors: {settings.slots}{share}; so the guards' maximum is {maximum}.",
        f"Load: up to {peak}{first}; the same for all policies.",
        *(["Events go through Kafka."] if settings.source == KAFKA else []),
        f"Trigger: {settings.trigger:g} s on the clock, {settings.trigger * speed:g} s of thesis "
        "time.",
        "Thesis time → on the clock, and likewise for all times of the policies:",
    ]
    lines += [
        f"  {name.replace('_', '-'):<16} {units.seconds(thesis):>8} → {settings.clock(thesis):g} s"
        for name, thesis in thesis_times(cells).items()
    ]
    lines += [*_timeout_lines(cells, settings), *_twin_lines(cells)]
    if settings.trigger * speed >= slo:
        lines += [
            f"Every second will be late: a trigger is not shorter than the slo of {slo:g} s.",
            "  Set a longer slo, a longer minute or a shorter trigger.",
        ]
    return lines


def _twin_lines(cells: Sequence[SparkCell]) -> list[str]:
    """What each query can do, and where that is from."""
    lines = []
    for query, twin in {cell.query: cell.twin for cell in cells if cell.twin}.items():
        can, measured = twin.capacity, twin.profile.measured or "nobody says where"
        lines += [
            f"{query}: {can.one:,.0f} records/s on one executor, {can.all:,.0f} on {can.slots}, "
            f"{can.rows:,} in a batch;",
            f"  its profile: {measured}",
        ]
    return lines


def _timeout_lines(cells: Sequence[SparkCell], settings: SparkSettings) -> list[str]:
    lines = []
    for policy, both in timeouts(cells).items():
        lines += [f"{policy}: Spark takes whole seconds on the clock, at least 1:"]
        for name, (thesis, told) in both.items():
            line = f"  {name.replace('_', '-'):<25} {units.seconds(thesis):>8} → {told:g} s"
            exact = told == settings.clock(thesis)
            lines += [line if exact else f"{line}, {told * settings.speed:g} s of thesis time"]
    return lines
