"""One run of log analysis under a piece of a trace, with a policy that sets the CPU share."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from penstock.batches.arrival_monitor import ArrivalLog
from penstock.core.errors import EngineError, NotReady
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.ports import Policy
from penstock.history.journal import Header, Journal
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.proofs.proof import Say
from penstock.lab.queries.log_analysis import Sink, start
from penstock.lab.queries.running import stop
from penstock.policies import name_of, parameters_of
from penstock.spark.engine import SparkEngine
from penstock.workloads.logs import LogLines, TimedLogs
from penstock.workloads.pattern import Floats
from penstock.workloads.recorded import bellcore

COURSE = "courses.json"
LEAD = 10.0  # seconds for a query to open its source before the first packet
LATE = 180.0  # seconds for the last lines to be done
BIN = 5.0  # seconds of a picture's points
GUARDS = Guards(minimum=1, maximum=1, cool_down=0.0)
FULL = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePiece:
    """A piece of the trace: from packet ``first`` on, ``before`` and ``seconds`` that count.

    ``speed`` times as fast as recorded · ``lines`` per packet · ``period`` between decisions.
    """

    first: int
    speed: float
    lines: int
    before: float
    seconds: float
    period: float

    def logs(self, start: float) -> TimedLogs:
        """The lines on the wall clock."""
        length = (self.before + self.seconds) * self.speed
        gaps = bellcore()[self.first :]
        packets = int(np.searchsorted(np.cumsum(gaps), length)) + 1
        return TimedLogs(
            start=start, first=self.first, packets=packets, lines=self.lines, speed=self.speed
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstRun:
    """What a run came to.

    mean, p95: response times in seconds of the lines that count
    share, used: mean CPU share and CPU used, both of the nominal quota
    changes: how often the share was changed
    failed: tasks that failed
    wrong: lines or matches too many or too few
    points: time, response time, share
    monitor_ms: CPU of the workload monitor in all of the run
    monitor_bytes: memory that it holds
    """

    name: str
    mean: float
    p95: float
    share: float
    used: float
    changes: int
    batches: int
    failed: int
    wrong: int
    points: tuple[tuple[float, float, float], ...]
    monitor_ms: float = 0.0
    monitor_bytes: int = 0


class BurstSession:
    """A session on a cluster of one executor that all runs share.

    ``journals`` the folder for the decisions of each policy.
    """

    def __init__(self, cluster: LocalCluster, *, journals: Path, say: Say) -> None:
        self._cluster, self._journals, self._say = cluster, journals, say
        self._number = 0

    def __enter__(self) -> Self:
        conf = {"spark.sql.shuffle.partitions": "1"}
        self.spark: Any = self._cluster.session("penstock bursts", conf=conf)
        return self

    def __exit__(self, *_: object) -> None:
        self.spark.stop()

    def cost(self, plan: TracePiece) -> float:
        """Seconds of full CPU that a line takes in batches as they are: the median of the newest
        observations.
        """
        costs: list[float | None] = []
        with self._playing("calibration", plan) as play:
            while play.wait(plan.period):
                with contextlib.suppress(NotReady):
                    seen = play.engine.observe()
                    costs.extend(query.busy_per_record for query in seen.queries.values())
        known = [cost for cost in costs[-max(3, len(costs) // 3) :] if cost]
        if not known:
            raise EngineError("what a line costs could not be measured; is the machine very busy?")
        return float(np.median(known))

    def run(self, name: str, plan: TracePiece, policy: Policy | None) -> BurstRun:
        """Play a piece of the trace; its first part does not count. ``None``: at full CPU."""
        shares: list[tuple[float, float]] = []
        with contextlib.ExitStack() as stack:
            play = stack.enter_context(self._playing(name, plan))
            begin, end = play.counts
            loop: Loop | None = None
            if policy is not None:
                kept = _journal(policy, plan, self._journals / f"{name.replace(' ', '-')}.jsonl")
                stack.enter_context(contextlib.closing(kept))
                loop = Loop(play.engine, policy, GUARDS, mode="act", record=kept.record)
            used: list[float] = []
            while play.wait(plan.period):
                now = time.time()
                if now >= begin and not used:
                    used.append(self._cpu())
                if loop is not None and now >= begin - 2 * plan.period:
                    with contextlib.suppress(NotReady):
                        self._say(f"{name} {now - begin:4.0f} s: {loop.tick().explain()}")
                shares.append((now, play.engine.shares.now))
            used.append(self._cpu())
            play.finish()
        return _course(name, play, shares, (begin, end), used[-1] - used[0], self._quota)

    @property
    def _quota(self) -> float:
        return self._cluster.spec.cpu_share or 1.0

    def _cpu(self) -> float:
        return sum(self._cluster.cpu_seconds().values())

    @contextlib.contextmanager
    def _playing(self, name: str, plan: TracePiece) -> Iterator[_PlayedTrace]:
        self._number += 1
        folder = self._cluster.folder / f"bursts-{self._number}"
        folder.mkdir()
        self._say(f"{name}: {plan.before + plan.seconds:.0f} s")
        play = _PlayedTrace(
            self.spark, self._cluster, plan, folder=folder, name=f"bursts-{self._number}"
        )
        try:
            yield play
        finally:
            play.close()
            shutil.rmtree(folder, ignore_errors=True)


class _PlayedTrace:
    """The query while it runs."""

    def __init__(
        self, spark: Any, cluster: LocalCluster, plan: TracePiece, *, folder: Path, name: str
    ) -> None:
        self.logs = plan.logs(time.time() + LEAD)
        self.counts = (self.logs.start + plan.before, self.logs.start + plan.before + plan.seconds)
        self.sink = Sink()
        self.engine = SparkEngine(spark, window=plan.period, cluster=cluster, arrivals=True)
        self._spark = spark
        self._failed = self._failures()
        self.engine.attach()
        self.query = start(spark, self.logs, self.sink, folder=folder, name=name)

    def wait(self, seconds: float) -> bool:
        """Until the next look; false when the piece of the trace is over."""
        left = self.counts[1] - time.time()
        if left <= 0.0:
            return False
        self.engine.advance(min(seconds, left))
        self._check()
        return True

    def finish(self) -> None:
        """Until every line is done, at full CPU once all that count are."""
        deadline = time.monotonic() + LATE
        while len(released := self.sink.responses()[0]) < self.logs.rows:
            if time.monotonic() > deadline:
                raise EngineError(f"{self.logs.rows - len(released)} lines are still not done")
            if len(released) and released[-1] >= self.counts[1]:
                self.engine.shares.set(FULL)
            self._check()
            time.sleep(0.2)

    def close(self) -> None:
        """Stop the query; full CPU again."""
        self.engine.detach()
        self.engine.shares.set(FULL)
        if self.query.isActive:
            stop(self.query)

    @property
    def monitor(self) -> ArrivalLog:
        """The workload monitor."""
        assert self.engine.arrivals is not None
        return self.engine.arrivals

    @property
    def failed(self) -> int:
        """Tasks that failed since it began."""
        return self._failures() - self._failed

    def _failures(self) -> int:
        store = self._spark.sparkContext._jsc.sc().statusStore()
        listed = store.executorList(False)
        return sum(int(listed.apply(i).failedTasks()) for i in range(listed.size()))

    def _check(self) -> None:
        if not self.query.isActive:
            raise EngineError(f"the query stopped: {self.query.exception()}")


def _journal(policy: Policy, plan: TracePiece, file: Path) -> Journal:
    header = Header(
        policy=name_of(policy),
        parameters=parameters_of(policy),
        guards=GUARDS,
        mode="act",
        seed=0,
        period=plan.period,
    )
    return Journal(file, header)


def _course(
    name: str,
    play: _PlayedTrace,
    shares: list[tuple[float, float]],
    counts: tuple[float, float],
    cpu: float,
    quota: float,
) -> BurstRun:
    begin, end = counts
    released, stays = play.sink.responses()
    lines = LogLines(play.logs.seed)
    lost = play.logs.rows - sum(play.sink.total().values())
    unmatched = lines.matches(0, play.logs.rows) - play.sink.matched
    some = (released >= begin) & (released <= end)
    times = np.array([t for t, _ in shares])
    values = np.array([s for _, s in shares])
    held = np.diff(np.clip(np.append(times, end), begin, end))
    return BurstRun(
        name=name,
        mean=float(stays[some].mean()),
        p95=float(np.quantile(stays[some], 0.95)),
        share=float(held @ values / held.sum()),
        used=cpu / ((end - begin) * quota),
        changes=int(np.count_nonzero(np.diff(values, prepend=FULL))),
        batches=len(play.sink.done),
        failed=play.failed,
        wrong=abs(lost) + abs(unmatched),
        points=_points(released[some] - begin, stays[some], times - begin, values),
        monitor_ms=1e3 * play.monitor.cpu_seconds,
        monitor_bytes=play.monitor.memory_bytes,
    )


def _points(
    released: Floats, stays: Floats, times: Floats, shares: Floats
) -> tuple[tuple[float, float, float], ...]:
    place = (released // BIN).astype(np.intp)
    counts = np.bincount(place)
    sums = np.bincount(place, weights=stays)
    edges = BIN * np.arange(len(counts))
    now = shares[np.clip(np.searchsorted(times, edges, side="right") - 1, 0, None)]
    return tuple(
        (float(edge), float(total / count), float(share))
        for edge, total, count, share in zip(edges, sums, counts, now, strict=True)
        if count
    )
