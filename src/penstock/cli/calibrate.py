"""``penstock lab calibrate``: how throughput grows with executors on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.bench_spark import check_servers
from penstock.cli.options import AsJson, NoSave, Out
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.lab.calibrate.profile.measure import Measured
    from penstock.lab.calibrate.profile.steps import ProfileSpec
    from penstock.lab.calibrate.throughput import Calibration, CalibrationSpec
    from penstock.lab.rig.settings import SparkSettings


NOT_WITH_PROFILE = ("rows", "out", "no_save")
ONLY_WITH_PROFILE = ("like", "bootstrap_servers", "force", "quick")
NOT_WITH_LIKE = ("cpu_share", "partitions")
PROFILE = "Profile for the micro-batch simulator"  # the panel of --help


def calibrate(
    context: typer.Context,
    query: Annotated[str, typer.Option(help="Nexmark query: q1, q2, q3, q5, q8 or q11.")] = "q1",
    executors: Annotated[str, typer.Option(help="Sizes to measure.")] = "1,2,4,8",
    repeats: Annotated[int, typer.Option(help="Times each size is measured.")] = 3,
    seconds: Annotated[float, typer.Option(help="Seconds per measurement.")] = 20.0,
    cpu_share: Annotated[float, typer.Option(help="Share of a core per executor.")] = 0.2,
    partitions: Annotated[int, typer.Option(help="State partitions.")] = 8,
    rows: Annotated[int, typer.Option(help="Records per executor and micro-batch.")] = 60_000,
    seed: Annotated[int, typer.Option(help="Seed of the random order.")] = 0,
    profile: Annotated[
        Path | None,
        typer.Option(
            help="Measure a profile instead, and write it to this file.", rich_help_panel=PROFILE
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="SPEC",
            help="Measure on the cluster of this bench, with its source and its times.",
            rich_help_panel=PROFILE,
        ),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Kafka to use instead of a broker of its own.",
            rich_help_panel=PROFILE,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file.", rich_help_panel=PROFILE)
    ] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Fewer runs: a first look.", rich_help_panel=PROFILE),
    ] = False,
    out: Out = Path("runs"),
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Measure a query's throughput at several sizes, in random order, repeated, and fit a curve.

    All events wait already, so the query takes what it can. With --profile: what its batches,
    stages and executors cost, for the micro-batch simulator.
    """
    _check_together(context, profile, like)
    sizes = _sizes(executors)
    if profile is not None:
        from penstock.lab.calibrate.profile.steps import REPEATS, ProfileSpec
        from penstock.lab.rig.settings import SparkSettings

        if like is not None:
            settings = settings_like(like)
            sizes = sizes if _given(context, "executors") else sizes_for(settings.slots)
        else:
            settings = SparkSettings(slots=max(sizes), cpu_share=cpu_share, partitions=partitions)
        check_servers(bootstrap_servers, settings)
        wanted = ProfileSpec(
            query=query,
            settings=settings,
            sizes=sizes,
            seconds=seconds,
            repeats=repeats if _given(context, "repeats") else 1 if quick else REPEATS,
            seed=seed,
            quick=quick,
        )
        measure_profile(wanted, profile, servers=bootstrap_servers, force=force, as_json=as_json)
        return
    from penstock.lab.calibrate.throughput import CalibrationSpec
    from penstock.report.runs import check_writable

    spec = CalibrationSpec(
        query=query,
        sizes=sizes,
        repeats=repeats,
        seconds=seconds,
        cpu_share=cpu_share,
        partitions=partitions,
        rows_per_executor=rows,
        seed=seed,
    )
    if not no_save:
        check_writable(out)
    output.quiet_spark()
    found = _measure(spec)
    files = {} if no_save else _save(found, out)
    if as_json:
        output.print_json({**_document(found), "files": {k: str(v) for k, v in files.items()}})
        return
    _show(found)
    output.print_files(files)


def _measure(spec: CalibrationSpec) -> Calibration:
    from penstock.lab.calibrate.throughput import calibrate as measure

    with output.progress() as bar:
        task = bar.add_task("starting", total=spec.repeats * len(spec.sizes))
        say = output.sayer(bar, task)

        def measured(size: int, throughput: float) -> None:
            bar.advance(task)
            say(f"{size} executors: {throughput:,.0f} records/s")

        return measure(spec, say=say, measured=measured)


def _document(found: Calibration) -> dict[str, Any]:
    return {
        "spec": asdict(found.spec),
        "limited": found.limited,
        "sizes": [asdict(r) for r in found.sizes],
        "curve": None if found.curve is None else asdict(found.curve),
    }


def _save(found: Calibration, out: Path) -> dict[str, Path]:
    from penstock import __version__
    from penstock.report import curve_figure, runs

    config = {"penstock": __version__, "command": "calibrate", **_document(found)}
    folder = runs.create(out, f"calibrate-{found.spec.query}", config)
    picture = curve_figure.draw(
        [(r.executors, r.throughput.mean, r.throughput.half_width) for r in found.sizes],
        found.curve,
        folder / runs.PICTURE,
        title=f"{found.spec.query} on more and more executors",
        subtitle=_circumstances(found),
    )
    return {"run": folder, "picture": picture}


def _circumstances(found: Calibration) -> str:
    spec = found.spec
    share = f"{spec.cpu_share:g} of a core each" if found.limited else "not limited"
    return f"{share}, {spec.partitions} state partitions, {spec.repeats} repeats, 95 % intervals"


def _show(found: Calibration) -> None:
    from rich.table import Table

    table = Table(title=f"{found.spec.query}: {_circumstances(found)}", title_justify="left")
    for name in ("executors", "records/s", "±", "speed-up", "±", "curve"):
        table.add_column(name, justify="right")
    for r in found.sizes:
        table.add_row(
            str(r.executors),
            f"{r.throughput.mean:,.0f}",
            _width(r.throughput.half_width, ",.0f"),
            f"{r.speedup.mean:.2f}",
            _width(r.speedup.half_width, ".2f"),
            "–" if found.curve is None else f"{found.curve.at(r.executors):,.0f}",
        )
    screen = output.console()
    screen.print(table)
    if found.curve is not None:
        screen.print(f"fitted: {found.curve} records/s")


def _width(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _sizes(executors: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in executors.split(","))
    except ValueError:
        raise InputError(f"--executors {executors!r} must look like 1,2,4,8") from None


def _check_together(context: typer.Context, profile: Path | None, like: Path | None) -> None:
    """Options of the one kind of measurement mean nothing to the other."""
    for name in ONLY_WITH_PROFILE if profile is None else NOT_WITH_PROFILE:
        if _given(context, name):
            way = "leave it out" if profile else "add --profile FILE.json"
            kind = "with" if profile else "without"
            raise InputError(f"{_flag(name)} means nothing {kind} --profile; {way}")
    for name in NOT_WITH_LIKE:
        if like is not None and _given(context, name):
            raise InputError(f"{_flag(name)} is what {like} says; leave it or --like out")


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def settings_like(path: Path) -> SparkSettings:
    """The cluster, its source and its times as the spec of a bench has them."""
    from penstock.bench.cell import settings_of
    from penstock.bench.specs.spec import load

    settings = settings_of(load(path).cells)
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
    from penstock.lab.calibrate.profile.steps import seconds_of
    from penstock.simulator.microbatch import write_profile

    _check_file(path, force=force)
    output.quiet_spark()
    output.say(f"about {seconds_of(plan) / 60:.0f} minutes")
    found = _measure_profile(plan, servers)
    write_profile(found.profile, path)
    if as_json:
        output.print_json(_profile_document(found, path))
        return
    _show_profile(found)
    output.print_files({"profile": path})


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


def _measure_profile(plan: ProfileSpec, servers: str | None) -> Measured:
    from penstock.lab.calibrate.profile.measure import measure

    with output.progress() as bar:
        task = bar.add_task("starting", total=None)

        def begun(number: int, steps: int) -> None:
            bar.update(task, total=steps, completed=number)

        return measure(plan, servers=servers, say=output.sayer(bar, task), begun=begun)


def _profile_document(found: Measured, path: Path) -> dict[str, Any]:
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


def _show_profile(found: Measured) -> None:
    from penstock.report.profile_tables import explained_table, numbers_table, stages_table

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
