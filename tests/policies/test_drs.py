"""DRS: M/M/k queues in an open network, and the fewest slots for a response time."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.policies.drs import Drs, fewest, mmk_response
from tests.fakes.scenarios import healthy, with_all


def erlang_c(rate: float, mu: float, k: int) -> float:
    """By its definition."""
    a = rate / mu
    last = a**k / math.factorial(k) * k / (k - a)
    return last / (sum(a**n / math.factorial(n) for n in range(k)) + last)


@given(st.floats(0.05, 0.99), st.floats(0.1, 50.0), st.integers(1, 30))
def test_the_response_time_of_m_m_k(load: float, mu: float, k: int) -> None:
    rate = load * k * mu
    expected = 1 / mu + erlang_c(rate, mu, k) / (k * mu - rate)
    assert mmk_response(rate, mu, k) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.floats(0.2, 4.0), st.floats(0.5, 2.0)), min_size=1, max_size=3),
    st.floats(1.05, 3.0),
)
def test_no_other_allocation_is_smaller(pairs: list[tuple[float, float]], slack: float) -> None:
    """Against every allocation of at most twelve slots per operator."""
    loads = {f"o{i}": pair for i, pair in enumerate(pairs)}
    source = pairs[0][0]
    target = slack * sum(rate / mu for rate, mu in pairs) / source
    slots, response = fewest(loads, source, target)
    assert response <= target
    least = math.inf
    for ks in itertools.product(range(1, 13), repeat=len(pairs)):
        if all(k * mu > rate for k, (rate, mu) in zip(ks, pairs, strict=True)):
            stays = [
                rate * mmk_response(rate, mu, k) for k, (rate, mu) in zip(ks, pairs, strict=True)
            ]
            if sum(stays) / source <= target:
                least = min(least, sum(ks))
    assert sum(slots.values()) <= least


def test_a_decision() -> None:
    seen = with_all(healthy(slots=4), offered_rate=1000.0, service_rate=400.0)
    proposal, _ = Drs(target=1.0).decide(seen, None)
    assert all(need.slots >= 3.0 for need in proposal.needs.values())
    tight, _ = Drs(target=0.0076).decide(seen, None)
    assert sum(n.slots for n in tight.needs.values()) > sum(
        n.slots for n in proposal.needs.values()
    )
    never, _ = Drs(target=0.001).decide(seen, None)  # below the services themselves
    assert "cannot reach" in never.reason
    assert all(need.slots < 50 for need in never.needs.values())


def test_the_target_is_checked() -> None:
    for target in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="target"):
            Drs(target=target)


@pytest.mark.parametrize("cores", [1, 2, 4, 8])
def test_slots_of_several_cores_are_as_many_servers(cores: int) -> None:
    """Servers of 100 records/s each, on one slot of 8 cores or on eight of 1."""
    one = with_all(healthy(shared=True), offered_rate=1000.0, service_rate=100.0)
    wide = with_all(one, service_rate=100.0 * cores)
    wide = replace(wide, pipeline=replace(wide.pipeline, slot_tasks={"all": cores}))
    for target in (1.0, 0.04):
        servers, _ = Drs(target=target).decide(one, None)
        slots, _ = Drs(target=target).decide(wide, None)
        assert {name: n.slots * cores for name, n in slots.needs.items()} == {
            name: n.slots for name, n in servers.needs.items()
        }
