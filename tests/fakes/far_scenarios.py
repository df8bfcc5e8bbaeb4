"""Jobs of the geo simulator without any noise, as ``gesscale+`` meets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.core.guards import Guards
from penstock.core.loop import Decision, Loop
from penstock.core.model import Change, Snapshot
from penstock.policies.gesscale.gesscale_plus import GesscalePlus
from penstock.simulator.geo import GeoEngine, GeoSpec, Job, Keys, Windows
from penstock.simulator.geo.setups import Case, study_network
from penstock.simulator.spec import RescaleProfile
from penstock.workloads.patterns import Constant

AT_ONCE = RescaleProfile(name="at once", downtime=0.0)
PLAIN = Job(name="job", work=50e-6, source_cost=1e-6)
"""T(n) = 1 / (50/n + 1) µs: 19,608, 38,462, 56,604, 74,074, 90,909, 107,143 … records/s."""
STORING = replace(
    PLAIN, keys=Keys(), windows=Windows(every=4.0, rounds=400.0, part=1e9, spread=0.0)
)
"""The same, in windows of 4 s; storing one takes 400 round trips to the nodes in use."""
DIVIDED = replace(STORING, windows=Windows(every=4.0, rounds=0.0, part=400.0, spread=0.0))
"""In windows whose state is divided: 1,000 round trips of 100,000 records/s, over n instances."""
SKEWED = replace(PLAIN, work=10e-6, keys=Keys(hot=(100,), hot_work=40e-6))
"""One key group has four fifths of the work: no more than 1 / 40.08 µs = 24,950 records/s."""


def far(job: Job, case: Case = "none", delayed: float = 0.5, delay: float = 0.025) -> GeoSpec:
    """Ten nodes; packets to some of them come late."""
    return GeoSpec(
        job=job,
        network=study_network(case, delayed, delay),
        profile=AT_ONCE,
        capacity_noise=0.0,
        metric_noise=0.0,
    )


def engine(spec: GeoSpec, rate: float, looks: int = 12) -> GeoEngine:
    """Under a constant load."""
    return GeoEngine(spec, Constant(rps=rate), seconds=120 * looks + 120)


def decisions(
    spec: GeoSpec, rate: float, looks: int = 8, policy: GesscalePlus | None = None
) -> list[Decision]:
    """Looks every two minutes, of which the first is not in the window."""
    run = engine(spec, rate, looks)
    loop = Loop(run, policy or GesscalePlus(), Guards(), mode="act")
    said = []
    for _ in range(looks):
        run.advance(60)
        run.observe()
        run.advance(60)
        said.append(loop.tick())
    return said


def sizes(said: Sequence[Decision], pool: str = "job") -> list[int]:
    """Slots at every look."""
    return [decision.seen.slots(pool) for decision in said]


def seen_on(spec: GeoSpec, slots: int, rate: float) -> Snapshot:
    """The first window with so many slots, of a minute."""
    run = engine(spec, rate, 2)
    if slots > spec.start:
        run.apply({spec.job.name: Change(before=spec.start, slots=slots, raw=slots)})
    run.advance(60)
    run.observe()
    run.advance(60)
    return run.observe()
