"""``penstock calibrate``: how throughput grows with executors on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.options import AsJson, NoSave, Out
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.bench.calibrate import Calibration, CalibrationSpec


def calibrate(
    query: Annotated[str, typer.Option(help="Nexmark query: q1, q2, q3, q5, q8 or q11.")] = "q1",
    executors: Annotated[str, typer.Option(help="Sizes to measure.")] = "1,2,4,8",
    repeats: Annotated[int, typer.Option(help="Times each size is measured.")] = 3,
    seconds: Annotated[float, typer.Option(help="Seconds per measurement.")] = 20.0,
    cpu_share: Annotated[float, typer.Option(help="Share of a core per executor.")] = 0.2,
    partitions: Annotated[int, typer.Option(help="State partitions.")] = 8,
    rows: Annotated[int, typer.Option(help="Records per executor and micro-batch.")] = 60_000,
    seed: Annotated[int, typer.Option(help="Seed of the random order.")] = 0,
    out: Out = Path("runs"),
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Measure a query's throughput at several sizes, in random order, repeated, and fit a curve.

    All events wait already, so the query takes what it can.
    """
    try:
        sizes = tuple(int(size) for size in executors.split(","))
    except ValueError:
        raise InputError(f"--executors {executors!r} must look like 1,2,4,8") from None
    from penstock.bench.calibrate import CalibrationSpec
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
    for name, path in files.items():
        output.console().print(f"{name:8}{path}", soft_wrap=True)


def _measure(spec: CalibrationSpec) -> Calibration:
    from penstock.bench.calibrate import calibrate as measure

    with output.progress() as bar:
        task = bar.add_task("starting", total=spec.repeats * len(spec.sizes))

        def measured(size: int, throughput: float) -> None:
            bar.advance(task)
            say(f"{size} executors: {throughput:,.0f} records/s")

        def say(line: str) -> None:
            bar.update(task, description=line)
            if bar.disable:
                output.say(line)

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
