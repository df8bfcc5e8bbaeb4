"""The geo simulator: what must hold for every run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.network.maps import random_pairs
from penstock.simulator import LIVE, RESTART
from penstock.simulator.geo import GeoEngine, GeoSpec, Job, Keys, Windows
from penstock.workloads.patterns import Constant, Cosine
from tests.fakes.geo_runs import AT_ONCE, NAMES, change

EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def specs(draw: st.DrawFn) -> GeoSpec:
    keys = draw(st.none() | st.builds(Keys, groups=st.integers(1, 200)))
    windows = draw(
        st.none()
        | st.builds(
            Windows,
            every=st.floats(1.0, 20.0),
            rounds=st.floats(0.0, 200.0),
            part=st.floats(0.1, 1e4),
            spread=st.floats(0.0, 3.0),
            between_runs=st.floats(0.0, 1.0),
        )
    )
    job = Job(
        name="op",
        work=draw(st.floats(1e-6, 1.0)),
        source_cost=draw(st.floats(0.0, 0.1)),
        exchange_cost=draw(st.floats(0.0, 0.1)),
        beside=draw(st.booleans()),
        channel_cost=draw(st.floats(0.0, 0.1)),
        credit=draw(st.none() | st.floats(1.0, 1e4)),
        waiting_cpu=draw(st.floats(0.0, 1.0)),
        keys=keys,
        windows=windows,
    )
    network = random_pairs(NAMES, 0.0, draw(st.floats(0.0, 0.5)), seed=draw(st.integers(0, 99)))
    return GeoSpec(
        job=job,
        network=network,
        start=draw(st.integers(1, 6)),
        profile=draw(st.sampled_from([RESTART, LIVE, AT_ONCE])),
        capacity_noise=draw(st.sampled_from([0.0, 0.03, 0.3])),
        metric_noise=draw(st.sampled_from([0.0, 0.01, 0.3])),
    )


@EXAMPLES
@given(
    spec=specs(),
    high=st.floats(0.0, 1e6),
    wishes=st.lists(st.tuples(st.integers(1, 90), st.integers(1, 6)), max_size=6),
    seed=st.integers(0, 2**32),
)
def test_records_are_conserved_and_readings_stay_within_bounds(
    spec: GeoSpec, high: float, wishes: list[tuple[int, int]], seed: int
) -> None:
    engine = GeoEngine(spec, Cosine(high=high, low=0.0, period=240.0), seconds=600, seed=seed)
    for seconds, slots in [*wishes, (30, 1)]:
        engine.advance(seconds)
        seen = engine.observe()
        for o in seen.operators.values():
            shares = (o.busy, o.idle, o.backpressured)
            if o.busy is not None:
                assert sum(s or 0.0 for s in shares) == pytest.approx(1.0)
                assert all(s is not None and 0 <= s <= 1 for s in shares)
            assert o.cpu is None or 0 < o.cpu <= 1
        for slot in seen.pools["op"]:
            assert slot.load is None or 0 <= slot.load <= 1 + 1e-9
        used = {slot.node for slot in seen.pools["op"]}
        assert len(used) == seen.slots("op") and used.isdisjoint(seen.free_nodes)
        change(engine, slots)
    engine.advance(1000)
    totals, s = engine.totals(), engine.series
    assert totals.imbalance <= 1e-9
    assert totals.arrived == pytest.approx(totals.consumed + totals.queued, rel=1e-9)
    assert s.offered.sum() == pytest.approx(totals.arrived, rel=1e-9, abs=1e-9)
    assert s.consumed.sum() == pytest.approx(totals.delivered, rel=1e-9, abs=1e-9)
    for row in (s.consumed, s.lag, s.queue_latency, s.latency, s.cpu):
        assert np.isfinite(row).all() and (row >= 0).all()
    assert (s.consumed[s.down == 1] == 0).all()


@EXAMPLES
@given(spec=specs(), rps=st.floats(0.0, 1e5), seed=st.integers(0, 1000))
def test_a_seed_decides_everything(spec: GeoSpec, rps: float, seed: int) -> None:
    runs = []
    for steps in ([15] * 8, [60, 59.5, 0.5]):  # however the time is divided
        engine = GeoEngine(spec, Constant(rps=rps), seconds=120, seed=seed)
        for seconds in steps:
            engine.advance(seconds)
        runs.append((engine.series.consumed.tobytes(), engine.series.latency.tobytes()))
    assert runs[0] == runs[1]
    assert engine.advance(0.0) and not engine.advance(1.0)


@EXAMPLES
@given(spec=specs(), nodes=st.permutations(NAMES), count=st.integers(1, 6))
def test_capacity_is_what_a_saturated_run_does(spec: GeoSpec, nodes: list[str], count: int) -> None:
    used = nodes[:count]
    plain = replace(spec, job=replace(spec.job, windows=None), start=1)
    plain = replace(plain, capacity_noise=0.0, metric_noise=0.0, profile=AT_ONCE)
    engine = GeoEngine(plain, Constant(rps=1e8), seconds=3)
    here = engine.nodes[0]
    gone = () if here in used else (f"op-{here}",)
    change(engine, count, add_on=tuple(n for n in used if n != here), remove=gone)
    engine.advance(3)
    assert set(engine.nodes) == set(used)
    assert engine.series.consumed[-1] == pytest.approx(plain.capacity(engine.nodes))
