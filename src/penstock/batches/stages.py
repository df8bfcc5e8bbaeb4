"""Which stage of a batch does what: stages of many batches, lined up by the work they do.

The n-th stage of one batch is not always the n-th of the next: Spark numbers the two sides of a
join in any order, and a batch without data may lack its reading stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter

from penstock.batches.values import Batch, Stage

KEPT_BATCHES = 500  # of each query, as many as its progress is kept for
MOST_QUERIES = 100
SAME = 0.05  # of its records: a stage reads what others wrote, give or take
READABLE = {
    "stateStoreSave": "aggregate",
    "sessionWindowStateStoreSaveExec": "session",
    "symmetricHashJoin": "join",
    "dedupe": "deduplicate",
    "dedupeWithinWatermark": "deduplicate",
    "StatefulStreamlineAggregate": "aggregate",
    "transformWithStateExec": "transformWithState",
    "transformWithStateInPandasExec": "transformWithState",
    "transformWithStateInPySparkExec": "transformWithState",
}


class StageLog:
    """The ended stages of every query by batch; bounded, and dropped when the query ends."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[int, list[Stage]]] = {}
        self._known: set[str] = set()

    def add(self, stages: Sequence[Stage]) -> None:
        """Keep stages; one that is known already is replaced."""
        for stage in stages:
            if stage.run_id is None or stage.batch is None:
                continue
            batches = self._runs.setdefault(stage.run_id, {})
            same = [s for s in batches.get(stage.batch, ()) if s.id != stage.id]
            batches[stage.batch] = [*same, stage]
            while len(batches) > KEPT_BATCHES:
                del batches[next(iter(batches))]
        while len(self._runs) > MOST_QUERIES:
            del self._runs[next(iter(self._runs))]

    def retain(self, running: Collection[str]) -> None:
        """Drop the queries that ran and no longer do.

        One whose first batch has not ended yet is not known to run, and is kept.
        """
        self._known = (self._known | set(running)) & set(self._runs)
        for run in self._known - set(running):
            del self._runs[run]
        self._known &= set(running)

    def of(self, run_id: str) -> Mapping[int, Sequence[Stage]]:
        """The stages of a query by batch."""
        return self._runs.get(run_id, {})

    def __len__(self) -> int:
        return sum(len(b) for run in self._runs.values() for b in run.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What one stage of every batch does: ``source`` is the index of the source that it reads.

    ``stages`` by batch id; a batch may lack it, or have several.
    """

    source: int | None
    stages: Mapping[int, Sequence[Stage]]


def roles_of(batches: Sequence[Batch], stages: Mapping[int, Sequence[Stage]]) -> list[Role]:
    """The roles of a query's stages: the reading ones by source, then the others in their order.

    A stage that read input and no shuffle reads a source; which one, the rows tell that each
    source reports. The others are lined up from the last stage backwards.
    """
    ran = {b.id: _split(stages.get(b.id, ())) for b in batches}
    full = [ran[b.id] for b in batches if b.rows and any(ran[b.id])]
    full = full or [halves for halves in ran.values() if any(halves)]
    if not full:
        return []
    usual = Counter([len(reading) + len(others) for reading, others in full]).most_common(1)[0][0]
    sources = min(usual, max(1, *[len(reading) for reading, _ in full]))
    later = usual - sources
    roles: list[dict[int, list[Stage]]] = [{} for _ in range(usual)]
    for b in batches:
        reading, others = ran[b.id]
        count = min(sources, max(0, len(reading) + len(others) - later))
        if len(reading) != count:
            reading, others = _evened(reading + others, count)
        for index, stage in zip(_sides(b, reading, sources), reading, strict=True):
            roles[index].setdefault(b.id, []).append(stage)
        for back, stage in enumerate(reversed(others)):
            index = max(usual - 1 - back, sources if later else 0)
            roles[index].setdefault(b.id, []).insert(0, stage)
    return [
        Role(source=i if i < sources else None, stages=stages) for i, stages in enumerate(roles)
    ]


def names_of(roles: Sequence[Role], state: Sequence[str]) -> list[str]:
    """A readable name for each: ``read``, the stateful operator that it runs, else ``stage-N``."""
    sources = sum(r.source is not None for r in roles)
    names: list[str] = []
    for i, role in enumerate(roles):
        if role.source is not None:
            name = "read" if sources == 1 else f"read-{i + 1}"
        elif len(roles) - sources == len(state):
            name = READABLE.get(state[i - sources], state[i - sources])
        else:
            name = f"stage-{i + 1}"
        names.append(name if name not in names else f"{name}-{i + 1}")
    return names


def upstream_of(
    read: float, pending: Mapping[str, float], earlier: Mapping[str, float]
) -> tuple[str, ...]:
    """Which of the earlier stages a stage reads from, by what it read and what they wrote.

    All that nobody has read yet (``pending``), unless only some of them wrote as much. What wrote
    nothing is the end of a job of its own, where a batch has several. A later job may read again
    what an earlier one read: a sort looks at a sample of what it is going to sort first.

    >>> upstream_of(10.0, {"read-1": 10.0, "read-2": 500.0}, {})
    ('read-1',)
    >>> upstream_of(10.0, {"read-2": 10.0, "stage-3": 0.0}, {})
    ('read-2',)
    >>> upstream_of(10.0, {"sample": 0.0}, {"read": 10.0, "sample": 0.0})
    ('read',)
    """
    if not read:
        return _as_much(read, pending) or tuple(pending)
    wrote = {name: records for name, records in pending.items() if records}
    again = {name: records for name, records in earlier.items() if records and name not in pending}
    return _as_much(read, wrote) or _as_much(read, again) or tuple(wrote or pending)


def _as_much(read: float, written: Mapping[str, float]) -> tuple[str, ...]:
    """The stages, as many as possible, that together wrote what was read; empty if there are none.

    Of few only: all ways to choose some of many are too many.
    """
    for size in range(len(written), 0, -1) if len(written) < 7 else ():
        for some in combinations(written, size):
            if abs(sum(written[name] for name in some) - read) <= SAME * read:
                return some
    return ()


_ID = attrgetter("id")


def _reads(stage: Stage) -> bool:
    return stage.input_records > 0 and stage.read_records == 0


def _split(stages: Sequence[Stage]) -> tuple[list[Stage], list[Stage]]:
    """The stages of a batch that read sources, and the others, those without tasks left out."""
    reading: list[Stage] = []
    others: list[Stage] = []
    for stage in sorted(stages, key=_ID):
        if stage.tasks:
            (reading if _reads(stage) else others).append(stage)
    return reading, others


def _evened(stages: Sequence[Stage], count: int) -> tuple[list[Stage], list[Stage]]:
    """The same with ``count`` that read sources.

    Where too few read anything, those that read nothing at all make up for it.
    """
    by_doubt = sorted(stages, key=lambda s: (not _reads(s), s.read_records > 0, s.id))
    chosen = {s.id for s in by_doubt[:count]}
    stages = sorted(stages, key=_ID)
    return [s for s in stages if s.id in chosen], [s for s in stages if s.id not in chosen]


def _sides(batch: Batch, reading: Sequence[Stage], sources: int) -> list[int]:
    """The index of the source of each reading stage: the one that reports as many rows."""
    if sources == 1:
        return [0] * len(reading)
    rows = [*(s.rows for s in batch.inputs), *[0] * sources][:sources]
    by_rows = sorted(range(sources), key=lambda i: -rows[i])
    by_records = sorted(range(len(reading)), key=lambda i: -reading[i].input_records)
    side = dict(zip(by_records, by_rows, strict=False))
    return [side[i] for i in range(len(reading))]
