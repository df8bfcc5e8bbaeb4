"""What must hold for every pipeline, load and sequence of changes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.model import Change
from penstock.core.pipeline import Operator, Pipeline
from penstock.simulator import LIVE, RESTART, FluidEngine, FluidSpec
from penstock.workloads.patterns import Constant, Cosine

EXAMPLES = settings(max_examples=100, deadline=None, derandomize=True)
RATES = st.floats(0.5, 1e6)
SELECTIVITIES = st.floats(0.0, 5.0)


@st.composite
def specs(draw: st.DrawFn, *, noise: bool = True, most: int = 6) -> FluidSpec:
    """Random acyclic graphs with joins, fan-out, several sources and shared pools."""
    n = draw(st.integers(1, most))
    names = [f"o{i}" for i in range(n)]
    pool = st.integers(0, n - 1)
    operators = {
        name: Operator(
            pool=f"p{draw(pool)}",
            selectivity=draw(SELECTIVITIES),
            partitions=draw(st.none() | st.integers(1, 8)),
        )
        for name in names
    }
    pairs = [(names[i], names[j]) for j in range(n) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    pipeline = Pipeline(operators=operators, edges=edges)
    return FluidSpec(
        pipeline=pipeline,
        service_rates={name: draw(RATES) for name in names},
        start={p: draw(st.integers(1, 10)) for p in pipeline.pools},
        profile=draw(st.sampled_from([RESTART, LIVE])),
        buffer_seconds=draw(st.floats(0.01, 5.0)),
        capacity_noise=draw(st.sampled_from([0.0, 0.03, 0.3])) if noise else 0.0,
        metric_noise=draw(st.sampled_from([0.0, 0.01, 0.3])) if noise else 0.0,
    )


def waiting_at_source(engine: FluidEngine, volume: npt.NDArray[Any]) -> float:
    """All that waits in the chain, counted as the records of the source that it came from."""
    operators = engine.totals().operators.values()
    return float(sum(o.waiting / v for o, v in zip(operators, volume, strict=True)))


def chain(rates: list[float], selectivity: list[float], pools: list[str]) -> Pipeline:
    names = [f"o{i}" for i in range(len(rates))]
    return Pipeline(
        operators={
            name: Operator(pool=pool, selectivity=s)
            for name, s, pool in zip(names, selectivity, pools, strict=True)
        },
        edges=list(pairwise(names)),
    )


@EXAMPLES
@given(
    spec=specs(),
    high=st.floats(0.0, 1e7),
    wishes=st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, 5), st.integers(1, 12)), max_size=8
    ),
    seed=st.integers(0, 2**32),
)
def test_records_are_conserved_and_readings_stay_within_bounds(
    spec: FluidSpec, high: float, wishes: list[tuple[int, int, int]], seed: int
) -> None:
    engine = FluidEngine(spec, Cosine(high=high, low=0.0, period=240.0), seconds=600, seed=seed)
    pools = spec.pipeline.pools
    for seconds, which, slots in [*wishes, (30, 0, 1)]:
        engine.advance(seconds)
        seen = engine.observe()
        for name, o in seen.operators.items():
            shares = (o.busy, o.idle, o.backpressured)
            if o.busy is not None:
                assert sum(s or 0.0 for s in shares) == pytest.approx(1.0)
                assert all(s is not None and 0 <= s <= 1 for s in shares), name
            if spec.pipeline.upstream[name] and o.buffer is not None and not seen.rescales:
                assert o.buffer <= 1 + 1e-9
        for pool in pools:
            held = sum(seen.operators[m].parallelism for m in spec.pipeline.members(pool))
            if len(spec.pipeline.members(pool)) > 1:
                assert held == pytest.approx(seen.slots(pool))
        pool = pools[which % len(pools)]
        engine.apply({pool: Change(before=seen.slots(pool), slots=slots, raw=float(slots))})

    totals = engine.totals()
    assert totals.imbalance <= 1e-9
    assert totals.arrived == pytest.approx(totals.consumed + totals.queued, rel=1e-9)
    sent: Mapping[str, float] = {
        name: o.processed * spec.pipeline.operators[name].selectivity
        for name, o in totals.operators.items()
    }
    for name, above in spec.pipeline.upstream.items():
        if above:
            received = sum(sent[u] for u in above)
            assert totals.operators[name].received == pytest.approx(received, rel=1e-9, abs=1e-9)
        assert totals.operators[name].waiting >= 0
    s = engine.series
    assert s.offered.sum() == pytest.approx(totals.arrived, rel=1e-9, abs=1e-6)
    assert s.delivered.sum() == pytest.approx(totals.delivered, rel=1e-9, abs=1e-6)
    for row in (s.consumed, s.delivered, s.lag, s.queue_latency, s.latency):
        assert np.isfinite(row).all() and (row >= 0).all()
    assert (s.consumed[s.down == 1] == 0).all() and (s.delivered[s.down == 1] == 0).all()


@EXAMPLES
@given(spec=specs(), rps=st.floats(0.0, 1e6), seed=st.integers(0, 1000))
def test_a_seed_decides_everything(spec: FluidSpec, rps: float, seed: int) -> None:
    runs = []
    for steps in ([15] * 8, [60, 60]):  # however the time is divided
        engine = FluidEngine(spec, Constant(rps=rps), seconds=120, seed=seed)
        for seconds in steps:
            engine.advance(seconds)
        runs.append((engine.series.delivered.tobytes(), engine.series.latency.tobytes()))
    assert runs[0] == runs[1]


@EXAMPLES
@given(
    data=st.data(),
    rates=st.lists(st.floats(1.0, 50.0), min_size=1, max_size=6),  # buffers fill in the run
    slots=st.integers(1, 20),
)
def test_a_saturated_chain_on_one_pool_has_the_closed_form_throughput(
    data: st.DataObject, rates: list[float], slots: int
) -> None:
    n = len(rates)
    selectivity = data.draw(st.lists(st.floats(0.1, 3.0), min_size=n, max_size=n))
    volume = np.cumprod([1.0, *selectivity[:-1]])
    expected = slots / float((volume / np.array(rates)).sum())
    pipeline = chain(rates, selectivity, ["p"] * n)
    spec = FluidSpec(
        pipeline=pipeline,
        service_rates=dict(zip(pipeline.order, rates, strict=True)),
        start={"p": slots},
        capacity_noise=0.0,
        metric_noise=0.0,
    )
    engine = FluidEngine(spec, Constant(rps=expected * 3), seconds=2000)
    engine.advance(2000)
    assert engine.series.consumed[-1] == pytest.approx(expected, rel=1e-6)


@EXAMPLES
@given(
    data=st.data(),
    rates=st.lists(st.floats(1.0, 1e4), min_size=1, max_size=6),
    load=st.floats(0.01, 3.0),
)
def test_a_chain_delivers_what_is_offered_or_what_its_bottleneck_can(
    data: st.DataObject, rates: list[float], load: float
) -> None:
    n = len(rates)
    selectivity = data.draw(st.lists(st.floats(0.1, 3.0), min_size=n, max_size=n))
    slots = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    volume = np.cumprod([1.0, *selectivity[:-1]])
    capacity = float((np.array(rates) * slots / volume).min())
    pipeline = chain(rates, selectivity, [f"p{i}" for i in range(n)])
    spec = FluidSpec(
        pipeline=pipeline,
        service_rates=dict(zip(pipeline.order, rates, strict=True)),
        start={f"p{i}": s for i, s in enumerate(slots)},
        capacity_noise=0.0,
        metric_noise=0.0,
    )
    offered = capacity * load
    engine = FluidEngine(spec, Constant(rps=offered), seconds=120)
    engine.advance(60)
    early = waiting_at_source(engine, volume)
    engine.advance(60)
    growth = (waiting_at_source(engine, volume) - early) / 60
    assert growth == pytest.approx(max(0.0, offered - capacity), abs=1e-9 * offered)
    done = min(offered, capacity) * volume[-1]
    assert engine.series.delivered[-1] == pytest.approx(done, rel=1e-9)
    seen = engine.observe()
    for name, mu, p, v in zip(pipeline.order, rates, slots, volume, strict=True):
        busy = seen.operators[name].busy
        assert busy is not None
        if load < 1:
            assert busy == pytest.approx(offered * v / (mu * p), rel=1e-6)


@EXAMPLES
@given(
    data=st.data(),
    rates=st.lists(st.floats(1.0, 1e4), min_size=1, max_size=5),
    low=st.floats(0.0, 1e4),
    more=st.floats(1.0, 4.0),
    shared=st.booleans(),
)
def test_more_offered_load_never_lowers_throughput(
    data: st.DataObject, rates: list[float], low: float, more: float, shared: bool
) -> None:
    n = len(rates)
    selectivity = data.draw(st.lists(st.floats(0.1, 3.0), min_size=n, max_size=n))
    pools = ["p"] * n if shared else [f"p{i}" for i in range(n)]
    pipeline = chain(rates, selectivity, pools)
    spec = FluidSpec(
        pipeline=pipeline,
        service_rates=dict(zip(pipeline.order, rates, strict=True)),
        start=dict.fromkeys(pools, data.draw(st.integers(1, 9))),
    )
    runs = []
    for rps in (low, low * more):
        engine = FluidEngine(spec, Constant(rps=rps), seconds=200, seed=5)
        engine.advance(200)
        runs.append(engine)
    less, more_offered = (engine.totals().delivered for engine in runs)
    # On a shared pool the first operators work for what still waits in front of the last ones.
    volume = np.cumprod([1.0, *selectivity[:-1]])
    begun = waiting_at_source(runs[1], volume) - runs[1].totals().queued if shared else 0.0
    assert more_offered + begun * volume[-1] >= less * (1 - 1e-9)
