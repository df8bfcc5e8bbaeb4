"""The driver of the proof of faults, a process of its own so that it can be killed.

``python -m penstock.lab.proofs.faults_driver ORDER`` runs a Nexmark query with the auto-scaler
acting, on a cluster that its parent owns. Started a second time with the same order it goes on: the
query from its checkpoint, the auto-scaler from its journal, the load by the clock.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from penstock.batches.snapshot import POOL
from penstock.core.guards import Guards
from penstock.core.loop import Decision, State
from penstock.core.model import Need, Proposal, Snapshot
from penstock.core.ports import Policy
from penstock.history.files import write_text
from penstock.lab.clusters.standalone.sessions import Driver, settle
from penstock.lab.proofs import setting
from penstock.lab.proofs.faults_child import SEESAW, DriverOrder, report
from penstock.lab.queries import nexmark
from penstock.policies import create
from penstock.spark.autoscaler import Autoscaler
from penstock.workloads.nexmark import NexmarkStream
from penstock.workloads.patterns import Trace

LOAD_SECONDS = 4 * 3600.0  # more than a run can last
FINAL_SECONDS = 240.0  # for the query to catch up at the end


def run(order: DriverOrder) -> None:
    """Start or go on; ends after the comparison that the flag ``finish`` asks for."""
    driver = Driver()
    log = order.path / "jvm.log"
    spark = driver.open(f"penstock lab prove faults {order.query}", order.conf, {}, log)
    try:
        settle(spark)
        _report_start(order, spark)
        query = nexmark.QUERIES[order.query]
        events = _events(order, spark)
        running = nexmark.start(
            spark, query, events, setting.SETTINGS, folder=order.path, trigger=setting.TRIGGER
        )
        with _autoscaler(order, spark):
            until = _until_told(order, running)
            nexmark.wait_until_final(running, query, events, until, within=FINAL_SECONDS)
        nexmark.stop(running)
        report(order, "comparing", time.time())
        result = nexmark.compare(
            spark, query, events, setting.SETTINGS, folder=order.path, until=until
        )
        report(order, "result", time.time(), **asdict(result))
    finally:
        driver.close()


def _report_start(order: DriverOrder, spark: Any) -> None:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    report(
        order,
        "started",
        time.time(),
        python=os.getpid(),
        jvm=gateway.proc.pid,
        app=spark.sparkContext.applicationId,
    )


def _events(order: DriverOrder, spark: Any) -> NexmarkStream:
    """The load; the first driver finds out what an executor takes, and all use that."""
    query = nexmark.QUERIES[order.query]
    file = order.path / "load.json"
    if not file.exists():
        rate = order.rate or setting.capacity(
            spark,
            query,
            folder=order.path,
            slots=order.slots,
            ready=order.flag("limited").exists,
        )
        setting.pulses(
            order.path / "load.csv",
            low=order.low * rate,
            high=order.high * rate,
            calm=order.calm,
            busy=order.busy,
        )
        write_text(file, json.dumps({"rate": rate, "start": time.time() + 1.0}))
    load = json.loads(file.read_text())
    pattern = Trace(file=str(order.path / "load.csv"), repeat=True)
    return setting.stream_of(
        query,
        pattern,
        start=load["start"],
        seconds=LOAD_SECONDS,
        slots=order.slots,
    )


def _autoscaler(order: DriverOrder, spark: Any) -> Autoscaler:
    def record(decision: Decision, state: State) -> None:
        change = decision.changes.get(POOL)
        if decision.applied and change is not None:
            report(order, "asked", time.time(), before=change.before, after=change.slots)

    guards = Guards(
        minimum=1,
        maximum=order.slots,
        step_up=1,
        step_down=order.slots,
        tolerance=0.1,
        cool_down=order.cool_down,
        drain=setting.TRIGGER,
    )
    policy: Policy
    if order.policy == SEESAW:  # it does not look at the load, so the guards must not either
        policy = Seesaw(top=order.slots)
        guards = replace(guards, drain=None, max_age=3600.0)
    else:
        policy = create(order.policy, order.parameters)
    return Autoscaler(
        spark,
        policy,
        mode="act",
        period=order.period,
        window=2 * order.period,
        guards=guards,
        journal=order.journal,
        record=record,
    )


def _until_told(order: DriverOrder, running: Any) -> float:
    """Report batches until the flag ``finish`` is there; returns that moment."""
    seen = -1
    while not order.flag("finish").exists():
        if running.awaitTermination(0.1):
            raise SystemExit(f"the query stopped by itself: {running.exception()}")
        batch = setting.last_batch(running)
        if batch is not None and batch.id > seen:
            seen = batch.id
            report(order, "batch", time.time(), id=batch.id, end=batch.end, rows=batch.rows)
    return time.time()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seesaw:
    """Asks for ``top`` executors until they are there, then for one until the others are gone.

    Forces actions where it is the actions that are tried. Its memory is the direction.

    >>> Seesaw(top=4).start(0)
    'up'
    """

    top: int

    def start(self, seed: int) -> str:
        """Begin with the way up."""
        return "up"

    def decide(self, seen: Snapshot, memory: str) -> tuple[Proposal, str]:
        """The end of the way that it is on."""
        here = seen.slots(POOL)
        if here >= self.top:
            memory = "down"
        elif here <= 1:
            memory = "up"
        slots = self.top if memory == "up" else 1
        return Proposal(pool_needs={POOL: Need(slots=slots)}, reason=f"on its way {memory}"), memory


if __name__ == "__main__":
    run(DriverOrder.load(Path(sys.argv[1])))
