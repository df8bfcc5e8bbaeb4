"""Small runs of the geo simulator, without noise unless asked for."""

from __future__ import annotations

from typing import Any

from penstock.core.latency import LatencyMap
from penstock.core.model import Change, Snapshot
from penstock.network.maps import from_inbound
from penstock.simulator import RescaleProfile
from penstock.simulator.geo import GeoEngine, GeoSpec, Job
from penstock.workloads.patterns import Constant

AT_ONCE = RescaleProfile(name="at once")
NAMES = ("a", "b", "c", "d", "e", "f")


def near(count: int = 6) -> LatencyMap:
    return from_inbound(dict.fromkeys(NAMES[:count], 0.0))


def quiet(job: Job, network: LatencyMap | None = None, **more: Any) -> GeoSpec:
    given: dict[str, Any] = {"capacity_noise": 0.0, "metric_noise": 0.0, "profile": AT_ONCE}
    return GeoSpec(job=job, network=network or near(), **(given | more))


def saturated(spec: GeoSpec, rps: float = 1e6, seconds: int = 60) -> Snapshot:
    engine = GeoEngine(spec, Constant(rps=rps), seconds=seconds)
    engine.advance(seconds)
    return engine.observe()


def through(spec: GeoSpec, rps: float = 1e6) -> float:
    """Records/s that come through when far more are offered."""
    rate = saturated(spec, rps).operators[spec.job.name].arrival_rate
    assert rate is not None
    return rate


OP = Job(name="op", work=1e-2)


def change(engine: GeoEngine, slots: int, **more: Any) -> None:
    before = len(engine.nodes)
    engine.apply({"op": Change(before=before, slots=slots, raw=float(slots), **more)})
