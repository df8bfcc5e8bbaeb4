"""MEAD+: an outlook by replays, and what response times were then. Beyond [russo21]."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot
from penstock.policies.mead.batched import pool_of, recorded, sinks, under
from penstock.policies.mead.decision import Model, Outcome, attempt
from penstock.policies.mead.demands import Demands, no_demands
from penstock.policies.mead.parameters import LEVELS, WINDOWS, Terms, terms_of
from penstock.policies.mead.response import Load, overloaded, unfit
from penstock.queueing import outlook
from penstock.queueing.batches import BatchService
from penstock.queueing.outlook import Levels
from penstock.queueing.paths import Station

MOST = 20.0  # of measured to expected: more is an accident
PATIENCE = 0.8  # of the target: with so much spent before a batch has ended, full CPU


class Memory(TypedDict):
    """Demands and the outlook; by sink, the mean response time that was expected, fading sums of
    what was expected and of what it took, and how much of the target was spent.
    """

    demands: Demands
    outlook: Levels
    expected: dict[str, float]
    said: dict[str, float]
    took: dict[str, float]
    spent: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeadPlus:
    """R = outlook · f ≤ ``target``, f by what was measured.

    The outlook is the response time under smoothed replays of the newest arrivals through the
    queues (``penstock.queueing.outlook``). f = (Σ measured + target)/(Σ expected + target) ·
    max(1, s): s is the share of the target that was spent, the mean of R/target or, for a
    percentile q, the time above the target over 1 − q. All of it fades with a half-life of
    ``horizon`` seconds. While the measured mean is above the target, no share is lowered on that
    path and the slowest operator on it goes up by a level; to full CPU at once where the records
    of a micro-batch that is under way have spent most of the target. The other parameters are
    those of ``mead``. It decides in a few hundredths of a second, so it can be asked every 5 s.
    """

    single_arrivals: ClassVar[bool] = True

    target: float = 0.3
    percentile: float = 0.0
    levels: str = LEVELS
    windows: str = WINDOWS
    delta: float = 0.05
    service_scv: float = 0.5
    gradual: bool = False
    horizon: float = 1800.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.horizon) and self.horizon > 0.0):
            raise InputError(f"mead+: horizon = {self.horizon} s must be > 0")
        terms_of("mead+", self, self.percentile)

    def start(self, seed: int) -> Memory:
        """Nothing is known yet."""
        return {
            "demands": no_demands(),
            "outlook": {},
            "expected": {},
            "said": {},
            "took": {},
            "spent": {},
        }

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """Shares by the search, more where it is too slow now, or full CPU and why."""
        terms = terms_of("mead+", self, self.percentile)
        learnt = self._learnt(seen, memory)
        levels = self._outlook(seen, terms, memory["outlook"])

        def factor(sink: str) -> float:
            took, said = (learnt[name].get(sink, 0.0) for name in ("took", "said"))
            ratio = (took + self.target) / (said + self.target)
            return min(max(ratio, 1.0 / MOST), MOST) * max(1.0, learnt["spent"].get(sink, 0.0))

        def queues(load: Load, path: tuple[Station, ...], percentile: float) -> float:
            return coming(levels, load, path, percentile) * factor(path[-1].name)

        def batches(load: Load, service: BatchService, percentile: float) -> float:
            return _REPLAYED(load, service, percentile) * factor(seen.pipeline.pools[0])

        model = Model(queues=queues, batches=batches)
        outcome = attempt(terms, model, seen, memory["demands"])
        expected = {
            path[-1]: mean / factor(path[-1])
            for path in (outcome.choice.predicted if outcome.choice is not None else ())
            if math.isfinite(mean := outcome.mean_of(path))
        }
        after: Memory = {
            **learnt,
            "demands": outcome.demands,
            "outlook": levels,
            "expected": expected,
        }
        return raised(terms, seen, outcome), after

    def _learnt(self, seen: Snapshot, memory: Memory) -> _Learnt:
        said, took, spent = dict(memory["said"]), dict(memory["took"]), dict(memory["spent"])
        keep = 0.5 ** (seen.window / self.horizon)
        for name, latency in sinks(seen).items():
            if latency is None:
                continue
            now = latency / self.target
            if self.percentile:
                now = float(now > 1.0) / (1.0 - self.percentile)
            spent[name] = keep * spent.get(name, 0.0) + (1.0 - keep) * now
            expected = memory["expected"].get(name, 0.0)
            if expected > 0.0:
                said[name] = keep * said.get(name, 0.0) + expected
                took[name] = keep * took.get(name, 0.0) + latency
        return {"said": said, "took": took, "spent": spent}

    def _outlook(self, seen: Snapshot, terms: Terms, levels: Levels) -> Levels:
        source = seen.operators.get(seen.pipeline.sources[0])
        arrivals = None if source is None else source.arrivals
        batched = seen.execution == "micro-batch"
        if batched or arrivals is None or unfit(arrivals) is not None:
            return levels
        window = arrivals.last(terms.windows[0])
        new = seen.window / float(window.intervals.mean())
        return outlook.learnt(levels, window, new, self.service_scv)


class _Learnt(TypedDict):
    said: dict[str, float]
    took: dict[str, float]
    spent: dict[str, float]


_REPLAYED = under(recorded)  # a query in micro-batches: the windows as they were


def coming(levels: Levels, load: Load, path: tuple[Station, ...], percentile: float) -> float:
    """The outlook for a path; infinite where records come faster than they can be served."""
    if overloaded(path, load.rates):
        return math.inf
    return outlook.expected(levels, load.windows[0], path, percentile)


def under_way(seen: Snapshot, percentile: float) -> float:
    """Seconds that records of the batch under way have waited already; 0 without batches.

    They came while the batch before it ran: on average half of it ago when it ended, the first of
    them, which a percentile is about, all of it.
    """
    part = 1.0 if percentile else 0.5
    return max(
        (seen.age + part * (query.batch_duration or 0.0) for query in seen.queries.values()),
        default=0.0,
    )


def raised(terms: Terms, seen: Snapshot, outcome: Outcome) -> Proposal:
    """The proposal, where a path is too slow now with at least what it has and a level more."""
    proposal, choice = outcome.proposal, outcome.choice
    if choice is None:
        return proposal
    measured, waited = sinks(seen), under_way(seen, terms.percentile)
    hurry = waited > PATIENCE * terms.target
    needs, words = dict(proposal.pool_needs or proposal.needs), []
    for path in choice.predicted:
        latency = measured.get(path[-1]) or 0.0
        if latency <= terms.target and not hurry:
            continue
        now = {name: seen.pools[pool_of(seen, name)][0].cpu_share for name in path}
        slowest = max(path, key=choice.alone.__getitem__)
        above = [level for level in terms.levels if level > now[slowest]]
        if above:
            now[slowest] = above[-1 if hurry else 0]
        for name in path:
            need = needs[name]
            if (need.cpu_share or 0.0) < now[name]:
                needs[name] = Need(slots=need.slots, cpu_share=now[name])
        if hurry:
            words.append(f"what is under way has waited {waited:.3g} s: full CPU")
        else:
            words.append(f"{path[-1]} took {latency:.3g} s: no less CPU now")
    if not words:
        return proposal
    reason = f"{proposal.reason}; {'; '.join(words)}"
    if proposal.pool_needs:
        return replace(proposal, pool_needs=needs, reason=reason)
    return replace(proposal, needs=needs, reason=reason)
