"""Which Nexmark events, and when they are released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.core.errors import InputError, unknown
from penstock.workloads.draws import Whole
from penstock.workloads.nexmark.columns import Rows, make
from penstock.workloads.nexmark.events import SCHEMAS, TABLES, NexmarkEvents, Order, Table
from penstock.workloads.pattern import Pattern
from penstock.workloads.release import Releases, check_schedule, releases


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkStream:
    """Nexmark's events, released on the wall clock by a rate pattern.

    ``start`` epoch second at which the pattern begins · ``seconds`` how long it lasts ·
    ``tables`` those whose events the pattern's rate counts, together: each has its share by the
    proportions · ``partitions`` tasks per table and micro-batch · ``max_rows`` most rows that a
    micro-batch takes of all tables together (``None``: all that wait); each takes its share of
    as many whole epochs as fit.

    What a row says does not depend on the tables or the pattern, only when it comes does.

    >>> from penstock.workloads.patterns import Constant
    >>> stream = NexmarkStream(pattern=Constant(rps=100.0), start=0.0, seconds=10.0)
    >>> stream.total("bid"), stream.released("bid", 2.5)
    (1000, 250)
    """

    events: NexmarkEvents = field(default_factory=NexmarkEvents)
    pattern: Pattern
    start: float
    seconds: float
    tables: tuple[Table, ...] = ("bid",)
    partitions: int = 8
    max_rows: int | None = None

    def __post_init__(self) -> None:
        check_schedule(
            start=self.start,
            seconds=self.seconds,
            partitions=self.partitions,
            max_rows=self.max_rows,
        )
        for table in self.tables:
            if table not in TABLES:
                raise unknown("table", table, TABLES)
        if not self.tables or len(set(self.tables)) < len(self.tables):
            text = ", ".join(self.tables)
            raise InputError(f"tables [{text}] must be at least one of {', '.join(TABLES)}, once")
        if self.max_rows is not None and len(self.tables) > 1 and self.max_rows < self._order.width:
            raise InputError(
                f"max_rows {self.max_rows} must be at least {self._order.width}, the events of one "
                f"epoch of {', '.join(self.tables)}: else a micro-batch could not take any"
            )

    @property
    def end(self) -> float:
        """Epoch second at which the pattern ends."""
        return self.start + self.seconds

    def total(self, table: Table) -> int:
        """All rows of a table that there will ever be."""
        return self._order.count(table, self._releases.total)

    def released(self, table: Table, now: float) -> int:
        """Rows of a table released until an epoch second, to the microsecond."""
        return self._order.count(table, self._releases.count(round(now * 1e6) - self._start))

    def limit(self, table: Table) -> int | None:
        """Most rows that a micro-batch takes of a table; ``None``: all that wait."""
        if self.max_rows is None or len(self.tables) == 1:
            return self.max_rows
        return self.max_rows // self._order.width * self._order.sizes[table]

    @property
    def longest_batch(self) -> float | None:
        """Seconds of event time that a micro-batch covers at most; ``None`` without a limit."""
        if self.max_rows is None:
            return None
        spread = self._releases.longest(self.max_rows + self._order.width) / 1e6
        return spread + self.events.disorder

    def release_times(self, table: Table, first: int, end: int) -> Whole:
        """When rows ``first`` to ``end`` − 1 are released, in microseconds since the epoch."""
        self._check(table, first, end)
        return self._releaser(table, first, end)(0)

    def rows(
        self, table: Table, first: int, end: int, columns: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """Rows ``first`` to ``end`` − 1 of a table, however many others are asked for."""
        self._check(table, first, end)
        names = SCHEMAS[table].select(columns).columns
        rows = Rows(self.events, table, first, end, self._releaser(table, first, end))
        return make(rows, names)

    @property
    def _order(self) -> Order:
        return Order.of(self.events, self.tables)

    @property
    def _releases(self) -> Releases:
        return releases(self.pattern, self.seconds)  # type: ignore[arg-type]

    @property
    def _start(self) -> int:
        return round(self.start * 1e6)

    def _releaser(self, table: Table, first: int, end: int) -> Callable[[int], Whole]:
        last = self.total(table) - 1

        def release(ahead: int) -> Whole:
            numbers = np.arange(first + ahead, end + ahead, dtype=np.int64)
            places = self._order.place(table, np.minimum(numbers, last))
            return self._releases.at(places) + self._start

        return release

    def _check(self, table: Table, first: int, end: int) -> None:
        total = self.total(table)
        if not 0 <= first <= end <= total:
            raise InputError(f"rows {first} to {end} of {table} must lie within 0 and {total}")
