"""``penstock report``: picture and page of a run or a journal, and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import AsJson
from penstock.cli.output import print_json, say, show_finished
from penstock.core.errors import InputError


def report(
    run: Annotated[
        str,
        typer.Argument(help="A journal, the folder of a run, its id under runs/, or 'latest'."),
    ] = "latest",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for picture and page.", show_default="beside what they show"),
    ] = None,
    as_json: AsJson = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a web browser.")
    ] = False,
) -> None:
    """Draw a run or any journal, also one that is being written, and print its figures.

    A journal's picture and page lie beside it: decisions.report.png and
    decisions.report.html for decisions.jsonl.
    """
    from penstock.comparison.folder import is_bench
    from penstock.report import runs
    from penstock.report.build import finish, finish_journal, finished_document

    found = runs.find(run)
    if is_bench(found):
        from penstock.cli.bench import report_bench

        if runs.read_config(found / runs.CONFIG).get("command") == "replay":
            raise InputError(
                f"{found} is a replay: its page {found / runs.PAGE} is there already; play it "
                "again with penstock replay"
            )
        if out is not None:
            raise InputError(f"{found} is a bench, whose report lies in it: leave --out away")
        page = report_bench(found, as_json=as_json)
    else:
        alone = found.is_file()
        done = finish_journal(found, out=out) if alone else finish(found, latest=False, out=out)
        page = done.page
        if as_json:
            print_json(finished_document(done))
        else:
            show_finished(done)
    if open_page:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            say(f"no web browser found; open {page} yourself")
