"""One cell of a comparison: a policy on a simulated query under a workload."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from penstock.comparison import oracle
from penstock.comparison.recording import Recording, Watched
from penstock.comparison.scores import Scores, scores_of
from penstock.comparison.trace import Trace, trace_of
from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.ports import Policy, figures_of
from penstock.history.journal import Header
from penstock.policies import create as create_policy
from penstock.policies import parameters_of, spark_dra
from penstock.policies.static import Static
from penstock.simulator import PROFILES, FluidEngine, FluidSpec, queries
from penstock.simulator.queries import Query
from penstock.workloads import patterns
from penstock.workloads.pattern import per_second
from penstock.workloads.patterns import PATTERNS, Pattern
from penstock.workloads.trace import SHIPPED

THESIS_GUARDS = Guards(minimum=1, maximum=80, cap=80, step_up=15, cool_down=300.0, sleep=True)
"""Exactly the limits of the thesis's runs; its loop sleeps after an action. [kanis23, 6.6]"""

LONGEST = 100 * 24 * 60.0  # minutes
_FIXED = {"pipeline": "query", "start": "start", "profile": "profile"}  # other keys set these


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is run; with a seed it says everything about a run.

    key: its name, safe in a path and unique within an experiment
    query, workload, policy: by name; their parameters are those that differ from the default
    guards: the limits that hold whatever the policy says
    profile: what a change of size costs, ``restart`` or ``live``
    minutes: simulated time
    period: seconds between decisions
    start: slots of each pool at the beginning, the query's own if left out
    shared: whether all operators share one pool, as in Flink's reactive mode
    spec: fields of ``FluidSpec`` to override; tables are merged
    slo: seconds of queue latency beyond which a second counts as late
    price, late_price: of a slot for an hour, and of an hour that is late; left out, cost is told in
        what the oracle pays, and an hour late costs ten times as much as an hour of the oracle
    label: how it is called in tables, the policy with its parameters if left out
    own: the policy itself, where it is a user's own and has no name to be made by; not written
    """

    ENGINE: ClassVar[str] = "simulated"

    key: str
    query: str
    workload: str
    policy: str
    workload_parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    policy_parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    guards: Guards = THESIS_GUARDS
    profile: str = "restart"
    minutes: float = 140.0
    period: float = 15.0
    start: int | None = None
    shared: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict, hash=False)
    slo: float = 60.0
    price: float | None = None
    late_price: float | None = None
    label: str = ""
    own: Policy | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", self.key):
            raise InputError(f"the key {self.key!r} of a cell must be safe as a file name")
        if not (math.isfinite(self.minutes) and 0 < self.minutes <= LONGEST):
            raise InputError(
                f"minutes = {self.minutes} must be above 0 and at most {LONGEST:.0f} (100 days)"
            )
        if not 1 <= self.period <= self.seconds:
            raise InputError(
                f"period = {self.period} s must be at least 1 and at most the {self.seconds} s "
                "simulated"
            )
        if self.profile not in PROFILES:
            raise unknown("profile", self.profile, PROFILES)
        if self.start is not None and self.start < 1:
            raise InputError(f"start = {self.start} must be ≥ 1 slots, or left out")
        if not (math.isfinite(self.slo) and self.slo >= 0):
            raise InputError(f"slo = {self.slo} must be a finite number of seconds ≥ 0")
        for name in ("price", "late_price"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} = {value} must be a finite number ≥ 0, or left out")
        if self.late_price is not None and self.price is None:
            raise InputError(f"late_price = {self.late_price} needs a price of a slot beside it")

    @property
    def engine(self) -> str:
        """The name of what it runs on."""
        return self.ENGINE

    @property
    def allocated(self) -> bool:
        """Whether Spark's own allocation sizes the pool; then the loop only looks."""
        return self.policy == spark_dra.NAME

    @property
    def slow(self) -> bool:
        """Whether a run takes a second rather than milliseconds: worth a process of its own."""
        return False

    @property
    def seconds(self) -> int:
        """The simulated time in seconds."""
        return max(1, round(self.minutes * 60))

    @property
    def ticks(self) -> int:
        """The number of decisions in a run."""
        return int(self.seconds / self.period + 1e-9)

    @property
    def scene(self) -> str:
        """All but the policy and its guards, as text: cells of one scene can be compared."""
        document = self.to_dict()
        for name in ("key", "policy", "policy_parameters", "guards", "label"):
            document.pop(name, None)
        return json.dumps(document, sort_keys=True)

    def to_dict(self) -> dict[str, Any]:
        """A plain JSON value; fields that hold their default are left out, guards are whole."""
        document: dict[str, Any] = to_json(dataclasses.replace(self, own=None))
        return document | {"guards": to_json(self.guards)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Cell:
        """The cell that ``to_dict`` wrote."""
        return from_json(cls, document)

    def fluid_spec(self) -> FluidSpec:
        """The simulated pipeline."""
        query = queries.create(self.query)
        spec = query.shared() if self.shared else query.spec
        changes: dict[str, Any] = {}
        if self.start is not None or self.fixed:
            changes["start"] = {
                pool: self.fixed.get(pool, self.start or size) for pool, size in spec.start.items()
            }
        if spec.profile.name != self.profile:  # a query may come with a variant of its own
            changes["profile"] = PROFILES[self.profile]
        known = {f.name for f in dataclasses.fields(spec) if f.init} - set(_FIXED)
        for name, value in self.spec.items():
            if name in _FIXED:
                raise InputError(f"spec.{name} cannot be set here; use the key `{_FIXED[name]}`")
            if name not in known:
                raise unknown("key of spec", name, known)
            before = getattr(spec, name)
            merged = isinstance(before, Mapping) and isinstance(value, Mapping)
            changes[name] = {**before, **value} if merged else value
        try:
            return dataclasses.replace(spec, **changes) if changes else spec
        except TypeError as error:
            raise InputError(f"spec: {error}") from None

    @property
    def fixed(self) -> Mapping[str, int]:
        """The sizes of pools that a static policy was given by name."""
        if self.policy != "static":
            return {}
        return Static(pools=str(self.policy_parameters.get("pools", ""))).sizes

    def start_sizes(self) -> Mapping[str, int]:
        """Slots of each pool at the beginning."""
        return self.fluid_spec().start

    def peak_sizes(self, seed: int) -> Mapping[str, int]:
        """The fewest slots of each pool that cover the highest rate of the load."""
        spec = self.fluid_spec()
        rates = per_second(self.pattern(seed), self.seconds)
        demand = oracle.demand_for(spec, rates[np.argmax(rates)][None])
        return {pool: int(slots[0]) for pool, slots in demand.items()}

    def pattern(self, seed: int) -> Pattern:
        """The offered load; the run's seed is the workload's, so policies see the same load."""
        query = queries.create(self.query)
        given = self.workload_parameters
        parameters = workload_parameters(self.workload, query, given)
        return patterns.create(self.workload, parameters, seed=seed)

    def create_policy(self) -> Policy:
        """The auto-scaler with its parameters."""
        if self.own is not None:
            return self.own
        policy = create_policy(self.policy, self.policy_parameters)
        if self.allocated:
            raise spark_dra.refused("in a simulation")
        return policy

    def header(self, policy: Policy, seed: int) -> Header:
        """The first line of a run's journal."""
        return Header(
            policy=self.policy,
            parameters=parameters_of(policy),
            guards=self.guards,
            mode="advise" if self.allocated else "act",
            seed=seed,
            period=self.period,
        )

    def described(self) -> str:
        """How it runs, for the subtitle of a report."""
        return self.ENGINE

    def remarks(self) -> tuple[str, ...]:
        """What a reader of its scores has to know, one line each."""
        return ()

    def run(self, seed: int, *, journal: Path | None = None, trace: bool = False) -> CellRun:
        """Run it once: what it scored.

        journal: where to write every decision down
        trace: whether to keep what the run looked like over time

        The same cell and seed give the same result, in whatever process and order.
        """
        spec, pattern, policy = self.fluid_spec(), self.pattern(seed), self.create_policy()
        engine = FluidEngine(spec, pattern, seconds=self.seconds, seed=seed)
        watched = Watched(policy)
        recording = Recording(journal, self.header(policy, seed))
        loop = Loop(engine, watched, self.guards, mode="act", seed=seed, record=recording)
        try:
            loop.run(period=self.period, ticks=self.ticks)
            engine.advance(self.seconds - self.ticks * self.period)  # a rest without a decision
        finally:
            recording.close()
        watched.check(f"{self.key}, seed {seed}")
        recording.keep()
        actions, figures = recording.actions, figures_of(policy, loop.state.memory)
        demand = oracle.demand(spec, engine.series)
        stages = getattr(pattern, "stages", ())
        scores = scores_of(engine, demand, actions, stages=stages, slo=self.slo, figures=figures)
        scores |= oracle.late_scores(demand, oracle.demand_behind(spec, engine.series, self.slo))
        if not trace:
            return CellRun(scores=scores)
        drawn = trace_of(engine.series, oracle.total(demand), self.period, actions.times)
        return CellRun(scores=scores, trace=drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun:
    """What a run scored, by the names of docs/bench.md; ``None`` means not measured."""

    scores: Scores
    trace: Trace | None = None


THESIS_PEAK = 2.2e6  # records/s: query 1's, which the thesis's other workloads were made for
_RATES: Mapping[str, tuple[str, ...]] = {
    "random": ("start", "change", "maximum"),
    "increasing": ("maximum",),
    "decreasing": ("maximum",),
    "convergence": ("high", "low"),
    "spikes": ("base", "noise"),
}


def workload_parameters(workload: str, query: Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a workload on a query; what is given wins.

    Cosine: the query's low, high and noise. Step: its low and high. Constant: their mean. A trace
    that comes along is scaled so that its highest rate is the query's; a user's own has its own
    rates. Those of ``_RATES``: the pattern's own rates times the query's peak over that of query 1.
    """
    if workload not in PATTERNS:
        raise unknown("workload", workload, PATTERNS)
    own: dict[str, Any] = {}
    if workload == "cosine":
        own = {"low": query.low, "high": query.high, "noise": query.noise}
    elif workload == "step":
        own = {"low": query.low, "high": query.high, "at": 1200.0, "hold": 2400.0}
    elif workload == "constant":
        own = {"rps": (query.low + query.high) / 2}
    elif workload == "trace" and "scale" not in given and given.get("file", "taxi") in SHIPPED:
        recorded = patterns.create(workload, given)
        assert isinstance(recorded, patterns.Trace)
        peak = float(recorded.curve(0.0).rates.max())
        own = {"scale": query.high / peak} if peak else {}
    elif workload in _RATES:
        fields: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(PATTERNS[workload])}
        factor = query.high / THESIS_PEAK
        own = {name: fields[name] * factor for name in _RATES[workload]}
    return own | dict(given)


def workload_minutes(workload: str, given: Mapping[str, Any]) -> float:
    """Minutes that a workload is meant to run: a trace's length, 90 for convergence, or 140."""
    return patterns.duration(patterns.create(workload, given)) / 60.0
