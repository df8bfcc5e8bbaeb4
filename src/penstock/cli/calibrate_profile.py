"""``penstock calibrate --profile``: what a query's batches, stages and executors cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli import output
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.lab.calibrate.profile.measure import Measured
    from penstock.lab.calibrate.profile.plan import ProfileSpec
    from penstock.lab.rig.settings import SparkSettings


def settings_like(path: Path) -> SparkSettings:
    """The cluster, its source and its times as the spec of a bench has them."""
    from penstock.bench.specs.spec import load

    settings = load(path).spark
    if settings is None:
        raise InputError(f'--like {path}: it is no bench on Spark; it needs engine = "spark"')
    return settings


def sizes_for(slots: int) -> tuple[int, ...]:
    """Numbers of executors to measure on a cluster of so many.

    >>> sizes_for(6), sizes_for(8)
    ((1, 2, 4, 6), (1, 2, 4, 8))
    """
    return (*(size for size in (1, 2, 4) if size < slots), slots)


def measure_profile(
    plan: ProfileSpec, path: Path, *, servers: str | None, force: bool, as_json: bool
) -> None:
    """Measure a profile and write it."""
    from penstock.lab.calibrate.profile.plan import seconds_of
    from penstock.simulator.microbatch import write_profile

    _check_file(path, force=force)
    output.quiet_spark()
    output.say(f"about {seconds_of(plan) / 60:.0f} minutes")
    found = _measure(plan, servers)
    write_profile(found.profile, path)
    if as_json:
        output.print_json(_document(found, path))
        return
    _show(found)
    output.console().print(f"profile {path}", soft_wrap=True)


def _check_file(path: Path, *, force: bool) -> None:
    """It can be written; found out before anything is measured."""
    import os

    if path.is_dir():
        raise InputError(f"--profile {path} is a folder; give a file such as {path}/q5.json")
    if path.exists() and not force:
        raise InputError(f"--profile {path} is there already; --force replaces it")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"--profile {path}: there is no folder {folder}; create it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"--profile {path} cannot be written; choose another place")


def _measure(plan: ProfileSpec, servers: str | None) -> Measured:
    from penstock.lab.calibrate.profile.measure import measure

    with output.progress() as bar:
        task = bar.add_task("starting", total=None)

        def begun(number: int, steps: int) -> None:
            bar.update(task, total=steps, completed=number)

        def say(line: str) -> None:
            bar.update(task, description=line)
            if bar.disable:
                output.say(line)

        return measure(plan, servers=servers, say=say, begun=begun)


def _document(found: Measured, path: Path) -> dict[str, Any]:
    from penstock.core.codec import to_json

    return {
        "profile": to_json(found.profile),
        "errors": dict(found.fit.errors),
        "explained": [asdict(e) for e in found.fit.explained],
        "mean_error": found.fit.error,
        "notes": list(found.fit.notes),
        "limited": found.limited,
        "runs": found.runs,
        "batches": found.batches,
        "file": str(path),
    }


def _show(found: Measured) -> None:
    from penstock.lab.calibrate.profile.tables import explained_table, numbers_table, stages_table

    screen = output.console()
    for table in (stages_table, numbers_table, explained_table):
        screen.print(table(found.fit))
        screen.print()
    share = found.profile.provenance["cpu_share"]
    screen.print(
        f"{found.batches} batches of {found.runs} runs; CPU share of an executor: {share}; the "
        f"profile is off by {found.fit.error:.0%} of a batch on average"
    )
    for note in found.fit.notes:
        screen.print(f"- {note}")
