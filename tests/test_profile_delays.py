"""How long records are on their way to a source: read off batches, and found again by a fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.bench.profile.delays import delays_of, with_delays
from penstock.bench.profile.experiment import Experiment
from penstock.measure.values import Batch, Source
from penstock.simulator.microbatch import SourceProfile
from penstock.workloads.nexmark import NexmarkStream
from penstock.workloads.patterns import Constant

BIDS = NexmarkStream(pattern=Constant(rps=100.0), start=1_000.0, seconds=10.0)
BATCH = Batch(query="q", run_id="r", id=0, start=0.0, duration=0.5, rows=10)


def found(start: float, available: int | None) -> Batch:
    """A batch that found so many bids."""
    return replace(BATCH, start=start, sources=(Source(rows=10, available=available),))


def run(*delays: float) -> Experiment:
    return Experiment(batches=(), stages={}, executors=(), delays=(delays,))


def test_a_delay_is_the_age_of_the_newest_record_that_a_batch_found() -> None:
    batches = [found(1_002.0, 170), found(1_005.0, 480)]  # those released until 1.7 s and 4.8 s
    (delays,) = delays_of(batches, BIDS, ["bid"])
    assert delays == pytest.approx((0.3, 0.2), abs=0.011), "to the gap between two records"


@pytest.mark.parametrize(
    "batch",
    [
        found(1_002.0, 0),
        found(1_002.0, None),
        found(1_020.0, 1_000),
        found(1_002.0, 170).idle_at(1_002.0),
    ],
    ids=["nothing", "not told", "all there will ever be", "idle"],
)
def test_batches_that_do_not_tell_are_left_out(batch: Batch) -> None:
    assert delays_of([batch], BIDS, ["bid"]) == ((),)


def test_a_source_has_the_mean_of_its_delays_and_its_standard_error() -> None:
    (bids,), errors = with_delays([SourceProfile(name="bid")], [run(0.2, 0.3), run(0.4)])
    assert bids.delay == pytest.approx(0.3)
    assert errors == {"bid.delay": pytest.approx(0.1 / 3**0.5)}


@pytest.mark.parametrize("seen", [run(), run(-0.02, -0.01)], ids=["none seen", "asked later"])
def test_a_source_without_a_delay_has_none(seen: Experiment) -> None:
    (bids,), _ = with_delays([SourceProfile(name="bid")], [seen])
    assert bids.delay == 0.0
