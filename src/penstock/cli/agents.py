"""``penstock lab agents``: the decentralized protocol as real processes on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Literal, Self

import typer

from penstock.cli import output
from penstock.cli.live import POINTS, sparkline
from penstock.cli.options import AsJson, NoSave, Out, pairs
from penstock.core.errors import EngineError, InputError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from penstock.decentralized import Probabilistic
    from penstock.lab.agents.pipeline.operators import Pipeline
    from penstock.lab.agents.pipeline.result import PipelineRunResult, PipelineSample
    from penstock.lab.agents.pipeline.run import PipelineRunSettings


OUTCOME = "outcome.json"
_LOAD, _AGENTS, _FAULTS = "Pipeline and load", "Agents", "Faults"


def agents(
    operators: Annotated[int, typer.Option(help="How many, in a row.", rich_help_panel=_LOAD)] = 5,
    capacity: Annotated[
        float, typer.Option(help="Records/s that an instance takes.", rich_help_panel=_LOAD)
    ] = 4000.0,
    selectivity: Annotated[
        float, typer.Option(help="Records out per record in.", rich_help_panel=_LOAD)
    ] = 1.0,
    instances: Annotated[
        int, typer.Option(help="Of every operator at first.", rich_help_panel=_LOAD)
    ] = 2,
    low: Annotated[
        float, typer.Option(help="Lowest load, records/s.", rich_help_panel=_LOAD)
    ] = 4000.0,
    high: Annotated[
        float, typer.Option(help="Highest load, records/s.", rich_help_panel=_LOAD)
    ] = 16000.0,
    seconds: Annotated[
        float, typer.Option(help="From low to high and back.", rich_help_panel=_LOAD)
    ] = 120.0,
    period: Annotated[
        float, typer.Option(help="Seconds between an agent's trials.", rich_help_panel=_AGENTS)
    ] = 5.0,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="ratio, up or down.", rich_help_panel=_AGENTS
        ),
    ] = None,
    site: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS[=COMMAND]",
            help="Where agents listen, and the command that leads there; repeatable.",
            rich_help_panel=_AGENTS,
            show_default="127.0.0.1",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option("--max", help="Agents that a site can hold.", rich_help_panel=_AGENTS)
    ] = 100,
    seed: Annotated[int, typer.Option(help="Of the agents' draws.", rich_help_panel=_AGENTS)] = 0,
    kill: Annotated[
        bool, typer.Option("--kill", help="Kill an agent half-way.", rich_help_panel=_FAULTS)
    ] = False,
    kill_keeper: Annotated[
        bool,
        typer.Option("--kill-keeper", help="Kill a keeper half-way.", rich_help_panel=_FAULTS),
    ] = False,
    patience: Annotated[
        float,
        typer.Option(help="Seconds of silence before a peer is doubted.", rich_help_panel=_FAULTS),
    ] = 5.0,
    out: Out = Path("runs"),
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Let agents scale themselves without a controller while records really flow through them.

    One process per instance. At the end every record is accounted for, or it fails.
    """
    from penstock.lab.agents.pipeline.operators import Operator, Pipeline
    from penstock.lab.agents.pipeline.run import PipelineRunSettings, run
    from penstock.lab.agents.pipeline.sites import AgentSite
    from penstock.report.runs import check_writable

    if kill and kill_keeper:
        raise InputError("--kill and --kill-keeper: one of them at a time")
    victim: Literal["any", "keeper"] | None = "any" if kill else "keeper" if kill_keeper else None
    policy = _policy(pairs("--set", set_))
    plan = PipelineRunSettings(
        pipeline=Pipeline(
            operators=tuple(
                Operator(
                    name=name,
                    capacity=capacity,
                    selectivity=selectivity,
                    instances=instances,
                    policy=policy,
                )
                for name in _names(operators)
            ),
            low=low,
            high=high,
            seconds=seconds,
            period=period,
        ),
        sites=tuple(map(AgentSite.of, site or ["127.0.0.1"])),
        seed=seed,
        most=most,
        patience=patience,
        kill=victim,
    )
    if not no_save:
        check_writable(out)
    with AgentsView() as view:
        outcome = asyncio.run(run(plan, watch=view.watch, say=output.say))
    folder = None if no_save else _save(plan, outcome, out)
    if as_json:
        output.print_json({"run": None if folder is None else str(folder), **outcome.document()})
    else:
        _show(plan, outcome, folder)
    if not outcome.exact:
        raise EngineError(
            f"{outcome.lost} of {outcome.expected} records are lost, {outcome.unexpected} came "
            f"that nobody sent"
        )


def _names(count: int) -> list[str]:
    if not 1 <= count <= len(ascii_uppercase):
        raise InputError(f"--operators {count} must be 1 to {len(ascii_uppercase)}")
    return list(ascii_uppercase[:count])


def _policy(given: dict[str, str]) -> Probabilistic:
    from penstock.core.errors import unknown
    from penstock.decentralized import Probabilistic

    known = ("ratio", "up", "down")
    values = {}
    for name, text in given.items():
        if name not in known:
            raise unknown("parameter", name, known)
        try:
            values[name] = float(text)
        except ValueError:
            raise InputError(f"--set {name}={text}: must be a number") from None
    return Probabilistic(**values)


def _save(plan: PipelineRunSettings, outcome: PipelineRunResult, out: Path) -> Path:
    from penstock import __version__
    from penstock.lab.agents.pipeline import figure
    from penstock.report import runs

    config = {
        "penstock": __version__,
        "command": "agents",
        "pipeline": plan.pipeline.document(),
        "sites": [site.address for site in plan.sites],
        "seed": plan.seed,
        "most": plan.most,
        "patience": plan.patience,
        "kill": plan.kill,
    }
    folder = runs.create(out, "agents", config)
    text = json.dumps(outcome.document(), indent=1)
    (folder / OUTCOME).write_text(text + "\n", encoding="utf-8")
    figure.draw(outcome, plan.pipeline, folder / runs.PICTURE)
    return folder


def _show(plan: PipelineRunSettings, outcome: PipelineRunResult, folder: Path | None) -> None:
    from penstock.report.runs import PICTURE

    out = output.console()
    for table in (
        records_table(outcome),
        operators_table(outcome, plan.pipeline),
        protocol_table(outcome),
    ):
        out.print(table)
        out.print()
    out.print(f"{outcome.seconds:.0f} s until the last record was done.")
    if folder is not None:
        output.print_files({"run": folder, "picture": folder / PICTURE})


EVERY = 5.0  # seconds between two lines where there is no terminal


class AgentsView:
    """Redraws in place on a terminal; elsewhere a line every few seconds on standard error."""

    def __init__(self) -> None:
        from rich.live import Live

        self._screen = output.console(stderr=True)
        self._samples: list[PipelineSample] = []
        self._next = 0.0
        self._live = Live(self._render(), console=self._screen, refresh_per_second=4)

    def watch(self, sample: PipelineSample) -> None:
        """Show a look at the run."""
        self._samples.append(sample)
        if self._screen.is_terminal:
            self._live.update(self._render())
        elif sample.time >= self._next:
            self._next = sample.time + EVERY
            sizes = "  ".join(f"{name} {n}" for name, n in sample.instances.items())
            output.say(
                f"{sample.time:4.0f} s  load {sample.offered:7,.0f}/s  "
                f"delivered {sample.delivered:7,.0f}/s  {sizes}"
            )

    def __enter__(self) -> Self:
        if self._screen.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._screen.is_terminal:
            self._live.stop()

    def _render(self) -> RenderableType:
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        rows = Table.grid(padding=(0, 1), expand=True)
        rows.add_column(width=11, no_wrap=True)
        rows.add_column(width=11, justify="right", no_wrap=True)
        rows.add_column(no_wrap=True, overflow="crop", ratio=1)
        for name, values, unit, style in self._series():
            line = Text(sparkline(values), style=style)
            rows.add_row(name, f"{values[-1]:,.0f}{unit}", line)
        clock = f"{self._samples[-1].time:.0f} s" if self._samples else "starting"
        return Panel(
            rows, title=Text("penstock lab agents"), subtitle=Text(clock), title_align="left"
        )

    def _series(self) -> Iterator[tuple[str, list[float], str, str]]:
        if self._samples:
            yield "load", [s.offered for s in self._samples], "/s", "blue"
            yield "delivered", [s.delivered for s in self._samples], "/s", "green"
            for name in self._samples[-1].instances:
                values = [float(s.instances[name]) for s in self._samples]
                yield f"operator {name}", values, "", "magenta"


def records_table(outcome: PipelineRunResult) -> Table:
    """What became of the records."""
    from penstock.report.table import plain_table

    table = plain_table("Records", "duplicated: came to the sink again, and were dropped there")
    names = ("emitted", "expected", "delivered", "lost", "duplicated", "unexpected")
    for name in names:
        table.add_column(name, justify="right")
    table.add_row(*(f"{getattr(outcome, name):,}" for name in names))
    return table


def operators_table(outcome: PipelineRunResult, pipeline: Pipeline) -> Table:
    """Instances over time, per operator."""
    from penstock.report.table import plain_table

    table = plain_table("Instances", "ideal: of most, highest load / (ratio · capacity)")
    table.add_column("operator")
    for name in ("first", "fewest", "most", "ideal", "last"):
        table.add_column(name, justify="right")
    table.add_column("over time")
    factor = 1.0
    for operator in pipeline.operators:
        fewest, most = outcome.span(operator.name)
        ideal = pipeline.high * factor / (operator.policy.ratio * operator.capacity)
        course = [float(sample.instances[operator.name]) for sample in outcome.samples]
        table.add_row(
            operator.name,
            str(operator.instances),
            str(fewest),
            str(most),
            f"{ideal:.1f}",
            f"{course[-1]:.0f}" if course else "–",
            sparkline(course[:: len(course) // POINTS + 1]),
        )
        factor *= operator.selectivity
    return table


def protocol_table(outcome: PipelineRunResult) -> Table:
    """What instances did and said."""
    from penstock.report.table import plain_table

    counts = outcome.counts
    table = plain_table("Protocol")
    table.show_header = False
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("duplications", str(outcome.duplications))
    table.add_row("deletions", str(outcome.deletions))
    table.add_row("messages", f"{counts.get('messages', 0):,}")
    table.add_row(
        "messages by the paper's formula", f"{counts.get('messages by the formula', 0):,}"
    )
    for name in sorted(set(counts) - {"messages", "messages by the formula"}):
        if counts[name]:
            table.add_row(name, f"{counts[name]:,}")
    return table
