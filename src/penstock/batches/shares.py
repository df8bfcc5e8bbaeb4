"""How each stage spent its time: at work, held back, or without anything to do. Pure.

The stages of a batch take turns on the same executors. So of the executors' time, to a stage

- ``busy`` is what they worked for its own tasks;
- ``held`` (back-pressured) what went to stages below it while records waited at a source: had
  these taken no time, it could have gone on. To a stage that reads a source also what passed
  while nothing of the query ran and records waited: the driver planned, or committed;
- idle is the rest: stages above it ran, or nothing waited, or too few of its own tasks were left
  to keep every executor at work.

Time of the driver holds up the reading stages only. The ones below have nothing to read then, and
if it counted for them too, back pressure would reach the last stage of every query and point
at it, whichever is slow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import attrgetter

from penstock.batches.values import Batch, Executor, Stage
from penstock.core.quick import maker


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """A stage at work in one batch: from when to when, and its busy executor-seconds."""

    start: float
    end: float
    busy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A batch, or the time between two: busy executor-seconds, and whether records waited."""

    start: float
    end: float
    busy: float
    waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """When a stage worked, and which stages it reads from; one without any reads a source."""

    upstream: Sequence[str]
    spells: Sequence[Spell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of the executors' time, which sum to 1."""

    busy: float
    held: float

    @property
    def idle(self) -> float:
        """What is left."""
        return max(0.0, 1.0 - self.busy - self.held)


class ExecutorTime:
    """Executor-seconds that there were between two moments; those that came or went count for
    their time.
    """

    def __init__(self, executors: Sequence[Executor]) -> None:
        lived = [e for e in executors if e.removed is None or e.removed > e.added]
        self._base = min((e.added for e in lived), default=0.0)
        self._added = sorted(e.added - self._base for e in lived)
        self._removed = sorted(e.removed - self._base for e in lived if e.removed is not None)
        self._sums = [list(accumulate(t, initial=0.0)) for t in (self._added, self._removed)]

    def between(self, start: float, end: float) -> float:
        """Executor-seconds from ``start`` to ``end``."""
        return max(0.0, self._until(end) - self._until(start))

    def _until(self, moment: float) -> float:
        at = moment - self._base
        here, gone = bisect_right(self._added, at), bisect_right(self._removed, at)
        return here * at - self._sums[0][here] - (gone * at - self._sums[1][gone])


_spell = maker(Spell)  # one for every stage of every batch that is looked at


def spells_of(batch: Batch, stages: Sequence[Stage], *, cores: float) -> dict[int, Spell]:
    """When each stage of a batch worked, by its id.

    Those whose times are not known (a simulation that does not tell; a batch that still runs) are
    taken as running one after the other in what the others leave at the end of the batch, each
    for its share of their busy seconds.
    """
    found: dict[int, Spell] = {}
    untimed: list[Stage] = []
    rest = batch.start
    for stage in sorted(stages, key=attrgetter("id")):
        start = min(max(stage.submitted or 0.0, batch.start), batch.end)
        end = min(max(stage.ended or 0.0, start), batch.end)
        if stage.submitted is None or stage.ended is None or end <= start:
            untimed.append(stage)
        else:
            found[stage.id] = _spell(start=start, end=end, busy=stage.busy / cores)
            rest = max(rest, end)
    whole = sum(s.busy for s in untimed)
    for stage in untimed:
        share = stage.busy / whole if whole else 1.0 / len(untimed)
        start, rest = rest, min(batch.end, rest + share * (batch.end - rest))
        whole -= stage.busy
        found[stage.id] = _spell(start=start, end=rest, busy=stage.busy / cores)
    return found


def shares_of(
    stages: Mapping[str, StageTimes], phases: Sequence[Phase], time: ExecutorTime, slots: int
) -> dict[str, Shares]:
    """How each stage of a query spent the time of the executors, by name.

    ``slots`` executors count where it is not known when they came.
    """
    known = bool(phases) and time.between(phases[0].start, phases[-1].end) > 0.0

    def paid(start: float, end: float) -> float:
        return time.between(start, end) if known else slots * (end - start)

    whole = sum(paid(p.start, p.end) for p in phases)
    if not whole:
        return {name: Shares(busy=0.0, held=0.0) for name in stages}
    below = _below(stages)
    busy = {name: sum(s.busy for s in times.spells) for name, times in stages.items()}
    held = dict.fromkeys(stages, 0.0)
    spells = sorted(
        ((s.start, name, s) for name, t in stages.items() for s in t.spells if s.end > s.start),
        key=lambda found: found[0],
    )
    begins = [found[0] for found in spells]
    for phase in phases:
        if not phase.waiting:
            continue
        first, after = bisect_left(begins, phase.start), bisect_left(begins, phase.end)
        at_work = [(name, spell) for _, name, spell in spells[first:after]]
        edges = {phase.start, phase.end, *(t for _, s in at_work for t in (s.start, s.end))}
        for start, end in pairwise(sorted(edges)):
            active = {n: s for n, s in at_work if s.start < end and s.end > start}
            for name, times in stages.items():
                if not below[name].isdisjoint(active) or (not active and not times.upstream):
                    own = active.get(name)
                    worked = own.busy * (end - start) / (own.end - own.start) if own else 0.0
                    held[name] += max(0.0, paid(start, end) - worked)
    # Tasks may report more than there was when an executor died; shares are of what there was.
    most = max(whole, sum(busy.values()))
    return {
        name: Shares(busy=busy[name] / most, held=min(held[name] / whole, 1.0 - busy[name] / most))
        for name in stages
    }


def _below(stages: Mapping[str, StageTimes]) -> dict[str, set[str]]:
    """The stages that follow each, next to it or further down."""
    below: dict[str, set[str]] = {name: set() for name in stages}
    for name in reversed(list(stages)):  # a stage stands after those that it reads from
        for upstream in stages[name].upstream:
            below[upstream] |= {name, *below[name]}
    return below


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a stage used per second: busy executors, and cores by what its tasks report."""

    busy: float
    cpu: float


def cpu_of(stages: Sequence[Used], pool: float, busy: float) -> list[float]:
    """The CPU of each stage, as a share of what its part of the executors was allowed.

    ``pool`` that of the executors as a whole · ``busy`` the share of their time at work. A stage's
    part is its share of all busy seconds, so the mean over the stages, weighted with their parts,
    is ``pool``: whoever scales by it asks for the same in all. It is the share of their allowance
    that executors used while they worked for the stage, times ``busy``.

    Tasks report the CPU of the JVM only. What the executors used beyond it (Python workers) is
    dealt out by the time in which the JVM waited, so that no stage used more than all.
    """
    worked, used = sum(s.busy for s in stages), sum(s.cpu for s in stages if s.busy)
    if not (worked > 0 and used > 0 and 0 < pool < busy):
        return [pool] * len(stages)
    whole = pool / busy  # of their allowance, while they worked
    rates = [s.cpu / s.busy if s.busy else used / worked for s in stages]
    # Cores that an executor is allowed, at least: it used them.
    allowed = max(used / worked / whole, *rates)
    reported = used / worked / allowed
    beyond = max(0.0, whole - reported) / (1.0 - reported) if reported < 1.0 else 0.0
    own = (rate / allowed for rate in rates)
    return [busy * (share + beyond * (1.0 - share)) for share in own]
