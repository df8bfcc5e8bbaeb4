"""What is observed, what a policy proposes and what is changed: plain immutable values.

Units are seconds, records and records per second. ``None`` means *not measured*; NaN and
infinity are never used as a signal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from penstock.core.latency import LatencyMap
from penstock.core.pipeline import Pipeline
from penstock.core.quick import quick_init

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Execution = Literal["continuous", "micro-batch"]
"""How records are worked on: one after the other as they come, or a batch of them at a time."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSeen:
    """What one operator did during the window of a snapshot.

    ``parallelism`` slots it had, a fraction where it shares them with others ·
    ``offered_rate`` what the outside world sends (sources only) · ``arrival_rate`` what it took
    in · ``output_rate`` what it gave out · ``service_rate`` μ, what one slot does while busy ·
    ``busy``, ``idle``, ``backpressured`` shares of time, summing to 1 · ``cpu`` share of the CPU
    its slots were allowed · ``buffer`` share of its input buffer in use · ``lag`` records waiting
    in front of a source · ``latency`` seconds from arrival to here · ``arrivals`` the newest times
    between arrivals (sources only, where single arrivals are known).
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


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One unit of parallelism: an executor of one core, a task slot.

    ``cpu_share`` the share of a core it may use, relative to its nominal size · ``cpu`` the
    share of that allowance it used · ``load`` the share of the window in which it was working.
    """

    id: str
    node: str = "local"
    operator: str | None = None
    cpu_share: float = 1.0
    cpu: float | None = None
    load: float | None = None


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """What one past action cost, in seconds after it was asked for.

    ``registered`` the last new slot was there (or the last removed one gone) · ``first_task`` a
    new slot finished its first task · ``steady`` throughput was back at or above what it was ·
    ``downtime`` no record was processed at all.
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

    ``lag`` records in all · ``partitions`` by name, where the source has them and tells; of many
    those with most waiting (at most 64).
    """

    name: str
    lag: float | None = None
    partitions: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySeen:
    """What one query did during the window, as a whole; see docs/metrics.md.

    ``batches`` finished micro-batches and the ``rows`` they read · ``batch_duration`` mean from
    planning to commit · ``batch_interval`` mean from one planning to the next ·
    ``offered_rate``, ``processed_rate``, ``output_rate`` (rows written) records/s · ``lag``
    records waiting, ``lag_seconds`` how long the oldest of them has waited, ``sources`` where
    they wait · ``latency_*`` from release to commit, percentiles over the records committed in
    the window · ``state_rows``, ``state_bytes`` after the last batch · ``cost_fixed`` c₀,
    ``cost_per_record`` c₁: a batch of n records keeps executors busy for c₀ + c₁·n seconds ·
    ``skew`` busy seconds of the busiest partition over the mean, and ``partitions`` those
    seconds (at most 64), of the busiest stage of the newest batch · ``busy``,
    ``backpressured`` shares of the executors' time.
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
    skew: float | None = None
    partitions: tuple[float, ...] | None = None
    busy: float | None = None
    backpressured: float | None = None
    sources: tuple[SourceSeen, ...] = ()


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One observation of a pipeline.

    ``window`` seconds the rates were averaged over · ``age`` seconds since the newest of the
    measurements · ``acting`` whether an action is still in flight · ``queries`` by name, where
    the engine runs queries: what holds of a query as a whole and of none of its operators ·
    ``free_nodes`` where a slot could be added · ``rtt`` between nodes, of slots and free ones ·
    ``prices`` of a slot on a node, in any one unit; 1 where nothing is said · ``groups`` by
    operator, where keys divide its work: slots kept busy by each group of keys (busy seconds per
    second), in the order in which groups are dealt out to slots (at most 128) · ``execution`` what
    kind of it was seen: busy and idle shares mean something else where records wait for a batch.
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

    def slots(self, pool: str) -> int:
        """How many slots a pool has."""
        return len(self.pools.get(pool, ()))


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How many slots something needs, unrounded, and optionally the CPU share of each."""

    slots: float
    cpu_share: float | None = None


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which nodes to add slots on, and which slots to remove."""

    add_on: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a policy wants, and why in words a person can read.

    ``needs`` by operator · ``pool_needs`` by pool, from policies that only see a pool; a pool's
    own need wins over the sum of its operators' · what is in neither stays as it is.
    """

    reason: str
    needs: Mapping[str, Need] = field(default_factory=dict)
    pool_needs: Mapping[str, Need] = field(default_factory=dict)
    place: Mapping[str, Placement] = field(default_factory=dict)


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The new size of a pool, with the unrounded figure it came from."""

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
