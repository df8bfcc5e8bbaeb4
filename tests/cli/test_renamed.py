"""Old names of commands and options: they print the new one and go on."""

from __future__ import annotations

import pytest
import typer

from penstock.cli.app import app
from penstock.cli.renamed import COMMANDS, OPTIONS, modernized
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
        assert not set(options) & names


def test_present_names_are_left_alone() -> None:
    arguments = ["run", "job.py", "--policy", "ds2", "--", "kafka", "--slots", "3"]
    assert modernized(arguments) == (arguments, [])
