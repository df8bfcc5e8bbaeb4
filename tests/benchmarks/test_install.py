"""How the weight of an installation is judged; measuring it takes half a minute."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from benchmarks.install import COMMANDS, HEAVY, Figure, verdict
from penstock.core.errors import EXTRAS

FIGURES = [
    Figure(what="packages", value=15, most=15),
    Figure(what="installed", value=104.6, most=110.0, unit="MB"),
]


@pytest.mark.parametrize(
    ("figures", "faults", "code"),
    [
        (FIGURES, [], 0),
        ([*FIGURES, Figure(what="modules of ours", value=76, most=75)], [], 1),
        (FIGURES, ["scipy is loaded"], 1),
    ],
)
def test_a_missed_budget_or_a_fault_fails(
    figures: list[Figure], faults: list[str], code: int
) -> None:
    console = Console(file=StringIO(), width=80)
    assert verdict(figures, faults, console) == code


def test_it_says_what_was_measured_and_what_was_missed() -> None:
    console = Console(file=StringIO(), width=80, record=True)
    verdict([*FIGURES, Figure(what="import", value=0.52, most=0.5, unit="s")], ["a [b]"], console)
    said = console.export_text()
    assert "105 MB" in said and "110 MB" in said
    assert "missed: import" in said and "missed: a [b]" in said


def test_what_must_not_come_along_is_in_an_extra() -> None:
    assert set(HEAVY) <= set(EXTRAS)
    assert {extra.partition("]")[0] for extra in COMMANDS.values() if extra} <= {
        "penstock[", *(f"penstock[{extra}" for extra in EXTRAS.values())
    }  # fmt: skip
