"""What an observation costs: the synthetic application, and when a budget is missed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.observation import (
    BUDGET,
    SHAPES,
    SMALL,
    Documents,
    FakeUi,
    Observed,
    execution,
    misses,
    size_over,
    table,
)
from benchmarks.synthetic_store import STAGES, Shape, executor_events, first_stage, round_events
from penstock.spark.foreign.reader import execution_of
from penstock.spark.read.http import Endpoint

SHAPE = Shape(tasks=6, executors=4, queries=3)
RUNS = ["run-a", "run-b", "run-c"]


def events(number: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in round_events(SHAPE, RUNS, number, 1000.0)]


@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_round_ends_a_batch_of_every_query_and_begins_the_next(number: int) -> None:
    kinds = Counter(e["Event"].removeprefix("SparkListener") for e in events(number))
    rounds = 2 if number == 0 else 1  # the first one also begins what it ends
    assert kinds["JobStart"] == 3 * rounds and kinds["JobEnd"] == 3
    assert kinds["StageCompleted"] == 3 * STAGES
    assert kinds["TaskStart"] == kinds["TaskEnd"]
    ended = [e["Stage Info"]["Stage ID"] for e in events(number) if "Completed" in e["Event"]]
    first = first_stage(SHAPE, number)
    assert sorted(ended) == list(range(first, first + 3 * STAGES))


def test_every_task_ends_once_over_the_rounds() -> None:
    tasks = [
        (e["Stage ID"], e["Task Info"]["Index"])
        for number in range(3)
        for e in events(number)
        if e["Event"] == "SparkListenerTaskEnd"
    ]
    assert len(tasks) == len(set(tasks))
    whole = [t for t in tasks if t[0] < first_stage(SHAPE, 3)]
    assert len(whole) == 3 * SHAPE.stages * SHAPE.tasks


def test_executors_are_not_asked_for_more_than_they_have() -> None:
    assert len(list(executor_events(SHAPE, 1000.0))) == 4
    for shape in SHAPES:
        busy = shape.stages * shape.tasks * shape.task_millis / 1e3
        assert busy <= 1.0 * 10.0 * shape.executors, shape


def test_executions_are_read_as_batches() -> None:
    ended = execution_of(execution(SHAPE, "run-b", 1, 4, 1000.0, ended=True))
    assert (ended.id, ended.key, ended.rows) == (13, ("run-b", 5), (6000,))
    assert (ended.start, ended.end) == (990.0, 1000.0)
    assert execution_of(execution(SHAPE, "run-b", 1, 5, 1000.0, ended=False)).running


def test_the_server_counts_what_it_sends() -> None:
    with FakeUi() as ui:
        ui.show(Documents(by_path={"/stages": b"[1, 2]", "/stages?active": b"[3]"}))
        endpoint = Endpoint(ui.application.base, timeout=20.0)
        base = "/api/v1/applications/app-1"
        assert endpoint.get(f"{base}/stages?status=active&details=false") == [3]
        assert endpoint.get(f"{base}/stages") == [1, 2]
        assert (ui.requests, ui.sent) == (2, 9)
        ui.forget()
        assert (ui.requests, ui.sent) == (0, 0)


def observed(shape: Shape, **kw: float) -> Observed:
    base = Observed(shape=shape, jvm_ms=10.0, own_ms=5.0, rest_ms=8.0, requests=10, bytes=100_000)
    return replace(base, **kw)  # type: ignore[arg-type]


def test_budgets_and_growth_are_judged() -> None:
    small, large = observed(SMALL), observed(BUDGET, jvm_ms=200.0, own_ms=50.0, bytes=8_000_000)
    assert misses([small, large]) == []
    over = observed(BUDGET, jvm_ms=201.0, own_ms=50.0, bytes=8_100_000)
    assert misses([small, over]) == [
        "251 ms of CPU inside the driver, at most 250",
        "8.1 MB by REST, at most 8",
    ]
    wide = replace(SMALL, queries=5)
    assert size_over(wide, SMALL) == 5.0
    assert misses([small, observed(wide, requests=80)]) == [
        "requests grew 8.0-fold where the size grew 5-fold"
    ]
    assert table([small, large]).row_count == 2
