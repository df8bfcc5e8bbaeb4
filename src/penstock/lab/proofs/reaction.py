"""How soon new executors work after the load has risen.

The load goes up and down in steps, again and again. For the first scale-up after each step the
time is taken from the step (known from the load's definition) to the launch of the first task on
an executor that was added (known from Spark's task lists, to the millisecond): observing the load,
deciding, starting a JVM and getting work.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.batches.snapshot import POOL
from penstock.batches.values import Batch
from penstock.core.errors import EngineError, InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, State
from penstock.core.model import Rescale
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.proofs import setting
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.lab.proofs.statistics import median
from penstock.lab.queries import nexmark
from penstock.policies import DS2
from penstock.report.runs import JOURNAL
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.read.documents import epoch
from penstock.spark.read.rest import Rest

QUERY = "q1"
SLOTS = 4
CALM, BUSY = 25, 22  # seconds of each load; their sum is no multiple of the period
LOW = 0.3  # of what one executor takes
START_SECONDS = 3.5  # allowed, in the middle, for all that is not waiting for the next decision
LATE = 2  # cycles more than actions asked for, until it is given up


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionSettings:
    """How many scale-ups are timed, and the seconds between two decisions.

    high: the high load, in times of what one executor takes; the low one is 0.3 times that
    """

    actions: int = 10
    period: float = 5.0
    high: float = 3.0

    def __post_init__(self) -> None:
        if not 1 <= self.actions <= 1000:
            raise InputError(f"--actions {self.actions} must lie between 1 and 1000")
        if not 1 <= self.period <= BUSY:
            raise InputError(f"--period {self.period:g} must lie between 1 and {BUSY} seconds")
        if not 1.2 <= self.high <= SLOTS:
            raise InputError(f"--high {self.high:g} must lie between 1.2 and {SLOTS}")

    @property
    def guards(self) -> Guards:
        """Limits of two executors more per action, and no cool-down: the reaction counts."""
        return Guards(
            minimum=1, maximum=SLOTS, step_up=2, step_down=2, tolerance=0.1, drain=setting.TRIGGER
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A scale-up that was asked for: when (epoch seconds), from which executors, to how many."""

    time: float
    known: frozenset[str]
    after: int


@dataclass(slots=True)
class Seen:
    """What the auto-scaler did so far; written by its thread."""

    asked: list[Asked] = field(default_factory=list)
    rescales: dict[float, Rescale] = field(default_factory=dict)

    def record(self, decision: Decision, state: State) -> None:
        """Note scale-ups and what earlier ones have cost."""
        seen = decision.seen
        self.rescales |= {rescale.time: rescale for rescale in seen.rescales}
        change = decision.changes.get(POOL)
        if decision.applied and change is not None and change.slots > change.before:
            known = frozenset(slot.id for slot in seen.pools[POOL])
            self.asked.append(Asked(time=seen.time, known=known, after=change.slots))

    def firsts(self, begin: float) -> dict[float, Asked]:
        """The first scale-up after each step of a load that began at ``begin``, by the step."""
        found: dict[float, Asked] = {}
        for asked in list(self.asked):
            step = step_before(asked.time, begin)
            if step is not None:
                found.setdefault(step, asked)
        return found

    def cost(self, asked: Asked) -> Rescale | None:
        """What is known of the action: it was applied right after the observation."""
        return next((r for t, r in sorted(self.rescales.items()) if t >= asked.time), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """One scale-up: the step it answers, and when its first task was launched (epoch seconds)."""

    step: float
    asked: Asked
    first_task: float

    @property
    def seconds(self) -> float:
        """Seconds from the step of the load to the first task on an added executor."""
        return self.first_task - self.step


def step_before(moment: float, start: float) -> float | None:
    """The last time before a moment at which the load went up; ``None`` if it has not yet.

    >>> step_before(30.0, 0.0), step_before(25.0 + 47 + 1, 0.0), step_before(3.0, 0.0)
    (25.0, 72.0, None)
    """
    cycle = math.floor((moment - start - CALM) / (CALM + BUSY))
    return None if cycle < 0 else start + CALM + cycle * (CALM + BUSY)


def prove(spec: ReactionSettings, *, folder: Path, say: Say) -> Proof:
    """Run it; the journal of the decisions goes to ``folder``."""
    query = nexmark.QUERIES[QUERY]
    with LocalCluster(ClusterSpec(slots=SLOTS, cpu_share=setting.SHARE), say=say) as cluster:
        conf = {"spark.sql.shuffle.partitions": str(SLOTS), "spark.ui.retainedStages": "5000"}
        spark = cluster.session("penstock lab prove reaction", start_with=1, conf=conf)
        say("measuring what one executor takes…")
        rate = setting.capacity(
            spark,
            query,
            folder=cluster.folder,
            slots=SLOTS,
            ready=lambda: cluster.warm,
        )
        say(
            f"one executor takes {rate:,.0f} records/s; "
            f"the load is {LOW:g} and {spec.high:g} times that"
        )
        load = setting.pulses(
            cluster.folder / "load.csv", low=LOW * rate, high=spec.high * rate, calm=CALM, busy=BUSY
        )
        begin = time.time() + 1.0
        events = setting.stream_of(
            query,
            load,
            start=begin,
            seconds=(spec.actions + LATE + 2) * (CALM + BUSY),
            slots=SLOTS,
            max_rows=int(setting.TRIGGER * spec.high * rate),
        )
        running = nexmark.start(
            spark, query, events, setting.SETTINGS, folder=cluster.folder / "query",
            trigger=setting.TRIGGER, sink="noop",
        )  # fmt: skip
        seen = Seen()
        with Autoscaler(
            spark,
            DS2(over_provisioning=1.5),
            mode="act",
            period=spec.period,
            window=spec.period,
            guards=spec.guards,
            cluster=cluster,
            journal=folder / JOURNAL,
            record=seen.record,
        ):
            reactions, batches = _watch(spec, spark, running, seen, begin, say)
        nexmark.stop(running)
        limited = cluster.limited
    return _judge(spec, reactions, batches, seen, begin, limited)


def _watch(
    spec: ReactionSettings, spark: Any, running: Any, seen: Seen, begin: float, say: Say
) -> tuple[list[Reaction], list[Batch]]:
    """Time the first scale-up after each step until there are enough."""
    rest = TaskRest(spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId)
    reactions: dict[float, Reaction] = {}
    batches: dict[int, Batch] = {}
    deadline = begin + (spec.actions + LATE) * (CALM + BUSY)
    while len(reactions) < spec.actions and time.time() < deadline:
        if running.awaitTermination(0.5):
            raise EngineError("the query stopped by itself")
        batch = setting.last_batch(running)
        if batch is not None:
            batches[batch.id] = batch
        for step, asked in seen.firsts(begin).items():
            if step in reactions or time.time() > step + CALM + BUSY:
                continue
            new = [e for e in rest.executors() if e.id not in asked.known and e.added >= asked.time]
            first = rest.first_launch([e.id for e in new], asked.time) if new else None
            if first is not None:
                reactions[step] = Reaction(step=step, asked=asked, first_task=first)
                say(
                    f"{len(reactions)} of {spec.actions}: {len(asked.known)}→{asked.after} "
                    f"executors, first task {reactions[step].seconds:.1f} s after the load went up"
                )
    # The last action becomes steady with the next whole batch.
    running.awaitTermination(2 * spec.period)
    return list(reactions.values()), list(batches.values())


def _judge(
    spec: ReactionSettings,
    reactions: list[Reaction],
    batches: list[Batch],
    seen: Seen,
    begin: float,
    limited: bool,
) -> Proof:
    batch = statistics.fmean(b.duration for b in batches) if batches else 0.0
    bound = spec.period + START_SECONDS
    p50 = median([r.seconds for r in reactions]) if reactions else None
    checks = (
        Check(
            figure="load step to first task, p50",
            value=None if p50 is None else p50.value,
            low=None if p50 is None else p50.low,
            high=None if p50 is None else p50.high,
            bound=bound,
            unit="s",
        ),
        Check(
            figure="scale-ups timed",
            value=len(reactions),
            bound=spec.actions,
            at_most=False,
        ),
    )
    notes = [
        f"bound: control period {spec.period:g} s + {START_SECONDS:g} s for an executor to start "
        f"and get a task; mean batch {batch:.1f} s",
        f"the load goes from {LOW:g} to {spec.high:g} times what one executor takes; times in "
        "seconds after that",
    ]
    if not limited:
        notes.append("executors run without a CPU limit")
    return Proof(
        name="reaction",
        title=f"Reaction: {QUERY}, trigger {setting.TRIGGER:g} s, a decision every "
        f"{spec.period:g} s, at most +2 executors",
        checks=checks,
        details=tuple(_row(r, seen.cost(r.asked), begin) for r in reactions),
        notes=tuple(notes),
    )


def _row(reaction: Reaction, cost: Rescale | None, begin: float) -> dict[str, Any]:
    """One action; all but ``at`` in seconds after the step."""
    wait = reaction.asked.time - reaction.step

    def after(part: float | None) -> float | None:
        return None if cost is None or part is None else cost.time - reaction.step + part

    return {
        "at": reaction.step - begin,
        "action": f"{len(reaction.asked.known)}→{reaction.asked.after}",
        "decided": wait,
        "registered": after(cost.registered if cost else None),
        "first task": reaction.seconds,
        "steady": after(cost.steady if cost else None),
    }


TASKS = 10_000  # of one stage; there are as many as partitions


class TaskRest(Rest):
    """Also reads the tasks of stages."""

    def first_launch(self, executors: Iterable[str], since: float) -> float | None:
        """When the first task of any of these executors was launched (epoch seconds).

        Looks at the stages that were submitted or still ran at ``since`` or later.
        """
        wanted = set(executors)
        stages = sorted(
            (
                (epoch(stage["submissionTime"]), int(stage["stageId"]), int(stage["attemptId"]))
                for stage in self._get("/stages")
                if "submissionTime" in stage and _ran_at(stage, since)
            ),
        )
        first: float | None = None
        for submitted, stage_id, attempt in stages:
            if first is not None and submitted > first:
                break
            tasks = self._get(
                f"/stages/{stage_id}/{attempt}/taskList?length={TASKS}", missing_ok=True
            )
            launches = [
                epoch(task["launchTime"])
                for task in tasks or ()
                if task.get("executorId") in wanted and task.get("launchTime")
            ]
            first = min([*launches, *([] if first is None else [first])], default=None)
        return first


def _ran_at(stage: Mapping[str, Any], moment: float) -> bool:
    return "completionTime" not in stage or epoch(stage["completionTime"]) >= moment
