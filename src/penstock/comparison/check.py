"""Whether a cell can run: everything it needs is made once, and nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from penstock.comparison.cell import Cell
from penstock.core.errors import InputError
from penstock.simulator.inflow import offered


class CellError(InputError):
    """What is wrong with a cell; ``about`` says with which part of it."""

    def __init__(self, message: str, about: str) -> None:
        super().__init__(message)
        self.about = about


def check_cell(cell: Cell) -> None:
    """Raise an error that says which part of a cell is wrong, and how."""
    with _about("pipeline"):
        _check_start(cell, cell.start_sizes())
    with _about("policy"):
        cell.create_policy()
    with _about("workload"):
        if not offered(cell.pattern(seed=0), cell.seconds).any():
            raise InputError(
                f"workload {cell.workload} offers no records within {cell.minutes:g} minutes"
            )


def _check_start(cell: Cell, start: Mapping[str, int]) -> None:
    guards = cell.guards
    least, most = min(start.values()), max(start.values())
    if not guards.minimum <= least <= most <= guards.maximum:
        raise InputError(
            f"start = {least if least < guards.minimum else most} slots must lie within the "
            f"guards' limits, {guards.minimum} to {guards.maximum}"
        )
    total = sum(start.values())
    if guards.cap is not None and total > guards.cap:
        raise InputError(
            f"start: {total} slots in {len(start)} pools are more than the guards' cap of "
            f"{guards.cap}; set a smaller start or a higher cap"
        )


@contextmanager
def _about(part: str) -> Iterator[None]:
    try:
        yield
    except (InputError, TypeError, ValueError) as error:
        raise CellError(str(error), part) from None
