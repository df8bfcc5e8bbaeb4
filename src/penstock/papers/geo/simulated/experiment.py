"""One run of the study: all levels of parallelism in turn, or an auto-scaler that chooses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.model import Change, Snapshot
from penstock.core.sanity import believable
from penstock.papers.geo.simulated.cells import GeoCell
from penstock.papers.geo.simulated.onlookers import Onlookers, one_more
from penstock.policies import create
from penstock.policies.gesscale.gesscale_plus import GesscalePlus
from penstock.simulator.geo import GeoEngine
from penstock.simulator.geo.setups import NODES, RATE
from penstock.workloads.patterns import Constant

# What an engine may not tell: snapshots without it, to see how much a model depends on it.

View = Callable[[Snapshot], Snapshot]


def without_groups(seen: Snapshot) -> Snapshot:
    """No busy time by key group."""
    return replace(seen, groups={})


def without_idle(seen: Snapshot) -> Snapshot:
    """Not whether the source idles while nothing holds it back, only whether it is held back."""
    operators = {name: replace(o, idle=None) for name, o in seen.operators.items()}
    return replace(seen, operators=operators)


def without_busy(seen: Snapshot) -> Snapshot:
    """No busy time of slots and operators."""
    pools = {p: tuple(replace(s, load=None) for s in slots) for p, slots in seen.pools.items()}
    operators = {name: replace(o, busy=None) for name, o in seen.operators.items()}
    return replace(seen, pools=pools, operators=operators)


def throughput_alone(seen: Snapshot) -> Snapshot:
    """Nothing but rates, lag and back pressure."""
    return without_groups(without_idle(without_busy(seen)))


VIEWS: Mapping[str, View] = {
    "no key groups": without_groups,
    "no idle time": without_idle,
    "no busy time": without_busy,
    "throughput alone": throughput_alone,
}


WARM_UP, WINDOW = 180, 60  # seconds after a restart, and measured                [III-B2]
RESTART = 60  # seconds in which it is over
LOOKS = 16  # of an auto-scaler, enough for ten levels and to see where it stays
LAST = 5  # looks that tell what a run came to


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A window of a minute.

    ``rate`` records/s taken in · ``held`` share of the time in which the source was held back ·
    ``busy`` shares by instance · ``wanted`` slots that Gesscale, or the auto-scaler of the run,
    asked for · what was foretold of this level before it was reached, by Gesscale and by
    ``gesscale+``, with the half-width of the latter's 95 % interval; and by ``gesscale+`` with
    each of ``VIEWS``.
    """

    slots: int
    rate: float
    held: float
    busy: tuple[float, ...]
    wanted: int
    gesscale: float | None = None
    plus: float | None = None
    plus_width: float | None = None
    views: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GeoOutcome:
    """A run: its looks, and the reason that was given last."""

    key: str
    seed: int
    looks: tuple[Look, ...]
    reason: str = ""

    @property
    def stays(self) -> int:
        """Where an auto-scaler of its own accord does not go on: the first such level."""
        return next((look.slots for look in self.looks if look.wanted <= look.slots), NODES)

    @property
    def final(self) -> int:
        """Instances at the end."""
        return self.looks[-1].slots

    @property
    def rate(self) -> float:
        """Mean records/s of the last looks."""
        last = self.looks[-LAST:]
        return sum(look.rate for look in last) / len(last)

    @property
    def changes(self) -> int:
        """How often the number of instances changed."""
        sizes = [look.slots for look in self.looks]
        return sum(a != b for a, b in pairwise(sizes))


def run(cell: GeoCell, seed: int, *, check: Callable[[], None] = lambda: None) -> GeoOutcome:
    """One cell; ``check`` is called now and then and may raise to end the run."""
    seconds = LOOKS * (RESTART + WARM_UP + WINDOW)
    engine = GeoEngine(cell.condition.spec(seed), Constant(rps=RATE), seconds=seconds, seed=seed)
    if cell.scaler == "levels":
        return _levels(cell, seed, engine, check)
    return _scaled(cell, seed, engine, check)


def _levels(cell: GeoCell, seed: int, engine: GeoEngine, check: Callable[[], None]) -> GeoOutcome:
    """One instance more after every look, on the nearest node; both policies look on."""
    job = cell.condition.job
    onlookers, plus = Onlookers(job, seed), GesscalePlus()
    blind = {name: plus.start(seed) for name in VIEWS}
    looks: list[Look] = []
    foretold: dict[str, Any] = {}
    for level in range(1, NODES + 1):
        check()
        seen = _window(engine, restart=level > 1)
        need = onlookers.look(seen).needs.get(job)
        wanted = level if need is None else round(need.slots)
        looks.append(replace(_look(seen, job, wanted), **foretold))
        if level == NODES:
            break
        for name, view in VIEWS.items():
            _, blind[name] = plus.decide(view(seen), blind[name])
        more = onlookers.foretell(seen)
        foretold = {
            "gesscale": more.gesscale,
            "plus": more.plus,
            "plus_width": more.plus_width,
            "views": tuple(
                one_more(view(seen), blind[name], job).rate for name, view in VIEWS.items()
            ),
        }
        change = Change(before=level, slots=more.slots, raw=more.slots, add_on=more.add_on)
        engine.apply({job: change})
    return GeoOutcome(key=cell.key, seed=seed, looks=tuple(looks))


def _scaled(cell: GeoCell, seed: int, engine: GeoEngine, check: Callable[[], None]) -> GeoOutcome:
    """An auto-scaler, which looks when the study's does."""
    job = cell.condition.job
    loop = Loop(engine, create(cell.scaler), Guards(), mode="act", seed=seed)
    looks: list[Look] = []
    reason, restart = "", False
    for _ in range(LOOKS):
        check()
        engine.advance(WARM_UP + RESTART * restart)
        engine.observe()
        engine.advance(WINDOW)
        decision = loop.tick()
        looks.append(_look(decision.seen, job, decision.targets[job].slots))
        reason, restart = decision.proposal.reason, decision.applied
    return GeoOutcome(key=cell.key, seed=seed, looks=tuple(looks), reason=reason)


def _window(engine: GeoEngine, *, restart: bool) -> Snapshot:
    """What is seen of the minute after the warm-up."""
    engine.advance(WARM_UP + RESTART * restart)
    engine.observe()
    engine.advance(WINDOW)
    return believable(engine.observe())[0]


def _look(seen: Snapshot, job: str, wanted: int) -> Look:
    slots = seen.pools[job]
    return Look(
        slots=len(slots),
        rate=seen.operators[job].arrival_rate or 0.0,
        held=seen.operators["source"].backpressured or 0.0,
        busy=tuple(round(slot.load or 0.0, 4) for slot in slots),
        wanted=wanted,
    )
