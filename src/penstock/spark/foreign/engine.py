"""A foreign application as an engine: any language, nothing installed in it, only its REST.

What REST does not show stays unmeasured: the backlog, and with it back pressure and latency. The
offered rate is what the batches took. Nothing is ever written to the application.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.batches.actions import join_time, usual_join
from penstock.batches.arrival_monitor import ArrivalLog
from penstock.batches.snapshot import query_window, snapshot
from penstock.batches.stages import StageLog
from penstock.batches.values import Executor, tasks_at_once
from penstock.batches.warmth import Warmth, is_cold
from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.model import Change, Slot, Snapshot
from penstock.spark.foreign.address import Application, refreshed
from penstock.spark.foreign.batches import Batches, check_stages
from penstock.spark.foreign.reader import DroppedError, Execution, Executions
from penstock.spark.read.documents import MOST_CORES
from penstock.spark.read.http import (
    Endpoint,
    Limits,
    NotSparkError,
    RefusedError,
    strange_answers,
)
from penstock.spark.read.rest import Rest

GONE_AFTER = 3  # looks at an address without the application before it has ended for us
LATELY = 120.0  # seconds within which a query has run a batch, to be named at the start
_SETTINGS = ("spark.master", "spark.dynamicAllocation.enabled", "spark.sql.shuffle.partitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is watched, as it was at the start; ``None`` where the application does not tell.

    executors: those alive, or the cores of the driver on ``local[n]``
    cores: of each executor
    queries: those that ran a batch within the last two minutes
    """

    application: Application
    master: str | None
    dynamic_allocation: bool | None
    shuffle_partitions: str | None
    executors: int
    cores: int
    queries: tuple[str, ...]


class ForeignEngine:
    """Observes one application from outside; ``apply`` refuses.

    window: seconds of finished batches that an observation covers
    timeout: seconds that the driver may be silent
    arrivals: whether to keep the newest arrivals
    limits: the time, bytes and requests that one observation may take
    resynchronised: how often Spark had forgotten what was to be read next
    ended: why there will be no more observations
    stopped: ends a wait

    An observation that fails leaves a gap, and a batch with a gap in it would look cheaper than it
    was. So the next one starts afresh, with batches that begin after it.
    """

    def __init__(
        self,
        application: Application,
        *,
        window: float = 15.0,
        timeout: float = 20.0,
        arrivals: bool = False,
        limits: Limits | None = None,
    ) -> None:
        if not window > 0:
            raise InputError(f"window {window} s must be above 0")
        self._application = application
        self._window = window
        self._endpoint = Endpoint(application.base, timeout=timeout, limits=limits)
        self._rest = Rest(self._endpoint, application.path)
        self._executions = Executions(self._endpoint, application.path)
        self._batches: Batches | None = None
        self._stages = StageLog()
        self._warmth = Warmth()
        self._arrivals = ArrivalLog() if arrivals else None
        self._last: dict[str, tuple[float, float]] = {}
        self._gone = 0
        self._master = ""
        self.resynchronised = 0
        self.unattributed = False
        self.unsized: tuple[str, ...] = ()
        self.ended: str | None = None
        self.stopped = threading.Event()

    def begin(self) -> Watched:
        """Look for the first time: what is there. Batches count that begin after this."""
        with self._endpoint.budget(), strange_answers():
            past = self._attach()
            environment = self._environment()
            self._master = environment.get("spark.master", "")
            executors = self._rest.executors()
            alive = [e for e in executors if e.alive]
            now = self._endpoint.now()
            size = len(alive) if executors else len(self._slots(executors, now))
        recent = {e.run_id: e.query for e in past if e.running or e.end > now - LATELY}
        return Watched(
            application=self._application,
            master=environment.get("spark.master"),
            dynamic_allocation=environment.get("spark.dynamicAllocation.enabled") == "true"
            if environment
            else None,
            shuffle_partitions=environment.get("spark.sql.shuffle.partitions"),
            executors=size,
            cores=max((e.cores for e in alive), default=1),
            queries=tuple(name for run, name in recent.items() if run is not None),
        )

    def observe(self) -> Snapshot:
        """The last finished batches of all queries."""
        try:
            with self._endpoint.budget(), strange_answers():
                return self._observe()
        except (NotReady, DroppedError):
            raise
        except EngineError:
            self._batches = None
            raise

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Never: a foreign application is only watched."""
        raise EngineError("a foreign application is only watched; nothing is changed in it")

    def advance(self, seconds: float) -> bool:
        """Wait; false when the application has ended or ``stopped`` was set."""
        return self.ended is None and not self.stopped.wait(seconds)

    def now(self) -> float:
        """The time on the driver's clock."""
        return self._endpoint.now()

    def _observe(self) -> Snapshot:
        self._look_for_end()
        if self._batches is None:
            self._attach()
            raise NotReady("batches count that begin from now on")
        now = self._endpoint.now()
        try:
            self._read(self._batches, now)
        except DroppedError:
            self.resynchronised += 1
            self._attach()
            raise
        executors = self._rest.executors()
        self._warmth.look(executors, now)
        slots = self._slots(executors, now)
        all_cores = sum(e.cores for e in executors) or len(slots)
        unsized_runs = self._batches.unsized()
        windows, unsized = [], []
        for run_id, batches in self._batches.queries(now).items():
            stages = self._stages.of(run_id)
            for b in batches:
                check_stages(b, stages.get(b.id, ()), all_cores)
            if run_id in unsized_runs:
                unsized.append(batches[-1].query)
            seen = query_window(
                batches,
                stages,
                now=now,
                window=self._window,
                cores=tasks_at_once(executors),
                cold=self._warmth.cold_share,
            )
            if seen is not None and seen.works:
                windows.append(seen)
        if not windows and self._batches.queries(now):
            raise NotReady(
                "no stage of the last batches could be read; if this stays so, Spark forgets them "
                "too soon: shorten the period or raise spark.ui.retainedStages"
            )
        if not windows:
            raise NotReady("no streaming query has begun and finished a batch yet")
        self.unsized = tuple(unsized)
        sized = {r: b for r, b in self._batches.queries(now).items() if r not in unsized_runs}
        arrivals = None if self._arrivals is None else self._arrivals.read(sized)
        join = join_time((), usual_join(self._master))
        whole = snapshot(windows, executors, now=now, slots=slots, arrivals=arrivals, join=join)
        return only_visible(whole, unsized)

    def _read(self, batches: Batches, now: float) -> None:
        """Take what has ended since the last look."""
        # Executions before stages: of a batch that has ended, all stages are there to be read.
        ended = self._executions.ended()
        gaps = self._rest.resynchronised
        stages = self._rest.new_stages()
        if self._rest.resynchronised > gaps:
            raise DroppedError(
                "Spark dropped stages before they could be read; begun afresh, with batches that "
                "begin from now on. Shorten the period or raise spark.ui.retainedStages"
            )
        self._stages.add(stages)
        self.unattributed |= any(s.batch is None and s.run_time > 0 for s in stages)
        batches.add(ended, running=self._executions.running(), now=now)

    def _attach(self) -> list[Execution]:
        """Start afresh; returns what has run so far."""
        self._rest = Rest(self._endpoint, self._application.path)
        self._executions = Executions(self._endpoint, self._application.path)
        # Stages first: a batch that is not in the list of executions has all of its own to come.
        self._rest.new_stages()
        past = self._executions.begin()
        self._stages = StageLog()
        self._batches = Batches(ignored={e.key for e in past if e.key is not None})
        return past

    def _look_for_end(self) -> None:
        try:
            if refreshed(self._application, self._endpoint).ended:
                self.ended = "the application has ended"
                raise NotReady(self.ended)
            self._gone = 0
        except (RefusedError, NotSparkError) as error:
            self._gone += 1
            if self._gone >= GONE_AFTER:
                self.ended = f"the application has ended or cannot be reached any more: {error}"
            raise

    def _environment(self) -> dict[str, str]:
        """The few settings that we want; not every proxy passes on this page."""
        try:
            path = f"/api/v1/applications/{self._application.path}/environment"
            properties = dict(self._endpoint.get(path)["sparkProperties"])
        except NotSparkError:
            return {}
        return {key: str(properties[key]) for key in _SETTINGS if key in properties}

    def _slots(self, executors: Sequence[Executor], now: float) -> dict[str, Slot]:
        """Executors as slots, with their load since the last observation."""
        slots = {}
        kept = {}
        for e in executors:
            if not e.alive:
                continue
            kept[e.id] = (now, e.task_seconds)
            load = None
            then, tasks = self._last.get(e.id, (now, 0.0))
            if now > then:
                load = min(1.0, (e.task_seconds - tasks) / ((now - then) * e.tasks_at_once))
            slots[e.id] = Slot(id=e.id, node=e.host, load=load, cold=is_cold(e))
        self._last = kept
        if not executors:  # local[n]: the driver is the only executor, and each core a slot
            cores = self._rest.driver_cores()
            if not 0 <= cores <= MOST_CORES:
                raise EngineError(
                    f"{cores} cores of one driver cannot be true, at most {MOST_CORES}"
                )
            slots = {str(n): Slot(id=str(n)) for n in range(cores)}
        return slots


def only_visible(seen: Snapshot, unsized: Sequence[str] = ()) -> Snapshot:
    """A snapshot without what follows from the backlog, which REST does not show.

    Of the queries named in ``unsized`` no rate is known either.
    """
    operators = {
        name: replace(
            o,
            offered_rate=None if _of(name, seen, unsized) else o.offered_rate,
            lag=None,
            idle=None,
            backpressured=None,
            latency=None,
        )
        for name, o in seen.operators.items()
    }
    queries = {
        name: replace(
            q,
            offered_rate=None if name in unsized else q.offered_rate,
            processed_rate=None if name in unsized else q.processed_rate,
            lag=None,
            lag_seconds=None,
            latency_p50=None,
            latency_p95=None,
            latency_p99=None,
            backpressured=None,
        )
        for name, q in seen.queries.items()
    }
    return replace(seen, operators=operators, queries=queries)


def _of(operator: str, seen: Snapshot, queries: Sequence[str]) -> bool:
    """Whether an operator belongs to one of some queries; with a single one it has no prefix."""
    if len(seen.queries) == 1:
        return next(iter(seen.queries)) in queries
    return any(operator.startswith(f"{name}/") for name in queries)
