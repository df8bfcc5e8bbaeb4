"""One decision of MEAD: what is known, the search over CPU shares, and the proposal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.core.errors import InputError
from penstock.core.model import Arrivals, Need, Proposal, Snapshot
from penstock.core.pipeline import Pipeline
from penstock.policies.mead.batched import pool_of, remember_batches, service_of, why_not_batched
from penstock.policies.mead.demands import Demands, demand_seconds, remember_demands, visits
from penstock.policies.mead.parameters import Terms
from penstock.policies.mead.response import Load, unfit
from penstock.queueing import PhaseType
from penstock.queueing.batches import BatchService
from penstock.queueing.paths import Station

Queues = Callable[[Load, tuple[Station, ...], float], float]
"""Seconds for a path of queues: the mean, or a percentile if that is above 0; the worst of the
windows, infinite where there is no steady state."""
Batches = Callable[[Load, BatchService, float], float]
"""The same for a query that runs in micro-batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """How response times are predicted, for either kind of engine."""

    queues: Queues
    batches: Batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A proposal, the demands that were learnt, and the choice behind it, if there was one.

    ``predict`` is the prediction of means that the choice rests on.
    """

    proposal: Proposal
    demands: Demands
    choice: Choice | None = None
    predict: Predict | None = None

    def mean_of(self, path: Path) -> float:
        """The mean response time predicted for a path with the chosen shares."""
        if self.choice is None or self.predict is None:
            return math.inf
        return self.predict(path, self.choice.shares)


def attempt(terms: Terms, model: Model, seen: Snapshot, demands: Demands) -> Outcome:
    """One decision with a performance model."""
    if seen.execution == "micro-batch":
        return _attempt_batched(terms, model.batches, seen, demands)
    demands = remember_demands(seen, demands)
    seconds = demand_seconds(demands)
    source = seen.pipeline.sources[0]
    operators = [name for name in seen.pipeline.order if name not in seen.pipeline.sources]
    arrivals = seen.operators[source].arrivals if source in seen.operators else None
    why = unfit(arrivals)
    missing = [name for name in operators if name not in seconds]
    if why is None and missing:
        why = f"what a record takes at {', '.join(missing)} is not known yet"
    if why is not None or arrivals is None:
        return Outcome(proposal=_full(seen, operators, str(why)), demands=demands)
    load = windows_of(arrivals, terms)
    predict = predictor(terms, model.queues, load, seen, seconds)
    paths = paths_of(seen.pipeline, operators)
    try:
        choice = search(paths, terms.levels, terms.target, terms.delta, predict)
    except InputError as problem:  # a model that refuses must not save CPU
        return Outcome(proposal=_full(seen, operators, str(problem)), demands=demands)
    means = predictor(replace(terms, percentile=0.0), model.queues, load, seen, seconds)
    proposal = _proposal(terms, seen, choice)
    return Outcome(proposal=proposal, demands=demands, choice=choice, predict=means)


def windows_of(arrivals: Arrivals, terms: Terms) -> Load:
    """The newest arrivals of each size; what is not there yet is not waited for."""
    windows = dict.fromkeys(arrivals.last(size) for size in terms.windows)
    return Load(tuple(windows), terms.maps)


def predictor(
    terms: Terms, model: Queues, load: Load, seen: Snapshot, demands: Mapping[str, float]
) -> Predict:
    """Response times of paths by a model."""
    coming = visits(seen)
    services: dict[tuple[str, float], Station] = {}
    known: dict[tuple[Station, ...], float] = {}  # the search asks for many of them twice

    def station(name: str, share: float) -> Station:
        found = services.get((name, share))
        if found is None:
            service = PhaseType.of(mean=demands[name] / share, scv=terms.service_scv)
            slots = max(1.0, seen.operators[name].parallelism)
            found = Station(name=name, service=service, visits=coming[name] / slots)
            services[name, share] = found
        return found

    def predict(path: Path, shares: Mapping[str, float]) -> float:
        stations = tuple(station(name, shares[name]) for name in path)
        if stations not in known:
            known[stations] = model(load, stations, terms.percentile)
        return known[stations]

    return predict


def _attempt_batched(terms: Terms, model: Batches, seen: Snapshot, demands: Demands) -> Outcome:
    """The same for a query in micro-batches: its executors are one station, named as their pool."""
    demands = remember_batches(seen, demands)
    pool = seen.pipeline.pools[0]
    arrivals = next((o.arrivals for o in seen.operators.values() if o.arrivals is not None), None)
    service = service_of(seen, demands, arrivals.each) if arrivals is not None else None
    why = why_not_batched(seen) or unfit(arrivals)
    if why is None and service is None:
        why = "what a batch takes is not known yet"
    if why is not None or arrivals is None or service is None:
        return Outcome(proposal=_full_pools(seen, str(why)), demands=demands)
    load, at_full = windows_of(arrivals, terms), service

    def predict_with(percentile: float) -> Predict:
        def predict(path: Path, shares: Mapping[str, float]) -> float:
            return model(load, at_full.faster(shares[pool]), percentile)

        return predict

    predict = predict_with(terms.percentile)
    choice = search([(pool,)], terms.levels, terms.target, terms.delta, predict)
    proposal = _proposal(terms, seen, choice)
    means = predict_with(0.0)
    return Outcome(proposal=proposal, demands=demands, choice=choice, predict=means)


def _full_pools(seen: Snapshot, why: str) -> Proposal:
    needs = {
        pool: Need(slots=float(len(slots)), cpu_share=1.0) for pool, slots in seen.pools.items()
    }
    return Proposal(pool_needs=needs, reason=f"full CPU: {why}")


def _full(seen: Snapshot, operators: list[str], why: str) -> Proposal:
    needs = {
        name: Need(slots=seen.operators[name].parallelism, cpu_share=1.0)
        for name in operators
        if name in seen.operators
    }
    return Proposal(needs=needs, reason=f"full CPU: {why}")


def _proposal(terms: Terms, seen: Snapshot, choice: Choice) -> Proposal:
    path, worst = max(choice.predicted.items(), key=lambda item: item[1])
    what = f"p{100 * terms.percentile:g}" if terms.percentile else "mean"
    reason = f"{what} response of {' → '.join(path)} {worst:.3g} s, target {terms.target:g} s"
    needs = {}
    for name, share in choice.shares.items():
        now = seen.pools[pool_of(seen, name)][0].cpu_share
        below = [level for level in terms.levels if level < now]
        if terms.gradual and share < now and below:
            share = max(share, below[-1])
        needs[name] = Need(slots=_slots(seen, name), cpu_share=share)
    if worst > terms.target and all(choice.shares[n] == terms.levels[-1] for n in path):
        slowest = max(path, key=lambda name: choice.alone[name])
        needs[slowest] = Need(slots=needs[slowest].slots + 1.0, cpu_share=terms.levels[-1])
        reason += f"; full CPU is not enough: one slot more for {slowest}"
    if seen.execution == "micro-batch":
        return Proposal(pool_needs=needs, reason=reason)
    return Proposal(needs=needs, reason=reason)


def _slots(seen: Snapshot, name: str) -> float:
    operator = seen.operators.get(name)
    return float(len(seen.pools[name])) if operator is None else operator.parallelism


Path = tuple[str, ...]
Shares = dict[str, float]
Predict = Callable[[Path, Mapping[str, float]], float]
"""Response time of a path with these CPU shares; infinite where there is no steady state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Shares, and the response times predicted with them: of each path, of each operator."""

    shares: Shares
    predicted: Mapping[Path, float]
    alone: Mapping[str, float]


def paths_of(pipeline: Pipeline, operators: Sequence[str]) -> tuple[Path, ...]:
    """From a source to a sink, every way there is; of those only the named operators."""
    found: list[Path] = []

    def walk(path: Path) -> None:
        below = pipeline.downstream[path[-1]]
        for name in below:
            walk((*path, name))
        if not below:
            found.append(tuple(name for name in path if name in operators))

    for source in pipeline.sources:
        walk((source,))
    return tuple(dict.fromkeys(path for path in found if path))


def search(
    paths: Sequence[Path],
    levels: Sequence[float],
    target: float,
    delta: float,
    predict: Predict,
) -> Choice:
    """All operators begin at the lowest level; the slowest of a path that is too slow goes up.

    A step that gains less than ``delta`` of the target, and does not reach it, is taken back and
    the path is left: more CPU for operators that have little to do would not help it.
    """
    at = {name: 0 for path in paths for name in path}

    def shares() -> Shares:
        return {name: levels[level] for name, level in at.items()}

    for path in paths:
        response = predict(path, shares())
        while response > target and any(at[name] < len(levels) - 1 for name in path):
            now = shares()
            slowest = max(
                (name for name in path if at[name] < len(levels) - 1),
                key=lambda name: predict((name,), now),
            )
            at[slowest] += 1
            after = predict(path, shares())
            if after > target and math.isfinite(response) and response - after < delta * target:
                at[slowest] -= 1
                break
            response = after
    final = shares()
    return Choice(
        shares=final,
        predicted={path: predict(path, final) for path in paths},
        alone={name: predict((name,), final) for name in final},
    )
