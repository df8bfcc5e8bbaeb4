"""Simulated experiments for the fit of profiles: what the simulator did, as Spark would tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from penstock.batches.snapshot import POOL
from penstock.batches.values import Stage, Task
from penstock.core.errors import NotReady
from penstock.core.model import Change
from penstock.history.profiling.experiment import Detail, Experiment
from penstock.simulator.microbatch import MicroBatchEngine, Profile, QueryProfile
from penstock.simulator.microbatch.pool import StageRun
from penstock.workloads.patterns import Constant, Pattern, Step

END = 30.0  # seconds without data at the end of a run

Seat = tuple[int, str, float]  # partition, executor, seconds


class Laboratory:
    """Runs a simulated application and writes down what each task did and where."""

    def __init__(
        self,
        profile: Profile,
        loads: Mapping[str, Pattern],
        *,
        seconds: float,
        start: int,
        seed: int,
    ) -> None:
        self.engine = MicroBatchEngine(profile, loads, seconds=seconds, start=start, seed=seed)
        self._seats: dict[int, list[Seat]] = defaultdict(list)
        self._cpu: list[tuple[float, float]] = []
        pool = self.engine._pool
        submit = pool.submit

        def watched(run: StageRun) -> None:
            done = run.done

            def noted(run: StageRun) -> None:
                seats = zip(run.places, run.seconds, strict=True)
                self._seats[run.stage] = [(i, str(host), s) for i, (host, s) in enumerate(seats)]
                done(run)

            run.done = noted
            submit(run)

        pool.submit = watched  # type: ignore[method-assign]

    def advance(self, seconds: float) -> None:
        """Let it run, and look at the CPU of its executors at the end."""
        self.engine.advance(seconds)
        try:
            seen = self.engine.observe()
        except NotReady:
            return
        self._cpu += [
            (slot.load, slot.cpu)
            for slot in seen.pools[POOL]
            if slot.cpu is not None and slot.load is not None
        ]

    def resize(self, slots: int) -> None:
        """Ask for so many executors, at a moment between two batches if there is one."""
        for _ in range(200):
            if not any(query.running for query in self.engine._queries):
                break
            self.engine.advance(0.05)
        change = Change(before=self.engine.executors, slots=slots, raw=float(slots))
        self.engine.apply({POOL: change})

    def experiment(self) -> Experiment:
        """All that happened, of the only query."""
        self.engine.finish()
        record = self.engine.record()
        (query,) = self.engine.profile.queries
        stages = record.stages[query.name]
        return Experiment(
            batches=record.batches[query.name],
            stages=stages,
            executors=record.executors,
            tasks={
                s.id: self._tasks(query, s, place)
                for some in stages.values()
                for place, s in enumerate(sorted(some, key=lambda s: s.id))
            },
            rescales=record.rescales,
            cpu=tuple(self._cpu),
            details={b.id: Detail(commit=query.commit) for b in record.batches[query.name]},
        )

    def _tasks(self, query: QueryProfile, stage: Stage, place: int) -> Sequence[Task]:
        """Stages run in the order of the profile, so the place tells which it is."""
        made = query.stages[place]
        shares = np.array(made.shares or [1.0 / made.tasks] * made.tasks)
        records = shares * (stage.input_records or stage.read_records)
        return [
            Task(partition=p, executor=e, busy=s, records=round(records[p]))
            for p, e, s in self._seats[stage.id]
        ]


def limited(profile: Profile, share: float) -> Profile:
    """With a share of the records in a batch."""
    (query,) = profile.queries
    sources = tuple(replace(s, max_rows=max(1, round((s.max_rows or 0) * share)))
                    for s in query.sources)  # fmt: skip
    return replace(profile, queries=(replace(query, sources=sources),))


def saturated(
    profile: Profile, executors: int, share: float, *, seconds: float, seed: int
) -> Experiment:
    """Always more to do than a batch takes."""
    small = limited(profile, share)
    loads: dict[str, Pattern] = {s.name: Constant(rps=1e5) for s in small.queries[0].sources}
    lab = Laboratory(small, loads, seconds=seconds, start=executors, seed=seed)
    for _ in range(4):
        lab.advance(seconds / 4)
    return lab.experiment()


def resized(
    profile: Profile, rate: float, sizes: Sequence[int], *, hold: float, seed: int
) -> Experiment:
    """Some load, and another number of executors now and then; at last the data end."""
    seconds = hold * len(sizes)
    loads: dict[str, Pattern] = {
        s.name: Step(low=rate, high=0.0, at=seconds) for s in profile.queries[0].sources
    }
    lab = Laboratory(profile, loads, seconds=seconds + END, start=sizes[0], seed=seed)
    lab.advance(hold)
    for size in sizes[1:]:
        lab.resize(size)
        lab.advance(hold)
    lab.advance(END)
    return lab.experiment()


def experiments(profile: Profile, *, rate: float, seed: int = 0) -> list[Experiment]:
    """As they are made on Spark: sizes and batch sizes, then resizes."""
    found = []
    for number, executors in enumerate((1, 2, 4, 8)):
        for part, share in enumerate((0.1, 0.3, 1.0)):
            found.append(
                saturated(profile, executors, share, seconds=60.0, seed=seed + 10 * number + part)
            )
    for turn in range(3):
        sizes = (2, 5, 3, 6, 2, 4)
        found.append(resized(profile, rate, sizes, hold=40.0, seed=seed + 100 + turn))
    return found
