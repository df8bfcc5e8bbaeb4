"""A Spark session without Spark: executors that come and go as they are asked to, in one thread.

``autoscaler`` runs a real Autoscaler through a list of observations as fast as it can; time is
that of the observations.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from penstock.batches.values import Executor
from penstock.core.errors import EngineError
from penstock.core.loop import Decision
from penstock.core.model import Change, OperatorSeen, QuerySeen, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.autoscaler import Autoscaler
from tests.fakes.waiting import until

POOL = "executors"
_numbers = itertools.count(1)
SHAPE = Pipeline(
    operators={
        "read": Operator(pool=POOL, partitions=64),
        "aggregate": Operator(pool=POOL, stateful=True, partitions=64),
    },
    edges=(("read", "aggregate"),),
)


class Conf(dict[str, str]):
    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 (Spark's names)
        return list(self.items())


@dataclass
class FakeSpark:
    """The few methods of a SparkContext and its JVM that resizing uses."""

    conf: dict[str, str] = field(default_factory=dict)
    master: str = "spark://127.0.0.1:7077"
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    accepts: bool = True
    uiWebUrl: str | None = None  # noqa: N815
    applicationId: str = field(default_factory=lambda: f"app-{next(_numbers)}")  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        # sc._jvm.org.apache…, sc._jsc.sc().schedulerBackend(): every step leads back here.
        return self

    def __call__(self, *args: Any) -> Any:
        return self

    def getConf(self) -> Conf:  # noqa: N802
        return Conf(self.conf)

    def requestTotalExecutors(self, *args: Any) -> bool:  # noqa: N802
        self.calls.append(("request", args[0]))
        return self.accepts

    def decommissionExecutor(self, *args: Any) -> bool:  # noqa: N802
        self.calls.append(("decommission", args[0], args[2]))
        return True


def executor(id: int, *, added: float = 0.0, **kw: Any) -> Executor:
    base = Executor(id=str(id), host="h", cores=1, alive=True, added=added, removed=None,
                    task_seconds=1.0, completed_tasks=0, active_tasks=0)  # fmt: skip
    return replace(base, **kw)


def look(
    time: float = 1000.0, *, rate: float = 1000.0, lag: float = 100.0, busy: float = 0.5
) -> Snapshot:
    """What Spark shows of a query of two stages: no buffers, one pool; 500 records/s a slot."""
    seen = OperatorSeen(
        parallelism=1.0, arrival_rate=rate, service_rate=500.0, busy=busy, idle=1.0 - busy,
        backpressured=0.0, cpu=busy,
    )  # fmt: skip
    return Snapshot(
        time=time,
        window=15.0,
        age=1.0,
        pipeline=SHAPE,
        operators={
            "read": replace(seen, offered_rate=rate, output_rate=rate, lag=lag),
            "aggregate": replace(seen, latency=2.0),
        },
        pools={POOL: ()},
        queries={
            "q": QuerySeen(
                batches=15, rows=int(15 * rate), batch_duration=0.8, offered_rate=rate,
                processed_rate=rate, lag=lag, lag_seconds=lag / rate if rate else 0.0,
                latency_p50=1.0, latency_p95=2.0, latency_p99=3.0, state_rows=7, busy=busy,
            )
        },
        execution="micro-batch",
    )  # fmt: skip


def looks(*rates: float, start: float = 1000.0, **kw: Any) -> list[Snapshot]:
    return [look(start + 15.0 * i, rate=rate, **kw) for i, rate in enumerate(rates)]


@dataclass
class FakeSession:
    """What an Autoscaler needs of a session, and the story that is played to it.

    An item of ``story`` is an observation, an error to raise instead, or something to call first.
    """

    story: list[Snapshot | Exception | Callable[[], None]]
    size: int = 4
    conf_of_session: dict[str, str] = field(default_factory=dict)
    sparkContext: FakeSpark = field(default_factory=FakeSpark)  # noqa: N815
    alive: dict[str, Executor] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    attached: int = 0

    def __post_init__(self) -> None:
        self.grow_to(self.size, 0.0)

    @property
    def conf(self) -> Any:
        return SimpleNamespace(getAll=self.conf_of_session)

    @property
    def requests(self) -> list[int]:
        return [call[1] for call in self.sparkContext.calls if call[0] == "request"]

    def grow_to(self, size: int, now: float) -> None:
        while len(self.alive) < size:
            id = str(max(map(int, self.alive), default=-1) + 1)
            self.alive[id] = executor(int(id), added=now)


class FakeEngine:
    """A ``SparkEngine`` on a ``FakeSession``: what is asked for is there at the next look."""

    def __init__(
        self, spark: FakeSession, *, window: float, cluster: Any = None, arrivals: bool = False
    ) -> None:
        self._session = spark
        self.window = window
        self.batch_time = 10.0
        self.pool = ExecutorPool(spark.sparkContext)
        self.stopped = threading.Event()
        self.queries = ("q",)
        self._now = 0.0

    def attach(self) -> None:
        self._session.attached += 1

    def detach(self) -> None:
        self._session.attached -= 1

    def advance(self, seconds: float) -> bool:
        if self._session.story and not self.stopped.is_set():
            return True
        self._session.over.set()
        self.stopped.wait()
        return False

    def observe(self) -> Snapshot:
        item = self._session.story.pop(0)
        if isinstance(item, Exception):
            raise item
        if not isinstance(item, Snapshot):
            item()
            return self.observe() if self._session.story else self._no_more()
        self._now = item.time
        alive = list(self._session.alive.values())
        self.pool.track(alive, self._now)
        cpu = item.operators["read"].cpu
        slots = tuple(Slot(id=e.id, cpu=cpu, load=0.4) for e in alive)
        share = len(slots) / len(item.operators)
        operators = {n: replace(o, parallelism=share) for n, o in item.operators.items()}
        acting, past = self.pool.acting or item.acting, tuple(self.pool.past)
        return replace(item, pools={POOL: slots}, operators=operators, acting=acting, rescales=past)

    def apply(self, changes: Mapping[str, Change]) -> None:
        session = self._session
        self.pool.refuse_if_not_ours()
        before = len(session.sparkContext.calls)
        self.pool.resize(changes[POOL], list(session.alive.values()), self._now)
        for call in session.sparkContext.calls[before:]:
            if call[0] == "request":
                session.grow_to(call[1], self._now)
            else:
                session.alive.pop(call[1])

    def _no_more(self) -> Snapshot:
        raise EngineError("the story is over")


@contextmanager
def without_spark() -> Iterator[None]:
    """Autoscalers made here look at fake sessions."""
    with patch("penstock.spark.autoscaler.SparkEngine", FakeEngine):
        yield


def played(
    story: Sequence[Any], policy: Any = None, *, size: int = 4, **options: Any
) -> tuple[FakeSession, list[Decision]]:
    """Play a story to an Autoscaler in mode act; the session afterwards, and the decisions."""
    session = FakeSession(list(story), size=size)
    made: list[Decision] = []
    options.setdefault("record", lambda decision, _: made.append(decision))
    with without_spark(), Autoscaler(session, policy, **{"mode": "act", **options}):
        until("the story is over", session.over.is_set)
    return session, made
