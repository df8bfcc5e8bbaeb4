"""A split query on real Spark that nobody but its agents sizes: one cosine of load, watched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock.core.errors import EngineError, InputError
from penstock.lab.agents.executors.host import Applications
from penstock.lab.agents.executors.local import LocalAgents, executors_of
from penstock.lab.agents.executors.setup import AgentSettings
from penstock.lab.agents.processes.host import AgentAction
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.clusters.standalone.full_speed import full_speed
from penstock.lab.kafka.broker import LocalBroker
from penstock.lab.kafka.producer import NexmarkProducer
from penstock.lab.proofs import setting
from penstock.lab.proofs.proof import Say
from penstock.lab.queries import nexmark
from penstock.lab.queries.split.hops import hops_of
from penstock.lab.queries.split.run import SplitRun
from penstock.spark.split.wire import ROSTER, Document, ask
from penstock.workloads.cosine import Cosine
from penstock.workloads.nexmark import NexmarkStream

QUERY = nexmark.QUERIES["q1"]
SETTINGS = nexmark.Settings(minute=6.0, watermark=1.0)
TRIGGER = 4.0  # seconds
WINDOW_TRIGGERS = 3  # over which an agent measures
QUICK_SECONDS = 60.0  # the least that a run lasts
LEAD = 50.0  # seconds for three applications to start before the load begins
BATCH_TRIGGERS = 2.0  # of the highest load that a batch may take: what waits is caught up with
WARM_UP = 4.0  # CPU-seconds at full speed that a new executor may use
LOOK = 1.0  # seconds between two looks
STEADY = 25.0  # seconds over which the rate of the sink is taken
EVERY = 15.0  # seconds between two lines of progress
FINAL_SECONDS = 150.0
REST_SECONDS = 90.0
CHECKERS = 2  # executors that compare the result


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    """One cosine from ``low`` to ``high`` records/s in ``seconds``; a trial every ``period``.

    ``cpu_share`` of a core that each executor has · ``most`` executors of an operator, as many
    partitions as there are in its topics and its state.
    """

    seconds: float = 360.0
    low: float = 600.0
    high: float = 5_000.0
    period: float = 15.0
    cpu_share: float = 0.12
    most: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if not QUICK_SECONDS <= self.seconds <= 3600.0:
            raise InputError(f"--seconds {self.seconds:g} must lie between 60 and 3600")
        if not 1.0 <= self.low <= self.high <= 1e6:
            raise InputError(f"1 ≤ --low {self.low:g} ≤ --high {self.high:g} ≤ 1000000 must hold")
        if not 2 <= self.most <= 8:
            raise InputError(f"{self.most} executors of an operator must lie between 2 and 8")
        if not WINDOW_TRIGGERS * TRIGGER <= self.period <= self.seconds / 4:
            raise InputError(
                f"--period {self.period:g} must lie between {WINDOW_TRIGGERS * TRIGGER:g}, over "
                f"which the load is measured, and a quarter of --seconds {self.seconds:g}"
            )

    @property
    def agents(self) -> AgentSettings:
        """What the agents are told."""
        return AgentSettings(period=self.period, window=WINDOW_TRIGGERS * TRIGGER, seed=self.seed)

    @property
    def load(self) -> Cosine:
        """The load."""
        return Cosine(low=self.low, high=self.high, period=self.seconds)

    def events(self, start: float) -> NexmarkStream:
        """The events that are written to Kafka, from an epoch second on."""
        return setting.stream_of(
            QUERY,
            self.load,
            start=start,
            seconds=self.seconds,
            slots=self.most,
            max_rows=int(self.high * TRIGGER * BATCH_TRIGGERS),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """A look at the run, ``time`` seconds after the load began.

    ``offered``, ``delivered`` records/s · ``executors`` that are registered, by operator ·
    ``loads`` the mean of what their agents read, ``None`` where none could · ``messages`` so far,
    and ``formula`` the paper's count for the same actions.
    """

    time: float
    offered: float
    delivered: float
    executors: Mapping[str, int]
    loads: Mapping[str, float | None]
    messages: int
    formula: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsRun:
    """A run from start to end.

    ``rosters`` what each driver was asked for, and which executors it had · ``counts`` of all
    agents together · ``answer`` the result beside a batch run over the same events.
    """

    glances: tuple[Glance, ...]
    actions: tuple[AgentAction, ...]
    counts: Mapping[str, int]
    rosters: Mapping[str, Document]
    answer: nexmark.Comparison
    limited: bool = True


@dataclass(slots=True)
class _Watch:
    """Looks at a run; no decision sees what it sees."""

    run: SplitRun
    agents: LocalAgents
    events: NexmarkStream
    applications: Mapping[str, str]
    load: Callable[[float], float]
    glances: list[Glance] = field(default_factory=list)
    _taken: list[tuple[float, int]] = field(default_factory=list)

    def look(self) -> Glance:
        """A glance, and a failure if an application or the host of the agents has ended."""
        now = time.time() - self.events.start
        living, counts = self.agents.agents(), self.agents.counts()
        names = [hop.name for hop in self.run.hops]
        cluster = self.run.cluster
        glance = Glance(
            time=now,
            offered=self.load(now) if 0.0 <= now < self.events.seconds else 0.0,
            delivered=self._delivered(names[-1], now),
            executors={n: len(cluster.executors(self.applications[n])) for n in names},
            loads={
                name: _mean([r.get("load") for a, r in living.items() if a.operator == name])
                for name in names
            },
            messages=counts["messages"],
            formula=counts["messages by the formula"],
        )
        if cluster.failure is not None:
            raise EngineError(cluster.failure)
        self.glances.append(glance)
        return glance

    def _delivered(self, sink: str, now: float) -> float:
        """Records/s that the sink took, between the first and the last batch of some seconds."""
        taken = sum(self.run.status(sink)["taken"].values())
        if not self._taken or taken != self._taken[-1][1]:
            self._taken.append((now, taken))
        while len(self._taken) > 1 and self._taken[0][0] < now - STEADY:
            self._taken.pop(0)
        (then, before), (last, after) = self._taken[0], self._taken[-1]
        return (after - before) / (last - then) if last > then else 0.0


def run(plan: AgentsSettings, *, say: Say) -> AgentsRun:
    """Run it; cluster, broker, agents and topics are gone afterwards."""
    spec = ClusterSpec(
        slots=plan.most * len(hops_of(QUERY)), cpu_share=plan.cpu_share, warm_up=WARM_UP
    )
    with LocalBroker(say=say) as broker, LocalCluster(spec, say=say) as cluster:
        events = plan.events(time.time() + LEAD)
        servers = broker.bootstrap_servers
        split = SplitRun(
            query=QUERY, events=events, settings=SETTINGS, cluster=cluster, servers=servers,
            folder=cluster.folder / "split", trigger=TRIGGER, slots=plan.most,
            partitions=plan.most, agents=True, say=say,
        )  # fmt: skip
        columns = dict(QUERY.tables)
        writing = NexmarkProducer(events, bootstrap_servers=servers, columns=columns)
        with writing as producer, split, _agents(split, plan.agents) as (agents, applications):
            watch = _Watch(split, agents, events, applications, plan.load.rate)
            _follow(watch, lambda: time.time() >= events.end, say)
            say("the load is over; waiting until everything is read…")
            producer.wait(within=FINAL_SECONDS)
            _follow(watch, lambda: _all_taken(split, events), say, within=FINAL_SECONDS)
            split.wait_until_final(events.end + 1.0, within=FINAL_SECONDS)
            _rest(agents, watch)
            counts, actions = agents.counts(), agents.actions()
            rosters = {
                name: ask(address, {"ask": ROSTER}) for name, address in split.addresses().items()
            }
        say("comparing the result with a batch run…")
        session = cluster.session("compare", start_with=CHECKERS)
        with full_speed(cluster):
            answer = nexmark.compare(
                session, QUERY, events, SETTINGS, folder=split.result, until=events.end + 1.0
            )
        begun = events.start
        return AgentsRun(
            glances=tuple(watch.glances),
            actions=tuple(
                AgentAction(time=round(a.time - begun, 3), instance=a.instance, what=a.what)
                for a in actions
            ),
            counts=dict(counts),
            rosters=rosters,
            answer=answer,
            limited=cluster.limited,
        )


@contextmanager
def _agents(
    split: SplitRun, settings: AgentSettings
) -> Iterator[tuple[LocalAgents, dict[str, str]]]:
    """Agents beside the executors of all applications; and which application is whose."""
    applications: dict[str, str] = {
        hop.name: split.status(hop.name)["application"] for hop in split.hops
    }
    described = Applications(
        drivers={name: str(address) for name, address in split.addresses().items()},
        edges=split.pipeline.edges,
    )
    look = executors_of(split.cluster, applications)
    with LocalAgents(described, settings, look) as agents:
        yield agents, applications


def _follow(
    watch: _Watch, over: Callable[[], bool], say: Say, *, within: float | None = None
) -> None:
    """Look once a second until it is over."""
    deadline = None if within is None else time.monotonic() + within
    spoken = 0.0
    while not over():
        begun = time.monotonic()
        glance = watch.look()
        if begun - spoken >= EVERY:
            spoken = begun
            say(line(glance))
        if deadline is not None and begun > deadline:
            raise EngineError(f"not everything was read within {within:.0f} s after the load")
        time.sleep(max(0.0, LOOK - (time.monotonic() - begun)))


def line(glance: Glance) -> str:
    """A line of progress."""
    sizes = "  ".join(f"{name} {size}" for name, size in glance.executors.items())
    return (
        f"{glance.time:4.0f} s  load {glance.offered:6,.0f}/s  delivered "
        f"{glance.delivered:6,.0f}/s  {sizes}  messages {glance.messages}"
    )


def _all_taken(split: SplitRun, events: NexmarkStream) -> bool:
    """Whether every application has read as many records as were made."""
    total = events.total("bid")
    return all(sum(split.status(hop.name)["taken"].values()) >= total for hop in split.hops)


def _rest(agents: LocalAgents, watch: _Watch) -> None:
    """Let actions that are under way end, so that what was said can be counted."""
    deadline = time.monotonic() + REST_SECONDS
    while time.monotonic() < deadline:
        agents.rest()
        watch.look()
        reports: list[dict[str, Any]] = list(agents.agents().values())
        if all(r.get("resting") and r.get("phase") == "active" for r in reports):
            return
        time.sleep(LOOK)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
