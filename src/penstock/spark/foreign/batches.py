"""SQL executions as micro-batches. Pure: the same executions, the same batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.batches.values import Batch, Source, Stage
from penstock.core.errors import EngineError
from penstock.spark.foreign.reader import Execution, Key

KEPT = 500  # batches per query; at one per second more than any window needs
MOST_RUNS = 100  # of queries; each restart of one is another
CLOCKS = 60.0  # seconds that a batch may end after now before its times cannot be true
MOST_TASKS = 10_000_000  # of one stage
OVERSHOOT = 1.5  # of the work that cores can do; the clocks of executors and driver differ
SILENT = 60.0  # seconds without a batch after which a query may have ended
INTERVALS = 3.0  # … and as many of its usual intervals


@dataclass(slots=True)
class Batches:
    """The finished batches of every query, rebuilt from what it executed.

    A batch is the execution that Spark runs it in and all that run inside of it: it starts and
    ends with the first, and took the rows that its scans read (the most of several, where the
    batch is read more than once). ``ignored`` batches had begun before we looked, so that a part
    of their work was not seen. ``kept`` batches of each query.
    """

    ignored: set[Key] = field(default_factory=set)
    kept: int = KEPT
    _parts: dict[Key, list[Execution]] = field(default_factory=dict)
    _done: dict[str, list[Batch]] = field(default_factory=dict)
    _unsized: set[str] = field(default_factory=set)

    def add(self, executions: Iterable[Execution], *, running: Set[Key], now: float) -> None:
        """Take executions that have ended; a batch is there when none of its own is running."""
        for e in executions:
            if e.key is None or e.key in self.ignored:
                continue
            if not (e.start <= e.end <= now + CLOCKS) or min(e.rows or (0,)) < 0:
                raise EngineError(
                    f"execution {e.id} from {e.start:.0f} to {e.end:.0f} with {e.rows} rows "
                    "cannot be true"
                )
            self._parts.setdefault(e.key, []).append(e)
        for key in [key for key in self._parts if key not in running]:
            parts = sorted(self._parts.pop(key), key=lambda e: e.id)
            if not parts[0].failed:
                self._finish(key, parts)

    def _finish(self, key: Key, parts: Sequence[Execution]) -> None:
        run_id, outermost = key[0], parts[0]
        counts = [e.rows for e in parts if e.rows is not None]
        rows = max(counts, key=sum, default=())
        (self._unsized.discard if counts else self._unsized.add)(run_id)
        stateful = max(parts, key=lambda e: len(e.state))
        kept = self._done.setdefault(run_id, [])
        kept.append(
            Batch(
                query=outermost.query,
                run_id=run_id,
                id=key[1],
                start=outermost.start,
                duration=outermost.end - outermost.start,
                rows=sum(rows),
                sources=tuple(Source(rows=n) for n in rows),
                state=stateful.state,
                state_rows=stateful.state_rows,
                state_bytes=stateful.state_bytes,
            )
        )
        kept.sort(key=lambda b: b.start)
        del kept[: -self.kept]
        if len(self._done) > MOST_RUNS:
            oldest = min(self._done, key=lambda run: self._done[run][-1].start)
            del self._done[oldest]
            self._unsized.discard(oldest)

    def queries(self, now: float) -> Mapping[str, Sequence[Batch]]:
        """The batches of every query that still runs any, by run id, oldest first.

        REST does not say when a query has stopped. One that has been silent for a minute and for
        three of its intervals is left out, until it speaks again.
        """
        return {run: kept for run, kept in self._done.items() if not _silent(kept, now)}

    def runs(self) -> Mapping[str, Sequence[Batch]]:
        """The batches of all queries, also of those that have ended, by run id, oldest first."""
        return self._done

    def unsized(self) -> frozenset[str]:
        """Run ids of the queries whose last batch does not tell how many rows it took."""
        return frozenset(self._unsized)


def check_stages(batch: Batch, stages: Sequence[Stage], cores: int) -> None:
    """Refuse work that cannot have been done: below nothing, or more than all cores can do.

    ``cores`` of all executors that there have been; a batch's stages run inside of it.
    """
    for s in stages:
        figures = (s.run_time, s.cpu_time, s.fetch_wait, s.input_records, s.read_records)
        if min(figures) < 0 or not 0 <= s.tasks <= MOST_TASKS:
            raise EngineError(f"stage {s.id} cannot be true: {s}")
    busy = sum(s.run_time for s in stages)
    most = batch.duration * cores * OVERSHOOT + 1.0
    if busy > most:
        raise EngineError(
            f"the stages of {batch.query}, batch {batch.id} cannot be true: {busy:.4g} s of work "
            f"in {batch.duration:.1f} s on {cores} cores"
        )


def _silent(kept: Sequence[Batch], now: float) -> bool:
    recent = kept[-10:]
    longest = max((b.start - a.start for a, b in pairwise(recent)), default=0)
    return now - kept[-1].end > max(SILENT, INTERVALS * longest)
