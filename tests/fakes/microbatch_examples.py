"""Two made-up applications for the micro-batch simulator: no number in them was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.simulator.microbatch import (
    ExecutorProfile,
    Profile,
    QueryProfile,
    SourceProfile,
    StageProfile,
    StateProfile,
)
from penstock.simulator.microbatch.profile import VERSION


def single(
    *,
    tasks: int = 4,
    fixed: float = 0.1,
    per_record: float = 1e-3,
    max_rows: int | None = None,
    executor: ExecutorProfile | None = None,
    shares: tuple[float, ...] = (),
    **query: Any,
) -> Profile:
    """One query of one stage, without noise."""
    read = StageProfile(
        name="read",
        source="bids",
        tasks=tasks,
        fixed=fixed,
        per_record=per_record,
        shares=shares,
    )
    source = SourceProfile(name="bids", max_rows=max_rows)
    made = QueryProfile(name="q", sources=(source,), stages=(read,), **query)
    return Profile(version=VERSION, queries=(made,), executor=executor or ExecutorProfile())


def counting(**query: Any) -> QueryProfile:
    """A windowed count: a wide read, a partial aggregation, a stateful stage with a hot key."""
    read = StageProfile(
        name="read",
        source="bids",
        tasks=6,
        fixed=0.03,
        per_record=4e-4,
        selectivity=0.5,
        most_out=400.0,
    )
    state = StateProfile(
        operator="stateStoreSave",
        rows_per_record=0.2,
        most_rows=5000.0,
        per_row=1e-6,
        bytes_per_row=120.0,
    )
    count = StageProfile(
        name="count",
        upstream=("read",),
        tasks=4,
        fixed=0.06,
        per_record=1e-3,
        shares=(0.4, 0.2, 0.2, 0.2),
        selectivity=0.1,
        state=state,
    )
    made = QueryProfile(
        name="counts",
        sources=(SourceProfile(name="bids", max_rows=9000),),
        stages=(read, count),
        trigger=2.0,
        planning=0.15,
        commit=0.1,
        no_data_batch=True,
        batch_noise=0.05,
        task_noise=0.2,
    )
    return replace(made, **query)


def joining(**query: Any) -> QueryProfile:
    """A join of two sources of very different rates, without a trigger interval."""
    reads = tuple(
        StageProfile(name=f"read {name}", source=name, tasks=2, fixed=0.04, per_record=cost)
        for name, cost in (("bids", 2e-4), ("people", 1e-3))
    )
    joined = StageProfile(
        name="join",
        upstream=("read bids", "read people"),
        tasks=4,
        fixed=0.05,
        per_record=3e-4,
        selectivity=0.3,
        state=StateProfile(operator="symmetricHashJoin", rows_per_record=1.0, seconds=60.0),
    )
    made = QueryProfile(
        name="joins",
        sources=(SourceProfile(name="bids"), SourceProfile(name="people")),
        stages=(*reads, joined),
        planning=0.2,
        commit=0.2,
        task_noise=0.15,
    )
    return replace(made, **query)


EXECUTOR = ExecutorProfile(
    start=2.5,
    start_each=1.2,
    first_task=0.8,
    slowdown=2.5,
    warm_up=2.0,
    leave=1.5,
    noise=0.1,
    cpu_idle=0.03,
    cpu_busy=0.9,
)


def pair() -> Profile:
    """Both queries in one application."""
    return Profile(
        version=VERSION,
        queries=(counting(), joining()),
        executor=EXECUTOR,
        measured="made up for a test",
        provenance={"spark": "none"},
    )


def windowed(*, tasks: int = 40) -> Profile:
    """Like one of Spark's examples: no trigger, long batches that cost much whatever they read."""
    counted = StageProfile(
        name="stage-2", tasks=tasks, fixed=16.0 / tasks, per_record=1e-4, upstream=("read",)
    )
    query = QueryProfile(
        name="windowed",
        sources=(SourceProfile(name="socket"),),
        stages=(
            StageProfile(
                name="read", source="socket", tasks=2, fixed=0.2, per_record=4e-4, most_out=600.0
            ),
            counted,
            replace(counted, name="stage-3", upstream=("stage-2",), selectivity=0.5),
        ),
        planning=0.3,
        commit=0.1,
        task_noise=0.2,
        batch_noise=0.05,
    )
    executor = ExecutorProfile(
        start=8.0, start_each=1.0, slowdown=2.0, warm_up=5.0, leave=2.0, noise=0.1
    )
    return Profile(version=VERSION, queries=(query,), executor=executor, measured="made up")
