"""Stages that take turns on one pool: which one is chosen, query by query."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.core.model import OperatorSeen, QuerySeen, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies import Dhalion, HpaVarga
from penstock.policies.signals.bottleneck import bottlenecks
from penstock.policies.signals.turns import chains, pooled

Shares = tuple[float, float]  # busy and back-pressured


def operator(share: Shares, *, source: bool = False) -> OperatorSeen:
    busy, held = share
    o = OperatorSeen(
        parallelism=2.0, busy=busy, backpressured=held, idle=1.0 - busy - held, arrival_rate=1000.0
    )
    return replace(o, offered_rate=1000.0, lag=0.0) if source else o


def two_queries(one: dict[str, Shares], two: dict[str, Shares], **fields: object) -> Snapshot:
    """A join of two sources beside a chain, on eight executors."""
    seen = {f"one/{name}": operator(share, source="read" in name) for name, share in one.items()}
    seen |= {f"two/{name}": operator(share, source=name == "read") for name, share in two.items()}
    return Snapshot(
        time=100.0,
        window=15.0,
        pipeline=Pipeline(
            operators={name: Operator(pool="executors") for name in seen},
            edges=(
                ("one/read-1", "one/join"),
                ("one/read-2", "one/join"),
                ("two/read", "two/aggregate"),
            ),
        ),
        operators=seen,
        pools={"executors": tuple(Slot(id=str(n)) for n in range(8))},
        queries={
            "one": QuerySeen(batches=1, rows=1, busy=0.5, backpressured=0.4),
            "two": QuerySeen(batches=1, rows=1, busy=0.2, backpressured=0.0),
        },
        execution="micro-batch",
    )


HELD = {"read-1": (0.05, 0.6), "read-2": (0.35, 0.2), "join": (0.1, 0.0)}
CALM = {"read": (0.05, 0.0), "aggregate": (0.15, 0.0)}


def test_the_stages_of_a_query_take_turns_and_those_of_another_do_not() -> None:
    found = {frozenset(chain) for chain in chains(two_queries(HELD, CALM))}
    assert found == {
        frozenset({"one/read-1", "one/read-2", "one/join"}),
        frozenset({"two/read", "two/aggregate"}),
    }
    assert chains(replace(two_queries(HELD, CALM), execution="continuous")) == []


def test_the_bottleneck_is_the_busiest_stage_of_the_query_that_is_held_up() -> None:
    assert bottlenecks(two_queries(HELD, CALM)) == ("one/read-2",)
    both = two_queries(HELD, {"read": (0.05, 0.3), "aggregate": (0.15, 0.0)})
    assert bottlenecks(both) == ("one/read-2", "two/aggregate")


def test_of_queries_that_nothing_holds_up_it_is_the_busiest_of_each() -> None:
    calm = {name: (busy, 0.0) for name, (busy, _) in HELD.items()}
    assert bottlenecks(two_queries(calm, CALM)) == ("one/read-2", "two/aggregate")


def test_of_equally_busy_stages_it_is_the_last() -> None:
    """As in journals of versions that gave all stages the shares of their pool."""
    equal = dict.fromkeys(HELD, (0.5, 0.4))
    assert bottlenecks(two_queries(equal, CALM)) == ("one/join",)


def test_slots_of_their_own_take_no_turns() -> None:
    """A split query: every operator is an application, and back pressure is followed as it is."""
    s = two_queries(HELD, CALM)
    alone = {name: replace(o, pool=name) for name, o in s.pipeline.operators.items()}
    split = replace(
        s,
        pipeline=Pipeline(operators=alone, edges=s.pipeline.edges),
        pools=dict.fromkeys(alone, s.pools["executors"]),
    )
    assert bottlenecks(split) == ("one/join",)
    assert pooled(split) is split


def test_the_pool_is_busy_for_all_queries_and_each_waits_for_itself() -> None:
    whole = pooled(two_queries(HELD, CALM)).operators
    for name in ("one/read-1", "one/join"):
        o = whole[name]
        # Records of query one waited in 0.4 of the 0.5 that nobody worked for it.
        assert (o.busy, o.backpressured, o.idle) == pytest.approx((0.7, 0.24, 0.06))
    o = whole["two/read"]
    assert (o.busy, o.backpressured, o.idle) == pytest.approx((0.7, 0.0, 0.3))


def test_a_query_whose_shares_are_not_known_is_left_as_it_is() -> None:
    s = two_queries(HELD, CALM)
    s = replace(s, queries={**s.queries, "two": QuerySeen(batches=1, rows=1)})
    assert pooled(s) is s


def test_dhalion_scales_one_stage_of_one_query() -> None:
    policy = Dhalion(lag_rate=100.0)
    held = two_queries({"read-1": (0.1, 0.6), "read-2": (0.1, 0.6), "join": (0.6, 0.0)}, CALM)
    proposal, _ = policy.decide(held, policy.start(0))
    assert {name: need.slots for name, need in proposal.needs.items()} == {
        "one/join": pytest.approx(2.0 / 0.4)
    }


def test_hpa_varga_says_that_the_use_is_that_of_the_executors() -> None:
    policy = HpaVarga()
    proposal, _ = policy.decide(two_queries(HELD, CALM), policy.start(0))
    assert "the executors of one/read-1, one/read-2, one/join used 94%" in proposal.reason
    assert "the executors of two/read, two/aggregate used 70%" in proposal.reason
