"""Every interleaving of small systems: what the protocol promises, and what the pseudo-code breaks.

``python -m penstock.decentralized.check`` prints the report; exit code 1 if the protocol breaks a
promise or a fault of the pseudo-code is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from penstock.decentralized.check import faults
from penstock.decentralized.check.decisions import Deviation, deviations
from penstock.decentralized.check.explore import Exploration, explore
from penstock.decentralized.check.faults import DecisionFault, ProtocolFault
from penstock.decentralized.check.reduce import explore_reduced
from penstock.decentralized.check.scenarios import DIAMOND, Scenario, scenarios
from penstock.decentralized.policy import LocalPolicy, Probabilistic
from penstock.decentralized.protocol import ScalingProtocol

Explore = Callable[[Scenario, ScalingProtocol], Exploration]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Many scenarios of one kind: how many, how many states, and the first that is broken."""

    title: str
    scenarios: int
    states: int
    ends: int
    broken: Exploration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """What one place of the pseudo-code breaks, by a shortest path; none if nothing was found."""

    fault: ProtocolFault
    states: int
    shortest: Exploration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was explored, and what was found broken or refuted."""

    sweeps: tuple[Sweep, ...]
    deviation: Deviation | None
    refutations: tuple[Refutation, ...]
    wrong_decisions: tuple[tuple[DecisionFault, Deviation | None], ...]

    @property
    def holds(self) -> bool:
        """The protocol keeps its promises, its decisions add up, and every fault was found."""
        kept = all(sweep.broken is None for sweep in self.sweeps) and self.deviation is None
        found = all(r.shortest is not None for r in self.refutations)
        return kept and found and all(wrong is not None for _, wrong in self.wrong_decisions)


def check(protocol: ScalingProtocol = faults.REPAIRED, policy: LocalPolicy | None = None) -> Report:
    """The whole report; about a minute."""
    wanted = Probabilistic()
    return Report(
        sweeps=(
            sweep("one action, every interleaving", _systems(1), explore, protocol),
            sweep("two actions, every interleaving", _systems(2), explore, protocol),
            sweep(
                "two actions of up to two new instances, every interleaving",
                scenarios((1, 2, 1), 2, most_new=2),
                explore,
                protocol,
            ),
            sweep(
                "two actions in a diamond, every interleaving",
                scenarios((1, 2, 1, 2), 2, edges=DIAMOND),
                explore,
                protocol,
            ),
            sweep("three actions, reduced", _systems(3), explore_reduced, protocol),
        ),
        deviation=next(deviations(policy or wanted, wanted), None),
        refutations=tuple(refute(fault) for fault in faults.PROTOCOL),
        wrong_decisions=tuple(
            (fault, next(deviations(fault.policy, wanted), None)) for fault in faults.DECISION
        ),
    )


def sweep(title: str, cases: Iterator[Scenario], by: Explore, protocol: ScalingProtocol) -> Sweep:
    """Explore one scenario after the other; stop at the first that is broken."""
    count = states = ends = 0
    for scenario in cases:
        found = by(scenario, protocol)
        count, states, ends = count + 1, states + found.states, ends + len(found.ends)
        if found.broken is not None:
            return Sweep(title=title, scenarios=count, states=states, ends=ends, broken=found)
    return Sweep(title=title, scenarios=count, states=states, ends=ends, broken=None)


def refute(fault: ProtocolFault) -> Refutation:
    """The shortest of all paths to a violation, over all scenarios of so many actions."""
    best: Exploration | None = None
    states = 0
    for scenario in _systems(fault.actions):
        longest = None if best is None else len(best.path) - 2
        found = explore(scenario, fault.protocol, longest=longest)
        states += found.states
        if found.broken is not None:
            best = found
    return Refutation(fault=fault, states=states, shortest=best)


def _systems(actions: int) -> Iterator[Scenario]:
    """Chains of one to three operators with one or two instances each."""
    for operators in (1, 2, 3):
        for sizes in product((1, 2), repeat=operators):
            yield from scenarios(sizes, actions)
