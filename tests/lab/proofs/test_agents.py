"""The proof with agents on Spark: its verdict, its picture, its orders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import InputError
from penstock.lab.proofs import agents
from penstock.lab.proofs.agents_run import TRIGGER, AgentsRun, AgentsSettings, Glance, line
from penstock.lab.queries.comparison import Comparison
from tests.fakes.terminal import assert_fits


def glance(time: float, source: int, map: int, **more: Any) -> Glance:
    given: dict[str, Any] = {
        "time": time, "offered": 4000.0, "delivered": 3900.0,
        "executors": {"source": source, "map": map}, "loads": {"source": 0.5, "map": None},
        "messages": 12, "formula": 12,
    }  # fmt: skip
    return Glance(**{**given, **more})


def roster(added: int, alive: list[str], gone: list[str], removed: list[str]) -> dict[str, Any]:
    return {"added": added, "removed": removed, "refused": 1, "alive": alive, "gone": gone,
            "failed_tasks": 0}  # fmt: skip


COURSE = AgentsRun(
    glances=(glance(0.0, 1, 1), glance(60.0, 2, 3), glance(120.0, 1, 1)),
    actions=(),
    counts={"wishes": 5, "refused additions": 2, "messages": 12, "messages by the formula": 12},
    rosters={
        "source": roster(1, ["0"], ["4"], ["4"]),
        "map": roster(2, ["0"], ["5", "6"], ["6", "5"]),
    },
    answer=Comparison(events=900, rows=900, missing=0, surplus=0),
)
FLAT = (glance(0.0, 1, 1), glance(60.0, 1, 2), glance(120.0, 1, 2))


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"answer": Comparison(events=9, rows=9, missing=1, surplus=0)}, ["rows missing"]),
        ({"answer": Comparison(events=9, rows=9, missing=0, surplus=2)}, ["rows surplus"]),
        ({"glances": FLAT}, ["operators that went up and down"]),
        ({"counts": {"wishes": 2}}, ["executors that no agent asked for"]),
        ({"rosters": {**COURSE.rosters, "source": roster(1, ["0", "9"], ["4"], ["4"])}},
         ["executors that no agent asked for"]),
        ({"rosters": {**COURSE.rosters, "source": roster(1, ["0"], ["4"], [])}},
         ["executors that no agent asked for"]),
    ],
)  # fmt: skip
def test_the_verdict(change: dict[str, Any], failing: list[str]) -> None:
    proof = agents.judge(replace(COURSE, **change))
    assert [check.figure for check in proof.checks if not check.held] == failing
    assert_fits(proof)


def test_the_table_has_a_row_for_every_operator() -> None:
    rows = agents.judge(COURSE).details
    assert [(r["operator"], r["fewest"], r["most"], r["added"], r["left"]) for r in rows] == [
        ("source", 1, 2, 1, 1),
        ("map", 1, 3, 2, 2),
    ]


def test_without_quotas_it_says_so() -> None:
    assert "no CPU quota" in agents.judge(replace(COURSE, limited=False)).notes[-1]


def test_a_course_is_drawn(tmp_path: Path) -> None:
    assert agents.draw(COURSE, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_a_line_of_progress_fits() -> None:
    assert len(line(glance(120.0, 2, 3))) <= 80


@pytest.mark.parametrize(
    "wrong",
    [{"seconds": 10.0}, {"low": 9.0, "high": 8.0}, {"period": 5.0}, {"period": 100.0}, {"most": 1}],
)
def test_impossible_orders_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must"):
        AgentsSettings(**wrong)


def test_a_batch_can_catch_up_and_covers_a_bounded_time() -> None:
    plan = AgentsSettings()
    events = plan.events(1000.0)
    assert (events.max_rows or 0) >= plan.high * TRIGGER
    assert events.longest_batch is not None
    assert events.released("bid", events.end + 2.0) == events.total("bid")
