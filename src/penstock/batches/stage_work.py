"""What each stage of a query did during a window, and how fast one executor does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from penstock.batches.batch_cost import LEAST_BATCHES, Cost, explains, fit
from penstock.batches.shares import Spell, spells_of
from penstock.batches.stages import Role, names_of, roles_of, upstream_of
from penstock.batches.values import Batch, Stage
from penstock.batches.warmth import MARKED, weight_of

LEAST_RECORDS = 100  # with fewer in a window, the fixed cost of tasks is all that is measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one stage of a query did during the window, summed over its batches.

    ``upstream`` names of the stages that it reads from; one without reads a source, and has an
    ``offered_rate`` and a ``lag`` as far as they were measured. ``spells`` when it worked.
    ``tasks`` are its partitions, 0 if their number changes from batch to batch.
    """

    name: str
    upstream: tuple[str, ...]
    stateful: bool
    tasks: int
    busy: float  # executor-seconds
    cpu: float  # core-seconds of the JVM, without its Python workers
    records_in: int
    records_out: int | None
    service_rate: float | None
    offered_rate: float | None = None
    lag: float | None = None
    spells: tuple[Spell, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked of a query: the rate offered (records/s) and the lag of each source.

    ``interval`` mean seconds from one batch to the next · ``target`` those that executors are to
    suffice for, if they are others.
    """

    rates: Sequence[float | None]
    lags: Sequence[float | None]
    interval: float | None
    target: float | None = None

    def rate(self, source: int | None) -> float | None:
        """Offered by one source, or by all together."""
        return total(self.rates) if source is None else self.rates[source]

    def lag(self, source: int | None) -> float | None:
        """Waiting in one source, or in all together."""
        return total(self.lags) if source is None else self.lags[source]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWork:
    """What batches read (``rows``) and cost (``busy`` executor-seconds), oldest first.

    ``recent`` of them, the last ones, are those of the window. ``cold`` share of the executors'
    time during each; none is said: all warm.
    """

    rows: Sequence[int]
    busy: Sequence[float]
    recent: int
    cold: Sequence[float] = ()

    @property
    def recent_rows(self) -> int:
        """Rows read during the window."""
        return sum(self.rows[-self.recent :])

    @property
    def recent_busy(self) -> float:
        """Executor-seconds busy during the window."""
        return sum(self.busy[-self.recent :])

    def cost(self) -> Cost | None:
        """What a batch costs, if it can be told and holds for the window too."""
        every = list(zip(self.rows, self.busy, self._cold(), strict=True))
        worked = [(n, y, c) for n, y, c in every if n and y]
        weights = [weight_of(c) for _, _, c in worked] if any(self.cold) else None
        cost = fit([n for n, _, _ in worked], [y for _, y, _ in worked], weights)
        window = every[-self.recent :]
        if cost is None or not any(n for n, _, _ in window):
            return None
        warm = [(n, y) for n, y, c in window if c < MARKED]
        if not any(n for n, _ in warm):
            if sum(c < MARKED for _, _, c in worked) >= LEAST_BATCHES:
                return cost  # cold executors say nothing against it
            warm = [(n, y) for n, y, _ in window]
        holds = explains(cost, [n for n, _ in warm if n], sum(y for _, y in warm))
        return cost if holds else None

    def service_rate(self, expected: float, per_row: float, *, few: bool = False) -> float | None:
        """Records/s that one executor does while busy, in batches of ``expected`` rows.

        ``per_row`` records that the stage reads for each row. Without a known cost, or a known
        size: what the batches of the window did. ``few``: where few have run, those that read
        hardly anything count too, for they show what a batch costs at least.
        """
        cost = self.cost() if expected >= 1.0 else None
        if cost is not None and per_row > 0:
            return expected * per_row / cost.of(expected)
        if not (per_row > 0 and self.recent_busy > 0):
            return None
        done = self.recent_rows if self.recent_rows >= LEAST_RECORDS else 0
        least = self._least_cost(expected) if few and expected >= 1.0 else 0.0
        if done and least * done <= expected * self.recent_busy:
            return self._plain_rate() * per_row
        return expected * per_row / least if least > 0 else None

    def _cold(self) -> Sequence[float]:
        return self.cold or (0.0,) * len(self.rows)

    def _plain_rate(self) -> float:
        """Rows per busy second of the window, where cold executors count little.

        If all of its batches met some, what they cost is an upper bound: the last ones on warm
        executors, as many, are asked too.
        """
        every = list(zip(self.rows, self.busy, self._cold(), strict=True))
        window = every[-self.recent :]
        rate = sum(weight_of(c) * n for n, _, c in window) / sum(
            weight_of(c) * y for _, y, c in window
        )
        if any(n and c < MARKED for n, _, c in window):
            return rate
        warm = [(n, y) for n, y, c in every[: -self.recent] if n and y and c < MARKED]
        rows = sum(n for n, _ in warm[-self.recent :])
        busy = sum(y for _, y in warm[-self.recent :])
        return max(rate, rows / busy) if rows >= LEAST_RECORDS else rate

    def _least_cost(self, expected: float) -> float:
        """Busy seconds of a batch of ``expected`` rows at least: a smaller one had cost as much.

        Only while few have run: later their fit tells, and a single slow one need not be believed.
        """
        if sum(y > 0 for y in self.busy) >= LEAST_BATCHES:
            return 0.0
        return max(
            (y for n, y in zip(self.rows, self.busy, strict=True) if n <= expected), default=0.0
        )


_BUSY = attrgetter("busy")


def total(values: Sequence[float | None]) -> float | None:
    """The sum; ``None`` unless all are known."""
    known = [v for v in values if v is not None]
    return sum(known) if values and len(known) == len(values) else None


def batch_work(
    batches: Sequence[Batch],
    stages: Mapping[int, Sequence[Stage]],
    *,
    recent: int,
    cores: float,
    source: int | None = None,
    cold: Sequence[float] = (),
) -> BatchWork:
    """Batches and some of their stages; rows of one source, or of all.

    ``cores`` of an executor, or tasks that it works on at once · ``cold`` share of the executors'
    time during each batch.
    """
    return BatchWork(
        rows=[b.rows if source is None else b.inputs[source].rows for b in batches],
        busy=[0.0 if b.idle else sum(map(_BUSY, stages.get(b.id, ()))) / cores for b in batches],
        recent=recent,
        cold=cold,
    )


def works_of(
    batches: Sequence[Batch],
    stages: Mapping[int, Sequence[Stage]],
    demand: Demand,
    *,
    recent: int,
    cores: float,
    cold: Sequence[float] = (),
) -> tuple[Work, ...]:
    """The stages of the ``recent`` last batches; the earlier ones tell what batches cost."""
    ran = [b for b in batches if not b.idle]
    roles = roles_of(ran, stages)
    state = next((b.state for b in reversed(ran) if b.state), ())
    sources = sum(r.source is not None for r in roles)
    window = {b.id for b in batches[-recent:] if not b.idle}
    spells = _spells([b for b in ran if b.id in window], roles, cores)
    works: list[Work] = []
    unread: dict[str, float] = {}
    earlier: dict[str, float] = {}
    for role, name in zip(roles, names_of(roles, state), strict=True):
        # Its own source tells how much a stage has to do, else all of them together.
        own = role.source if sources == len(demand.rates) else None
        done = batch_work(batches, role.stages, recent=recent, cores=cores, source=own, cold=cold)
        mine = [s for batch, some in role.stages.items() if batch in window for s in some]
        records, per_row = _records(role, mine, done, alone=own is not None or sources == 1)
        written = sum(s.write_records for s in mine)
        upstream = upstream_of(records, unread, earlier) if role.source is None else ()
        earlier[name] = float(written)
        unread = {u: n for u, n in unread.items() if u not in upstream} | {name: float(written)}
        rate, lag = demand.rate(own), demand.lag(own)
        interval = demand.target or demand.interval
        expected = rate * interval if rate and interval else 0.0
        reads = role.source is not None
        works.append(
            Work(
                name=name,
                upstream=upstream,
                stateful=bool(state) and not reads,
                tasks=_tasks(role, adaptive=not (reads or state)),
                busy=done.recent_busy,
                cpu=sum(s.cpu_time for s in mine),
                records_in=records,
                records_out=None if role is roles[-1] else written,
                service_rate=done.service_rate(expected, per_row, few=demand.target is not None),
                offered_rate=rate * per_row if reads and rate is not None else None,
                lag=lag * per_row if reads and lag is not None else None,
                spells=tuple(spells[s.id] for s in mine),
            )
        )
    return tuple(works)


def _spells(batches: Sequence[Batch], roles: Sequence[Role], cores: float) -> dict[int, Spell]:
    """When the stages of some batches worked, by their ids."""
    found: dict[int, Spell] = {}
    for batch in batches:
        ran = [s for role in roles for s in role.stages.get(batch.id, ())]
        found |= spells_of(batch, ran, cores=cores)
    return found


def _tasks(role: Role, *, adaptive: bool) -> int:
    """The most tasks of a stage in a batch; 0 if Spark divides its work anew for every batch.

    Adaptive execution makes as few partitions as a batch is worth, so that the number that it
    chose is no limit. It never does so with what a source reads, or where there is state.
    """
    counts = {s.tasks for some in role.stages.values() for s in some}
    return 0 if adaptive and len(counts) > 1 else max(counts)


def _records(
    role: Role, stages: Sequence[Stage], done: BatchWork, *, alone: bool
) -> tuple[int, float]:
    """Records that a stage read during the window, and per row of its batches.

    Where it alone reads what the rows count, the progress tells, whatever was read twice.
    """
    rows = done.recent_rows
    if role.source is None:
        records = sum(s.read_records for s in stages)
    else:
        records = rows if alone else sum(s.input_records for s in stages)
    return records, records / rows if rows else 1.0
