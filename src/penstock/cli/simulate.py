"""``penstock simulate``: one run of one policy on a simulated pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import __version__
from penstock.cli import output
from penstock.cli.options import AsJson, NoSave, Out, pairs
from penstock.core.errors import InputError
from penstock.core.guards import Blackout, Guards

if TYPE_CHECKING:
    from penstock.core.loop import Decision, State
    from penstock.core.ports import Engine, Policy
    from penstock.history.journal import Entry, Header
    from penstock.report.runs import Recording


class Profile(StrEnum):
    """What a change of size costs: the job restarts, or it runs on."""

    RESTART = "restart"
    LIVE = "live"


class AtCap(StrEnum):
    """What to do with a plan above the cap."""

    SHRINK = "shrink"
    CANCEL = "cancel"


_WORK, _SIM, _GUARD = "Policy and workload", "Simulation", "Guards"


def simulate(
    policy: Annotated[
        str, typer.Option(help="The auto-scaler; see `penstock policies`.", rich_help_panel=_WORK)
    ] = "ds2",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A policy parameter.", rich_help_panel=_WORK
        ),
    ] = None,
    query: Annotated[
        str, typer.Option(help="Nexmark: q1, q2, q3, q5, q8, q11.", rich_help_panel=_WORK)
    ] = "q1",
    workload: Annotated[
        str,
        typer.Option(help="The load; see `penstock workload list`.", rich_help_panel=_WORK),
    ] = "cosine",
    workload_set: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A workload parameter.", rich_help_panel=_WORK),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Simulated time.", rich_help_panel=_SIM, show_default="the workload's own, or 140"
        ),
    ] = None,
    period: Annotated[
        float, typer.Option(help="Seconds between decisions.", rich_help_panel=_SIM)
    ] = 15.0,
    seed: Annotated[
        int, typer.Option(help="Of the load and of all noise.", rich_help_panel=_SIM)
    ] = 0,
    profile: Annotated[
        Profile,
        typer.Option(help="What a change costs: Flink-like or Spark-like.", rich_help_panel=_SIM),
    ] = Profile.RESTART,
    slots: Annotated[
        int | None,
        typer.Option(
            help="Start size of each pool.",
            rich_help_panel=_SIM,
            show_default="the query's, within the limits",
        ),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option("--shared", help="One pool for all operators.", rich_help_panel=_SIM),
    ] = False,
    minimum: Annotated[
        int, typer.Option("--min", help="Fewest slots of a pool.", rich_help_panel=_GUARD)
    ] = 1,
    maximum: Annotated[
        int, typer.Option("--max", help="Most slots of a pool.", rich_help_panel=_GUARD)
    ] = 80,
    cap: Annotated[
        int | None, typer.Option(help="Most slots of all pools.", rich_help_panel=_GUARD)
    ] = 80,
    at_cap: Annotated[
        AtCap, typer.Option(help="What to do with a plan above it.", rich_help_panel=_GUARD)
    ] = AtCap.SHRINK,
    step_up: Annotated[
        int | None, typer.Option(help="Most slots added at once.", rich_help_panel=_GUARD)
    ] = 15,
    step_down: Annotated[
        int | None, typer.Option(help="Most slots removed at once.", rich_help_panel=_GUARD)
    ] = None,
    cool_down: Annotated[
        float, typer.Option(help="Seconds between actions.", rich_help_panel=_GUARD)
    ] = 300.0,
    sleep: Annotated[
        bool,
        typer.Option(
            "--sleep", help="Decide nothing during it, as the thesis.", rich_help_panel=_GUARD
        ),
    ] = False,
    tolerance: Annotated[
        float, typer.Option(help="Relative change not worth it.", rich_help_panel=_GUARD)
    ] = 0.0,
    drain: Annotated[
        float | None,
        typer.Option(help="No shrinking above this lag (s).", rich_help_panel=_GUARD),
    ] = None,
    over_provisioning: Annotated[
        float, typer.Option(help="Factor on every need.", rich_help_panel=_GUARD)
    ] = 1.0,
    blackout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HH:MM-HH:MM",
            help="No actions then; time starts at 00:00.",
            rich_help_panel=_GUARD,
        ),
    ] = None,
    out: Out = Path("runs"),
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Run one policy on a simulated Nexmark query.

    The defaults are the thesis's query 1 under its cosine load, with its guards.
    """
    from penstock.compare.cell import Cell, workload_minutes
    from penstock.history.journal import Header
    from penstock.policies import parameters_of
    from penstock.simulator import FluidEngine
    from penstock.workloads import patterns

    guards = Guards(
        minimum=minimum,
        maximum=maximum,
        cap=cap,
        at_cap=at_cap.value,
        step_up=step_up,
        step_down=step_down,
        cool_down=cool_down,
        sleep=sleep,
        tolerance=tolerance,
        drain=drain,
        over_provisioning=over_provisioning,
        blackouts=tuple(Blackout.parse(text) for text in blackout or ()),
    )
    given: dict[str, Any] = {**pairs("--workload-set", workload_set)}
    cell = Cell(
        key="simulate",
        query=query,
        workload=workload,
        workload_parameters=given,
        policy=policy,
        policy_parameters=pairs("--set", set_),
        guards=guards,
        profile=profile.value,
        minutes=workload_minutes(workload, given) if minutes is None else minutes,
        period=period,
        shared=shared,
    )
    spec, pattern, chosen = cell.fluid_spec(), cell.pattern(seed), cell.create_policy()
    start = _start(slots, guards, spec.start)
    engine = FluidEngine(
        dataclasses.replace(spec, start=start), pattern, seconds=cell.seconds, seed=seed
    )
    header = Header(
        policy=policy,
        parameters=parameters_of(chosen),
        guards=guards,
        mode="act",
        seed=seed,
        period=period,
    )
    config = {
        "penstock": __version__,
        "command": "simulate",
        "policy": {"name": policy, **header.parameters},
        "query": query,
        "workload": patterns.describe(pattern),
        "engine": {"name": "simulated", "profile": profile.value, "start": start, "seed": seed},
        "guards": dataclasses.asdict(guards),
        "seconds": cell.seconds,
        "period": period,
    }
    save = None if no_save else (out, f"{policy}-{query}-{workload}", config)
    entries, folder = _run(engine, chosen, header, cell.ticks, save)
    _show(header, entries, folder, as_json)


def _start(slots: int | None, guards: Guards, own: Mapping[str, int]) -> dict[str, int]:
    """The start size of each pool; it must respect the limits that the guards will hold."""
    most = guards.maximum if guards.cap is None else min(guards.maximum, guards.cap // len(own))
    if most < guards.minimum:
        raise InputError(
            f"--cap {guards.cap} is too small for {len(own)} pools of at least "
            f"{guards.minimum} slots; raise it to {guards.minimum * len(own)} or more"
        )
    if slots is None:
        return {pool: min(max(size, guards.minimum), most) for pool, size in own.items()}
    if not guards.minimum <= slots <= most:
        raise InputError(f"--slots {slots} must lie within the limits, {guards.minimum} to {most}")
    return dict.fromkeys(own, slots)


def _run(
    engine: Engine,
    policy: Policy,
    header: Header,
    ticks: int,
    save: tuple[Path, str, dict[str, Any]] | None,
) -> tuple[list[Entry], Path | None]:
    """Run the loop; what Ctrl-C leaves behind is a valid run up to there."""
    from penstock.core.loop import Loop
    from penstock.history.journal import Entry
    from penstock.report import runs
    from penstock.report.build import finish

    entries: list[Entry] = []
    kept: Recording | None = None

    def record(decision: Decision, state: State) -> None:
        entries.append(Entry(decision=decision, state=state))
        if kept is not None:
            kept.record(decision, state)
        bar.advance(task)

    loop = Loop(engine, policy, header.guards, mode="act", seed=header.seed, record=record)
    try:
        with ExitStack() as stack:
            bar = stack.enter_context(output.progress())
            task = bar.add_task(f"{header.policy}, {ticks} decisions", total=ticks)
            if save is not None:
                kept = stack.enter_context(runs.recording(*save, header))
            loop.run(period=header.period or 1.0, ticks=ticks)
    except KeyboardInterrupt:
        if kept is not None and kept.ticks:
            output.say(f"interrupted; the first {kept.ticks} decisions are in {kept.folder}")
            finish(kept.folder)
        raise
    return entries, kept.folder if kept is not None else None


def _show(header: Header, entries: list[Entry], folder: Path | None, as_json: bool) -> None:
    from penstock.report.build import finish
    from penstock.report.summary import summarize

    if folder is not None:
        done = finish(folder)
        if as_json:
            output.print_json(output.finished_document(done))
        else:
            output.show_finished(done)
    elif as_json:
        output.print_json(output.run_document(summarize(header, entries), entries))
    else:
        output.show_tables(summarize(header, entries), entries)
