"""``penstock lab prove``: what Penstock promises on real Spark, checked on this machine."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.options import AsJson, NoSave, Out, command_group

if TYPE_CHECKING:
    from penstock.lab.proofs.proof import Proof

RUNS = Path("runs")
Quick = Annotated[bool, typer.Option("--quick", help="A first look: short, and proves little.")]

prove = command_group("prove", "Check on this machine what Penstock promises on real Spark.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a proof: its type, its default and what ``--help`` says of it."""

    kind: Any = float
    default: Any
    help: str
    show_default: bool | str = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofCommand:
    """``penstock lab prove NAME``: the module of that name in ``lab.proofs``, as a command.

    help: what the command says of itself
    options: by name; what is not given is as the proof's settings have it
    quick: settings that --quick changes
    settings: makes the settings out of the options, where they differ
    in_all: whether ``prove all`` runs it
    """

    help: str
    options: Mapping[str, Option]
    quick: Mapping[str, Any]
    settings: Callable[..., dict[str, Any]] = dict
    in_all: bool = True


def _faults_settings(query: str, seconds: float) -> dict[str, Any]:
    names = _names(query)
    queries = _proof("faults").NAMES if names == ("all",) else names
    return {"queries": queries, "seconds": seconds}


def _soak_settings(hours: float, minutes: float | None) -> dict[str, Any]:
    return {"seconds": hours * 3600.0 if minutes is None else minutes * 60.0}


def _examples_settings(only: str, **given: Any) -> dict[str, Any]:
    names = _names(only)
    return {**given, **({} if names == ("all",) else {"only": names})}


def _replay_settings(policies: str, **given: Any) -> dict[str, Any]:
    return {**given, "policies": _names(policies)}


def _names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip())


def _done(what: str) -> Option:
    return Option(
        kind=str | None,
        default=None,
        help=f"Folder of an earlier run, whose finished {what} count.",
        show_default="–",
    )


PROOFS: Mapping[str, ProofCommand] = {
    "source": ProofCommand(
        help="How fast one slot reads Nexmark's events.",
        options={"seconds": Option(default=40.0, help="Seconds of measured rounds.")},
        quick={"seconds": 1.0},
    ),
    "producer": ProofCommand(
        help="How fast Nexmark's events are written to Kafka, beside the broker.",
        options={"repeats": Option(kind=int, default=5, help="Times half a million are written.")},
        quick={"repeats": 1},
    ),
    "reaction": ProofCommand(
        help="How soon new executors work after the load has risen.",
        options={
            "actions": Option(kind=int, default=10, help="Scale-ups that are timed."),
            "period": Option(default=5.0, help="Seconds between decisions."),
            "high": Option(default=3.0, help="The high load, times what one executor takes."),
        },
        quick={"actions": 2},
    ),
    "bottleneck": ProofCommand(
        help="Slow one of three operators; policies have to name it when they scale up.",
        options={
            "actions": Option(
                kind=int, default=10, help="Scale-ups of each policy at each of three places."
            ),
            "period": Option(default=5.0, help="Seconds between decisions."),
        },
        quick={"actions": 2},
        in_all=False,
    ),
    "overhead": ProofCommand(
        help="What being watched costs a query.",
        options={
            "pairs": Option(kind=int, default=30, help="Pairs of times with and without."),
            "seconds": Option(default=12.0, help="Seconds of each time."),
            "period": Option(default=2.0, help="Seconds between decisions."),
            "seed": Option(kind=int, default=0, help="Of the order within the pairs."),
        },
        quick={"pairs": 2},
    ),
    "faults": ProofCommand(
        help="Kill an executor, the worker and the driver during actions; the result stays exact.",
        options={
            "query": Option(
                kind=str, default="q5", help="q1 q2 q3 q5 q8 q11, several by comma, or all."
            ),
            "seconds": Option(default=90.0, help="Least seconds of load per query."),
        },
        quick={"seconds": 10.0, "quick": True},
        settings=_faults_settings,
    ),
    "broker": ProofCommand(
        help="Kill the Kafka broker under a query and its producer; nothing is lost or repeated.",
        options={
            "kills": Option(kind=int, default=2, help="Times the broker is killed."),
            "away": Option(default=8.0, help="Seconds until it is started again."),
        },
        quick={"kills": 1},
    ),
    "scaling": ProofCommand(
        help="How much more eight executors take than one.",
        options={"repeats": Option(kind=int, default=3, help="Times each size is measured.")},
        quick={"repeats": 1, "sizes": (1, 8)},
    ),
    "bursts": ProofCommand(
        help="Keep response times under recorded bursts with less CPU, set while a query runs.",
        options={
            "seconds": Option(default=300.0, help="Seconds of each of the five runs."),
            "slack": Option(default=2.0, help="Targets over what full CPU reaches."),
        },
        quick={"seconds": 60.0, "before": 40.0},
        in_all=False,
    ),
    "agents": ProofCommand(
        help="Let agents beside the executors size a split query, and nobody else; it stays exact.",
        options={
            "seconds": Option(default=360.0, help="Of the load, low to high and back."),
            "low": Option(default=600.0, help="Lowest load, records/s."),
            "high": Option(default=5_000.0, help="Highest load, records/s."),
            "period": Option(default=15.0, help="Seconds between an agent's trials."),
            "cpu_share": Option(default=0.12, help="Of a core for each executor."),
            "seed": Option(kind=int, default=0, help="Of the agents' draws."),
        },
        quick={"seconds": 90.0, "period": 12.0},
        in_all=False,
    ),
    "examples": ProofCommand(
        help="Scale Spark's own examples, unmodified; what is seen beside the truth.",
        options={
            "only": Option(
                kind=str,
                default="all",
                help="windowed sessions sessionization kafka, several by comma, or all.",
            ),
            "period": Option(default=10.0, help="Seconds between decisions."),
            "busy": Option(default=120.0, help="Seconds of the high load."),
            "executors": Option(kind=int, default=4, help="Most executors."),
            "done": _done("examples"),
        },
        quick={"calm": 40.0, "settle": 60.0, "busy": 60.0, "after": 120.0},
        settings=_examples_settings,
        in_all=False,
    ),
    "replay": ProofCommand(
        help="Record one of Spark's examples, foretell it under other policies, and run those.",
        options={
            "only": Option(
                kind=str, default="windowed", help="One of windowed sessions sessionization kafka."
            ),
            "policy": Option(kind=str, default="ds2", help="Acts in the recorded run."),
            "policies": Option(
                kind=str, default="hpa-cpu,dhalion", help="Foretold and really run, by comma."
            ),
            "seconds": Option(default=600.0, help="Of the load of each run."),
            "repeats": Option(kind=int, default=3, help="Real runs of each policy."),
            "seeds": Option(kind=int, default=5, help="Of what is foretold of each real run."),
            "period": Option(default=10.0, help="Seconds between decisions."),
            "executors": Option(kind=int, default=4, help="Most executors."),
            "done": _done("runs"),
        },
        quick={"seconds": 240.0, "repeats": 1, "seeds": 2},
        settings=_replay_settings,
        in_all=False,
    ),
    "soak": ProofCommand(
        help="Act for hours; nothing may grow. Ctrl-C shows the result so far.",
        options={
            "hours": Option(default=2.0, help="How long."),
            "minutes": Option(
                kind=float | None,
                default=None,
                help="How long instead, in minutes.",
                show_default="–",
            ),
        },
        quick={"seconds": 120.0, "every": 5.0},
        settings=_soak_settings,
        in_all=False,
    ),
}
ALL = tuple(name for name, command in PROOFS.items() if command.in_all)


def _add_command(name: str, command: ProofCommand) -> None:
    """Make ``prove NAME`` out of the table; Typer reads options from a signature."""

    def run(*, quick: bool, out: Path, no_save: bool, as_json: bool, **given: Any) -> None:
        _run([_work(name, quick, **command.settings(**given))], out, no_save, as_json)

    own = {
        name: (Annotated[o.kind, typer.Option(help=o.help, show_default=o.show_default)], o.default)
        for name, o in command.options.items()
    }
    common = {
        "quick": (Quick, False),
        "out": (Out, RUNS),
        "no_save": (NoSave, False),
        "as_json": (AsJson, False),
    }
    options = {**own, **common}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for name, (kind, default) in options.items()
        ]
    )
    run.__annotations__ = {name: kind for name, (kind, _) in options.items()}
    prove.command(name, help=command.help)(run)


for _name, _command in PROOFS.items():
    _add_command(_name, _command)


@prove.command("all")
def everything(
    quick: Quick = False,
    out: Out = RUNS,
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """All but bottleneck, bursts, agents, examples, replay and the soak, one after the other."""
    _run([_work(name, quick) for name in ALL], out, no_save, as_json)


# ---- each proof with its settings, checked before anything starts --------------------------


Work = tuple[str, Any, "Callable[..., Proof]"]


def _work(name: str, quick: bool, **given: Any) -> Work:
    """A proof by name; what is not given is as its settings have it."""
    proof = _proof(name)
    changed = PROOFS[name].quick if quick else {}
    settings = getattr(proof, f"{name.capitalize()}Settings")
    return name, settings(**{**given, **changed}), proof.prove


def _proof(name: str) -> Any:
    """The module of a proof; they import Spark, so say first what is missing for that."""
    from penstock.lab.host.java import find_java, find_spark

    find_java()
    find_spark()
    return importlib.import_module(f"penstock.lab.proofs.{name}")


# ---- running and showing --------------------------------------------------------------------


def _run(work: list[Work], out: Path, no_save: bool, as_json: bool) -> None:
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
    from penstock.lab.proofs.tables import checks_table, details_table, rows_table

    screen = output.console()
    screen.print()
    screen.print(checks_table(proof))
    if proof.details:
        screen.print()
        screen.print(details_table(proof))
    for title, rows in proof.tables.items():
        screen.print()
        screen.print(rows_table(title, rows))
    screen.print()
    for note in proof.notes:
        screen.print(note, style="dim")
    if proof.interrupted:
        screen.print("ended early by Ctrl-C: the figures are those so far")
    if folder is not None:
        screen.print(f"kept in {folder}", soft_wrap=True)
