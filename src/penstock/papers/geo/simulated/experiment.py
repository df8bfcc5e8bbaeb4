"""One run of the study: all levels of parallelism in turn, or an auto-scaler that chooses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from penstock.comparison.processes import leave_if_stopping
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.model import Change, Snapshot
from penstock.core.sanity import believable
from penstock.papers.geo.simulated.cells import Condition, GeoCell, Scaler
from penstock.papers.geo.simulated.onlookers import Onlookers, one_more
from penstock.papers.judging import Verdict, below
from penstock.papers.running import CellRun
from penstock.policies import create
from penstock.policies.gesscale.gesscale_plus import GesscalePlus
from penstock.report.statistics import paired
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
    """What was seen of a level in a window of a minute, and what was foretold of it.

    rate: records/s taken in
    held: share of the time in which the source was held back
    busy: shares by instance
    wanted: slots that Gesscale, or the auto-scaler of the run, asked for
    gesscale, plus: records/s that Gesscale and ``gesscale+`` said before it was reached
    plus_width: half-width of the latter's 95 % interval
    views: what ``gesscale+`` said with each of ``VIEWS``
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


def run(one: CellRun[GeoCell]) -> GeoOutcome:
    """Run a cell with a seed, in a worker."""
    return run_cell(one.cell, one.seed, check=leave_if_stopping)


def run_cell(cell: GeoCell, seed: int, *, check: Callable[[], None] = lambda: None) -> GeoOutcome:
    """Run a cell; ``check`` is called now and then and may raise to end the run."""
    seconds = LOOKS * (RESTART + WARM_UP + WINDOW)
    engine = GeoEngine(cell.condition.spec(seed), Constant(rps=RATE), seconds=seconds, seed=seed)
    if cell.scaler == "levels":
        return _levels(cell, seed, engine, check)
    return _scaled(cell, seed, engine, check)


def _levels(cell: GeoCell, seed: int, engine: GeoEngine, check: Callable[[], None]) -> GeoOutcome:
    """Add an instance after every look, on the nearest node; both policies look on."""
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
            **more.figures,
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


WHOLE = 0.98  # of the load


@dataclass(frozen=True, slots=True, kw_only=True)
class GeoOutcomes:
    """All runs that a folder holds."""

    runs: tuple[GeoOutcome, ...]

    def of(self, condition: Condition, scaler: Scaler = "levels") -> list[GeoOutcome]:
        """The runs under a condition, by seed."""
        key = GeoCell(condition=condition, scaler=scaler).key
        return sorted((r for r in self.runs if r.key == key), key=lambda r: r.seed)

    def level(self, condition: Condition, slots: int) -> list[Look]:
        """What was seen at a level, by seed."""
        return [run.looks[slots - 1] for run in self.of(condition)]

    def rate(self, condition: Condition, slots: int) -> float:
        """Mean records/s at a level."""
        return mean([look.rate for look in self.level(condition, slots)])

    def less(self, condition: Condition, slots: int, base: int) -> Verdict:
        """Whether a level does less than another, run by run: by the interval of the difference."""
        pairs = [[look.rate for look in self.level(condition, n)] for n in (slots, base)]
        return below(paired(*pairs))

    def full(self, condition: Condition) -> int | None:
        """The fewest instances that take in the whole load in the mean; ``None``: none do.

        All but 2 % of it, as rates are measured within 1 %.
        """
        levels = range(1, NODES + 1)
        return next((n for n in levels if self.rate(condition, n) >= WHOLE * RATE), None)

    def best(self, condition: Condition) -> int:
        """The instances that do most in the mean."""
        return max(range(1, NODES + 1), key=lambda n: self.rate(condition, n))

    def errors(self, condition: Condition, slots: int, scaler: Scaler) -> list[float]:
        """predicted / measured − 1 at a level, of every run in which it was predicted.

        Gesscale's count as far as its auto-scaler comes in that run.
        """
        found = []
        for run in self.of(condition):
            look = run.looks[slots - 1]
            value = look.plus if scaler == "gesscale+" else look.gesscale
            reached = scaler == "gesscale+" or slots <= run.stays
            if value is not None and reached:
                found.append(value / look.rate - 1.0)
        return found

    def all_errors(self, condition: Condition, scaler: Scaler) -> list[float]:
        """The errors of all levels."""
        levels = range(2, NODES + 1)
        return [error for n in levels for error in self.errors(condition, n, scaler)]

    def inside(self, condition: Condition) -> float | None:
        """How often the next level is measured within the 95 % interval of ``gesscale+``."""
        looks = [look for run in self.of(condition) for look in run.looks]
        found = [
            abs(look.plus - look.rate) <= look.plus_width
            for look in looks
            if look.plus is not None and look.plus_width is not None
        ]
        return mean(found) if found else None


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value."""
    return sum(values) / len(values)
