"""Whether policies name the operator that is slow, wherever in a query it stands.

A query of three stages has one operator slowed, at each of three places in turn. The load goes up
and down, so that each policy scales up again and again. A scale-up names the operator with the
largest need of its proposal: of Dhalion its bottleneck, the only one that it scales; of DS2 the one
that its reason begins with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.batches.snapshot import POOL
from penstock.core.errors import EngineError, InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, State
from penstock.core.ports import Policy
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.proofs import setting
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.lab.queries import nexmark
from penstock.lab.queries.three_stages import PLACES, three_stages
from penstock.lab.rig.saturation import resize
from penstock.policies import DS2, Dhalion
from penstock.spark.autoscaler import Autoscaler

SLOTS = 4
CALM, BUSY = 25, 35  # seconds of each load
LOW, HIGH = 0.25, 3.0  # of what one executor takes
RIGHT = 0.9  # of the scale-ups have to name the slow operator
LATE = 2  # cycles more than actions asked for, until it is given up
POLICIES: Mapping[str, Callable[[float], Policy]] = {
    # A tenth of a second of the high load is no growth, and a second of it is little that waits:
    # the thresholds of the thesis are those of millions of records/s.
    "dhalion": lambda rate: Dhalion(lag_rate=0.1 * rate, lag_low=HIGH * rate),
    "ds2": lambda rate: DS2(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BottleneckSettings:
    """Scale-ups of each policy at each place, and the seconds between two decisions."""

    actions: int = 10
    period: float = 5.0

    def __post_init__(self) -> None:
        if not 1 <= self.actions <= 1000:
            raise InputError(f"--actions {self.actions} must lie between 1 and 1000")
        if not 1 <= self.period <= BUSY:
            raise InputError(f"--period {self.period:g} must lie between 1 and {BUSY} seconds")

    @property
    def guards(self) -> Guards:
        """One executor more per action, so that a load that rises gives several."""
        return Guards(
            minimum=1,
            maximum=SLOTS,
            step_up=1,
            step_down=SLOTS,
            tolerance=0.1,
            drain=setting.TRIGGER,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUp:
    """One scale-up: seconds after the load began, sizes, and the operator that it names.

    ``slow`` is the one that was slowed, ``None`` where the query was not seen in three stages.
    ``busy`` the busy shares of the stages, in their order.
    """

    at: float
    before: int
    after: int
    named: str | None
    slow: str | None
    busy: tuple[float | None, ...] = ()

    @property
    def right(self) -> bool:
        """Whether it names the slow operator."""
        return self.named is not None and self.named == self.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The scale-ups of one policy with the operator at one place slowed."""

    place: str
    policy: str
    ups: tuple[ScaleUp, ...]

    @property
    def right(self) -> int:
        """How many of them name the slow operator."""
        return sum(up.right for up in self.ups)


def scale_up_of(decision: Decision, place: str, begin: float) -> ScaleUp | None:
    """What a decision says of the bottleneck, if it is a scale-up that the engine was asked for."""
    change = decision.changes.get(POOL)
    if not decision.applied or change is None or change.slots <= change.before:
        return None
    needs, stages = decision.proposal.needs, decision.seen.pipeline.order
    return ScaleUp(
        at=decision.seen.time - begin,
        before=change.before,
        after=change.slots,
        named=max(needs, key=lambda name: needs[name].slots) if needs else None,
        slow=stages[PLACES.index(place)] if len(stages) == len(PLACES) else None,
        busy=tuple(decision.seen.operators[s].busy for s in stages),
    )


@dataclass(slots=True)
class Seen:
    """The scale-ups so far; written by the auto-scaler's thread."""

    place: str
    begin: float
    ups: list[ScaleUp] = field(default_factory=list)

    def record(self, decision: Decision, state: State) -> None:
        """Note a scale-up."""
        up = scale_up_of(decision, self.place, self.begin)
        if up is not None:
            self.ups.append(up)


def prove(spec: BottleneckSettings, *, folder: Path, say: Say) -> Proof:
    """Slow each operator in turn; the journals of the decisions go to ``folder``."""
    outcomes: list[Outcome] = []
    interrupted = False
    with LocalCluster(ClusterSpec(slots=SLOTS, cpu_share=setting.SHARE), say=say) as cluster:
        conf = {"spark.sql.shuffle.partitions": str(SLOTS)}
        spark = cluster.session("penstock lab prove bottleneck", start_with=1, conf=conf)
        try:
            for place in PLACES:
                resize(spark, 1)
                say(f"measuring what one executor takes with the {place} operator slowed…")
                rate = setting.capacity(
                    spark,
                    three_stages(place, partitions=SLOTS),
                    folder=cluster.folder,
                    slots=SLOTS,
                    ready=lambda: cluster.warm,
                )
                say(f"{rate:,.0f} records/s; the load is {LOW:g} and {HIGH:g} times that")
                for policy in POLICIES:
                    resize(spark, 1)
                    outcome = _run(spec, cluster, spark, place, policy, rate, folder, say)
                    outcomes.append(outcome)
                    say(f"{place}, {policy}: {outcome.right} of {len(outcome.ups)} name it")
        except KeyboardInterrupt:
            interrupted = True
        limited = cluster.limited
    return judge(spec, outcomes, limited=limited, interrupted=interrupted)


def _run(
    spec: BottleneckSettings,
    cluster: LocalCluster,
    spark: Any,
    place: str,
    policy: str,
    rate: float,
    folder: Path,
    say: Say,
) -> Outcome:
    """One policy on the query with one operator slowed, until it has scaled up often enough."""
    query = three_stages(place, partitions=SLOTS)
    load = setting.pulses(
        cluster.folder / f"load-{place}-{policy}.csv",
        low=LOW * rate, high=HIGH * rate, calm=CALM, busy=BUSY,
    )  # fmt: skip
    begin = time.time() + 1.0
    seconds = (spec.actions + LATE) * (CALM + BUSY)
    events = setting.stream_of(
        query,
        load,
        start=begin,
        seconds=seconds + CALM,
        slots=SLOTS,
        max_rows=int(setting.TRIGGER * SLOTS * rate),
    )
    running: Any = nexmark.start(
        spark, query, events, setting.SETTINGS, folder=cluster.folder / f"{place}-{policy}",
        trigger=setting.TRIGGER, sink="noop",
    )  # fmt: skip
    seen = Seen(place=place, begin=begin)
    with Autoscaler(
        spark,
        POLICIES[policy](rate),
        mode="act",
        period=spec.period,
        window=2 * spec.period,
        guards=spec.guards,
        cluster=cluster,
        journal=folder / f"{place}-{policy}.jsonl",
        record=seen.record,
    ):
        told = 0
        while len(seen.ups) < spec.actions and time.time() < begin + seconds:
            if running.awaitTermination(0.5):
                raise EngineError("the query stopped by itself")
            for up in seen.ups[told:]:
                told += 1
                say(f"{place}, {policy}: {up.before}→{up.after} for {up.named or 'no operator'}")
    nexmark.stop(running)
    return Outcome(place=place, policy=policy, ups=tuple(seen.ups[: spec.actions]))


def judge(
    spec: BottleneckSettings,
    outcomes: Sequence[Outcome],
    *,
    limited: bool = True,
    interrupted: bool = False,
) -> Proof:
    """The share of the scale-ups of each policy at each place that name the slow operator."""
    checks = []
    for outcome in outcomes:
        count = len(outcome.ups)
        checks.append(
            Check(
                figure=f"{outcome.policy}, {outcome.place} operator slow: named",
                value=outcome.right / count if count else None,
                bound=RIGHT,
                at_most=False,
                unit="%",
            )
        )
    fewest = min((len(o.ups) for o in outcomes), default=0)
    complete = len(outcomes) == len(PLACES) * len(POLICIES)
    checks.append(
        Check(
            figure="scale-ups, fewest of a policy and a place",
            value=float(fewest if complete else 0),
            bound=float(spec.actions),
            at_most=False,
        )
    )
    notes = [
        "the operator that a scale-up names is the one with the largest need in its proposal",
        f"load {LOW:g} and {HIGH:g} times what one executor takes, {CALM} and {BUSY} s",
    ]
    if not limited:
        notes.append("executors run without a CPU limit")
    return Proof(
        name="bottleneck",
        title=f"Bottleneck: one of three operators slowed, trigger {setting.TRIGGER:g} s, a "
        f"decision every {spec.period:g} s",
        checks=tuple(checks),
        details=tuple(_row(o, up) for o in outcomes for up in o.ups),
        notes=tuple(notes),
        interrupted=interrupted,
    )


def _row(outcome: Outcome, up: ScaleUp) -> dict[str, Any]:
    shares = ("–" if b is None else f"{100 * b:.0f}" for b in up.busy)
    return {
        "slow": outcome.place,
        "policy": outcome.policy,
        "at": up.at,
        "action": f"{up.before}→{up.after}",
        "named": up.named,
        "right": "yes" if up.right else "no",
        "busy %": " ".join(shares),
    }
