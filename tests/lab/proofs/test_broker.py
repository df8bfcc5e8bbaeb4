"""The proof with a killed broker: its verdict."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.errors import InputError
from penstock.lab.proofs import broker
from penstock.lab.queries.comparison import Comparison
from tests.fakes.terminal import assert_fits

KILLS = [broker.Kill(away=12.0, next_batch=9.0), broker.Kill(away=11.0, next_batch=14.0)]
EXACT: dict[str, Any] = {"events": 900, "rows": 20, "missing": 0, "surplus": 0}


@pytest.mark.parametrize(
    ("written", "kills", "answer", "failing"),
    [
        (1000, KILLS, EXACT, []),
        (999, KILLS, EXACT, ["records not in Kafka"]),
        (1001, KILLS, EXACT, ["records twice in Kafka"]),
        (1000, KILLS, EXACT | {"missing": 1}, ["rows missing"]),
        (1000, KILLS, EXACT | {"surplus": 2}, ["rows surplus"]),
        (1000, [], EXACT, ["next batch after it is back, longest"]),
        (1000, [broker.Kill(away=9.0, next_batch=61.0)], EXACT,
         ["next batch after it is back, longest"]),
    ],
)  # fmt: skip
def test_what_is_lost_repeated_or_late_is_found(
    written: int, kills: list[broker.Kill], answer: dict[str, Any], failing: list[str]
) -> None:
    proof = broker.judge(kills, written, 1000, Comparison(**answer))
    assert [check.figure for check in proof.checks if not check.held] == failing
    assert_fits(proof)


@pytest.mark.parametrize("wrong", [{"kills": 0}, {"kills": 21}, {"away": -1.0}, {"away": 61.0}])
def test_impossible_orders_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must lie between"):
        broker.BrokerSettings(**wrong)


def test_there_is_load_until_the_last_kill_is_over() -> None:
    for kills in (1, 5):
        spec = broker.BrokerSettings(kills=kills)
        assert spec.seconds > kills * (broker.CALM + spec.away) + broker.CLOSING
