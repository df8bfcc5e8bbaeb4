"""``penstock policies``: the auto-scalers, their ideas and their parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson
from penstock.cli.output import console, print_json

if TYPE_CHECKING:
    from penstock.policies import Registered


def policies(
    name: Annotated[
        str | None, typer.Argument(help="Show all about one policy.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the policies with their parameters, or explain one."""
    from penstock.core.errors import unknown
    from penstock.policies import POLICIES

    if name is not None and name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    chosen = {name: _described(POLICIES[name])} if name is not None else _all_described()
    if as_json:
        document = [{"name": n, **about} for n, about in chosen.items()]
        print_json(document[0] if name is not None else document)
    elif name is not None:
        _show_one(name, chosen[name])
    else:
        _show_all(chosen)


def _all_described() -> dict[str, dict[str, Any]]:
    """Every policy; of one whose extra is not installed, how to get that."""
    from penstock.core.errors import MissingError
    from penstock.policies import POLICIES

    found = {}
    for name, policy in POLICIES.items():
        try:
            found[name] = _described(policy)
        except MissingError as error:
            needs = str(error).removeprefix(f"policy {name} ")
            found[name] = {"idea": needs, "parameters": {}, "text": str(error)}
    return found


def _described(policy: Registered) -> dict[str, Any]:
    """Its idea, its parameters with their defaults, and its rule and symbols in its own words."""
    from penstock.policies import parameters_of

    return {
        "idea": re.sub(r"\s*\[[^\]]*\]\s*$", "", policy.idea),
        "parameters": parameters_of(policy()),
        "text": policy.text,
    }


def _show_all(chosen: dict[str, dict[str, Any]]) -> None:
    from rich.text import Text

    from penstock.report.table import plain_table

    table = plain_table()
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
