"""Layouts of a pool, against counting node by node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.capacity.slowest import slowest
from penstock.core.latency import LatencyMap
from penstock.core.model import OperatorSeen, QuerySeen, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.network.maps import random_pairs
from penstock.policies.gesscale.gesscale_plus import MOST, no_round_trips, remembered, smoothed
from penstock.policies.gesscale.layouts import Candidate, Layouts
from penstock.policies.gesscale.observed import reading_of
from penstock.policies.gesscale.units import Unit, units_of
from tests.fakes.far_scenarios import PLAIN, SKEWED, far, seen_on
from tests.fakes.fog_scenarios import NEAR, fog
from tests.fakes.scenarios import healthy


def unit_of(seen: Snapshot, pool: str) -> Unit:
    return next(unit for unit in units_of(seen.pipeline) if unit.pool == pool)


def layouts(seen: Snapshot, pool: str = "taxi") -> Layouts:
    return Layouts(seen, unit_of(seen, pool))


def near(rtt: LatencyMap, nodes: list[str]) -> float:
    """The slowest exchange of each node with all in use, itself among them."""
    return slowest([sum(rtt.between(a, b) for b in nodes) / len(nodes) for a in nodes])


@settings(max_examples=40)
@given(seed=st.integers(0, 500), used=st.integers(1, 8))
def test_every_set_is_what_its_nodes_are(seed: int, used: int) -> None:
    names = [f"n{i}" for i in range(9)]
    rtt = random_pairs(names, 0.0, 0.3, seed)
    seen = fog(names[:used], rtt=rtt, free=names[used:])
    found = layouts(seen)
    on = {slot.id: slot.node for slot in seen.pools["taxi"]}

    def check(candidate: Candidate) -> None:
        gone = [on[id] for id in candidate.remove]
        nodes = [n for n in names[:used] if n not in gone] + list(candidate.add_on)
        assert candidate.slots == len(nodes)
        assert candidate.layout.delay == pytest.approx(rtt.worst(nodes), abs=1e-9)
        assert candidate.layout.exchange == pytest.approx(near(rtt, nodes), rel=1e-6, abs=1e-12)

    check(Candidate(layout=found.here()))
    more, fewer = list(found.more(seen.free_nodes)), list(found.fewer())
    for candidate in (*more, *fewer):
        check(candidate)
    assert [c.slots for c in more] == list(range(used + 1, 10))
    assert [c.slots for c in fewer] == list(range(used - 1, 0, -1))


def test_the_source_is_beside_the_slot_of_its_node() -> None:
    seen = fog("abc")  # the source is on a
    assert layouts(seen).hosts == (0,)
    here = layouts(seen).here()
    assert here.hosts == 1
    assert here.host == here.rest == pytest.approx(1 / 3)
    elsewhere = layouts(fog("bc"))
    assert elsewhere.hosts == () and elsewhere.here().host == 0.0


def test_key_groups_are_dealt_out_anew() -> None:
    """Four groups with 1, 1, 4 and 2 parts of the work."""
    seen = replace(fog("ab"), groups={"taxi": (1.0, 1.0, 4.0, 2.0)})
    found = {c.slots: c.layout for c in layouts(seen).more("cde")}
    assert layouts(seen).here().host == 0.25 and layouts(seen).here().rest == 0.75
    assert (found[4].host, found[4].rest) == (0.125, 0.5)


def test_uneven_slots_stay_as_uneven_where_groups_are_not_told() -> None:
    seen = fog("abcd")
    loads = (0.9, 0.2, 0.2, 0.5)  # the first has the source beside it, which is no skew
    slots = tuple(replace(s, load=x) for s, x in zip(seen.pools["taxi"], loads, strict=True))
    seen = replace(seen, pools={**seen.pools, "taxi": slots})
    (more,) = layouts(seen).more("e")
    assert layouts(seen).here().rest == pytest.approx(0.5 / 0.3 / 4)
    assert more.layout.rest == pytest.approx(0.5 / 0.3 / 5)


def test_without_round_trips_there_are_only_numbers() -> None:
    seen = replace(fog("ab", rtt=None), free_nodes=())
    found = layouts(seen)
    assert found.hosts == () and found.known
    assert found.here().delay == found.here().exchange == 0.0
    assert [c.slots for c in found.fewer()] == [1]
    first = next(found.more(()))
    assert first.slots == 3 and first.add_on == ()
    assert [c.slots for c in found.more("cd")] == [3, 4]  # as many as nodes are free


def test_no_more_slots_than_partitions() -> None:
    operators = {"source": Operator(pool="source"), "taxi": Operator(pool="taxi", partitions=3)}
    shape = Pipeline(operators=operators, edges=(("source", "taxi"),))
    seen = replace(fog("ab"), pipeline=shape)
    assert [c.slots for c in layouts(seen).more("cde")] == [3]


def batches(partitions: tuple[float, ...] | None, *, skew: float | None = None) -> Snapshot:
    """A query of two stages on four executors; the second has three quarters of the work."""
    shape = Pipeline(
        operators={
            "read": Operator(pool="executors", partitions=4),
            "join": Operator(pool="executors", partitions=8 if skew is None else 100),
        },
        edges=(("read", "join"),),
    )
    seen = OperatorSeen(parallelism=1.0, arrival_rate=100.0, busy=0.8, idle=0.1, backpressured=0.1)
    return Snapshot(
        time=1.0,
        window=60.0,
        pipeline=shape,
        operators={"read": seen, "join": replace(seen, parallelism=3.0)},
        pools={"executors": tuple(Slot(id=str(i)) for i in range(4))},
        queries={"q": QuerySeen(batches=3, rows=10, skew=skew, partitions=partitions)},
        execution="micro-batch",
    )


def test_stages_add_up_each_with_its_waves() -> None:
    """On 4: a quarter of the work in one wave of 4, the rest in two waves of 8. On 5 the same."""
    seen = batches((1.0,) * 8)
    assert layouts(seen, "executors").here().rest == pytest.approx(0.25 / 4 + 0.75 * 2 / 8)
    more = next(layouts(seen, "executors").more(()))
    assert more.layout.rest == pytest.approx(0.25 / 4 + 0.75 * 2 / 8)


def test_a_long_partition_is_waited_for() -> None:
    seen = batches((9.0, *(1.0,) * 7))
    assert layouts(seen, "executors").here().rest == pytest.approx(0.25 / 4 + 0.75 * 9 / 16)


def test_of_many_partitions_the_skew_is_told() -> None:
    """One of 100 takes 40 times the mean: 0.4 of the stage."""
    seen = batches((1.0,) * 64, skew=40.0)
    assert layouts(seen, "executors").here().rest == pytest.approx(0.25 / 4 + 0.75 * 0.4)


def test_a_reading_of_executors_is_of_all_of_them() -> None:
    seen = batches((1.0,) * 8)
    unit = unit_of(seen, "executors")
    read = reading_of(seen, unit, Layouts(seen, unit), full=True)
    assert read is not None
    assert read.rest == pytest.approx(4 * 0.8) and read.host is None and read.waits is None
    assert read.busiest == pytest.approx(3.2 * read.layout.rest)


def test_a_reading_says_who_was_busy() -> None:
    """PLAIN on 4: 12.5 µs of work each, the first 1 µs more for the source; full at 1/13.5 µs."""
    seen = seen_on(far(PLAIN), 4, 200_000.0)
    unit = unit_of(seen, "job")
    read = reading_of(seen, unit, Layouts(seen, unit), full=True)
    assert read is not None
    assert read.rate == pytest.approx(1 / 13.5e-6, rel=1e-6)
    assert read.busiest == read.host == pytest.approx(1.0)
    assert read.rest == pytest.approx(3 * 12.5 / 13.5)
    assert read.source == pytest.approx(1 / 13.5)
    assert read.waits == pytest.approx(0.0, abs=1e-9)
    assert read.rest_share == pytest.approx(0.75)


def test_the_engine_tells_the_busy_time_of_key_groups() -> None:
    """SKEWED on 2: the hot group keeps its slot busy 40.08 of 45 µs."""
    seen = seen_on(far(SKEWED), 2, 200_000.0)
    groups = seen.groups["job"]
    assert len(groups) == 128
    assert groups[100] == pytest.approx((40 + 10 / 128) / 45)
    loads = [slot.load or 0.0 for slot in seen.pools["job"]]
    source = seen.operators["source"].busy or 0.0
    assert sum(groups) == pytest.approx(sum(loads) - source, rel=1e-6)
    assert seen_on(far(PLAIN), 2, 200_000.0).groups == {}


def test_groups_that_cannot_be_are_not_shown() -> None:
    from penstock.core.sanity import believable

    seen, notes = believable(replace(healthy(), groups={"map": (0.1, -1.0), "sink": (0.2,)}))
    assert seen.groups == {"sink": (0.2,)}
    assert notes == ("map: work by key group cannot be true, ignored",)


class TestRoundTrips:
    """What is remembered of a network that fluctuates."""

    def swing(self, seconds: float) -> LatencyMap:
        rtt = NEAR.rtt.copy()
        rtt[0, 1] = rtt[1, 0] = seconds
        return LatencyMap(NEAR.nodes, rtt)

    def test_a_new_measurement_counts_three_tenths(self) -> None:
        _, memory = smoothed(self.swing(0.1), no_round_trips())
        mixed, memory = smoothed(self.swing(0.2), memory)
        assert mixed is not None and mixed.between("a", "b") == pytest.approx(0.13)
        again = remembered(self.swing(0.9), memory)
        assert again is not None and again.between("a", "b") == pytest.approx(0.13)
        assert mixed.between("c", "d") == NEAR.between("c", "d")

    def test_nodes_come_and_go(self) -> None:
        _, memory = smoothed(self.swing(0.1), no_round_trips())
        other = LatencyMap(["z", "b", "a"], np.full((3, 3), 0.2) - np.diag([0.2] * 3))
        mixed, _ = smoothed(other, memory)
        assert mixed is not None and mixed.nodes == ("z", "b", "a")
        assert mixed.between("a", "b") == pytest.approx(0.13)
        assert mixed.between("z", "b") == 0.2

    def test_of_many_nodes_nothing_is_remembered(self) -> None:
        large = random_pairs([str(i) for i in range(MOST + 1)], 0.0, 0.1, 1)
        assert smoothed(large, no_round_trips()) == (large, no_round_trips())

    def test_no_map_is_no_map(self) -> None:
        assert smoothed(None, no_round_trips()) == (None, no_round_trips())
