"""``penstock lab validate``: how close Spark's twin, the micro-batch simulator, comes to Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.bench import check_workers
from penstock.cli.options import AsJson, Out, Workers
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.bench.spark.runner import Failure
    from penstock.bench.validation.comparison import Validation
    from penstock.comparison.cell import Cell
    from penstock.comparison.results import Results
    from penstock.report.table import Table

DOCUMENT, TABLES, TWIN = "validation.json", "tables.txt", "twin"


def validate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN_OR_SPEC",
            help="A bench that ran on Spark: its folder, id or 'latest'; or the spec of one.",
        ),
    ],
    profiles: Annotated[
        Path,
        typer.Option(
            help="Folder with a QUERY.json per query, of `penstock lab calibrate --profile`."
        ),
    ],
    workers: Workers = None,
    out: Out = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Run what ran on Spark in its twin as well, with the same loads and seeds, and compare.

    A spec is run on Spark first. A bound that does not hold is a result: exit code 0.
    """
    from penstock.bench.cell import read_cell
    from penstock.bench.validation.comparison import twin_cells
    from penstock.bench.validation.comparison import validate as compare
    from penstock.cli.bench_spark import raise_missing
    from penstock.comparison.results import Results
    from penstock.report import runs

    check_workers(workers)
    if not profiles.is_dir():
        raise InputError(f"--profiles {profiles}: no such folder; it needs a QUERY.json per query")
    runs.check_writable(out)
    folder, failures = _bench(source, profiles, out)
    spark = Results.load(folder, read=read_cell)
    cells = twin_cells(spark, profiles)
    name = _name(folder)
    made = runs.create(out, f"validate-{name}", _config(folder, profiles, spark))
    try:
        twin = _play(cells, spark, made / TWIN, workers)
        found = compare(spark, twin, name=name)
        files = _write(found, spark, twin, made)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    _show(found, files, as_json)
    raise_missing(failures, folder)


def _bench(source: str, profiles: Path, out: Path) -> tuple[Path, list[Failure]]:
    """The folder of a bench on Spark, which is run now if a spec was given; what failed."""
    from penstock.bench.cell import settings_of
    from penstock.bench.spark.plan import spark_config
    from penstock.bench.specs.spec import load
    from penstock.bench.twin.profiles import read_profiles
    from penstock.cli.bench_spark import run_spark_plan
    from penstock.comparison.folder import create_folder, is_bench
    from penstock.report import runs

    if not Path(source).is_file():
        folder = runs.find(source, out)
        if not (folder.is_dir() and is_bench(folder)):
            raise InputError(f"no bench at {folder}; give its folder, its id, 'latest' or a spec")
        return folder, []
    plan = load(Path(source))
    settings = settings_of(plan.cells)
    if plan.engine != "spark" or settings is None:
        raise InputError(
            f'{source} has engine = "{plan.engine}"; a twin is compared with engine = "spark"'
        )
    read_profiles(profiles, (cell.query for cell in plan.cells), settings)
    folder = create_folder(plan, out, more=spark_config(plan.cells))
    output.say(f"on Spark first; if it is stopped, go on with it and then: validate {folder}")
    return folder, run_spark_plan(plan, folder)


def _name(folder: Path) -> str:
    from penstock.report import runs

    path = folder / runs.CONFIG
    config = runs.read_config(path) if path.is_file() else {}
    return str(config.get("name", folder.resolve().name))


def _config(folder: Path, profiles: Path, spark: Results) -> dict[str, Any]:
    from penstock import __version__

    return {
        "penstock": __version__,
        "command": "validate",
        "run": str(folder),
        "profiles": str(profiles),
        "finished": spark.done,
    }


def _play(cells: Sequence[Cell], spark: Results, folder: Path, workers: int | None) -> Results:
    """The same runs in the twin."""
    from penstock.comparison.runner import run

    seeds = [s for s in spark.seeds if any(s in spark.seeds_of(cell.key) for cell in cells)]
    total = len(cells) * len(seeds)
    output.say(f"{total} runs in the twin…")
    with output.progress() as bar:
        task = bar.add_task("twin", total=total)
        return run(
            cells,
            seeds,
            folder,
            workers=workers,
            progress=lambda done, _: bar.update(task, completed=done),
        )


def _write(found: Validation, spark: Results, twin: Results, folder: Path) -> dict[str, Path]:
    from penstock.bench.validation import validation_figure
    from penstock.bench.validation.validation_tables import document
    from penstock.history.files import write_text
    from penstock.report import runs
    from penstock.report.table import terminal_text

    picture = validation_figure.draw(found, spark, twin, folder / runs.PICTURE)
    path, tables = folder / DOCUMENT, folder / TABLES
    text = json.dumps(document(found), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")
    write_text(tables, terminal_text(_parts(found)))
    return {"run": folder, "picture": picture, "document": path, "tables": tables}


def _show(found: Validation, files: dict[str, Path], as_json: bool) -> None:
    from penstock.bench.validation.validation_tables import document

    if as_json:
        named = {name: str(path) for name, path in files.items()}
        output.print_json({**document(found), "files": named})
        return
    screen = output.console()
    for part in _parts(found):
        screen.print(part, soft_wrap=isinstance(part, str))
    screen.print()
    output.print_files(files, width=10)
    if not found.complete:
        output.say(f"not complete; go on with: penstock bench --resume {found.folder}")


def _parts(found: Validation) -> Iterator[Table | str]:
    """Tables and lines of a validation, in their order."""
    from penstock.bench.validation.validation_tables import (
        over_table,
        provenance_lines,
        scene_table,
        verdict_lines,
    )
    from penstock.bench.validation.verdicts import verdicts

    for scene in found.scenes:
        for table in (scene_table(scene), over_table(scene)):
            yield from (table, "")
        yield from (*verdict_lines(verdicts([scene])), "")
    if len(found.scenes) > 1:
        yield from ("all together", *verdict_lines(verdicts(found.scenes)), "")
    yield from (*provenance_lines(found), "")
