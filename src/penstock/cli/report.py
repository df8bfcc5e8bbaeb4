"""``penstock report``: rebuild picture and page of a run, and print its figures."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import AsJson
from penstock.cli.output import print_json, say, show_finished


def report(
    run: Annotated[
        str, typer.Argument(help="The folder of a run, its id under runs/, or 'latest'.")
    ] = "latest",
    as_json: AsJson = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a web browser.")
    ] = False,
) -> None:
    """Rebuild the picture and the page of a run, and print its figures."""
    from penstock.comparison.folder import is_bench
    from penstock.report import runs
    from penstock.report.build import finish, finished_document

    folder = runs.find(run)
    if is_bench(folder):
        from penstock.cli.bench import report_bench

        page = report_bench(folder, as_json=as_json)
    else:
        done = finish(folder, latest=False)
        page = done.page
        if as_json:
            print_json(finished_document(done))
        else:
            show_finished(done)
    if open_page:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            say(f"no web browser found; open {page} yourself")
