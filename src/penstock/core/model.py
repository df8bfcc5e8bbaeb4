"""What is observed, what a policy proposes and what is changed: plain immutable values.

Units are seconds, records and records per second. ``None`` means *not measured*; NaN and
infinity are never used as a signal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from penstock.core.facts import PoolFacts
from penstock.core.findings import Finding, TriggerKind
from penstock.core.latency import LatencyMap
from penstock.core.pipeline import Pipeline

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Execution = Literal["continuous", "micro-batch"]
"""How records are worked on: one after the other as they come, or a batch of them at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSeen:
    """What one operator did during the window of a snapshot.

    parallelism: slots it had, a fraction where it shares them with others
    offered_rate: what the outside world sends (sources only)
    arrival_rate: what it took in
    output_rate: what it gave out
    service_rate: μ, what one slot does while busy
    busy, idle, backpressured: shares of time, summing to 1
    cpu: share of the CPU its slots were allowed
    buffer: share of its input buffer in use
    lag: records waiting in front of it (sources, and operators that read from a topic)
    latency: seconds from arrival to here
    arrivals: the newest times between arrivals (sources only, where single arrivals are known)
    """

    parallelism: float
    offered_rate: float | None = None
    arrival_rate: float | None = None
    output_rate: float | None = None
    service_rate: float | None = None
    busy: float | None = None
    idle: float | None = None
    backpressured: float | None = None
    cpu: float | None = None
    buffer: float | None = None
    lag: float | None = None
    latency: float | None = None
    arrivals: Arrivals | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One unit of parallelism: an executor, a task slot.

    node: where it runs
    operator: whose it is, where it belongs to one alone
    cpu_share: share of a core it may use, relative to its nominal size
    cpu: share of that allowance it used
    load: share of the window in which it was working
    cold: whether it is so new that its work still takes longer than it will (classes to load, code
        to compile); always false where that is not known
    """

    id: str
    node: str = "local"
    operator: str | None = None
    cpu_share: float = 1.0
    cpu: float | None = None
    load: float | None = None
    cold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """What one past action cost, in seconds after it was asked for.

    time: when it was asked for
    before, after: slots of the pool
    registered: until the last new slot was there (or the last removed one gone)
    first_task: until a new slot finished its first task
    steady: until throughput was back at or above what it was
    downtime: how long no record was processed at all
    """

    time: float
    pool: str
    before: int
    after: int
    registered: float | None = None
    first_task: float | None = None
    steady: float | None = None
    downtime: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSeen:
    """What waits at one source of a query.

    lag: records in all
    lag_seconds: how long the oldest of them has waited
    partitions: records by partition, where the source has them and tells; of many those with
        most waiting (at most 64)
    most_rows, most_files, most_bytes: what one batch takes of it at most; ``None`` where there is
        no such limit, or where it is not known
    """

    name: str
    lag: float | None = None
    lag_seconds: float | None = None
    partitions: Mapping[str, float] = field(default_factory=dict, hash=False)
    most_rows: float | None = None
    most_files: float | None = None
    most_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySeen:
    """What one query did during the window, as a whole; see docs/metrics.md.

    batches: micro-batches that finished
    rows: records that they read
    batch_duration: mean seconds from planning to commit
    batch_interval: mean seconds from one planning to the next
    offered_rate, processed_rate: records/s
    output_rate: rows written per second
    lag: records waiting
    lag_seconds: how long the oldest of them has waited
    latency_p50, latency_p95, latency_p99: seconds from release to commit, over the records
        committed in the window
    state_rows, state_bytes: state after the last batch
    cost_fixed, cost_per_record: c₀ and c₁; a batch of n records keeps executors busy for
        c₀ + c₁·n seconds. Both or neither: ``None`` where batches do not tell them apart
    busy_per_record: seconds that executors were busy in the window, over its rows; it holds both
        costs, so that it depends on the size of the batches that ran
    skew: busy seconds of the busiest partition over the mean, of the busiest stage of the newest
        batch
    partitions: the busy seconds of that stage's partitions (at most 64)
    busy, backpressured: shares of the executors' time
    sources: where the records wait
    age: seconds since the newest of these readings
    overdue: seconds of input that the batch which runs holds beyond an ordinary one
    running_for: seconds that the batch has run that is counted before its end; ``None`` without one
    tasks, tasks_ended: of that batch, as far as its stages are known
    trigger: seconds between batches as the query was told; 0 if one follows the other; ``None``
        for other kinds of triggers, and where it is not known
    admission_limit: records that a batch takes at most, of all sources; ``None`` where one of them
        has no such limit, or where it is not known
    trigger_kind: when its batches come
    held_slots: slots that its long-lived tasks hold, all at once; with fewer it cannot run. Only of
        queries with such tasks (real-time mode)
    """

    batches: int
    rows: int
    batch_duration: float | None = None
    batch_interval: float | None = None
    offered_rate: float | None = None
    processed_rate: float | None = None
    output_rate: float | None = None
    lag: float | None = None
    lag_seconds: float | None = None
    latency_p50: float | None = None
    latency_p95: float | None = None
    latency_p99: float | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    cost_fixed: float | None = None
    cost_per_record: float | None = None
    busy_per_record: float | None = None
    skew: float | None = None
    partitions: tuple[float, ...] | None = None
    busy: float | None = None
    backpressured: float | None = None
    sources: tuple[SourceSeen, ...] = ()
    age: float | None = None
    overdue: float | None = None
    running_for: float | None = None
    tasks: int | None = None
    tasks_ended: int | None = None
    trigger: float | None = None
    admission_limit: float | None = None
    trigger_kind: TriggerKind | None = None
    held_slots: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One observation of a pipeline.

    time: when it was made
    window: seconds the rates were averaged over
    operators: what was seen of each, by name
    pools: the slots of each, by name
    age: seconds since the newest of the measurements
    acting: whether an action is still in flight
    free_nodes: where a slot could be added
    rescales: what past actions cost, as far as it is known by now
    queries: by name, where the engine runs queries: what holds of a query as a whole and of none
        of its operators
    rtt: round-trip times between nodes, of slots and free ones
    prices: of a slot on a node, in any one unit; 1 where nothing is said
    groups: by operator, where keys divide its work: slots kept busy by each group of keys (busy
        seconds per second), in the order in which groups are dealt out to slots (at most 128)
    execution: what kind of it was seen: busy and idle shares mean something else where records
        wait for a batch
    facts: what is known of each pool whatever it does, by name, where the engine tells
    unmeasured: names of queries that run on the slots and of which nothing was measured: no need
        counts them
    findings: what the figures mean where more or fewer slots are not the answer
    """

    time: float
    window: float
    pipeline: Pipeline
    operators: Mapping[str, OperatorSeen]
    pools: Mapping[str, tuple[Slot, ...]]
    age: float = 0.0
    acting: bool = False
    free_nodes: tuple[str, ...] = ()
    rescales: tuple[Rescale, ...] = ()
    queries: Mapping[str, QuerySeen] = field(default_factory=dict)
    rtt: LatencyMap | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    execution: Execution = "continuous"
    facts: Mapping[str, PoolFacts] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def slots(self, pool: str) -> int:
        """How many slots a pool has."""
        return len(self.pools.get(pool, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How many slots something needs, unrounded, and optionally the CPU share of each."""

    slots: float
    cpu_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which nodes to add slots on, and which slots to remove."""

    add_on: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a policy wants, and why in words a person can read. What it does not name stays.

    reason: a sentence, with the figures of this tick
    needs: by operator
    pool_needs: by pool, from policies that only see a pool; a pool's own need wins over the sum
        of its operators'
    place: nodes to add slots on and slots to remove, by pool
    term: what decided, in a word that stays the same from tick to tick (``not-measured``), for
        programs to compare; a policy may leave it empty
    """

    reason: str
    needs: Mapping[str, Need] = field(default_factory=dict)
    pool_needs: Mapping[str, Need] = field(default_factory=dict)
    place: Mapping[str, Placement] = field(default_factory=dict)
    term: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The new size of a pool, with the unrounded figure it came from.

    before: slots that it has
    slots: slots that it should have
    raw: what the policy asked for, unrounded and before guards
    cpu_share: of each slot; ``None``: as it is
    add_on, remove: nodes for new slots and slots to remove, the most wanted first
    """

    before: int
    slots: int
    raw: float
    cpu_share: float | None = None
    add_on: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, init=False)
class Arrivals:
    """Seconds between the newest arrivals, oldest first; two windows are equal by ``digest``.

    ``each`` how many records one arrival stands for, where they come too fast to keep every one.
    A journal keeps the digest and how many there were; the values lie beside it.

    >>> Arrivals([0.5, 0.25]) == Arrivals([0.5, 0.25])
    True
    """

    intervals: npt.NDArray[np.float64] = field(repr=False)
    digest: str
    each: float = 1.0

    def __init__(self, intervals: npt.ArrayLike, each: float = 1.0) -> None:
        import numpy as np  # here: most commands have no use for it

        values = np.array(intervals, dtype=np.float64).reshape(-1)
        values.setflags(write=False)
        object.__setattr__(self, "intervals", values)
        object.__setattr__(self, "each", each)
        digest = hashlib.blake2b(values.tobytes(), digest_size=16)
        if each != 1.0:
            digest.update(repr(each).encode())
        object.__setattr__(self, "digest", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.intervals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrivals) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def last(self, count: int) -> Arrivals:
        """The newest of them."""
        return self if count >= len(self) else Arrivals(self.intervals[-count:], self.each)


def lag_seconds(seen: Snapshot) -> float | None:
    """The lag in seconds of the rate that is offered; of the operator that is furthest behind.

    Sources have a lag, and operators that read from a topic between two applications.
    """
    worst: float | None = None
    for o in seen.operators.values():
        if o.lag is None:
            continue
        rate = o.offered_rate or o.arrival_rate
        if rate:
            worst = max(worst or 0.0, o.lag / rate)
        elif o.lag == 0:
            worst = worst or 0.0
    return worst
