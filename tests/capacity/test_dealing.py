"""How pieces of work fall on slots, against counting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.capacity.dealing import dealt, scheduled
from penstock.core.errors import InputError

works = st.lists(st.floats(0.01, 10.0), min_size=1, max_size=70)


@given(work=works, slots=st.integers(1, 12))
def test_ranges_are_those_of_flink(work: list[float], slots: int) -> None:
    by_hand = [0.0] * slots
    for group, seconds in enumerate(work):
        by_hand[group * slots // len(work)] += seconds / sum(work)
    assert dealt(work, slots) == pytest.approx(tuple(by_hand))


def test_128_like_groups_on_10_slots() -> None:
    shares = dealt([1.0] * 128, 10)
    assert sorted(round(128 * share) for share in shares) == [12] * 2 + [13] * 8


@given(work=works, slots=st.integers(1, 12))
def test_the_last_slot_ends_between_the_best_and_one_piece_later(
    work: list[float], slots: int
) -> None:
    total, best = sum(work), max(sum(work) / slots, max(work))
    last = scheduled(work, slots) * total
    assert best * (1 - 1e-9) <= last <= total / slots + max(work) + 1e-9


@pytest.mark.parametrize(("partitions", "slots", "waves"), [(8, 4, 2), (9, 4, 3), (3, 4, 1)])
def test_like_partitions_take_whole_waves(partitions: int, slots: int, waves: int) -> None:
    assert scheduled([2.0] * partitions, slots) == pytest.approx(waves / partitions)


def test_no_work_at_all_is_even() -> None:
    assert dealt([0.0, 0.0], 4) == (0.25,) * 4
    assert scheduled([0.0], 4) == 0.25


@pytest.mark.parametrize("deal", [dealt, scheduled])
def test_no_slots_are_refused(deal: object) -> None:
    with pytest.raises(InputError, match="0 slots"):
        deal([1.0], 0)  # type: ignore[operator]
