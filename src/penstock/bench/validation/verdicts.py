"""Whether the twin keeps its bounds: one verdict per bound, and where it does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.bench.validation import agreement
from penstock.bench.validation.agreement import Order, tally
from penstock.bench.validation.comparison import COMPARED, EXECUTORS, LAG, ORDERED, Compared, Scene
from penstock.report import units


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A bound, whether it holds (``None``: it cannot be judged), the count, and what breaks it."""

    bound: str
    held: bool | None
    count: str
    broken: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """Says whether it held."""
        return {True: "held", False: "not held", None: "not judged"}[self.held]


def verdicts(scenes: Sequence[Scene]) -> list[Verdict]:
    """Judge every bound over one scene, or over several together."""
    many = len(scenes) > 1
    lag = f"p95 lag within {units.share(agreement.LAG)} or {agreement.SPREADS:g} spreads on Spark"
    executors = f"mean executors within {units.share(agreement.EXECUTORS)}"
    return [
        _near(executors, EXECUTORS, scenes, many),
        _near(lag, LAG, scenes, many),
        *(_order(score, scenes, many) for score in ORDERED),
    ]


def percent(share: float | None) -> str:
    """With its sign.

    >>> percent(0.123), percent(-0.04), percent(-0.001), percent(None)
    ('+12 %', '−4 %', '0 %', '–')
    """
    if share is None:
        return units.UNKNOWN
    whole = round(100 * share)
    return f"{whole:+d} %".replace("-", "−") if whole else "0 %"


def _near(bound: str, score: str, scenes: Sequence[Scene], many: bool) -> Verdict:
    found = [
        (_where(scene, p.label, many), p.figures[score])
        for scene in scenes
        for p in scene.policies
        if score in p.figures
    ]
    broken = tuple(_broken(where, c) for where, c in found if not c.held)
    policies = "policy" if len(found) == 1 else "policies"
    return Verdict(
        bound=bound,
        held=not broken if found else None,
        count=f"{len(found) - len(broken)} of {len(found)} {policies}",
        broken=broken,
    )


def _broken(where: str, compared: Compared) -> str:
    return f"{where} {percent(compared.error)} (allowed {units.share(compared.allowed)})"


def _order(score: str, scenes: Sequence[Scene], many: bool) -> Verdict:
    found = [(scene, order) for scene in scenes for order in scene.orders[score]]
    counted = tally([order for _, order in found])
    ties = f"{counted.ties} {'tie' if counted.ties == 1 else 'ties'}"
    told = f"{counted.same} of {counted.told} pairs that Spark tells apart"
    if not counted.told:
        told = "Spark tells no pair apart"
    return Verdict(
        bound=f"order by {COMPARED[score].removesuffix(' s')}, ≥ {units.share(agreement.ORDER)}",
        held=counted.held,
        count=f"{told}; {ties}; {counted.alike} of {counted.pairs} by the means alone",
        broken=tuple(
            _where(scene, _swapped(order), many)
            for scene, order in found
            if order.verdict == "swapped"
        ),
    )


def _swapped(order: Order) -> str:
    return f"{order.a} {'<' if order.spark < 0 else '>'} {order.b} on Spark only"


def _where(scene: Scene, what: str, many: bool) -> str:
    return f"{scene.title}: {what}" if many else what
