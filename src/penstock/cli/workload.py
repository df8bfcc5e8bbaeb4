"""``penstock workload``: the loads, drawn before anything runs on them."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson, command_group, pairs, seconds_of
from penstock.cli.output import console, print_json, say
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.report.table import Table
    from penstock.workloads.pattern import Pattern
    from penstock.workloads.sampling import Figures, Sample

MOST_SEEDS = 100
_MINUTE = 60.0

workload = command_group("workload", "List the workloads and draw them.")


@workload.command("list")
def show_list(as_json: AsJson = False) -> None:
    """List the workloads, one line each."""
    from penstock.workloads.patterns import PATTERNS

    ideas = {name: _idea(kind) for name, kind in PATTERNS.items()}
    if as_json:
        print_json(
            [
                {"name": n, "idea": ideas[n], "parameters": _defaults(kind)}
                for n, kind in PATTERNS.items()
            ]
        )
        return
    out = console()
    width = max(map(len, ideas)) + 2
    for name, idea in ideas.items():
        out.print(f"{name:{width}}{idea}")
    out.print("\nDraw one of them: penstock workload show NAME")


@workload.command("show")
def show(
    name: Annotated[str, typer.Argument(help="Which; see `penstock workload list`.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--workload-set", metavar="KEY=VALUE", help="A parameter; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn at random.")] = 0,
    seeds: Annotated[int, typer.Option(help="Draw so many seeds, from --seed on.")] = 1,
    minutes: Annotated[
        float | None, typer.Option(help="How much of it.", show_default="all, or 140")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--picture", help="Also draw it to this PNG file.", show_default="none"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw the rate of a workload over time, and print its figures."""
    from penstock.workloads.patterns import describe, duration
    from penstock.workloads.sampling import sample
    from penstock.workloads.trace import Trace

    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"--seeds {seeds} must lie between 1 and {MOST_SEEDS}")
    _check_out(out)
    patterns = _seeded(name, pairs("--workload-set", set_), seed, seeds)
    seconds = seconds_of(minutes, duration(patterns[0]))
    words = describe(patterns[0])
    if isinstance(patterns[0], Trace):
        for line in patterns[0].understood.lines(patterns[0].scale):
            say(line)
    minutely = [sample(p, seconds, words.get("minute", _MINUTE)) for p in patterns if as_json]
    samples = [sample(p, seconds) for p in patterns]
    if out is not None:
        from penstock.report.workload_figure import draw

        draw(samples, out, name, _given(words, several=seeds > 1))
    if as_json:
        print_json(_document(patterns, samples, minutely, out))
    else:
        _print(name, words, samples)
    if out is not None:
        say(f"picture: {out}")


def _seeded(name: str, parameters: dict[str, str], seed: int, seeds: int) -> list[Pattern]:
    """The same workload with one seed after the other."""
    from penstock.workloads.patterns import create, describe

    first = create(name, parameters, seed=seed)
    if seeds == 1:
        return [first]
    begin = describe(first).get("seed")
    if begin is None:
        raise InputError(f"--seeds {seeds}: {name} draws nothing at random; leave it out")
    return [create(name, {**parameters, "seed": begin + n}) for n in range(seeds)]


def _check_out(out: Path | None) -> None:
    if out is None:
        return
    if out.suffix.lower() != ".png":
        raise InputError(f"--picture {out} must end in .png")
    if not out.parent.is_dir():
        raise InputError(f"--picture {out}: there is no folder {out.parent}; make it first")


def _document(
    patterns: Sequence[Pattern],
    samples: Sequence[Sample],
    minutely: Sequence[Sample],
    out: Path | None,
) -> dict[str, Any]:
    """Figures and rates of each seed, and their means."""
    import numpy as np

    from penstock.workloads.patterns import describe

    figures = [dataclasses.asdict(s.figures) for s in samples]
    known = {k: [f[k] for f in figures if f[k] is not None] for k in figures[0]}
    return {
        "workload": describe(patterns[0]),
        "figures": {k: float(np.mean(v)) if v else None for k, v in known.items()},
        "every": minutely[0].cell,
        "rates": np.mean([m.rates for m in minutely], axis=0).tolist(),
        "seeds": [
            {"seed": getattr(p, "seed", None), "figures": f, "rates": m.rates.tolist()}
            for p, f, m in zip(patterns, figures, minutely, strict=True)
        ],
        "picture": None if out is None else str(out),
    }


def _print(name: str, words: dict[str, Any], samples: Sequence[Sample]) -> None:
    from penstock.report.workload_figure import COLUMNS, terminal_chart

    several = len(samples) > 1
    screen = console()
    screen.print(f"{name} · {len(samples)} seeds" if several else name, style="bold")
    screen.print(_given(words, several=several), style="dim")
    screen.print()
    screen.print(terminal_chart(samples, min(screen.width, COLUMNS)), soft_wrap=True)
    screen.print()
    screen.print(_table(samples))


def _table(samples: Sequence[Sample]) -> Table:
    """One value per figure, or mean, lowest and highest over the seeds."""
    from penstock.report import units
    from penstock.report.table import Column, Table

    several = len(samples) > 1
    columns = ("mean", "lowest", "highest") if several else ("value",)
    lines: list[tuple[str, ...]] = []
    cell = samples[0].cell
    rate = "records/s" if cell == 1 else f"records/s over {units.seconds(cell)}"
    rows: list[tuple[str, Callable[[Figures], float | None], units.Format, str]] = [
        ("mean", lambda f: f.mean, units.count, "records/s"),
        ("lowest", lambda f: f.lowest, units.count, rate),
        ("highest", lambda f: f.highest, units.count, rate),
        ("peak to mean", lambda f: f.peak_to_mean, _ratio, ""),
        ("total", lambda f: f.total, units.count, "records"),
        ("duration", lambda f: f.seconds, lambda v: units.clock(v or 0.0), ""),
    ]
    for label, of, shown, unit in rows:
        values = [v for s in samples if (v := of(s.figures)) is not None]
        spread = (sum(values) / len(values), min(values), max(values)) if values else (None,) * 3
        cells = [shown(v) for v in (spread if several else spread[:1])]
        lines.append((label, *cells, unit))
    return Table(
        header=(
            Column(name="figure", style="dim"),
            *(Column(name=name, right=True) for name in columns),
            Column(name="", style="dim", wrap=True),
        ),
        rows=tuple(lines),
        loose=True,
    )


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _given(words: dict[str, Any], *, several: bool) -> str:
    """The parameters as ``--workload-set`` takes them; without empty ones, or a seed of several."""
    shown = {k: v for k, v in words.items() if k != "name" and v != ""}
    if several:
        shown.pop("seed", None)
    return " ".join(f"{k}={_value(v)}" for k, v in shown.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _idea(kind: type[Any]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", "")


def _defaults(kind: type[Any]) -> dict[str, Any]:
    return {f.name: f.default for f in dataclasses.fields(kind) if f.init}
