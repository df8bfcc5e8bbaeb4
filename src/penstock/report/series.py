"""The decisions of a run as time series: what every figure, picture and page is made from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.loop import Decision
from penstock.core.model import Change, OperatorSeen, QuerySeen, Snapshot, lag_seconds
from penstock.history.journal import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One decision, in the terms of a report.

    ``time`` seconds since the start of the run · ``span`` seconds it stands for, back to the tick
    before · ``offered`` and ``processed`` records/s, summed over the sources · ``lag`` records
    waiting, summed over the sources · ``lag_seconds`` the largest of the sources · ``latency``
    the largest of the operators · ``latency_p99`` and ``skew`` the largest of the queries,
    ``state_bytes`` their sum, where the engine runs queries · ``slots`` by pool · ``targets`` by
    pool, empty when nothing could be decided · ``news`` whether it changed something, or advised
    what the tick before had not.
    """

    time: float
    span: float
    decision: Decision
    offered: float | None
    processed: float | None
    lag: float | None
    lag_seconds: float | None
    latency: float | None
    slots: Mapping[str, int]
    targets: Mapping[str, Change]
    news: bool
    latency_p99: float | None = None
    skew: float | None = None
    state_bytes: float | None = None

    @property
    def total(self) -> int:
        """Slots of all pools."""
        return sum(self.slots.values())

    @property
    def target_total(self) -> int | None:
        """Slots that all pools together should have."""
        return sum(c.slots for c in self.targets.values()) if self.targets else None

    @property
    def raw_total(self) -> float | None:
        """The same before rounding and guards."""
        return sum(c.raw for c in self.targets.values()) if self.targets else None

    @property
    def growth(self) -> int:
        """Slots that its changes add; negative where they remove some."""
        return sum(c.slots - c.before for c in self.decision.changes.values())


def ticks_of(entries: Sequence[Entry]) -> list[Tick]:
    """The ticks of a journal in order; those whose time did not advance are left out.

    Rates are averages over the time before a snapshot, so a tick stands for the time since the
    one before it, and the first one for its window.
    """
    ticks: list[Tick] = []
    start = last = 0.0
    advised: dict[str, int] = {}
    for entry in entries:
        decision = entry.decision
        seen = decision.seen
        if not math.isfinite(seen.time):
            continue
        if not ticks:
            span = seen.window if math.isfinite(seen.window) and seen.window > 0 else 0.0
            start = seen.time - span
        elif seen.time > last:
            span = seen.time - last
        else:
            continue
        last = seen.time
        wanted = {pool: c.slots for pool, c in decision.changes.items()}
        ticks.append(
            Tick(
                time=seen.time - start,
                span=span,
                decision=decision,
                offered=_over_sources(seen, "offered_rate"),
                processed=_over_sources(seen, "arrival_rate"),
                lag=_over_sources(seen, "lag"),
                lag_seconds=lag_seconds(seen),
                latency=max(_measured(seen.operators.values(), "latency"), default=None),
                slots={pool: seen.slots(pool) for pool in seen.pipeline.pools},
                targets=decision.targets,
                news=decision.applied or bool(wanted and wanted != advised),
                latency_p99=max(_measured(seen.queries.values(), "latency_p99"), default=None),
                skew=max(_measured(seen.queries.values(), "skew"), default=None),
                state_bytes=sum(_measured(seen.queries.values(), "state_bytes")) or None,
            )
        )
        advised = wanted
    return ticks


def pools_of(ticks: Sequence[Tick]) -> tuple[str, ...]:
    """Every pool that appears, in order."""
    return tuple(dict.fromkeys(pool for t in ticks for pool in t.slots))


def sizes(tick: Tick) -> str:
    """What a tick does to each pool: ``map 5→8, sink 4``."""
    changes = tick.decision.changes
    parts = []
    for pool, slots in tick.slots.items():
        change = changes.get(pool)
        if change is None:
            parts.append(f"{pool} {slots}")
        elif change.slots != change.before:
            parts.append(f"{pool} {change.before}→{change.slots}")
        else:
            share = "" if change.cpu_share is None else f" at {change.cpu_share:.2f} CPU"
            parts.append(f"{pool} {change.slots}{share}")
    return ", ".join(parts)


def view_top(ticks: Sequence[Tick], limit: int) -> float:
    """The top of a chart of slots: all that was used or wanted, and the limit if it is near."""
    used = max((max(t.total, t.target_total or 0) for t in ticks), default=1)
    wanted = max((t.raw_total or 0.0 for t in ticks), default=1.0)
    top = max(used, min(wanted, 1.5 * used), 1)
    return 1.15 * (limit if top < limit <= 1.5 * top else top)


def guards_of(decision: Decision) -> list[str]:
    """What each guard did, in a sentence; several pools with the same sentence share it."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for e in decision.effects:
        step = f"{e.pool} {e.before:g}→{e.after:g}"
        by_reason.setdefault((e.guard, e.why), []).append(step)
    return [f"{guard} {', '.join(steps)}: {why}" for (guard, why), steps in by_reason.items()]


def _over_sources(seen: Snapshot, field: str) -> float | None:
    """The sum over the sources; ``None`` unless every one of them was measured."""
    sources = seen.pipeline.sources
    values = _measured((seen.operators[s] for s in sources if s in seen.operators), field)
    return sum(values) if len(values) == len(sources) else None


def _measured(seen: Iterable[OperatorSeen | QuerySeen], field: str) -> list[float]:
    values = (getattr(o, field) for o in seen)
    return [v for v in values if v is not None and math.isfinite(v)]
