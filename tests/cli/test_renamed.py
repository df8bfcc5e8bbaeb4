"""Old names of commands and options: they print the new one and go on."""

from __future__ import annotations

import pytest
import typer

from penstock.cli.app import app
from penstock.cli.renamed import COMMANDS, ONLY, OPTIONS, modernized
from tests.fakes.shell import Shell


@pytest.mark.parametrize("old", COMMANDS)
def test_an_old_command_names_the_new_one_and_runs(shell: Shell, old: str) -> None:
    before, now = shell(old, "--help"), shell("lab", old, "--help")
    assert before.code == now.code == 0
    assert before.out == now.out
    assert f"penstock lab {old}" in before.err and not now.err


def test_every_new_name_exists() -> None:
    root = typer.main.get_command(app)
    for command, options in OPTIONS.items():
        found = root
        for word in command.split():
            found = found.commands[word]  # type: ignore[attr-defined]
        names = {name for parameter in found.params for name in parameter.opts}
        assert set(options.values()) <= names
        assert {old for old in options if (command, old) not in ONLY}.isdisjoint(names)


@pytest.mark.parametrize("given", [["--profile", "live"], ["--profile=restart"]])
def test_an_old_option_whose_name_is_used_again_goes_by_its_values(given: list[str]) -> None:
    new, said = modernized(["compare", *given])
    assert new[1].startswith("--rescale") and said == ["--profile is called --rescale now"]
    assert modernized(["compare", "--profile", "mine.json"])[1] == []


def test_present_names_are_left_alone() -> None:
    arguments = ["run", "job.py", "--policy", "ds2", "--", "kafka", "--slots", "3"]
    assert modernized(arguments) == (arguments, [])
