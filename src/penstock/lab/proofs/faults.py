"""Faults in the middle of an action: the query goes on, and its result stays exact.

A Nexmark query runs with the auto-scaler acting. Right after it has asked for one more executor,
before that has registered, something is killed: an executor that works, then the worker with all
executors, then the driver (its JVM and its Python), which is started again on the same checkpoint
and journal. In the end the streamed rows are compared with a batch run over the same events.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import InputError, unknown
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.clusters.standalone.full_speed import full_speed
from penstock.lab.proofs import setting
from penstock.lab.proofs.faults_child import SEESAW, DriverOrder, DriverReport, FaultsDriver
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.report.runs import JOURNAL

FaultName = Literal["executor", "worker", "driver"]
FAULTS: tuple[FaultName, ...] = ("executor", "worker", "driver")
NAMES = ("q1", "q2", "q3", "q5", "q8", "q11")
SLOTS, QUICK_SLOTS = 4, 3
LOW, HIGH, HIGH_UNLIMITED = 0.1, 5.0, 2.5  # of what one executor takes in small batches
CALM, BUSY = 40, 20  # seconds: time to catch up, and to shrink before the next rise
PERIOD, COOL_DOWN = 3.0, 6.0  # seconds
QUICK_RATE = 5_000.0  # records/s that stand for what one executor takes
QUICK_PERIOD, QUICK_COOL_DOWN = 1.0, 2.0
FIRST_SECONDS = 420.0  # for the driver to start, measure and finish a batch
ACTION_SECONDS = 240.0  # until the auto-scaler must have acted
RECOVERY_SECONDS = 300.0  # until the next batch must have finished
FRESH = 1.0  # seconds after which an action that was asked for is no longer waited upon
BOUND = 60.0  # seconds until the next finished batch
END_SECONDS = 600.0  # for catching up and the comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultsSettings:
    """Which queries, and the least seconds of load for each.

    ``quick`` a light load on executors without limits, and a policy that grows whatever the load
    is: the same faults in a third of the time.
    """

    queries: tuple[str, ...] = ("q5",)
    seconds: float = 90.0
    quick: bool = False

    def __post_init__(self) -> None:
        if not self.queries:
            raise InputError(f"--query names none; known: {', '.join(NAMES)}, all")
        for name in self.queries:
            if name not in NAMES:
                raise unknown("query", name, [*NAMES, "all"])
        if not 10 <= self.seconds <= 3600:
            raise InputError(f"--seconds {self.seconds:g} must lie between 10 and 3600")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: what was killed, during which action, and seconds to the next finished batch.

    ``registered`` executors at that moment: fewer than ``after``, so the action was in flight.
    """

    query: str
    what: FaultName
    before: int
    after: int
    registered: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFaults:
    """One query: its faults, the comparison in the end, and whether the journal was resumed.

    ``retries`` how often the driver ended by itself and was started again.
    """

    query: str
    faults: tuple[Fault, ...]
    events: int
    rows: int
    missing: int
    surplus: int
    resumed: bool | None
    retries: int = 0


def prove(spec: FaultsSettings, *, folder: Path, say: Say) -> Proof:
    """Run all queries one after the other, each on a cluster of its own."""
    results = []
    limited = True
    share = None if spec.quick else setting.SHARE
    offer = ClusterSpec(slots=QUICK_SLOTS if spec.quick else SLOTS, cpu_share=share)
    for query in spec.queries:
        with LocalCluster(offer, say=say) as cluster:
            limited = cluster.limited
            journal = folder / (JOURNAL if len(spec.queries) == 1 else f"{query}-{JOURNAL}")
            results.append(_one(spec, query, cluster, journal, say))
    return judge(spec, results, limited)


def _one(
    spec: FaultsSettings, query: str, cluster: LocalCluster, journal: Path, say: Say
) -> QueryFaults:
    order = DriverOrder(
        folder=str(cluster.folder / "faults"),
        query=query,
        conf=cluster.conf() | {"spark.sql.shuffle.partitions": str(cluster.spec.slots)},
        journal=str(journal.resolve()),
        slots=cluster.spec.slots,
        low=LOW,
        high=HIGH if cluster.limited else HIGH_UNLIMITED,
        calm=CALM,
        busy=BUSY,
        **_policy(spec),
    )
    order.save()
    with closing(FaultsDriver(order, cluster, say)) as child:
        child.start()
        say(f"{query}: the driver starts" + ("" if spec.quick else " and measures its executor"))
        child.wait("batch", FIRST_SECONDS, also=lambda: _limits(cluster, order))
        begun = time.monotonic()
        faults = []
        resumed: bool | None = None
        for what in FAULTS:
            faults.append(_strike(what, query, child, cluster, say))
            if what == "driver":
                resumed = child.resumed(journal)
        child.rest(begun + spec.seconds - time.monotonic())
        say(f"{query}: catching up, then comparing with a batch run over the same events…")
        order.flag("finish").touch()
        child.wait("comparing", END_SECONDS)
        with full_speed(cluster):
            result = child.wait("result", END_SECONDS).more
        say(f"{query}: {result['rows']:,} rows, {result['missing']} missing, "
            f"{result['surplus']} surplus")  # fmt: skip
    return QueryFaults(
        query=query, faults=tuple(faults), resumed=resumed, retries=child.retries, **result
    )


def _policy(spec: FaultsSettings) -> Mapping[str, Any]:
    """What forces actions: DS2 under a load that rises and falls, or a policy that never rests."""
    if spec.quick:
        return {
            "policy": SEESAW,
            "parameters": {},
            "rate": QUICK_RATE,
            "period": QUICK_PERIOD,
            "cool_down": QUICK_COOL_DOWN,
        }
    return {
        "policy": "ds2",
        "parameters": {"over_provisioning": 1.5},
        "rate": None,
        "period": PERIOD,
        "cool_down": COOL_DOWN,
    }


def _limits(cluster: LocalCluster, order: DriverOrder) -> None:
    if not order.flag("limited").exists() and cluster.warm:
        order.flag("limited").touch()


def _strike(
    what: FaultName, query: str, child: FaultsDriver, cluster: LocalCluster, say: Say
) -> Fault:
    """Wait for the next scale-up, kill, and wait for the next finished batch."""
    say(f"{query}: waiting for a scale-up, then the {what} is killed")
    there = 0

    def in_flight(report: DriverReport) -> bool:
        nonlocal there
        there = len(cluster.executors(child.app))
        before, after = report.more["before"], report.more["after"]
        return before < after and 1 <= there < after and time.time() - report.time < FRESH

    asked = child.wait("asked", ACTION_SECONDS, holds=in_flight).more
    moment = time.time()
    if what == "executor":
        os.kill(next(iter(cluster.executors(child.app).values())), signal.SIGKILL)
    elif what == "worker":
        os.kill(cluster.worker, signal.SIGKILL)
    else:
        child.kill()
        child.start()
    done = child.wait("batch", RECOVERY_SECONDS, holds=lambda r: r.more["end"] > moment)
    seconds = done.more["end"] - moment
    say(f"{query}: {what} killed during {asked['before']}→{asked['after']}, "
        f"next batch finished after {seconds:.1f} s")  # fmt: skip
    return Fault(
        query=query,
        what=what,
        before=asked["before"],
        after=asked["after"],
        registered=there,
        seconds=seconds,
    )


def judge(spec: FaultsSettings, results: Sequence[QueryFaults], limited: bool) -> Proof:
    """The verdict over all queries."""
    faults = [fault for result in results for fault in result.faults]
    longest = max((f.seconds for f in faults), default=None)
    resumed = [r.resumed for r in results if r.resumed is not None]
    checks = [
        Check(figure="rows missing", value=sum(r.missing for r in results), bound=0),
        Check(figure="rows surplus", value=sum(r.surplus for r in results), bound=0),
        Check(figure="longest time to the next batch", value=longest, bound=BOUND, unit="s"),
    ]
    if resumed:
        checks.append(
            Check(
                figure="drivers that went on from their journal",
                value=sum(resumed),
                bound=len(resumed),
                at_most=False,
            )
        )
    exact = {r.query: not (r.missing or r.surplus) for r in results}
    rows: list[dict[str, Any]] = [
        {
            "query": f.query,
            "killed": f.what,
            "during": f"{f.before}→{f.after}",
            "registered": f.registered,
            "next batch, s": f.seconds,
            "result exact": "yes" if exact[f.query] else "no",
        }
        for f in faults
    ]
    events = sum(r.events for r in results)
    total = sum(r.rows for r in results)
    notes = [f"compared: {total:,} rows of {events:,} events"]
    if retries := sum(r.retries for r in results):
        notes.append(f"drivers that ended by themselves and were started again: {retries}")
    if not limited:
        notes.append("executors run without a CPU limit")
    return Proof(
        name="faults",
        title=f"Faults during an action: {', '.join(spec.queries)}",
        checks=tuple(checks),
        details=tuple(rows),
        notes=tuple(notes),
    )
