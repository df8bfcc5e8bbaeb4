"""What a controller is handed: an engine, and what a cluster may offer besides Spark itself.

Spark alone is enough to observe and to resize. A cluster that can do more (measure and limit the
CPU of its executors, choose where they run) makes an engine of its own for an Autoscaler: see
:class:`Cluster`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from penstock.core.latency import LatencyMap
from penstock.core.ports import Engine


class LiveEngine(Engine, Protocol):
    """An engine of something that runs by itself; ``stopped`` ends a wait."""

    stopped: threading.Event

    def attach(self) -> None:
        """Begin to listen."""
        ...

    def detach(self) -> None:
        """Stop listening and end any wait."""
        ...


class LastGate(Protocol):
    """What is checked right before Spark is asked, whatever was decided.

    limits: fewest and most executors
    frozen: says why nothing may be done at this moment, or ``None``
    """

    limits: tuple[int, int] | None
    frozen: Callable[[], str | None] | None

    def refuse_if_not_ours(self) -> None:
        """Raise if something else sizes this application, or if there is nothing to size."""
        ...


class ApplicationEngine(LiveEngine, Protocol):
    """The queries and executors of one Spark application.

    batch_time: seconds that a batch may take of a query without a trigger
    """

    batch_time: float

    @property
    def pool(self) -> LastGate:
        """Its executors."""
        ...

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that have finished a batch and still run."""
        ...


class Cluster(Protocol):
    """A cluster that makes the engine for the applications that run on it."""

    def engine(self, spark: Any, *, window: float, arrivals: bool) -> ApplicationEngine:
        """The engine of a session; it observes ``window`` seconds of finished batches, and keeps
        the newest arrivals for policies that want them.
        """
        ...


class CpuMetered(Protocol):
    """A cluster that knows what CPU its executors use.

    Executors are named by their Spark id. Ids repeat between applications: ``app`` is the Spark
    id of one, or else the newest that has executors is meant.
    """

    @property
    def limited(self) -> bool:
        """Whether its executors have CPU quotas, at the latest when they are warm."""
        ...

    def cpu_seconds(self, app: str | None = None) -> dict[str, float]:
        """CPU seconds that each executor has used since it started."""
        ...

    def share(self, executor_id: str, app: str | None = None) -> float | None:
        """The share of one core that an executor is limited to; ``None`` without a limit."""
        ...


class CpuLimited(CpuMetered, Protocol):
    """A cluster that can also change the CPU quotas of its executors while they run."""

    def executors(self, app: str | None = None) -> Collection[str]:
        """The ids of the executors that have registered."""
        ...

    def nominal_share(self, executor_id: str, app: str | None = None) -> float | None:
        """The share of one core that an executor was promised; ``None`` without a limit."""
        ...

    def set_share(self, executor_id: str, share: float, app: str | None = None) -> None:
        """Give an executor another share of one core."""
        ...


class Placer(Protocol):
    """A cluster on which the place of every executor can be chosen: a slot at a site.

    A slot is a worker that holds one executor.
    """

    @property
    def cpu(self) -> CpuLimited:
        """What measures and limits the CPU of its executors."""
        ...

    @property
    def home(self) -> str:
        """The site of the driver."""
        ...

    @property
    def rtt(self) -> LatencyMap:
        """The measured round trips between sites."""
        ...

    @property
    def prices(self) -> Mapping[str, float]:
        """The price of a slot at each site."""
        ...

    def site_at(self, host: str) -> str:
        """The site that has an address."""
        ...

    def room(self) -> Mapping[str, int]:
        """How many more slots each site has room for; one that is leaving still counts."""
        ...

    def worker_of(self, executor_id: str, app: str | None = None) -> str | None:
        """The worker that holds an executor; ``None`` if it is gone."""
        ...

    def add_slot(self, site: str) -> str:
        """Start a worker at a site; returns its name at once."""
        ...

    def remove_worker(self, name: str) -> None:
        """End a worker whose executor has left."""
        ...
