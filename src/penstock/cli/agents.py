"""``penstock agents``: the decentralized protocol as real processes on this machine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from penstock.cli import output
from penstock.cli.options import AsJson, NoSave, Out, pairs
from penstock.core.errors import EngineError, InputError

if TYPE_CHECKING:
    from penstock.decentralized import Probabilistic
    from penstock.lab.agents.pipeline.outcome import Outcome
    from penstock.lab.agents.pipeline.plan import Plan

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
        int, typer.Option(help="Agents that a site can hold.", rich_help_panel=_AGENTS)
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
    from penstock.cli.agents_view import AgentsView
    from penstock.lab.agents.pipeline.operators import Operator, Pipeline
    from penstock.lab.agents.pipeline.plan import Plan
    from penstock.lab.agents.pipeline.run import run
    from penstock.lab.agents.pipeline.sites import Site
    from penstock.report.runs import check_writable

    if kill and kill_keeper:
        raise InputError("--kill and --kill-keeper: one of them at a time")
    victim: Literal["any", "keeper"] | None = "keeper" if kill_keeper else None
    policy = _policy(pairs("--set", set_))
    plan = Plan(
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
        sites=tuple(map(Site.of, site or ["127.0.0.1"])),
        seed=seed,
        most=most,
        patience=patience,
        kill="any" if kill else victim,
    )
    if not no_save:
        check_writable(out)
    with AgentsView() as view:
        outcome = asyncio.run(run(plan, watch=view.watch, say=view.say))
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
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if not 1 <= count <= len(letters):
        raise InputError(f"--operators {count} must be 1 to {len(letters)}")
    return list(letters[:count])


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


def _save(plan: Plan, outcome: Outcome, out: Path) -> Path:
    from penstock import __version__
    from penstock.report import agents_figure, runs

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
    agents_figure.draw(outcome, plan.pipeline, folder / runs.PICTURE)
    return folder


def _show(plan: Plan, outcome: Outcome, folder: Path | None) -> None:
    from penstock.cli import agents_view
    from penstock.report.runs import PICTURE

    out = output.console()
    for table in (
        agents_view.records_table(outcome),
        agents_view.operators_table(outcome, plan.pipeline),
        agents_view.protocol_table(outcome),
    ):
        out.print(table)
        out.print()
    out.print(f"{outcome.seconds:.0f} s until the last record was done.")
    if folder is not None:
        out.print(f"run     {folder}", soft_wrap=True)
        out.print(f"picture {folder / PICTURE}", soft_wrap=True)
