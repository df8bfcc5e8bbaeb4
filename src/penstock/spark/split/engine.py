"""All applications of a split pipeline as one engine: observe them, resize each, wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from penstock.batches.snapshot import POOL
from penstock.core.codec import from_json, to_json
from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.model import Change, OperatorSeen, Slot, Snapshot
from penstock.core.pipeline import Pipeline
from penstock.spark.ports import CpuMetered
from penstock.spark.read.cpu import CpuMeter
from penstock.spark.split.wire import Address, Document, ask

log = logging.getLogger("penstock")


class SplitEngine:
    """One application per operator of a pipeline, each on a pool of its own.

    members: where the application of each operator listens
    key: the secret of the connections, if others can reach them
    cluster: measures the CPU of their executors

    An application that does not answer makes an observation fail: nobody decides on half a
    pipeline.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        members: Mapping[str, Address],
        *,
        key: str | None = None,
        cluster: CpuMetered | None = None,
    ) -> None:
        check(pipeline)
        if set(members) != set(pipeline.operators):
            raise InputError(
                f"the pipeline has the operators {', '.join(pipeline.operators)}, but there are "
                f"addresses of {', '.join(members) or 'none'}; give one address of each"
            )
        self.pipeline = pipeline
        self.stopped = threading.Event()
        self._members = dict(members)
        self._key = key
        self._meters = {name: CpuMeter(cluster) for name in members} if cluster else {}

    def attach(self) -> None:
        """Nothing to do: every question opens a connection of its own."""
        self.stopped.clear()

    def detach(self) -> None:
        """End any wait."""
        self.stopped.set()

    def silent(self) -> dict[str, str]:
        """The operators whose applications do not answer, and what is wrong with each."""
        found = {}
        for name in self._members:
            try:
                self._ask(name, {"ask": "status"})
            except (EngineError, InputError) as error:
                found[name] = str(error)
        return found

    def observe(self) -> Snapshot:
        """All applications at this moment."""
        with ThreadPoolExecutor(len(self._members), thread_name_prefix="penstock-ask") as pool:
            answers = dict(zip(self._members, pool.map(self._observed, self._members), strict=True))
        return merged(self.pipeline, answers, now=time.time())

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Resize pools; all are tried. Raises only if none could be."""
        problems, done = [], False
        for name, operator in self.pipeline.operators.items():
            if (change := changes.get(operator.pool)) is None:
                continue
            try:
                self._ask(name, {"ask": "apply", "change": to_json(change)})
                done = True
            except (EngineError, InputError) as error:
                problems.append(f"{name}: {error}")
        if problems and not done:
            raise EngineError("; ".join(problems))
        for problem in problems:
            log.warning("not done: %s", problem)

    def advance(self, seconds: float) -> bool:
        """Wait; false when stopped."""
        return not self.stopped.wait(seconds)

    def _ask(self, name: str, question: Document) -> Document:
        return ask(self._members[name], question, key=self._key)

    def _observed(self, name: str) -> ApplicationSeen:
        answer = self._ask(name, {"ask": "observe"})
        seen = None if answer["seen"] is None else from_json(Snapshot, answer["seen"])
        slots = tuple(from_json(Slot, slot) for slot in answer["slots"])
        if (meter := self._meters.get(name)) is not None:
            used = meter.used(answer["application"], {slot.id: _cores(seen) for slot in slots})
            slots = tuple(replace(slot, cpu=used.get(slot.id)) for slot in slots)
            seen = None if seen is None else _with_cpu(seen, slots)
        return ApplicationSeen(seen=seen, slots=slots, most_rows=answer["most_rows"])


def _cores(seen: Snapshot | None) -> float:
    """Cores of an executor of an application; 1 before its first batch."""
    told = seen.facts.get(POOL) if seen is not None else None
    return 1.0 if told is None or told.cores is None else told.cores


def check(pipeline: Pipeline) -> None:
    """Refuse a pipeline whose operators share a pool: an application is one operator."""
    pools = [o.pool for o in pipeline.operators.values()]
    if twice := sorted({pool for pool in pools if pools.count(pool) > 1}):
        raise InputError(
            f"several operators share the pool {twice[0]!r}; in a split pipeline each has its own"
        )


def _with_cpu(seen: Snapshot, slots: tuple[Slot, ...]) -> Snapshot:
    measured = [slot.cpu for slot in slots if slot.cpu is not None]
    if not measured:
        return seen
    mean = sum(measured) / len(measured)
    return replace(seen, operators={n: replace(o, cpu=mean) for n, o in seen.operators.items()})


# The applications of a split pipeline as one snapshot. Pure: the same input, the same snapshot.
#
# Each application is one operator on a pool of its own. Between two of them is a topic: what waits
# there is the buffer of the operator below. Each figure is defined in docs/split.md.


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSeen:
    """What one application answered.

    seen: its own snapshot; ``None`` before its first batch, which may be long after that of the
        operators above
    slots: its executors
    most_rows: the rows that a batch of it may take; ``None`` if there is no limit
    """

    seen: Snapshot | None
    slots: tuple[Slot, ...]
    most_rows: int | None = None


def merged(pipeline: Pipeline, parts: Mapping[str, ApplicationSeen], *, now: float) -> Snapshot:
    """One snapshot of the whole pipeline; operators without a batch so far are not measured."""
    told = {name: part.seen for name, part in parts.items() if part.seen is not None}
    if not told:
        raise NotReady("no application has finished a batch yet")
    operators = {
        name: _operator(seen, parts[name], name in pipeline.sources) for name, seen in told.items()
    }
    pools = {
        pipeline.operators[name].pool: tuple(replace(s, operator=name) for s in part.slots)
        for name, part in parts.items()
    }
    at_once = {
        pipeline.operators[name].pool: tasks
        for name, seen in told.items()
        for tasks in seen.pipeline.slot_tasks.values()
    }
    return Snapshot(
        time=now,
        window=max(seen.window for seen in told.values()),
        age=max(max(0.0, now - seen.time) + seen.age for seen in told.values()),
        pipeline=replace(pipeline, slot_tasks=at_once) if at_once else pipeline,
        operators={name: _held_up(name, pipeline, operators) for name in operators},
        pools=pools,
        acting=any(seen.acting for seen in told.values()),
        rescales=tuple(
            replace(rescale, pool=pipeline.operators[name].pool)
            for name, seen in told.items()
            for rescale in seen.rescales
        ),
        queries={
            name if len(seen.queries) == 1 else f"{name}/{query}": figures
            for name, seen in told.items()
            for query, figures in seen.queries.items()
        },
        execution="micro-batch",
        facts={
            pipeline.operators[name].pool: facts
            for name, seen in told.items()
            for facts in seen.facts.values()
        },
    )


def _operator(seen: Snapshot, part: ApplicationSeen, source: bool) -> OperatorSeen:
    """An application as one operator: its queries together, whatever stages they have."""
    queries, stages = seen.queries.values(), seen.operators.values()
    arrival = _total(q.processed_rate for q in queries)
    lag = _total(q.lag for q in queries)
    busy = _total(s.busy for s in stages)
    return OperatorSeen(
        parallelism=float(len(part.slots)),
        offered_rate=_total(q.offered_rate for q in queries) if source else None,
        arrival_rate=arrival,
        output_rate=_total(q.output_rate for q in queries),
        service_rate=_service_rate(arrival, stages),
        busy=None if busy is None else min(1.0, busy),
        cpu=_mean_cpu(stages),
        buffer=None if source or lag is None or not part.most_rows
        else min(1.0, lag / part.most_rows),
        lag=lag,
        latency=max((s.latency for s in stages if s.latency is not None), default=None),
    )  # fmt: skip


def _mean_cpu(stages: Iterable[OperatorSeen]) -> float | None:
    """The CPU of an application's executors: the mean over its stages, by their parts of them."""
    known = [(s.parallelism, s.cpu) for s in stages if s.cpu is not None]
    whole = sum(part for part, _ in known)
    return sum(part * cpu for part, cpu in known) / whole if whole else None


def _service_rate(arrival: float | None, stages: Iterable[OperatorSeen]) -> float | None:
    """Records/s that one executor takes through all stages: arrival ÷ Σ arrival_i / μ_i."""
    slots = 0.0
    for stage in stages:
        if stage.arrival_rate and stage.service_rate:
            slots += stage.arrival_rate / stage.service_rate
        elif stage.arrival_rate != 0:
            return None  # it takes time that nobody measured
    return arrival / slots if arrival and slots else None


def _held_up(name: str, pipeline: Pipeline, operators: Mapping[str, OperatorSeen]) -> OperatorSeen:
    """With back pressure: of the time not busy, the share to which a topic below is full.

    A topic takes everything, so nothing is really held up. But a full topic below means what
    back pressure means to a policy: the operator below is too small.
    """
    o = operators[name]
    if o.busy is None:
        return o
    below = [operators[d].buffer if d in operators else None for d in pipeline.downstream[name]]
    full = max((b for b in below if b is not None), default=0.0 if not below else None)
    if full is None:
        return o
    free = max(0.0, 1.0 - o.busy)
    return replace(o, idle=free * (1.0 - full), backpressured=free * full)


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return sum(v for v in known if v is not None) if known and None not in known else None
