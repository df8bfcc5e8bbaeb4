"""All applications of a split pipeline as one engine: observe them, resize each, wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from penstock.core.codec import from_json, to_json
from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change, Slot, Snapshot
from penstock.core.pipeline import Pipeline
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.spark.read.cpu import CpuMeter
from penstock.spark.split.merge import Part, merged
from penstock.spark.split.wire import Address, Document, ask

log = logging.getLogger("penstock")


class SplitEngine:
    """One application per operator of a pipeline, each on a pool of its own.

    ``members`` where the application of each operator listens · ``cluster`` measures the CPU of
    their executors, if it is ours. An application that does not answer makes an observation
    fail: nobody decides on half a pipeline.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        members: Mapping[str, Address],
        *,
        key: str | None = None,
        cluster: LocalCluster | None = None,
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

    def _observed(self, name: str) -> Part:
        answer = self._ask(name, {"ask": "observe"})
        seen = None if answer["seen"] is None else from_json(Snapshot, answer["seen"])
        slots = tuple(from_json(Slot, slot) for slot in answer["slots"])
        if (meter := self._meters.get(name)) is not None:
            used = meter.used(answer["application"], {slot.id: 1 for slot in slots})
            slots = tuple(replace(slot, cpu=used.get(slot.id)) for slot in slots)
            seen = None if seen is None else _with_cpu(seen, slots)
        return Part(seen=seen, slots=slots, most_rows=answer["most_rows"])


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
