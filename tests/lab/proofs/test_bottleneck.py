"""The proof of the bottleneck: which operator a scale-up names, and how that is judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.batches.snapshot import POOL
from penstock.core.errors import InputError
from penstock.core.loop import Decision
from penstock.core.model import Change, Need, OperatorSeen, Proposal, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.lab.proofs.bottleneck import (
    POLICIES,
    BottleneckSettings,
    Outcome,
    ScaleUp,
    judge,
    scale_up_of,
)
from penstock.lab.queries.three_stages import PLACES, three_stages
from tests.fakes.terminal import assert_fits

STAGES = ("read", "stage-2", "stage-3")
SEEN = Snapshot(
    time=100.0,
    window=10.0,
    pipeline=Pipeline(
        operators={name: Operator(pool=POOL) for name in STAGES},
        edges=(("read", "stage-2"), ("stage-2", "stage-3")),
    ),
    operators={name: OperatorSeen(parallelism=1.0, busy=0.3) for name in STAGES},
    pools={POOL: (Slot(id="1"),)},
)
UP = Decision(
    seen=SEEN,
    proposal=Proposal(reason="", needs={"read": Need(slots=0.4), "stage-2": Need(slots=2.0)}),
    targets={POOL: Change(before=1, slots=2, raw=2.4)},
    applied=True,
)


@pytest.mark.parametrize(("place", "right"), [("first", False), ("middle", True), ("last", False)])
def test_a_scale_up_names_the_largest_need(place: str, right: bool) -> None:
    up = scale_up_of(UP, place, 90.0)
    assert up is not None
    assert (up.named, up.slow, up.right) == ("stage-2", STAGES[PLACES.index(place)], right)
    assert (up.at, up.before, up.after) == (10.0, 1, 2)
    assert up.busy == (0.3, 0.3, 0.3)


def test_only_scale_ups_that_were_asked_for_count() -> None:
    down = replace(UP, targets={POOL: Change(before=1, slots=0, raw=0.1)})
    for other in (replace(UP, applied=False), replace(UP, targets={}), down):
        assert scale_up_of(other, "middle", 90.0) is None


def test_a_scale_up_that_names_nobody_is_not_right() -> None:
    silent = replace(UP, proposal=Proposal(reason="", pool_needs={POOL: Need(slots=2.0)}))
    up = scale_up_of(silent, "middle", 90.0)
    assert up is not None
    assert up.named is None
    assert not up.right


def outcomes(wrong: int, count: int = 10) -> list[Outcome]:
    """Those of all policies at all places, each with so many wrong ones."""
    made = [
        ScaleUp(at=5.0 * n, before=1, after=2, named="read" if n < wrong else "slow", slow="slow")
        for n in range(count)
    ]
    return [Outcome(place=p, policy=q, ups=tuple(made)) for p in PLACES for q in POLICIES]


def test_nine_of_ten_have_to_be_right_at_every_place() -> None:
    spec = BottleneckSettings()
    assert judge(spec, outcomes(wrong=1)).held
    worse = judge(spec, outcomes(wrong=2))
    assert [c.held for c in worse.checks] == [False] * 6 + [True]
    assert len(worse.details) == 60


def test_what_was_not_run_to_its_end_proves_nothing() -> None:
    spec = BottleneckSettings()
    assert not judge(spec, outcomes(wrong=0)[:5], interrupted=True).held
    assert not judge(spec, outcomes(wrong=0, count=9)).held
    assert not judge(spec, []).held
    none = judge(spec, outcomes(wrong=0, count=0))
    assert [c.value for c in none.checks[:-1]] == [None] * 6


def test_its_table_fits_a_terminal() -> None:
    proof = judge(BottleneckSettings(), outcomes(wrong=2), limited=False)
    assert_fits(proof)


def test_settings_and_places_are_checked() -> None:
    with pytest.raises(InputError, match="--actions 0"):
        BottleneckSettings(actions=0)
    with pytest.raises(InputError, match="--period 90"):
        BottleneckSettings(period=90.0)
    with pytest.raises(InputError, match="unknown place 'end'"):
        three_stages("end", partitions=4)
