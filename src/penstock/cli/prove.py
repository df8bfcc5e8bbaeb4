"""``penstock prove``: what Penstock promises on real Spark, checked on this machine."""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.options import AsJson, NoSave, Out

if TYPE_CHECKING:
    from penstock.lab.proofs.proof import Proof

RUNS = Path("runs")
ALL = ("source", "producer", "reaction", "overhead", "faults", "broker", "scaling")  # but the soak
QUICK: Mapping[str, Mapping[str, Any]] = {
    "source": {"seconds": 1.0},
    "producer": {"repeats": 1},
    "reaction": {"actions": 2},
    "overhead": {"pairs": 2},
    "faults": {"seconds": 10.0, "quick": True},
    "broker": {"kills": 1},
    "scaling": {"repeats": 1, "sizes": (1, 8)},
    "bursts": {"seconds": 60.0, "before": 40.0},
    "soak": {"seconds": 120.0, "every": 5.0},
    "agents": {"seconds": 90.0, "period": 12.0},
}
"""What --quick changes in each Spec."""
Quick = Annotated[bool, typer.Option("--quick", help="A first look: short, and proves little.")]

prove = typer.Typer(
    name="prove",
    help="Check on this machine what Penstock promises on real Spark.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@prove.command("source")
def source(
    seconds: Annotated[float, typer.Option(help="Seconds of measured rounds.")] = 40.0,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """How fast one slot reads Nexmark's events."""
    _finish([_work("source", quick, seconds=seconds)], out, no_save, as_json)


@prove.command("producer")
def producer(
    repeats: Annotated[int, typer.Option(help="Times half a million are written.")] = 5,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """How fast Nexmark's events are written to Kafka, beside the broker."""
    _finish([_work("producer", quick, repeats=repeats)], out, no_save, as_json)


@prove.command("reaction")
def reaction(
    actions: Annotated[int, typer.Option(help="Scale-ups that are timed.")] = 10,
    period: Annotated[float, typer.Option(help="Seconds between decisions.")] = 5.0,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """How soon new executors work after the load has risen."""
    work = _work("reaction", quick, actions=actions, period=period)
    _finish([work], out, no_save, as_json)


@prove.command("overhead")
def overhead(
    pairs: Annotated[int, typer.Option(help="Pairs of times with and without.")] = 30,
    seconds: Annotated[float, typer.Option(help="Seconds of each time.")] = 12.0,
    period: Annotated[float, typer.Option(help="Seconds between decisions.")] = 2.0,
    seed: Annotated[int, typer.Option(help="Of the order within the pairs.")] = 0,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """What being watched costs a query."""
    work = _work("overhead", quick, pairs=pairs, seconds=seconds, period=period, seed=seed)
    _finish([work], out, no_save, as_json)


@prove.command("faults")
def faults(
    query: Annotated[
        str, typer.Option(help="q1 q2 q3 q5 q8 q11, several by comma, or all.")
    ] = "q5",
    seconds: Annotated[float, typer.Option(help="Least seconds of load per query.")] = 90.0,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Kill an executor, the worker and the driver during actions; the result stays exact."""
    names = tuple(name.strip() for name in query.split(",") if name.strip())
    queries = _proof("faults").NAMES if names == ("all",) else names
    work = _work("faults", quick, queries=queries, seconds=seconds)
    _finish([work], out, no_save, as_json)


@prove.command("broker")
def broker(
    kills: Annotated[int, typer.Option(help="Times the broker is killed.")] = 2,
    away: Annotated[float, typer.Option(help="Seconds until it is started again.")] = 8.0,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Kill the Kafka broker under a query and its producer; nothing is lost or repeated."""
    _finish([_work("broker", quick, kills=kills, away=away)], out, no_save, as_json)


@prove.command("scaling")
def scaling(
    repeats: Annotated[int, typer.Option(help="Times each size is measured.")] = 3,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """How much more eight executors take than one."""
    _finish([_work("scaling", quick, repeats=repeats)], out, no_save, as_json)


@prove.command("bursts")
def bursts(
    seconds: Annotated[float, typer.Option(help="Seconds of each of the five runs.")] = 300.0,
    slack: Annotated[float, typer.Option(help="Targets over what full CPU reaches.")] = 2.0,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Keep response times under recorded bursts with less CPU, set while a query runs."""
    _finish([_work("bursts", quick, seconds=seconds, slack=slack)], out, no_save, as_json)


@prove.command("agents")
def agents(
    seconds: Annotated[float, typer.Option(help="Of the load, low to high and back.")] = 360.0,
    low: Annotated[float, typer.Option(help="Lowest load, records/s.")] = 600.0,
    high: Annotated[float, typer.Option(help="Highest load, records/s.")] = 5_000.0,
    period: Annotated[float, typer.Option(help="Seconds between an agent's trials.")] = 15.0,
    share: Annotated[float, typer.Option(help="Of a core for each executor.")] = 0.12,
    seed: Annotated[int, typer.Option(help="Of the agents' draws.")] = 0,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Let agents beside the executors size a split query, and nobody else; it stays exact."""
    work = _work(
        "agents", quick, seconds=seconds, low=low, high=high, period=period, share=share, seed=seed
    )
    _finish([work], out, no_save, as_json)


@prove.command("soak")
def soak(
    hours: Annotated[float, typer.Option(help="How long.")] = 2.0,
    minutes: Annotated[
        float | None, typer.Option(help="How long instead, in minutes.", show_default="–")
    ] = None,
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Act for hours; nothing may grow. Ctrl-C shows the result so far."""
    seconds = hours * 3600.0 if minutes is None else minutes * 60.0
    _finish([_work("soak", quick, seconds=seconds)], out, no_save, as_json)


@prove.command("all")
def everything(
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """All but the soak, one after the other."""
    _finish([_work(name, quick) for name in ALL], out, no_save, as_json)


# ---- each proof with its parameters, checked before anything starts ------------------------


Work = tuple[str, Any, "Callable[..., Proof]"]


def _work(name: str, quick: bool, **given: Any) -> Work:
    """A proof by name; what is not given is as its Spec has it."""
    proof = _proof(name)
    changed = QUICK[name] if quick else {}
    return name, proof.Spec(**{**given, **changed}), proof.prove


def _proof(name: str) -> Any:
    """The module of a proof; they import Spark, so say first what is missing for that."""
    from penstock.lab.host.java import find_java, find_spark

    find_java()
    find_spark()
    return importlib.import_module(f"penstock.lab.proofs.{name}")


# ---- running and showing --------------------------------------------------------------------


def _finish(work: list[Work], out: Path, no_save: bool, as_json: bool) -> None:
    """Run the proofs, show each as it is done, and leave with the exit code of all."""
    from penstock.lab.proofs.proof import keep
    from penstock.report.runs import check_writable

    if not no_save:
        check_writable(out)
    output.quiet_spark()
    documents = []
    held = True
    for name, spec, run in work:
        with _folder(name, spec, out, no_save) as folder:
            proof = run(spec, folder=folder, say=output.say)
            keep(proof, folder)
        held = held and proof.held
        documents.append(proof.document() | {"run": None if no_save else str(folder)})
        if not as_json:
            _show(proof, None if no_save else folder)
        if proof.interrupted:
            break
    if as_json:
        output.print_json(documents[0] if len(work) == 1 else {"proofs": documents, "held": held})
    if documents[-1]["interrupted"]:
        raise KeyboardInterrupt
    if not held:
        raise typer.Exit(1)


@contextlib.contextmanager
def _folder(name: str, spec: Any, out: Path, no_save: bool) -> Iterator[Path]:
    """The folder of a proof's run; removed again if it fails before it has written anything."""
    from penstock import __version__
    from penstock.report import runs

    if no_save:
        with tempfile.TemporaryDirectory(prefix="penstock-prove-") as temporary:
            yield Path(temporary)
        return
    config = {"penstock": __version__, "command": f"prove {name}", "spec": asdict(spec)}
    folder = runs.create(out, f"prove {name}", config)
    try:
        yield folder
    except BaseException:
        if {path.name for path in folder.iterdir()} <= {runs.CONFIG}:
            (folder / runs.CONFIG).unlink()
            folder.rmdir()
        raise


def _show(proof: Proof, folder: Path | None) -> None:
    from penstock.lab.proofs.tables import checks_table, details_table

    screen = output.console()
    screen.print()
    screen.print(checks_table(proof))
    if proof.details:
        screen.print()
        screen.print(details_table(proof))
    screen.print()
    for note in proof.notes:
        screen.print(note, style="dim")
    if proof.interrupted:
        screen.print("ended early by Ctrl-C: the figures are those so far")
    if folder is not None:
        screen.print(f"kept in {folder}", soft_wrap=True)
