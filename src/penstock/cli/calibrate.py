"""``penstock calibrate``: how throughput grows with executors on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from penstock.cli import output
from penstock.core.errors import InputError


def calibrate(
    executors: Annotated[str, typer.Option(help="Sizes to measure.")] = "1,2,4,8",
    repeats: Annotated[int, typer.Option(help="Times each size is measured.")] = 3,
    seconds: Annotated[float, typer.Option(help="Seconds per measurement.")] = 15.0,
    cpu_share: Annotated[float, typer.Option(help="Share of a core per executor.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of the random order.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Measure the throughput of a stateless map at several sizes, in random order, repeated."""
    try:
        sizes = tuple(int(size) for size in executors.split(","))
    except ValueError:
        raise InputError(f"--executors {executors!r} must look like 1,2,4,8") from None
    from penstock.bench.calibrate import CalibrationSpec
    from penstock.bench.calibrate import calibrate as measure

    spec = CalibrationSpec(
        sizes=sizes, repeats=repeats, seconds=seconds, cpu_share=cpu_share, seed=seed
    )
    output.quiet_spark()
    with output.progress() as bar:
        task = bar.add_task("starting", total=repeats * len(sizes))

        def measured(size: int, throughput: float) -> None:
            bar.advance(task)
            line = f"{size} executors: {throughput:,.0f} records/s"
            bar.update(task, description=line)
            if bar.disable:
                output.say(line)

        def say(line: str) -> None:
            bar.update(task, description=line)
            if bar.disable:
                output.say(line)

        results = measure(spec, say=say, measured=measured)
    if as_json:
        output.print_json({"spec": asdict(spec), "sizes": [asdict(r) for r in results]})
        return
    from rich.table import Table

    table = Table(
        title=f"stateless map, {cpu_share:g} of a core each, {repeats} repeats, 95 % intervals",
        title_justify="left",
    )
    for name in ("executors", "records/s", "±", "speed-up", "±"):
        table.add_column(name, justify="right")
    for r in results:
        table.add_row(
            str(r.executors),
            f"{r.throughput.mean:,.0f}",
            _width(r.throughput.half_width, ",.0f"),
            f"{r.speedup.mean:.2f}",
            _width(r.speedup.half_width, ".2f"),
        )
    output.console().print(table)


def _width(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
