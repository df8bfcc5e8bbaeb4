"""Links between sites: order, delay, jitter and bandwidth, on a clock of the test's own."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lab.sites import link
from penstock.lab.sites.link import Bucket, Conditions, Link, Sway


def journey(conditions: Conditions, sent: list[float], size: int = 1000) -> list[float]:
    """When packets that set out at these times are handed over, by exact waiting."""
    made = Link(conditions)
    arrived: dict[bytes, float] = {}
    for number, moment in enumerate(sent):
        _let_out(made, moment, arrived)
        made.put(number.to_bytes(8, "big").ljust(size), moment)
    _let_out(made, float("inf"), arrived)
    order = [int.from_bytes(packet[:8], "big") for packet in arrived]
    assert order == sorted(order), "packets overtook each other"
    return list(arrived.values())


def _let_out(made: Link, until: float, arrived: dict[bytes, float]) -> None:
    while (due := made.next_due) is not None and due <= until:
        made.deliver(due, lambda packet, at=due: arrived.setdefault(packet, at))  # type: ignore[misc]


times = st.lists(st.floats(0, 0.05), min_size=1, max_size=60).map(
    lambda gaps: [sum(gaps[: i + 1]) for i in range(len(gaps))]
)


@given(sent=times, delay=st.floats(0, 2))
def test_without_jitter_every_packet_takes_exactly_the_delay(
    sent: list[float], delay: float
) -> None:
    arrived = journey(Conditions(delay=delay), sent)
    assert arrived == pytest.approx([moment + delay for moment in sent])


@given(sent=times, delay=st.floats(0.01, 0.5), seed=st.integers(0, 99))
def test_jitter_stays_within_its_bounds_and_never_has_to_hold_a_packet_back(
    sent: list[float], delay: float, seed: int
) -> None:
    """The widest jitter there may be; an independent draw per packet would reorder most."""
    sway = Sway(Random(seed))
    due = [moment + delay + delay * sway(moment) for moment in sent]
    assert due == sorted(due)
    took = [at - moment for moment, at in zip(sent, due, strict=True)]
    assert min(took) >= -1e-9 and max(took) <= 2 * delay + 1e-9


def test_jitter_does_not_move_the_mean() -> None:
    """Over ten minutes of packets the mean delay is the one that was asked for."""
    sent = [i * 0.01 for i in range(60_000)]
    arrived = journey(Conditions(delay=0.025, jitter=0.010), sent, size=8)
    delays = [b - a for a, b in zip(sent, arrived, strict=True)]
    assert sum(delays) / len(delays) == pytest.approx(0.025, rel=0.01)
    assert max(delays) > 0.033 and min(delays) < 0.017


def test_a_delay_that_is_lowered_reorders_nothing() -> None:
    made, arrived = Link(Conditions(delay=1.0)), dict[bytes, float]()
    made.put(b"old", 10.0)
    made.set(Conditions(delay=0.1))
    made.put(b"new", 10.1)
    made.put(b"late", 11.5)
    _let_out(made, 20.0, arrived)
    assert arrived == {b"old": 11.0, b"new": 11.0, b"late": pytest.approx(11.6)}


def test_a_delay_that_is_raised_holds_for_the_next_packet() -> None:
    made, arrived = Link(Conditions()), dict[bytes, float]()
    made.put(b"old", 1.0)
    made.set(Conditions(delay=0.5))
    made.put(b"new", 1.0)
    _let_out(made, 20.0, arrived)
    assert arrived == {b"old": 1.0, b"new": 1.5}


@given(
    rate=st.floats(1e4, 1e9),
    burst=st.floats(1e3, 1e6),
    packets=st.lists(st.tuples(st.floats(0, 0.2), st.integers(20, 65_535)), max_size=80),
)
def test_no_more_leaves_a_bucket_than_its_burst_and_its_rate_allow(
    rate: float, burst: float, packets: list[tuple[float, int]]
) -> None:
    """Checked for every pair of departures, which is what a token bucket promises."""
    bucket, now, left = Bucket(rate=rate, burst=burst), 0.0, list[tuple[float, int]]()
    for gap, size in packets:
        now += gap
        leaves = bucket.leaves(size, now)
        if leaves is not None:
            assert leaves >= now
            left.append((leaves, size))
    assert [moment for moment, _ in left] == sorted(moment for moment, _ in left)
    for i, (first, size) in enumerate(left):
        total = 0
        most = max(burst, size)  # a packet larger than the bucket leaves when all of it is earned
        for moment, more in left[i:]:
            total += more
            assert total <= (most + rate * (moment - first)) * (1 + 1e-9) + 1e-3


def test_a_limited_link_carries_its_bandwidth_and_drops_the_rest() -> None:
    """Twice as much as fits, for ten seconds: half arrives, the wait in front stays short."""
    rate, size = 1e6, 1000
    sent = [i * size / rate / 2 for i in range(20_000)]
    made, arrived = Link(Conditions(delay=0.02, bandwidth=rate)), dict[bytes, float]()
    for number, moment in enumerate(sent):
        _let_out(made, moment, arrived)
        made.put(number.to_bytes(8, "big").ljust(size), moment)
    _let_out(made, float("inf"), arrived)
    assert len(arrived) * size / 10 == pytest.approx(rate, rel=0.03)
    assert made.dropped == len(sent) - len(arrived)
    waits = [at - sent[int.from_bytes(packet[:8], "big")] for packet, at in arrived.items()]
    assert max(waits) <= 0.02 + link.LONGEST_WAIT + 2 * size / rate


def test_what_the_device_refuses_is_lost_and_counted() -> None:
    made = Link(Conditions())
    made.put(b"one", 0.0)

    def refuse(packet: bytes) -> None:
        raise OSError

    made.deliver(0.0, refuse)
    assert (made.passed, made.dropped, made.next_due) == (0, 1, None)


def test_a_queue_that_is_full_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "MOST_HELD", 2000)
    made, arrived = Link(Conditions(delay=1.0)), dict[bytes, float]()
    for number in range(9):
        made.put(bytes([number]) * 500, 0.0)
    _let_out(made, 5.0, arrived)
    assert len(arrived) + made.dropped == 9
    assert 2000 <= sum(map(len, arrived)) <= 2500
    made.put(b"room again", 6.0)
    assert made.next_due == 7.0
