"""``penstock simulate``: one run of one policy on a simulated pipeline."""

from __future__ import annotations

import dataclasses
import math
from contextlib import ExitStack
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import __version__
from penstock.cli import output
from penstock.cli.options import pairs
from penstock.core.errors import InputError
from penstock.core.guards import Blackout, Guards
from penstock.core.pipeline import Operator, Pipeline

if TYPE_CHECKING:
    from penstock.core.journal import Entry, Header
    from penstock.core.loop import Decision, State
    from penstock.core.ports import Engine, Policy
    from penstock.report.runs import Recording
    from penstock.workloads.patterns import Pattern

# Slots needed per million records/s: a calibration for the thesis's query 1.
SLOTS_PER_MILLION = {"source": 0.60, "map": 3.0, "sink": 1.45}
# Rates that fit this pipeline; the cosine is the thesis's (Table 7.17).
WORKLOADS: dict[str, dict[str, float]] = {
    "constant": {"rps": 1e6},
    "step": {"low": 5e5, "high": 2e6, "at": 1200.0, "hold": 2400.0},
    "cosine": {"low": 2e5, "high": 2.2e6, "period": 3600.0},
}
START_SLOTS = 5
LONGEST = 31 * 24 * 60  # minutes


class Profile(StrEnum):
    """What a change of size costs: the job restarts, or it runs on."""

    RESTART = "restart"
    LIVE = "live"


class AtCap(StrEnum):
    """What to do with a plan above the cap."""

    SHRINK = "shrink"
    CANCEL = "cancel"


_WORK, _SIM, _GUARD, _OUT = "Policy and workload", "Simulation", "Guards", "Output"


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
    workload: Annotated[
        str, typer.Option(help="The load: constant, step, cosine, …", rich_help_panel=_WORK)
    ] = "cosine",
    workload_set: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A workload parameter.", rich_help_panel=_WORK),
    ] = None,
    minutes: Annotated[float, typer.Option(help="Simulated time.", rich_help_panel=_SIM)] = 140.0,
    period: Annotated[
        float, typer.Option(help="Seconds between decisions.", rich_help_panel=_SIM)
    ] = 15.0,
    seed: Annotated[int, typer.Option(help="Of all noise.", rich_help_panel=_SIM)] = 0,
    profile: Annotated[
        Profile,
        typer.Option(help="What a change costs: Flink-like or Spark-like.", rich_help_panel=_SIM),
    ] = Profile.RESTART,
    slots: Annotated[
        int | None,
        typer.Option(
            help="Start size of each pool.",
            rich_help_panel=_SIM,
            show_default=f"{START_SLOTS}, within the limits",
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
    out: Annotated[Path, typer.Option(help="Where runs are kept.", rich_help_panel=_OUT)] = Path(
        "runs"
    ),
    no_save: Annotated[
        bool, typer.Option("--no-save", help="Write nothing.", rich_help_panel=_OUT)
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document.", rich_help_panel=_OUT)
    ] = False,
) -> None:
    """Run one policy on a simulated pipeline: source, map, sink.

    The defaults are the thesis's query 1 under its cosine load, with its guards.
    """
    from penstock.core.journal import Header
    from penstock.policies import create, parameters_of
    from penstock.workloads import patterns

    guards = Guards(
        minimum=minimum,
        maximum=maximum,
        cap=cap,
        at_cap=at_cap.value,
        step_up=step_up,
        step_down=step_down,
        cool_down=cool_down,
        tolerance=tolerance,
        drain=drain,
        over_provisioning=over_provisioning,
        blackouts=tuple(Blackout.parse(text) for text in blackout or ()),
    )
    chosen = create(policy, pairs("--set", set_))
    rates: dict[str, float | str] = {**WORKLOADS.get(workload, {})}
    pattern = patterns.create(workload, rates | pairs("--workload-set", workload_set))
    seconds, ticks = _length(minutes, period)
    pipeline = _pipeline(shared)
    start = _start(slots, guards, pipeline)
    engine = _engine(pipeline, start, profile.value, pattern, seconds, seed)
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
        "workload": patterns.describe(pattern),
        "engine": {"name": "simulated", "profile": profile.value, "start": start, "seed": seed},
        "slots_per_million": SLOTS_PER_MILLION,
        "guards": dataclasses.asdict(guards),
        "seconds": seconds,
        "period": period,
    }
    save = None if no_save else (out, f"{policy}-{workload}", config)
    entries, folder = _run(engine, chosen, header, ticks, save)
    _show(header, entries, folder, as_json)


def _length(minutes: float, period: float) -> tuple[int, int]:
    """Seconds and ticks."""
    if not (math.isfinite(minutes) and 0 < minutes <= LONGEST):
        raise InputError(f"--minutes {minutes:g} must be above 0 and at most {LONGEST} (31 days)")
    seconds = max(1, round(minutes * 60))
    if not 1 <= period <= seconds:
        raise InputError(
            f"--period {period:g} s must be at least 1 and at most the {seconds} s simulated"
        )
    return seconds, int(seconds / period + 1e-9)


def _pipeline(shared: bool) -> Pipeline:
    names = list(SLOTS_PER_MILLION)
    pools = {name: "executors" if shared else name for name in names}
    return Pipeline(
        operators={name: Operator(pool=pools[name]) for name in names},
        edges=list(pairwise(names)),
    )


def _start(slots: int | None, guards: Guards, pipeline: Pipeline) -> dict[str, int]:
    """The start size of each pool; it must respect the limits that the guards will hold."""
    pools = pipeline.pools
    most = guards.maximum if guards.cap is None else min(guards.maximum, guards.cap // len(pools))
    if most < guards.minimum:
        raise InputError(
            f"--cap {guards.cap} is too small for {len(pools)} pools of at least "
            f"{guards.minimum} slots; raise it to {guards.minimum * len(pools)} or more"
        )
    if slots is None:
        slots = min(max(START_SLOTS, guards.minimum), most)
    if not guards.minimum <= slots <= most:
        raise InputError(f"--slots {slots} must lie within the limits, {guards.minimum} to {most}")
    return dict.fromkeys(pools, slots)


def _engine(
    pipeline: Pipeline,
    start: dict[str, int],
    profile: str,
    pattern: Pattern,
    seconds: int,
    seed: int,
) -> Engine:
    from penstock.simulator import PROFILES, FluidEngine, FluidSpec

    spec = FluidSpec(
        pipeline=pipeline,
        service_rates={name: 1e6 / slots for name, slots in SLOTS_PER_MILLION.items()},
        start=start,
        profile=PROFILES[profile],
    )
    return FluidEngine(spec, pattern, seconds=seconds, seed=seed)


def _run(
    engine: Engine,
    policy: Policy,
    header: Header,
    ticks: int,
    save: tuple[Path, str, dict[str, Any]] | None,
) -> tuple[list[Entry], Path | None]:
    """Run the loop; what Ctrl-C leaves behind is a valid run up to there."""
    from penstock.core.journal import Entry
    from penstock.core.loop import Loop
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
