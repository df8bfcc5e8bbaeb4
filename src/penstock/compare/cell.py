"""One cell of a bench: a policy on a query under a workload, run once per seed."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.bench.twin.twin import Twin
from penstock.compare import oracle
from penstock.compare.recording import Recording, Watched
from penstock.compare.scores import Scores, scores_of
from penstock.compare.trace import Trace, trace_of
from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.ports import Policy, figures_of
from penstock.history.journal import Header
from penstock.lab.rig.settings import LEAST_PERIOD, SparkSettings
from penstock.policies import create as create_policy
from penstock.policies import parameters_of, spark_dra
from penstock.simulator import PROFILES, FluidEngine, FluidSpec, queries
from penstock.simulator.queries import Query
from penstock.workloads import patterns
from penstock.workloads.patterns import PATTERNS, Pattern

THESIS_GUARDS = Guards(minimum=1, maximum=80, cap=80, step_up=15, cool_down=300.0, sleep=True)
"""Exactly the limits of the thesis's runs; its loop sleeps after an action. [kanis23, 6.6]"""

SPARK_POOL = "executors"  # as penstock.batches.snapshot calls it
LONGEST = 31 * 24 * 60.0  # minutes
EngineName = Literal["simulated", "spark", "micro-batch"]
_FIXED = {"pipeline": "query", "start": "start", "profile": "profile"}  # other keys set these


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is run; with a seed it says everything about a run.

    ``key`` its name, safe in a path and unique within a bench · ``start`` slots of each pool at
    the beginning, the query's own if left out · ``shared`` one pool for all operators, as in
    Flink's reactive mode · ``spec`` fields of ``FluidSpec`` to override; tables are merged ·
    ``minutes`` simulated · ``period`` seconds between decisions · ``slo`` seconds of queue
    latency beyond which a second counts as late · ``spark`` how it runs on Spark; simulated if
    left out · ``twin`` what it runs on instead of that Spark. All times are thesis time, also on
    Spark.
    """

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
    spark: SparkSettings | None = None
    twin: Twin | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", self.key):
            raise InputError(f"the key {self.key!r} of a cell must be safe as a file name")
        if not (math.isfinite(self.minutes) and 0 < self.minutes <= LONGEST):
            raise InputError(
                f"minutes = {self.minutes} must be above 0 and at most {LONGEST:.0f} (31 days)"
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
        if self.spark is not None and self.spark.clock(self.period) < LEAST_PERIOD:
            raise InputError(
                f"period = {self.period:g} s is {self.spark.clock(self.period):g} s on the clock, "
                f"less than {LEAST_PERIOD:g}; set a longer period, or a longer minute"
            )
        if self.twin is not None and self.spark is None:
            raise InputError("a twin needs the settings of the Spark that it stands for")

    @property
    def engine(self) -> EngineName:
        """What it runs on."""
        if self.spark is None:
            return "simulated"
        return "spark" if self.twin is None else "micro-batch"

    @property
    def allocated(self) -> bool:
        """Whether Spark's own allocation sizes the pool; then the loop only looks."""
        return self.policy == spark_dra.NAME

    @property
    def seconds(self) -> int:
        """Simulated seconds."""
        return max(1, round(self.minutes * 60))

    @property
    def ticks(self) -> int:
        """Decisions."""
        return int(self.seconds / self.period + 1e-9)

    @property
    def scene(self) -> str:
        """All but the policy and its guards, as text: cells of one scene can be compared."""
        document = self.to_dict()
        for name in ("key", "policy", "policy_parameters", "guards"):
            document.pop(name, None)
        return json.dumps(document, sort_keys=True)

    def to_dict(self) -> dict[str, Any]:
        """A plain JSON value; fields that hold their default are left out, guards are whole."""
        document: dict[str, Any] = to_json(self)
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
        if self.start is not None:
            changes["start"] = dict.fromkeys(spec.start, self.start)
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

    def start_sizes(self) -> Mapping[str, int]:
        """Slots of each pool at the beginning; on Spark one executor if none are given."""
        if self.spark is None:
            return self.fluid_spec().start
        return {SPARK_POOL: self.start or 1}

    def pattern(self, seed: int) -> Pattern:
        """The offered load; the run's seed is the workload's, so policies see the same load."""
        query = queries.create(self.query)
        given = self.workload_parameters
        parameters = workload_parameters(self.workload, query, given)
        return patterns.create(self.workload, parameters, seed=seed)

    def create_policy(self) -> Policy:
        """The auto-scaler with its parameters."""
        given = self.policy_parameters
        if self.spark is not None:
            given = self.spark.parameters(parameters_of(create_policy(self.policy)), given)
        policy = create_policy(self.policy, given)
        if self.spark is None and self.allocated:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run scored, by the names of docs/bench.md; ``None`` means not measured."""

    scores: Scores
    trace: Trace | None = None


def run_cell(cell: Cell, seed: int, *, journal: Path | None = None, trace: bool = False) -> Outcome:
    """Run a cell once. ``journal`` where to write every decision; ``trace`` whether to keep one.

    The same cell and seed give the same outcome, in whatever process and order.
    """
    if cell.twin is not None:
        from penstock.bench.twin.run import run_twin  # it is made of cells

        return run_twin(cell, seed, journal=journal, trace=trace)
    spec, pattern, policy = cell.fluid_spec(), cell.pattern(seed), cell.create_policy()
    engine = FluidEngine(spec, pattern, seconds=cell.seconds, seed=seed)
    watched = Watched(policy)
    recording = Recording(journal, cell.header(policy, seed))
    loop = Loop(engine, watched, cell.guards, mode="act", seed=seed, record=recording)
    try:
        loop.run(period=cell.period, ticks=cell.ticks)
        engine.advance(cell.seconds - cell.ticks * cell.period)  # a rest without a decision
    finally:
        recording.close()
    watched.check(f"{cell.key}, seed {seed}")
    recording.keep()
    actions, figures = recording.actions, figures_of(policy, loop.state.memory)
    demand = oracle.demand(spec, engine.series)
    stages = getattr(pattern, "stages", ())
    scores = scores_of(engine, demand, actions, stages=stages, slo=cell.slo, figures=figures)
    if not trace:
        return Outcome(scores=scores)
    drawn = trace_of(engine.series, oracle.total(demand), cell.period, actions.times)
    return Outcome(scores=scores, trace=drawn)


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

    Cosine: the query's low, high and noise. Step: its low and high. Constant: their mean. Trace:
    scaled so that its highest rate is the query's. Those of ``_RATES``: the pattern's own rates
    times the query's peak over that of query 1.
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
    elif workload == "trace" and "scale" not in given:
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
