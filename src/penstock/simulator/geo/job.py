"""What a job costs on nodes that are far apart: the mechanisms, as figures of one operator."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.simulator.checks import number

KEY_GROUPS = 128  # Flink's default


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Records belong to keys, keys to ``groups``, and these are dealt out whole.

    Group k of G goes to instance ⌊k·n/G⌋ of n, as in Flink. Some groups are ``hot``: of the work,
    ``hot_work`` CPU seconds per record (of all records) fall on them alone, evenly. So which
    instance has most to do depends on n.
    """

    groups: int = KEY_GROUPS
    hot: tuple[int, ...] = ()
    hot_work: float = 0.0

    def __post_init__(self) -> None:
        if self.groups < 1:
            raise InputError(f"key groups {self.groups} must be ≥ 1")
        number("hot_work", self.hot_work, low=0.0, unit=" s")
        if wrong := [group for group in self.hot if not 0 <= group < self.groups]:
            raise InputError(f"hot group {wrong[0]} is not among the {self.groups} key groups")
        if len(set(self.hot)) < len(self.hot):
            raise InputError(f"hot groups {self.hot} must be different")
        if self.hot_work and not self.hot:
            raise InputError(f"hot_work {self.hot_work} s falls on hot groups; name some")


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows of ``every`` seconds of event time, whose state is stored on the nodes in use.

    Every window each instance stores its part of the state, spread evenly over all nodes in use,
    one round trip after the other:

        trips = (rounds + records / part) · (1 + spread · X),   X ~ exponential of mean 1

    X is drawn for every node and window. The records of a window are let in no faster than the
    slowest instance stores.

    ``rounds`` trips that any window takes · ``part`` records stored by one more · ``between_runs``
    standard deviation of the logarithm of a factor on the trips, which a run has from its seed.
    """

    every: float
    rounds: float
    part: float
    spread: float = 1.0
    between_runs: float = 0.0

    def __post_init__(self) -> None:
        number("windows: every", self.every, low=1.0, unit=" s")
        number("windows: rounds", self.rounds, low=0.0)
        number("windows: part", self.part, low=0.0, open_low=True, unit=" records")
        number("windows: spread", self.spread, low=0.0)
        number("windows: between_runs", self.between_runs, low=0.0, high=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """source → operator → sink, of which the operator is scaled.

    CPU seconds per record: ``work`` in the operator · ``source_cost`` to read it and deal it out
    (the sink costs as much) · ``exchange_cost`` more for the source if it goes to another node.

    ``beside`` whether the source runs on the node of the first instance and shares its CPU; else
    it has a node of its own · ``channel_cost`` share of its CPU that an instance spends on each
    channel to another node · ``credit`` records that an instance may have taken in before the
    first of them is acknowledged from the farthest node in use; ``None``: any number ·
    ``waiting_cpu`` share of its CPU that a node uses while its instance waits for that.

    Records are dealt out evenly, or by ``keys``. ``windows``: the operator keeps state.

    CPU reads b + (c − b)·ρ, b ``cpu_base``, c ``cpu_ceiling``, ρ the share of the CPU in use.
    """

    name: str
    work: float
    source_cost: float = 0.0
    exchange_cost: float = 0.0
    beside: bool = True
    channel_cost: float = 0.0
    credit: float | None = None
    waiting_cpu: float = 0.0
    keys: Keys | None = None
    windows: Windows | None = None
    cpu_base: float = 0.2
    cpu_ceiling: float = 1.0

    def __post_init__(self) -> None:
        if self.name in ("", "source", "sink"):
            raise InputError(f"a job cannot call its operator {self.name!r}")
        number(f"job {self.name}: work", self.work, low=0.0, open_low=True, unit=" s")
        for key in ("source_cost", "exchange_cost"):
            number(f"job {self.name}: {key}", getattr(self, key), low=0.0, unit=" s")
        for key in ("channel_cost", "waiting_cpu", "cpu_base"):
            number(f"job {self.name}: {key}", getattr(self, key), low=0.0, high=1.0)
        number(f"job {self.name}: cpu_ceiling", self.cpu_ceiling, low=self.cpu_base, high=1.0)
        if self.credit is not None:
            number(f"job {self.name}: credit", self.credit, low=1.0, unit=" records")
