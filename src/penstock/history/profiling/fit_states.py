"""How the state of a query grows, saturates and is forgotten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.history.profiling import lines
from penstock.history.profiling.lineup import LEAST_BATCHES, LinedUpBatch, Lineup
from penstock.simulator.microbatch.profile import StateProfile
from penstock.simulator.microbatch.query import grown

ROUNDING = 1.0  # rows; smaller deviations say nothing
LONGEST = 1e4  # seconds; a row that stays for longer is not forgotten
FAR = 20.0  # times the most rows that were seen; a limit further off is none


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStep:
    """One batch: rows before and after, records that it read, seconds since the last commit."""

    before: float
    after: float
    records: float
    seconds: float


def places_of(lineup: Lineup) -> dict[int, tuple[int, ...]]:
    """The stateful operators that each role runs.

    One each where there are as many as stages behind the shuffle; else they share the last one,
    as operators with the same key do. Where only the sum of all is told, one of them has it.
    """
    later = [role for role, source in enumerate(lineup.sources) if source is None]
    operators = range(len(lineup.state))
    if not lineup.state:
        return {}
    if len(lineup.state) > 1 and not any(row.detail for row in lineup.rows):
        # Only their sum is told: it counts for the stage behind a shuffle that reads most.
        read = {role: sum(row.records[role] for row in lineup.rows) for role in later}
        return {max(later, key=lambda role: read[role]): tuple(operators)} if later else {}
    if len(later) == len(lineup.state):
        return {role: (place,) for role, place in zip(later, operators, strict=True)}
    return {len(lineup.names) - 1: tuple(operators)}


def with_state(lineup: Lineup) -> tuple[Lineup, dict[int, StateProfile]]:
    """The batches with the rows of state before each, and the states by role.

    Without those that are not told apart from the state of other stages.
    """
    profiles: dict[int, StateProfile] = {}
    before = [[0.0] * len(lineup.names) for _ in lineup.rows]
    told = [True] * len(lineup.rows)
    for role, operators in places_of(lineup).items():
        alone = len(operators) == len(lineup.state)
        sizes = [_sizes(row, operators, alone=alone) for row in lineup.rows]
        known = [(row, *size) for row, size in zip(lineup.rows, sizes, strict=True) if size]
        if known:
            profiles[role] = _profile(lineup.state[operators[0]], role, known)
        for mine, size in zip(before, sizes, strict=True):
            mine[role] = size[0] if size else 0.0
        if known:
            told = [t and size is not None for t, size in zip(told, sizes, strict=True)]
    rows = [replace(row, state=tuple(b)) for row, b in zip(lineup.rows, before, strict=True)]
    if sum(row.settled and t for row, t in zip(rows, told, strict=True)) >= LEAST_BATCHES:
        # A batch whose state is not known would look like one without any.
        both = zip(rows, told, strict=True)
        rows = [row if t else replace(row, settled=False) for row, t in both]
    return replace(lineup, rows=tuple(rows)), profiles


def _profile(
    operator: str, role: int, known: Sequence[tuple[LinedUpBatch, float, float, float]]
) -> StateProfile:
    steps = [
        StateStep(
            before=before,
            after=after,
            records=row.records[role] * row.times,
            seconds=row.batch.end - row.before.end if row.before else row.batch.duration,
        )
        for row, before, after, _ in known
    ]
    largest = max(after for _, _, after, _ in known)
    bytes_per_row = [size / after for _, _, after, size in known if after > largest / 2]
    rate, most, seconds = growth(steps)
    return StateProfile(
        operator=operator,
        rows_per_record=rate,
        most_rows=most,
        seconds=seconds,
        bytes_per_row=float(np.median(bytes_per_row)) if bytes_per_row else 0.0,
    )


def _sizes(
    row: LinedUpBatch, operators: Sequence[int], *, alone: bool
) -> tuple[float, float, float] | None:
    """Rows before and after a batch, and bytes after it."""
    if row.detail is not None and len(row.detail.state) > max(operators):
        rows = sum(row.detail.state[i][0] for i in operators)
        size = sum(row.detail.state[i][1] for i in operators)
        if row.before_detail is not None:
            before = sum(row.before_detail.state[i][0] for i in operators)
        elif row.first:
            before = 0
        else:
            return None
        return float(before), float(rows), float(size)
    if not alone or (row.before is None and not row.first):
        return None
    before = row.before.state_rows if row.before is not None else 0
    return float(before), float(row.batch.state_rows), float(row.batch.state_bytes)


def growth(steps: Sequence[StateStep]) -> tuple[float, float | None, float | None]:
    """Rows per record, most rows, and seconds until a row is forgotten.

    The simplest of four models that explains the steps: a limit, and forgetting, are only
    believed where they explain clearly more.
    """
    most = max(s.after for s in steps)
    read = sum(s.records for s in steps)
    if most <= 0 or read <= 0:
        return 0.0, None, None
    added = sum(max(0.0, s.after - s.before) for s in steps)
    rate = max(added / read, 1e-9)
    best: tuple[float, float | None, float | None] = (rate, None, None)
    score = math.inf
    for limited, forgetful in ((False, False), (True, False), (False, True), (True, True)):
        found, value = _fitted(steps, rate, most, limited=limited, forgetful=forgetful)
        if value < score - (lines.BELIEVED if math.isfinite(score) else 0.0):
            best, score = found, value
    return best


def _fitted(
    steps: Sequence[StateStep], rate: float, most: float, *, limited: bool, forgetful: bool
) -> tuple[tuple[float, float | None, float | None], float]:
    """The best numbers of one model, and its information criterion."""
    from scipy.optimize import least_squares  # takes a moment to load

    def model(logs: np.ndarray) -> tuple[float, float | None, float | None]:
        numbers = iter(np.exp(logs).tolist())
        return (
            next(numbers),
            next(numbers) if limited else None,
            next(numbers) if forgetful else None,
        )

    def off(logs: np.ndarray) -> np.ndarray:
        r, limit, seconds = model(logs)
        state = StateProfile(operator="", rows_per_record=r, most_rows=limit, seconds=seconds)
        return np.array([grown(state, s.before, r * s.records, s.seconds) - s.after for s in steps])

    low = [rate * 1e-2, *([most * 0.5] if limited else []), *([0.05] if forgetful else [])]
    high = [rate * 1e3, *([most * FAR] if limited else []), *([LONGEST] if forgetful else [])]
    scale = max(ROUNDING, 0.02 * most)
    fits = []
    for wide in (1.1, 4.0) if limited else (1.0,):
        for seconds in (3.0, 60.0) if forgetful else (1.0,):
            begin = [rate * 1.5, *([most * wide] if limited else []),
                     *([seconds] if forgetful else [])]  # fmt: skip
            fits.append(
                least_squares(
                    off,
                    np.log(begin),
                    bounds=(np.log(low), np.log(high)),
                    loss="soft_l1",
                    f_scale=scale,
                    max_nfev=200,
                )
            )
    found = min(fits, key=lambda f: float(f.cost))
    squares = 2.0 * float(found.cost) / len(steps) + ROUNDING**2 / 12.0
    score = len(steps) * math.log(squares) + len(begin) * math.log(len(steps))
    return model(found.x), score
