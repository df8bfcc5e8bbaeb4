"""One run: the taxi operator in a fog, a policy that scales it, two days in 288 minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from penstock.comparison.processes import leave_if_stopping
from penstock.core.loop import Decision, Loop
from penstock.core.ports import figures_of
from penstock.papers.gesscale.simulated import setups
from penstock.papers.gesscale.simulated.setups import LOAD, PERIOD, SECONDS, GesscaleCell
from penstock.papers.running import CellRun, Outcomes
from penstock.policies import create
from penstock.simulator.geo import GeoEngine
from penstock.simulator.series import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioning:
    """How far a number of replicas is from the ideal one. [herbst16; arkian21, V-A]

    Over the measurement period T, from supply s(t) and demand d(t), replicas:

    accuracy_o: ∫ max(0, s − d) dt / T, mean replicas too many
    accuracy_u: ∫ max(0, d − s) dt / T, mean replicas too few
    timeshare_o, timeshare_u: percent of T in which there were too many, and too few
    """

    accuracy_o: float
    accuracy_u: float
    timeshare_o: float
    timeshare_u: float


def provisioning(supply: Floats, demand: Floats) -> Provisioning:
    """The figures of two series with a number of replicas per second.

    >>> provisioning(np.array([3.0, 3.0, 1.0, 2.0]), np.array([1.0, 3.0, 2.0, 2.0]))
    Provisioning(accuracy_o=0.5, accuracy_u=0.25, timeshare_o=25.0, timeshare_u=25.0)
    """
    over = supply - demand
    return Provisioning(
        accuracy_o=float(np.maximum(over, 0.0).mean()),
        accuracy_u=float(np.maximum(-over, 0.0).mean()),
        timeshare_o=float(100.0 * (over > 0).mean()),
        timeshare_u=float(100.0 * (over < 0).mean()),
    )


LONGEST_DRAIN = SECONDS  # seconds after the load has ended
Point = tuple[float, float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GesscaleOutcome:
    """The figures of Table III, and why they are what they are.

    accuracy_o … timeshare_u: as in ``Provisioning``, of the replicas that run
    excess_time: until the backlog that the load left behind was worked off, as a share of the
        load's duration
    reconfigurations: while the load lasted; of them ``ups`` and ``downs``
    cost: replica-minutes while the load lasted
    catching_up: ups at which the nodes in use would have carried the load if nothing had waited
    lag: mean seconds of input that waited
    tightness: mean share of what the nodes that were left carry that the load had at a down
    model_error: mean relative error of the calibrated model's predictions
    course: by minute offered and processed records/s, replicas, ideal replicas, records that wait
    """

    key: str
    seed: int
    accuracy_o: float
    accuracy_u: float
    timeshare_o: float
    timeshare_u: float
    excess_time: float
    reconfigurations: float
    cost: float
    ups: float
    downs: float
    catching_up: float
    lag: float
    tightness: float | None = None
    model_error: float | None = None
    course: tuple[Point, ...] = ()


GesscaleOutcomes = Outcomes[GesscaleOutcome]


@dataclass(slots=True)
class _Changes:
    """What was decided while the load lasted."""

    ups: int = 0
    downs: int = 0
    catching_up: int = 0
    tight: list[float] = field(default_factory=list)

    def note(self, engine: GeoEngine, decision: Decision, before: tuple[str, ...]) -> None:
        """Count a decision that was carried out; ``before`` the nodes in use until then."""
        change = decision.changes[engine.spec.job.name]
        offered = decision.seen.operators["source"].offered_rate or 0.0
        if change.slots > change.before:
            self.ups += 1
            self.catching_up += engine.spec.capacity(before) >= offered
        else:
            self.downs += 1
            self.tight.append(offered / engine.spec.capacity(engine.planned))


def run(one: CellRun[GesscaleCell]) -> GesscaleOutcome:
    """Run a cell with a seed, in a worker."""
    return run_cell(one.cell, one.seed, detailed=one.detailed, check=leave_if_stopping)


def run_cell(
    cell: GesscaleCell,
    seed: int,
    *,
    detailed: bool = False,
    check: Callable[[], None] = lambda: None,
) -> GesscaleOutcome:
    """Run a cell in the fog of a seed; the same load for all.

    ``detailed`` with what the pictures need · ``check`` is called now and then and may raise to
    end the run. The policy goes on until the backlog is gone.
    """
    setup = cell.how
    engine = GeoEngine(setup.spec(seed), LOAD, seconds=SECONDS + LONGEST_DRAIN, seed=seed)
    policy = create(cell.policy)
    loop = Loop(engine, policy, setup.guards, mode="act", seed=seed)
    changes = _Changes()
    for minute in range(1, (SECONDS + LONGEST_DRAIN) // PERIOD + 1):
        check()
        engine.advance(PERIOD)
        over = minute * PERIOD >= SECONDS
        if over and engine.totals().queued <= 0.0:
            break
        before = engine.nodes
        decision = loop.tick()
        if decision.applied and not over:
            changes.note(engine, decision, before)
    figures = figures_of(policy, loop.state.memory)
    series = engine.series
    lags = series.lag[SECONDS - 1 :]
    drained = int(np.argmax(lags <= 0.0)) if (lags <= 0.0).any() else len(lags)
    # A change stops all instances [arkian21, IV-E]: while the job is down there are none.
    supply = (series.slots[engine.spec.job.name] * (1.0 - series.down))[:SECONDS]
    demand = setups.replicas(setup, seed, series.offered[:SECONDS])
    found = provisioning(supply, demand)
    return GesscaleOutcome(
        key=cell.key,
        seed=seed,
        accuracy_o=found.accuracy_o,
        accuracy_u=found.accuracy_u,
        timeshare_o=found.timeshare_o,
        timeshare_u=found.timeshare_u,
        excess_time=drained / SECONDS,
        reconfigurations=float(changes.ups + changes.downs),
        cost=float(supply.sum() / 60.0),
        ups=float(changes.ups),
        downs=float(changes.downs),
        catching_up=float(changes.catching_up),
        lag=float(series.lag[:SECONDS].mean() / series.offered[:SECONDS].mean()),
        tightness=float(np.mean(changes.tight)) if changes.tight else None,
        model_error=figures.get("model_error"),
        course=_course(engine, supply, demand) if detailed else (),
    )


def _course(engine: GeoEngine, supply: Floats, demand: Floats) -> tuple[Point, ...]:
    series = engine.series
    rows = (
        series.offered[:SECONDS],
        series.consumed[:SECONDS],
        supply,
        demand,
        series.lag[:SECONDS],
    )
    minutes = [row.reshape(-1, 60).mean(axis=1).round(3).tolist() for row in rows]
    return tuple(zip(*minutes, strict=True))
