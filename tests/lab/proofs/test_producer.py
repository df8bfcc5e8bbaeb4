"""The proof of how fast events are written to Kafka: its verdict."""

from __future__ import annotations

import pytest

from penstock.lab.proofs import producer
from penstock.lab.proofs.producer import BUDGET, ProducerRate
from tests.fakes.terminal import assert_fits


@pytest.mark.parametrize(
    ("rates", "held"),
    [((0.9, 1.2), True), ((0.9, 1.0), False), ((1.0,), True), ((0.99,), False)],
)
def test_the_mean_by_the_clock_decides(rates: tuple[float, ...], held: bool) -> None:
    slow = 0.1 * BUDGET  # by CPU: shown, not judged
    proof = producer.judge([ProducerRate(wall=r * BUDGET, cpu=slow) for r in rates], 2)
    assert proof.held is held
    assert len(proof.details) == len(rates)
    assert_fits(proof)
