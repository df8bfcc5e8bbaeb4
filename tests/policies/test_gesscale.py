"""Gesscale: what is at its limit, and where one slot more goes; figures computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from penstock.core.errors import InputError
from penstock.core.model import Execution, OperatorSeen, Placement, QuerySeen, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies import Gesscale, MdlNlunaware
from tests.fakes.fog_scenarios import calibrated, decided, fog, later, mst, slots
from tests.fakes.scenarios import healthy, with_all
from tests.policies.test_policies import CHAIN, JOIN, SPLIT, last, needs, pool_needs, snapshot

# --- algorithm 1: what is at its limit ---


@pytest.mark.parametrize(
    ("edges", "held", "expected"),
    [
        (CHAIN, {"source": 0.51}, {"map": 5.0}),
        (CHAIN, {"source": 0.5}, {}),  # high is above one half
        (CHAIN, {"source": 0.9, "map": 0.5}, {"map": 5.0}),
        (CHAIN, {"source": 0.9, "map": 0.51}, {"sink": 5.0}),  # held up itself
        (CHAIN, {"source": 0.9, "map": None}, {}),
        (JOIN, {"left": 0.9}, {}),  # all upstream operators
        (JOIN, {"left": 0.9, "right": 0.6}, {"join": 5.0}),
        (SPLIT, {"source": 0.6}, {"a": 5.0, "b": 5.0}),  # the paper cannot tell which
        (SPLIT, {"source": 0.6, "b": 0.6}, {"a": 5.0}),
    ],
)
def test_the_root_of_back_pressure_gets_one_slot_more(
    edges: list[tuple[str, str]], held: dict[str, float | None], expected: dict[str, float]
) -> None:
    seen = with_all(snapshot(edges, held), lag=0.0)
    assert needs(last(Gesscale(), seen)) == expected


def test_the_threshold_of_back_pressure_is_a_parameter() -> None:
    seen = with_all(snapshot(CHAIN, {"source": 0.3}), lag=0.0)
    assert needs(last(Gesscale(backpressured=0.2), seen)) == {"map": 5.0}


def test_a_source_is_at_its_limit_when_its_queue_never_ends() -> None:
    """It has nobody above it; 50,000 records wait and 10,000 /s are taken: for the whole window."""
    behind = snapshot(CHAIN, offered_rate=10_000.0, lag=50_000.0)
    assert needs(last(Gesscale(), behind)) == {"source": 5.0}
    caught_up = with_all(behind, lag=9_000.0)  # less than a second of work
    assert needs(last(Gesscale(), caught_up)) == {}
    held_up = snapshot(CHAIN, {"source": 0.6}, offered_rate=10_000.0, lag=50_000.0)
    assert needs(last(Gesscale(), held_up)) == {"map": 5.0}
    unknown = with_all(behind, lag=None)
    assert "source: back pressure or throughput not measured" in last(Gesscale(), unknown).reason


# --- a pool that several operators share ---


def on_spark(*, busy: float, held: float, lag: float | None, slots: int = 4) -> Snapshot:
    """``held`` the share of all time in which slots did nothing though records waited."""
    seen = with_all(
        healthy(shared=True, slots=slots),
        busy=busy,
        backpressured=held,
        idle=1.0 - busy - held,
        lag=lag,
        arrival_rate=900.0,
        offered_rate=1500.0,
    )
    return replace(seen, queries={"q": QuerySeen(batches=4, rows=100)}, execution="micro-batch")


@pytest.mark.parametrize(
    ("busy", "held", "lag", "expected"),
    [
        (0.6, 0.21, 1000.0, {"all": 5.0}),  # of the 40 % not busy records waited 21
        (0.6, 0.2, 1000.0, {}),
        (0.6, 0.4, 0.0, {}),  # nothing is left behind
        (0.6, 0.4, None, {}),
        (1.0, 0.0, 1000.0, {"all": 5.0}),  # never without work, and some is left
        (1.0, 0.0, 0.0, {}),
    ],
)
def test_a_shared_pool_is_at_its_limit_when_records_wait(
    busy: float, held: float, lag: float | None, expected: dict[str, float]
) -> None:
    proposal = last(Gesscale(), on_spark(busy=busy, held=held, lag=lag))
    assert pool_needs(proposal) == expected
    assert proposal.needs == {}


@pytest.mark.parametrize(
    ("lag", "execution", "expected"),
    [
        (50_000.0, "continuous", {"all": 5.0}),  # Flink reads 94 % of a slot that does all it can
        (50_000.0, "micro-batch", {}),  # of micro-batches the time not busy says more
        (1400.0, "continuous", {}),  # it was 500 a window ago: less than a second of work
    ],
)
def test_a_queue_that_never_ends_is_a_limit_without_micro_batches(
    lag: float, execution: Execution, expected: dict[str, float]
) -> None:
    seen = on_spark(busy=0.94, held=0.0, lag=lag)
    seen = with_all(seen, offered_rate=960.0)
    assert pool_needs(last(Gesscale(), replace(seen, execution=execution))) == expected


def test_a_shared_pool_is_measured_and_shrunk_as_one() -> None:
    """900 /s on 4 slots: 225 each. 300 /s need 1.33 of them, with 30 % to spare at 2 no more."""
    policy = Gesscale(period=0.0)
    _, memory = policy.decide(on_spark(busy=1.0, held=0.0, lag=500.0), policy.start(1))
    assert memory["pools"]["all"]["measured"] == [[4.0, 0.0, 900.0, 1.0]]
    calm = on_spark(busy=0.3, held=0.0, lag=0.0)
    calm = replace(with_all(calm, arrival_rate=300.0, offered_rate=300.0), time=1060.0)
    proposal, _ = policy.decide(calm, memory)
    assert pool_needs(proposal) == {"all": 2.0}
    assert proposal.place == {}  # no node is known: left to the engine


def test_of_two_queries_on_a_pool_the_one_that_is_behind_counts() -> None:
    shape = Pipeline(operators={name: Operator(pool="executors") for name in ("one", "two")})
    o = OperatorSeen(
        parallelism=1.0, offered_rate=500.0, arrival_rate=400.0, busy=0.5, idle=0.5,
        backpressured=0.0, lag=0.0,
    )  # fmt: skip
    behind = replace(o, idle=0.1, backpressured=0.4, lag=900.0)
    seen = Snapshot(
        time=60.0, window=60.0, pipeline=shape, operators={"one": o, "two": behind},
        pools={"executors": slots("aa", "executors")},
    )  # fmt: skip
    policy = Gesscale()
    proposal, memory = policy.decide(seen, policy.start(1))
    assert pool_needs(proposal) == {"executors": 3.0}
    assert memory["pools"]["executors"]["measured"] == [[2.0, 0.0, 800.0, 1.0]]  # both together
    blind = replace(seen, operators={"one": replace(o, lag=None), "two": o})
    assert "not measured" in last(policy, blind).reason


# --- algorithm 3: one slot more, and where ---


def test_the_node_that_adds_least_latency_and_why() -> None:
    """On a, b and c, 60 ms apart; d adds 40 ms, e 80.

    √1, √2 and √3 less 0, 2 and 6 were measured: MST(4) = 200 − 10.
    """
    policy = Gesscale()
    seen = fog("abc", taken=mst("abc"), offered=1000.0, held=0.83, time=180.0)
    proposal, memory = policy.decide(seen, calibrated(policy, upto=2))
    assert needs(proposal) == {"taxi": 4.0}
    assert proposal.place == {"taxi": Placement(add_on=("d",))}
    start, _, width = proposal.reason.partition("±")
    why = "back pressure 0.83 upstream; MST(4) predicted 190 "
    assert start == f"taxi 3→4 on d (+40 ms → 100 ms at most): {why}"
    assert 5.0 < float(width.removesuffix("/s")) < 60.0
    assert [row[:3] for row in memory["pools"]["taxi"]["measured"]] == [
        [1.0, 0.0, 100.0],
        pytest.approx([2.0, 0.02, 139.42], abs=0.01),
        pytest.approx([3.0, 0.06, 167.21], abs=0.01),
    ]


def test_it_is_calibrated_in_stages() -> None:
    """One measurement: α·n. Two: α·n − γ·NDmax. Three: all three parameters."""
    said = []
    policy, memory = Gesscale(), Gesscale().start(1)
    for n, rate in ((1, 100.0), (2, 190.0), (3, 240.0)):
        nodes = "aec"[:n]
        seen = fog(nodes, taken=rate, offered=1000.0, held=0.8, time=60.0 * n, free="d")
        proposal, memory = policy.decide(seen, memory)
        said.append(proposal.reason)
    assert "MST(2) predicted 200 ±" in said[0]
    # 2·100 − 0.14·γ = 190, so γ = 71.4; d is 110 ms from e: 3·100 − 0.14·71.4.
    assert "MST(3) predicted 290 ±" in said[1]
    assert "MST(4) predicted" in said[2] and "MST(4) predicted 390" not in said[2]


def test_without_round_trips_nodes_are_left_to_the_engine() -> None:
    policy = Gesscale()
    seen = fog("abc", held=0.8, rtt=None)
    proposal, memory = policy.decide(seen, policy.start(1))
    assert needs(proposal) == {"taxi": 4.0}
    assert proposal.place == {}
    assert memory["pools"]["taxi"]["measured"][0][1] == 0.0


def test_without_a_free_node_nothing_can_be_added() -> None:
    proposal = last(Gesscale(), fog("abcde", held=0.8))
    assert proposal.needs == {}
    assert "no node is free" in proposal.reason
    proposal = last(Gesscale(), fog("abc", held=0.8, free=["x", "y"]))
    assert "no free node is in the latency map" in proposal.reason


def test_nodes_that_the_map_does_not_know_are_not_measured() -> None:
    policy = Gesscale()
    proposal, memory = policy.decide(fog("abx", held=0.8, free="cde"), policy.start(1))
    assert memory["pools"]["taxi"]["measured"] == []
    assert proposal.place == {"taxi": Placement(add_on=("c",))}  # by those that it knows
    assert "not measured: x not in the latency map" in proposal.reason
    calm = later("abx", taken=10.0, free="cde")
    stays = decided(policy, calm)
    assert stays.needs == {} and "x not in the latency map" in stays.reason


def test_two_operators_never_get_the_same_node() -> None:
    shape = Pipeline(
        operators={n: Operator(pool=n) for n in ("source", "one", "two")},
        edges=(("source", "one"), ("source", "two")),
    )
    seen = fog("a", held=0.8)
    taxi = seen.operators["taxi"]
    seen = replace(
        seen,
        pipeline=shape,
        operators={"source": seen.operators["source"], "one": taxi, "two": taxi},
        pools={"source": slots("a"), "one": slots("a", "one"), "two": slots("a", "two")},
        free_nodes=("b", "c"),
    )
    proposal = last(Gesscale(), seen)
    assert proposal.place == {"one": Placement(add_on=("b",)), "two": Placement(add_on=("c",))}
    one_left = last(Gesscale(), replace(seen, free_nodes=("b",)))
    assert needs(one_left) == {"one": 2.0}


# --- prices ---


def test_the_node_with_most_gain_per_price_is_taken() -> None:
    """From a and b one more gains 100·(√3 − √2) = 31.8 /s, less 4, 8 or 12 for c, d and e."""
    policy = Gesscale(gain_per_price=5.0)
    memory = calibrated(policy)
    asked = {"taken": mst("ab"), "offered": 1000.0, "held": 0.8}
    even = decided(policy, later("ab", **asked), memory)
    assert even.place == {"taxi": Placement(add_on=("c",))}
    prices = {"c": 4.0, "d": 2.0, "e": 3.0}  # 6.9, 11.9 and 6.6 a piece
    cheap = decided(policy, later("ab", **asked, prices=prices), memory)
    assert cheap.place == {"taxi": Placement(add_on=("d",))}
    assert "MST(3) predicted 163 ±" in cheap.reason
    blind = decided(Gesscale(), later("ab", **asked, prices=prices), memory)
    assert blind.place == {"taxi": Placement(add_on=("c",))}


def test_a_node_that_gains_too_little_per_price_is_refused() -> None:
    policy = Gesscale(gain_per_price=12.0)
    memory = calibrated(policy)
    asked = {"taken": mst("ab"), "offered": 1000.0, "held": 0.8}
    prices = {"c": 4.0, "d": 2.0, "e": 3.0}
    refused = decided(policy, later("ab", **asked, prices=prices), memory)
    assert refused.needs == {} and refused.place == {}
    assert "one slot more on d would gain 11.9/s per price, at least 12 is asked for" in (
        refused.reason
    )
    absurd = {"c": math.nan, "d": -1.0, "e": math.inf}  # as if nothing were said
    assert decided(policy, later("ab", **asked, prices=absurd), memory).place == {
        "taxi": Placement(add_on=("c",))
    }
    free = decided(policy, later("ab", **asked, prices={"e": 0.0, "c": 1e9, "d": 1e9}), memory)
    assert free.place == {"taxi": Placement(add_on=("e",))}


def test_prices_count_without_round_trips_too() -> None:
    policy = Gesscale(gain_per_price=1e6)
    proposal = last(policy, fog("ab", taken=200.0, held=0.8, rtt=None))
    assert proposal.needs == {}
    assert "one slot more would gain 100/s per price" in proposal.reason


# --- parameters ---


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"period": -1.0}, "period = -1.0 s"),
        ({"head_room": 1.0}, "head_room = 1.0"),
        ({"backpressured": -0.1}, "backpressured = -0.1"),
        ({"gain_per_price": math.inf}, "gain_per_price = inf"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fields: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=f"gesscale: {says}"):
        Gesscale(**fields)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"mdl-nlunaware: {says}"):
        MdlNlunaware(**fields)  # type: ignore[arg-type]
