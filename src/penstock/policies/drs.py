"""DRS: as many slots as an open Jackson network needs for a response time. [fu17]"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot
from penstock.policies.signals.demand import demand_of

MOST_SLOTS = 100_000  # of all operators: no cluster has more


@dataclass(frozen=True, slots=True, kw_only=True)
class Drs:
    """The fewest slots with which E[T] = Σ λ_i·E[T_i](k_i) / λ_0 ≤ ``target``.     [fu17, §3]

    Every operator is an M/M/k queue: E[T_i](k) = 1/μ_i + C(k, λ_i/μ_i)/(k·μ_i − λ_i), with Erlang's
    C. From the fewest slots that carry the load, one slot at a time goes where it gains most,
    which is optimal as every E[T_i] is convex. Arrivals are taken as Poisson: no bursts. A slot
    of several cores is as many servers.

    >>> Drs().target
    1.0
    """

    target: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.target) and self.target > 0.0):
            raise InputError(f"drs: target = {self.target} s must be > 0")

    def start(self, seed: int) -> None:
        """No memory."""
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        """Slots for every operator whose demand and service rate are known."""
        loads: dict[str, tuple[float, float]] = {}
        idle = {}
        cores = {name: _cores(seen, name) for name in seen.operators}
        demand = demand_of(seen)
        for name, rate in demand.items():
            mu = seen.operators[name].service_rate
            if rate == 0.0:
                idle[name] = Need(slots=0.0)
            elif mu and rate > 0.0:
                loads[name] = (rate, mu / cores[name])
        if not loads:
            reason = "idle" if idle else "no change: demand or service rate not measured"
            return Proposal(
                needs=idle, reason=reason, term="idle" if idle else "demand-not-measured"
            ), None
        source = sum(demand.get(name, 0.0) for name in seen.pipeline.sources)
        servers, response = fewest(loads, source or max(r for r, _ in loads.values()), self.target)
        needs = {name: Need(slots=k / cores[name]) for name, k in servers.items()}
        reached = "" if response <= self.target else ", which more slots cannot reach"
        reason = (
            f"response {response:.3g} s of a Jackson network, target {self.target:g} s{reached}"
        )
        return Proposal(needs={**idle, **needs}, reason=reason), None


def _cores(seen: Snapshot, name: str) -> float:
    operator = seen.pipeline.operators.get(name)
    return 1.0 if operator is None else seen.pipeline.slot_tasks.get(operator.pool, 1.0)


def fewest(
    loads: Mapping[str, tuple[float, float]], source: float, target: float
) -> tuple[dict[str, int], float]:
    """Slots by operator from (λ_i, μ_i), and the response time with them.

    >>> fewest({"a": (3.0, 1.0)}, 3.0, 1.2)
    ({'a': 5}, 1.1180...)
    """
    slots = {name: math.floor(rate / mu) + 1 for name, (rate, mu) in loads.items()}
    if sum(slots.values()) > MOST_SLOTS:  # waiting is the least of the worries
        return slots, sum(rate / mu for rate, mu in loads.values()) / source
    stays = {name: mmk_response(*loads[name], slots[name]) for name in loads}
    total = sum(loads[name][0] * stays[name] for name in loads) / source
    least = sum(rate / mu for rate, mu in loads.values()) / source
    if target <= least:  # the services alone take longer: no waiting is the best there is
        target = least * 1.01
    gains = {name: _gain(loads[name], slots[name], stays[name]) for name in loads}
    while total > target and sum(slots.values()) < MOST_SLOTS:
        best = max(gains, key=lambda name: gains[name])
        slots[best] += 1
        stays[best] -= gains[best] / loads[best][0]
        gains[best] = _gain(loads[best], slots[best], stays[best])
        total = sum(loads[name][0] * stays[name] for name in loads) / source
    return slots, total


def _gain(load: tuple[float, float], slots: int, stay: float) -> float:
    return load[0] * (stay - mmk_response(*load, slots + 1))


def mmk_response(rate: float, mu: float, k: int) -> float:
    """E[T] of M/M/k: 1/μ + C/(k·μ − λ), Erlang's C by the recursion of his B.

    >>> mmk_response(0.5, 1.0, 1)
    2.0
    """
    offered = rate / mu
    blocked = 1.0
    for servers in range(1, k + 1):
        blocked = offered * blocked / (servers + offered * blocked)
    waits = blocked / (1.0 - offered / k * (1.0 - blocked))
    return 1.0 / mu + waits / (k * mu - rate)
