"""What a session of advice comes to: how often, how far from the present size, what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.batches.snapshot import POOL
from penstock.core.loop import Decision
from penstock.core.model import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Least, mean and most executors; the mean is over the decisions."""

    least: int
    mean: float
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All decisions of one session of advice.

    ticks: decisions made
    sized: those of them that could say a size
    acted: those that would have changed it
    seconds: from the first decision to the end
    present, target: executors that there were and that were advised, at the sized ones
    hours: executor-hours that the advice would have added (negative: saved), each decision held
        until the next one, the last until the end; ``None`` where no time passed between them
    """

    ticks: int
    sized: int
    acted: int
    seconds: float
    present: Range | None
    target: Range | None
    hours: float | None


def summarise(decisions: Sequence[Decision], *, end: float) -> Summary:
    """The figures of a session that ended at ``end`` (on the clock of the snapshots)."""
    sized = [(d, c) for d in decisions if (c := target_of(d)) is not None]
    times = [d.seen.time for d, _ in sized]
    held = [max(0.0, until - t) for t, until in zip(times, [*times[1:], end], strict=False)]
    added = sum((c.slots - c.before) * s for (_, c), s in zip(sized, held, strict=True))
    return Summary(
        ticks=len(decisions),
        sized=len(sized),
        acted=sum(bool(d.changes) for d in decisions),
        seconds=max(0.0, end - decisions[0].seen.time) if decisions else 0.0,
        present=_range([c.before for _, c in sized]),
        target=_range([c.slots for _, c in sized]),
        hours=added / 3600 if sum(held) > 0 else None,
    )


def target_of(decision: Decision) -> Change | None:
    """The size that a decision says; ``None`` if the policy could not size the executors."""
    proposal = decision.proposal
    change = decision.targets.get(POOL)
    if change is None or not (proposal.needs or proposal.pool_needs or decision.changes):
        return None
    return change


def _range(sizes: Sequence[int]) -> Range | None:
    if not sizes:
        return None
    return Range(least=min(sizes), mean=sum(sizes) / len(sizes), most=max(sizes))
