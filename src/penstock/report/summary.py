"""The figures of a run, from its journal alone: simulated or real, complete or not.

Everything is weighted by time: a tick counts for the seconds since the tick before. What was not
measured does not count; a figure that was never measured is ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.guards import Guards
from penstock.core.model import Rescale
from penstock.core.ports import figures_of
from penstock.history.journal import Entry, Header
from penstock.policies import POLICIES, create
from penstock.report.series import Tick, pools_of, ticks_of

KEPT_UP = 0.95  # of the offered rate
NOTHING_WAITS = 1.0  # seconds of input


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a quantity was distributed over the time in which it was measured."""

    mean: float
    p95: float
    maximum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run did and what it cost.

    ``offered``, ``processed`` records · ``kept_up`` share of the time in which throughput was at
    least 95 % of the load or less than a second of input waited (where the throughput was not
    measured: the lag did not grow) · ``slots_*`` over all pools ·
    ``advised_slots`` mean of what the decisions asked for, done or not · ``slot_seconds`` paid
    for · ``peak_saving`` slot-seconds saved against a cluster that always has ``slots_max``, the
    largest size of this run · ``limit_saving`` the same against the largest size that the guards
    allow · ``actions`` decisions that were applied · ``scale_ups``, ``scale_downs`` pools grown
    and shrunk by them · ``advices`` decisions that asked for something new and were not applied ·
    ``lag`` in records · ``latency_p99`` of the records of each tick, ``skew`` of partitions and
    ``state_bytes``: on Spark, of the slowest, the most uneven and all queries · ``rescales`` what
    each action cost, as far as it was measured · ``figures`` what the policy kept of itself, such
    as its forecast error.
    """

    policy: str
    mode: str
    ticks: int
    duration: float
    offered: float | None
    processed: float | None
    kept_up: float | None
    lag: Spread | None
    lag_seconds: Spread | None
    latency: Spread | None
    slots_mean: float
    slots_min: int
    slots_max: int
    slots_limit: int
    advised_slots: float | None
    slot_seconds: float
    peak_saving: float
    limit_saving: float
    actions: int
    scale_ups: int
    scale_downs: int
    advices: int
    latency_p99: Spread | None = None
    skew: Spread | None = None
    state_bytes: Spread | None = None
    rescales: tuple[Rescale, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def slot_hours(self) -> float:
        """Slot-hours paid for."""
        return self.slot_seconds / 3600

    @property
    def peak_saving_share(self) -> float | None:
        """``peak_saving`` as a share of what the larger cluster would have cost."""
        return _share(self.peak_saving, self.slot_seconds)

    @property
    def limit_saving_share(self) -> float | None:
        """``limit_saving`` as a share of what the larger cluster would have cost."""
        return _share(self.limit_saving, self.slot_seconds)


def summarize(header: Header, entries: Sequence[Entry]) -> Summary:
    """The figures of a journal; one without a usable tick gives zeros and ``None``."""
    ticks = ticks_of(entries)
    duration = sum(t.span for t in ticks)
    slot_seconds = sum(t.total * t.span for t in ticks)
    peak = max((t.total for t in ticks), default=0)
    limit = slots_limit(header.guards, len(pools_of(ticks)))
    advised = _spread(ticks, lambda t: t.target_total)
    changes = [c for t in ticks if t.decision.applied for c in t.decision.changes.values()]
    return Summary(
        policy=header.policy,
        mode=header.mode,
        ticks=len(ticks),
        duration=duration,
        offered=_records(ticks, lambda t: t.offered),
        processed=_records(ticks, lambda t: t.processed),
        kept_up=_kept_up(ticks),
        lag=_spread(ticks, lambda t: t.lag),
        lag_seconds=_spread(ticks, lambda t: t.lag_seconds),
        latency=_spread(ticks, lambda t: t.latency),
        slots_mean=slot_seconds / duration if duration else 0.0,
        slots_min=min((t.total for t in ticks), default=0),
        slots_max=peak,
        slots_limit=limit,
        advised_slots=advised.mean if advised else None,
        slot_seconds=slot_seconds,
        peak_saving=peak * duration - slot_seconds,
        limit_saving=limit * duration - slot_seconds,
        actions=sum(t.decision.applied for t in ticks),
        scale_ups=sum(c.slots > c.before for c in changes),
        scale_downs=sum(c.slots < c.before for c in changes),
        advices=sum(t.news and not t.decision.applied for t in ticks),
        latency_p99=_spread(ticks, lambda t: t.latency_p99),
        skew=_spread(ticks, lambda t: t.skew),
        state_bytes=_spread(ticks, lambda t: t.state_bytes),
        rescales=_rescales(entries),
        figures=_figures(header, entries),
    )


def slots_limit(guards: Guards, pools: int) -> int:
    """The most slots that the guards allow all pools together."""
    together = guards.maximum * pools
    return together if guards.cap is None else min(together, guards.cap)


def _share(saved: float, paid: float) -> float | None:
    return saved / (saved + paid) if saved + paid else None


def _rescales(entries: Sequence[Entry]) -> tuple[Rescale, ...]:
    """Each action once; later snapshots know more of it than earlier ones."""
    known: dict[tuple[float, str], Rescale] = {}
    for entry in entries:
        for r in entry.decision.seen.rescales:
            known[r.time, r.pool] = r
    return tuple(sorted(known.values(), key=lambda r: (r.time, r.pool)))


def _figures(header: Header, entries: Sequence[Entry]) -> Mapping[str, float]:
    """By the memory after the last tick; a policy that is not registered is not asked."""
    if not entries or header.policy not in POLICIES:
        return {}
    policy = create(header.policy, header.parameters)
    return dict(figures_of(policy, entries[-1].state.memory))


def _records(ticks: Sequence[Tick], rate: Callable[[Tick], float | None]) -> float | None:
    parts = [value * t.span for t in ticks if (value := rate(t)) is not None]
    return sum(parts) if parts else None


def _kept_up(ticks: Sequence[Tick]) -> float | None:
    known = kept = 0.0
    lag_before: float | None = None
    for t in ticks:
        verdict = _keeps_up(t, lag_before)
        if verdict is not None:
            known += t.span
            kept += t.span * verdict
        lag_before = t.lag
    return kept / known if known else None


def _keeps_up(t: Tick, lag_before: float | None) -> bool | None:
    """By the lag if no more waits than for the next batch, by the rates, or by its growth."""
    if t.lag_seconds is not None and t.lag_seconds < max(NOTHING_WAITS, _cycle(t)):
        return True
    if t.offered is not None and t.processed is not None:
        return t.processed >= KEPT_UP * t.offered
    if t.lag is not None and lag_before is not None:
        return t.lag <= lag_before
    return None


def _cycle(t: Tick) -> float:
    """Seconds that a record waits for its batch and in it where nothing is behind."""
    queries = t.decision.seen.queries.values()
    return max(((q.batch_interval or 0.0) + (q.batch_duration or 0.0) for q in queries), default=0)


def _spread(ticks: Sequence[Tick], of: Callable[[Tick], float | None]) -> Spread | None:
    known = sorted((value, t.span) for t in ticks if (value := of(t)) is not None)
    total = sum(span for _, span in known)
    if not total:
        return None
    below = 0.0
    p95 = known[-1][0]
    for value, span in known:
        below += span
        if below >= 0.95 * total:
            p95 = value
            break
    mean = sum(value * span for value, span in known) / total
    return Spread(mean=mean, p95=p95, maximum=known[-1][0])
