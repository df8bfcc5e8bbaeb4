"""What a query costs on its executors: the numbers that the micro-batch simulator runs on.

A profile is measured on real runs, written as JSON and read again; docs/micro-batch.md explains
each number. Unknown keys are errors.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError, unknown

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProfile:
    """A source of a query; ``max_rows`` the most that one batch takes of it (``None``: all).

    Sources of the same name in several queries are one stream that each reads for itself.
    """

    name: str
    max_rows: int | None = None

    def __post_init__(self) -> None:
        _named(self, "a source")
        if self.max_rows is not None:
            _whole(f"source {self.name}: max_rows", self.max_rows, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateProfile:
    """What a stage remembers between batches.

    ``operator`` Spark's name of it (``stateStoreSave``) · ``rows_per_record`` rows that a record
    adds while the state is small · ``most_rows`` where it stops growing, e.g. the number of keys
    · ``seconds`` mean time until a row is forgotten (``None``: never) · ``per_row`` slot-seconds
    of a batch for each row, divided over the tasks · ``bytes_per_row``.
    """

    operator: str
    rows_per_record: float = 0.0
    most_rows: float | None = None
    seconds: float | None = None
    per_row: float = 0.0
    bytes_per_row: float = 0.0

    def __post_init__(self) -> None:
        _numbers(self, f"state {self.operator}", above=("most_rows", "seconds"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """One stage of every batch: ``tasks`` tasks, of which one costs at full CPU share

        ``fixed`` + ``per_record`` · records of its partition    slot-seconds.

    It reads a ``source``, or what the stages ``upstream`` wrote. ``shares`` of the records by
    partition (evenly if left out) · it writes ``selectivity`` records per record, each task at
    most ``most_out`` (a partial aggregation writes no more than its keys).
    """

    name: str
    tasks: int
    fixed: float
    per_record: float
    source: str | None = None
    upstream: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    selectivity: float = 1.0
    most_out: float | None = None
    state: StateProfile | None = None

    def __post_init__(self) -> None:
        _named(self, "a stage")
        what = f"stage {self.name}"
        _whole(f"{what}: tasks", self.tasks, 1)
        _numbers(self, what)
        if (self.source is None) == (not self.upstream):
            raise InputError(f"{what} must read either a source or the stages upstream of it")
        if self.shares:
            if len(self.shares) != self.tasks:
                raise InputError(f"{what}: {len(self.shares)} shares for {self.tasks} tasks")
            good = all(math.isfinite(s) and s >= 0 for s in self.shares)
            if not (good and math.isclose(sum(self.shares), 1.0, rel_tol=1e-6)):
                raise InputError(f"{what}: shares {self.shares} must be ≥ 0 and sum to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProfile:
    """One streaming query.

    ``trigger`` seconds (0: at once) · ``planning``, ``commit`` driver time before the first and
    after the last stage of a batch · ``no_data_batch`` whether one empty batch follows when the
    data end, as queries with a watermark have it · ``batch_noise``, ``task_noise`` standard
    deviations of the logarithm of what a batch, and each of its tasks, takes.
    """

    name: str
    sources: tuple[SourceProfile, ...]
    stages: tuple[StageProfile, ...]
    trigger: float = 0.0
    planning: float = 0.0
    commit: float = 0.0
    no_data_batch: bool = False
    batch_noise: float = 0.0
    task_noise: float = 0.0

    def __post_init__(self) -> None:
        _named(self, "a query")
        what = f"query {self.name}"
        _numbers(self, what)
        _unique(f"{what}: source", [s.name for s in self.sources])
        _unique(f"{what}: stage", [s.name for s in self.stages])
        known: list[str] = []
        for stage in self.stages:
            if stage.source is not None and stage.source not in {s.name for s in self.sources}:
                raise unknown(f"source of stage {stage.name}", stage.source, self.source_names)
            for name in stage.upstream:
                if name not in known:
                    raise unknown(f"stage before {stage.name}:", name, known)
            known.append(stage.name)
        read = {stage.source for stage in self.stages}
        if unread := [name for name in self.source_names if name not in read]:
            raise InputError(f"{what}: no stage reads the source {', '.join(unread)}")

    @property
    def source_names(self) -> tuple[str, ...]:
        """In the order of the plan."""
        return tuple(s.name for s in self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorProfile:
    """An executor: ``cores`` slots, each with ``share`` of a core.

    ``start`` seconds until one registers, ``start_each`` more for each further one that is asked
    for at the same time · ``first_task`` seconds that the very first task takes longer;
    ``slowdown`` how many times as long tasks take on a cold executor, less by e for every
    ``warm_up`` seconds of work · ``boost`` how many times as long, less than 1, in the first
    ``boost_for`` seconds of work, where a new executor may use more CPU · ``leave`` seconds from
    the last task of a decommissioned one until it is gone · ``noise`` standard deviation of the
    logarithm of start and leave · ``cpu_idle``, ``cpu_busy`` share of its CPU that it uses without
    and with tasks ·
    ``shuffle_held`` seconds until the driver has collected the shuffle of a batch: for so long
    Spark's dynamic allocation keeps executors that wrote to it.
    """

    cores: int = 1
    share: float = 1.0
    start: float = 0.0
    start_each: float = 0.0
    first_task: float = 0.0
    slowdown: float = 1.0
    warm_up: float = 0.0
    boost: float = 1.0
    boost_for: float = 0.0
    leave: float = 0.0
    noise: float = 0.0
    cpu_idle: float = 0.0
    cpu_busy: float = 1.0
    shuffle_held: float = 0.0

    def __post_init__(self) -> None:
        _whole("executor: cores", self.cores, 1)
        _numbers(self, "executor", above=("share",))
        if self.slowdown < 1:
            raise InputError(f"executor: slowdown = {self.slowdown} must be ≥ 1 (1: none)")
        if not 0 < self.boost <= 1:
            raise InputError(f"executor: boost = {self.boost} must be above 0 and ≤ 1 (1: none)")
        if self.slowdown > 1 and self.boost < 1:
            raise InputError(
                f"executor: slowdown = {self.slowdown} and boost = {self.boost}: a new executor is "
                "slower or faster at first, not both; leave one out"
            )
        if not self.cpu_idle <= self.cpu_busy <= 1:
            raise InputError(
                f"executor: cpu_idle = {self.cpu_idle} and cpu_busy = {self.cpu_busy} must be "
                "shares, the first not above the second"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything that the micro-batch simulator knows of an application.

    ``queries`` share the executors · ``measured`` where the numbers come from, in words, and
    ``provenance`` the same as facts (versions, machine, date, runs) · ``errors`` standard errors,
    by ``stage.number`` or ``number``, of several queries as ``query/stage.number`` · ``notes``
    what could not be learnt, and how to learn it.
    """

    version: int
    queries: tuple[QueryProfile, ...]
    executor: ExecutorProfile = field(default_factory=ExecutorProfile)
    measured: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict, hash=False)
    errors: Mapping[str, float] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise InputError(
                f"a profile of version {self.version!r} cannot be read; this Penstock reads "
                f"version {VERSION}. Measure it again"
            )
        if not self.queries:
            raise InputError("a profile needs at least one query")
        _unique("query", [q.name for q in self.queries])

    @property
    def sources(self) -> tuple[str, ...]:
        """The streams that come from outside, each once."""
        return tuple(dict.fromkeys(s.name for q in self.queries for s in q.sources))

    def slower(self, factor: float) -> Profile:
        """The same application on a machine where batches take ``factor`` times as long."""
        if not (math.isfinite(factor) and factor > 0):
            raise InputError(f"batches cannot take {factor} times as long; it must be above 0")
        return replace(self, queries=tuple(_slower(query, factor) for query in self.queries))


def _slower(query: QueryProfile, factor: float) -> QueryProfile:
    stages = tuple(
        replace(
            stage,
            fixed=factor * stage.fixed,
            per_record=factor * stage.per_record,
            state=stage.state and replace(stage.state, per_row=factor * stage.state.per_row),
        )
        for stage in query.stages
    )
    return replace(
        query, stages=stages, planning=factor * query.planning, commit=factor * query.commit
    )


def read_profile(path: Path) -> Profile:
    """A profile that was written as JSON."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"cannot read the profile {path}: {error.strerror}; penstock profile makes one of a "
            "journal, an event log or progress documents"
        ) from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    try:
        return from_json(Profile, document)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def write_profile(profile: Profile, path: Path) -> None:
    """Write it as JSON; what holds its default is left out."""
    path.write_text(json.dumps(to_json(profile), indent=2) + "\n", encoding="utf-8")


def _named(value: Any, what: str) -> None:
    if not (isinstance(value.name, str) and value.name):
        raise InputError(f"{what} needs a name, not {value.name!r}")


def _unique(what: str, names: Sequence[str]) -> None:
    if not names:
        raise InputError(f"{what}: at least one is needed")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InputError(f"{what} {twice[0]!r} is there twice; names must differ")


def _whole(what: str, value: Any, least: int) -> None:
    if not (isinstance(value, int) and value >= least):
        raise InputError(f"{what} = {value!r} must be a whole number ≥ {least}")


def _numbers(value: Any, what: str, above: tuple[str, ...] = ()) -> None:
    """Every float of a profile is finite and ≥ 0, those in ``above`` > 0."""
    for name, kind in type(value).__annotations__.items():
        number = getattr(value, name)
        if "float" not in kind or "tuple" in kind or (number is None and "None" in kind):
            continue
        good = isinstance(number, int | float) and math.isfinite(number)
        if not good or number < 0 or (name in above and not number):
            bound = "above 0" if name in above else "≥ 0"
            raise InputError(f"{what}: {name} = {number!r} must be a finite number {bound}")
