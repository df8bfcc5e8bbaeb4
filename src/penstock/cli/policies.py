"""``penstock policies``: the auto-scalers, their ideas and their parameters."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from typing import Annotated, Any

import typer

from penstock.cli.output import console, print_json


def policies(
    name: Annotated[
        str | None, typer.Argument(help="Show all about one policy.", show_default=False)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on standard output.")
    ] = False,
) -> None:
    """List the policies with their parameters, or explain one."""
    from penstock.core.errors import unknown
    from penstock.policies import POLICIES

    if name is not None and name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    chosen = {n: _described(kind) for n, kind in POLICIES.items() if name in (None, n)}
    if as_json:
        document = [{"name": n, **about} for n, about in chosen.items()]
        print_json(document[0] if name is not None else document)
    elif name is not None:
        _show_one(name, chosen[name])
    else:
        _show_all(chosen)


def _described(kind: type[Any]) -> dict[str, Any]:
    """The idea is the first line of the policy's file; its rule and symbols are its own text."""
    file_doc = inspect.getdoc(sys.modules[kind.__module__]) or ""
    own_doc = inspect.getdoc(kind) or ""
    idea = (file_doc or own_doc).partition("\n")[0]
    return {
        "idea": re.sub(r"\s*\[[^\]]*\]\s*$", "", idea),
        "parameters": {f.name: _default(f) for f in dataclasses.fields(kind)},
        "text": own_doc,
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _show_all(chosen: dict[str, dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("policy", no_wrap=True, style="bold")
    table.add_column("idea", ratio=3)
    table.add_column("parameters", ratio=2)
    for name, about in chosen.items():
        table.add_row(Text(name), Text(_without_name(about["idea"])), Text(_parameters(about)))
    out = console()
    out.print(table)
    out.print("\nAll about one of them: penstock policies NAME")


def _show_one(name: str, about: dict[str, Any]) -> None:
    from penstock.policies import spark_dra

    out = console()
    out.print(f"{name}: {_without_name(about['idea'])}\n", style="bold")
    out.print(_reflowed(about["text"]))
    if about["parameters"]:
        out.print(f"\nParameters: {_parameters(about)}")
        first = next(iter(about["parameters"]))
        if name == spark_dra.NAME:
            out.print(f"It runs in {spark_dra.RUNS_IN}.")
        else:
            out.print(f"Try: penstock simulate --policy {name} --set {first}=…")


def _reflowed(text: str) -> str:
    """Paragraphs as one line each, so that they wrap once; examples and lists stay as they are."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        kept = paragraph.startswith(">>>") or "\n " in paragraph
        flat = paragraph if kept else " ".join(paragraph.split("\n"))
        paragraphs.append(re.sub(r"(?<=\S) {3,}", "   ", flat))
    return "\n\n".join(paragraphs)


def _without_name(idea: str) -> str:
    """``DS2: size every operator …`` without what the first column says already."""
    head, colon, tail = idea.partition(": ")
    return tail if colon and len(head) < 24 else idea


def _parameters(about: dict[str, Any]) -> str:
    return ", ".join(f"{k}={_value(v)}" for k, v in about["parameters"].items()) or "none"


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
