"""``penstock compare``: policies side by side on one load, or the differences in a bench."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.bench import check_workers, run_plan, show
from penstock.cli.options import AsJson, NoSave, Out, pairs
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.compare.experiment import Experiment

_LOAD, _RUN = "Pipeline and load", "Runs"


def compare(
    run: Annotated[
        str | None,
        typer.Argument(help="A finished bench: its folder, id, or 'latest'.", show_default=False),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Policies to run, the first is the base; parameters as ds2:over_provisioning=1.4.",
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="The policy that others are compared with.")
    ] = None,
    query: Annotated[
        str, typer.Option(help="q1, q2, q3, q5, q8 or q11.", rich_help_panel=_LOAD)
    ] = "q1",
    workload: Annotated[
        str, typer.Option(help="cosine, trace, spikes, …", rich_help_panel=_LOAD)
    ] = "cosine",
    workload_set: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A workload parameter.", rich_help_panel=_LOAD),
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="One pool for all operators.", rich_help_panel=_LOAD)
    ] = False,
    start: Annotated[
        int | None, typer.Option(help="Start size of each pool.", rich_help_panel=_LOAD)
    ] = None,
    profile: Annotated[
        str, typer.Option(help="What a change costs: restart or live.", rich_help_panel=_LOAD)
    ] = "restart",
    guards: Annotated[
        str, typer.Option(help="default, thesis or none.", rich_help_panel=_RUN)
    ] = "default",
    minutes: Annotated[
        float | None,
        typer.Option(help="Simulated.", show_default="the workload's", rich_help_panel=_RUN),
    ] = None,
    period: Annotated[
        float, typer.Option(help="Seconds between decisions.", rich_help_panel=_RUN)
    ] = 15.0,
    slo: Annotated[
        float, typer.Option(help="Latency objective, seconds.", rich_help_panel=_RUN)
    ] = 60.0,
    seeds: Annotated[int, typer.Option(help="Runs of each policy.", rich_help_panel=_RUN)] = 10,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes.", show_default="all cores", rich_help_panel=_RUN),
    ] = None,
    out: Out = Path("runs"),
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Compare policies on the same loads, seed by seed; "tie" where no difference shows.

    Either run some now (--policies), or look at a finished bench (RUN).
    """
    if (run is None) == (policies is None):
        raise InputError(
            "give either a finished bench (penstock compare RUN) or policies to run "
            "(penstock compare --policies ds2,hpa-cpu)"
        )
    if run is not None:
        _show_finished(run, out, base, as_json)
        return
    assert policies is not None
    check_workers(workers)
    fields = {
        "query": query,
        "workload": workload,
        "workload_parameters": pairs("--workload-set", workload_set),
        "shared": shared,
        "start": start,
        "profile": profile,
        "period": period,
        "slo": slo,
    }
    plan = _plan(policies, fields, guards, minutes, seeds)
    _run(plan, base, workers, None if no_save else out, as_json)


def _plan(
    policies: str, fields: dict[str, Any], guards: str, minutes: float | None, seeds: int
) -> Experiment:
    from penstock.compare.cell import Cell, workload_minutes
    from penstock.compare.check import check_cell
    from penstock.compare.experiment import Experiment, seed_range
    from penstock.compare.groups import key_of, policy_label
    from penstock.compare.guards_table import guards_of
    from penstock.policies import create, parameters_of
    from penstock.workloads import patterns

    given = fields["workload_parameters"]
    typed = patterns.describe(patterns.create(fields["workload"], given))  # text as numbers
    fields = {**fields, "workload_parameters": {name: typed[name] for name in given}}
    if minutes is None:
        minutes = workload_minutes(fields["workload"], given)
    limits, _ = guards_of(guards)
    cells: list[Cell] = []
    for text in policies.split(","):
        name, *settings = text.strip().split(":")
        asked = pairs("--policies", settings)
        parameters = parameters_of(create(name, asked))
        chosen = {
            "policy": name,
            "policy_parameters": {key: parameters[key] for key in asked},
            "guards": limits,
            "minutes": minutes,
            **fields,
        }
        label = policy_label(Cell(key="new", **chosen))
        cell = Cell(key=key_of(_query_key(fields), fields["workload"], label), **chosen)
        check_cell(cell)
        if any(cell.key == other.key for other in cells):
            raise InputError(f"--policies names {label!r} twice")
        cells.append(cell)
    return Experiment(
        name=f"compare-{fields['query']}-{fields['workload']}",
        cells=tuple(cells),
        seeds=seed_range(seeds, "--seeds"),
        journals=False,
        document={"policies": policies, "guards": guards, "minutes": minutes, **fields},
    )


def _query_key(fields: dict[str, Any]) -> str:
    return f"{fields['query']}-shared" if fields["shared"] else str(fields["query"])


def _run(
    plan: Experiment, base: str | None, workers: int | None, out: Path | None, as_json: bool
) -> None:
    from penstock.compare.folder import create_folder, finish, summarize
    from penstock.compare.groups import base_of
    from penstock.report import runs

    base_of(plan.cells, base)  # a wrong name fails now, not after the runs
    if out is None:
        with tempfile.TemporaryDirectory(prefix="penstock-") as kept:
            results = run_plan(plan, Path(kept), workers=workers, save=False)
        show(summarize(results, base=base), as_json=as_json, differences=True)
        return
    runs.check_writable(out)
    folder = create_folder(plan, out, command="compare")
    run_plan(plan, folder, workers=workers)
    show(finish(folder, base=base), as_json=as_json, differences=True)


def _show_finished(run: str, out: Path, base: str | None, as_json: bool) -> None:
    from penstock.bench.cell import read_cell
    from penstock.compare.folder import summarize
    from penstock.compare.results import Results
    from penstock.report import runs

    results = Results.load(runs.find(run, out), read=read_cell)
    show(summarize(results, base=base), as_json=as_json, differences=True)
