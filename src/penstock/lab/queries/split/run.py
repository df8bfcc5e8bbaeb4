"""A Nexmark query as a split pipeline on a local cluster: started, controlled, ended.

::

    with LocalBroker() as broker, LocalCluster(spec) as cluster:
        with SplitRun(query, events, settings, cluster=cluster, servers=broker.bootstrap_servers,
                      folder=folder, trigger=2.0) as run:
            loop = Loop(run.engine, DS2(), guards, mode="act")
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from penstock.core.errors import EngineError, InputError
from penstock.core.pipeline import Pipeline
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.clusters.standalone.daemons import tail
from penstock.lab.host.processes import Nursery, terminate
from penstock.lab.kafka.cluster import KafkaCluster
from penstock.lab.kafka.jars import connector_jars
from penstock.lab.kafka.writer import SPREAD
from penstock.lab.queries.nexmark_queries import NexmarkQuery, Settings
from penstock.lab.queries.running import complete_at
from penstock.lab.queries.split.driver import HopOrder
from penstock.lab.queries.split.hops import SINK, Hop, hops_of, pipeline_of
from penstock.spark.split.engine import SplitEngine
from penstock.spark.split.wire import Address, Document, ask
from penstock.workloads.nexmark import NexmarkStream

START_SECONDS = 120.0  # for one application; 10–20 s is normal
STOP_SECONDS = 40.0
LOOK = 0.2


@dataclass(slots=True)
class _HopProcess:
    order: HopOrder
    process: subprocess.Popen[bytes] | None = None


@dataclass(slots=True, kw_only=True)
class SplitRun:
    """The applications of one query; a context manager that leaves no process behind.

    servers: of Kafka, whose topics ``<prefix>-<table>`` a producer fills
    partitions: of the topics between the hops and of their state
    slots: executors that each may have
    patience: seconds of event time that a batch may cover; at least what ``events.max_rows``
        allow for
    window: seconds that an observation covers
    agents: whether agents beside the executors size the applications, and no controller may
    """

    query: NexmarkQuery
    events: NexmarkStream
    settings: Settings
    cluster: LocalCluster
    servers: str
    folder: Path
    trigger: float
    slots: int
    partitions: int
    prefix: str = "nexmark"
    patience: float = 0.0
    window: float = 15.0
    agents: bool = False
    say: Callable[[str], None] = lambda line: None
    _children: dict[str, _HopProcess] = field(default_factory=dict)
    _nursery: Nursery = field(default_factory=Nursery)

    @property
    def pipeline(self) -> Pipeline:
        """The query as a pipeline."""
        return pipeline_of(self.query, partitions=self.partitions)

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The hops of the query, an application each."""
        return hops_of(self.query)

    @property
    def engine(self) -> SplitEngine:
        """All applications as one engine."""
        return SplitEngine(self.pipeline, self.addresses(), cluster=self.cluster)

    @property
    def result(self) -> Path:
        """The folder whose ``result`` the sink writes."""
        return self.folder / SINK

    def __enter__(self) -> Self:
        kafka = KafkaCluster(self.servers)
        try:
            for hop in self.hops:
                if hop.name != SINK:
                    kafka.create_topic(f"{self.prefix}-{hop.name}", self.partitions)
            for hop in self.hops:
                self.start(hop.name)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, name: str) -> None:
        """Start the application of a hop, or start it again, and wait until it answers."""
        order = self._order(name)
        order.stop.unlink(missing_ok=True)
        Path(order.listen).unlink(missing_ok=True)
        self.say(f"{self.query.name}: starting {name}…")
        process = self._nursery.start(
            [sys.executable, "-m", "penstock.lab.queries.split.driver", str(order.save())],
            env=dict(os.environ) | self.cluster.environment(),
            cwd=order.path,
            log=order.path / "driver.log",
        )
        self._children[name] = _HopProcess(order, process)
        deadline = time.monotonic() + START_SECONDS
        while not Path(order.listen).exists():
            self.fail_if_ended(name)
            if time.monotonic() > deadline:
                raise EngineError(f"{name} did not start within {START_SECONDS:.0f} s")
            time.sleep(LOOK)

    def kill(self, name: str) -> None:
        """Kill the application of a hop at once, as when its machine fails."""
        process = self._children[name].process
        assert process is not None
        for pid in _family(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End all applications between two batches, the first hop first."""
        try:
            for child in self._children.values():
                child.order.stop.touch()
            for child in self._children.values():
                if child.process is not None:
                    try:
                        child.process.wait(STOP_SECONDS)
                    except subprocess.TimeoutExpired:
                        terminate(child.process, within=5.0)
        finally:
            self._nursery.close()
            self._children.clear()

    def fail_if_ended(self, name: str) -> None:
        """Raise if an application ended by itself."""
        child = self._children[name]
        if child.process is not None and (code := child.process.poll()) is not None:
            log = tail(child.order.path / "driver.log")
            raise EngineError(f"{name} ended with exit code {code}. Last lines of its log:\n{log}")

    def wait_until_final(self, until: float, *, within: float) -> None:
        """Wait until the rows that are final at ``until`` (epoch seconds) are all in the result.

        Each hop must have read what the one above wrote until it, too, was done.
        """
        kafka = KafkaCluster(self.servers)
        deadline = time.monotonic() + within
        moment = complete_at(self.events, until)
        for hop in self.hops:
            wanted: Mapping[str, int]
            if hop.table is not None:
                wanted = {f"{self.prefix}-{hop.table}": self.events.released(hop.table, moment)}
            else:
                topics = [f"{self.prefix}-{name}" for name in hop.reads]
                wanted = {topic: sum(kafka.end_offsets(topic).values()) for topic in topics}
            waits = hop.reads and hop.name != SINK and self.query.emits == "at the watermark"
            while not self._done(hop.name, wanted, until if waits else None):
                if time.monotonic() > deadline:
                    raise EngineError(
                        f"{hop.name} of {self.query.name} is not done after {within:.0f} s: "
                        f"it has read {self.status(hop.name)['taken']} and is to read {wanted}"
                    )
                time.sleep(LOOK)

    def status(self, name: str) -> Document:
        """How far an application is: rows taken by topic, its watermark."""
        self.fail_if_ended(name)
        return ask(self.addresses()[name], {"ask": "status"})

    def _done(self, name: str, wanted: Mapping[str, int], watermark: float | None) -> bool:
        status = self.status(name)
        if watermark is not None and (status["watermark"] or 0.0) < watermark:
            return False
        taken = status["taken"]
        return all(taken.get(topic, 0) >= rows for topic, rows in wanted.items() if rows)

    def addresses(self) -> dict[str, Address]:
        """Where each application listens."""
        return {hop.name: Address.parse(self._socket(hop.name)) for hop in self.hops}

    def _socket(self, name: str) -> Path:
        return self.cluster.folder / f"{self.query.name}-{name}.sock"

    def _order(self, name: str) -> HopOrder:
        conf = {
            "spark.sql.shuffle.partitions": str(self.partitions),
            "spark.jars": ",".join(map(str, connector_jars(self.say))),
        }
        return HopOrder(
            folder=str(self.folder / name),
            query=self.query.name,
            hop=name,
            bootstrap_servers=self.servers,
            prefix=self.prefix,
            max_rows=self.events.max_rows,
            minute=self.settings.minute,
            watermark=self.settings.watermark,
            span=self._span(),
            trigger=self.trigger,
            window=self.window,
            slots=self.slots,
            listen=str(self._socket(name)),
            conf=self.cluster.conf(start_with=1) | conf,
            agents=self.agents,
        )

    def _span(self) -> float:
        """Seconds of event time that a batch of a hop can cover."""
        longest = self.events.longest_batch
        if longest is None:
            raise InputError(
                "a split pipeline needs events with max_rows: without a limit a batch may cover "
                "any time, and what comes late from it could be lost"
            )
        return max(self.patience, longest + SPREAD)


def _family(pid: int) -> list[int]:
    """A process and its children, the JVM of its session among them."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [*map(int, children), pid]
