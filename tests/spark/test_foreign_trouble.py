"""A foreign application whose answers are hostile, too many or gone: seen again afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from penstock.batches.values import Batch
from penstock.core.errors import EngineError, InputError, MissingError, NotReady
from penstock.core.model import Snapshot
from penstock.spark.foreign.address import Application, find
from penstock.spark.foreign.batches import MOST_RUNS, Batches
from penstock.spark.foreign.engine import ForeignEngine
from penstock.spark.foreign.reader import (
    DOUBTED,
    LOOK_AHEAD,
    DroppedError,
    Execution,
    Executions,
    execution_of,
)
from penstock.spark.read.http import Endpoint, Limits
from tests.fakes.foreign_driver import EARLY, LOOKS, Driver, ForeignDriver, drivers
from tests.fakes.hostile_server import HOSTILE, Connection

LIMITS = Limits(seconds=20.0, bytes=4 << 20)


@pytest.fixture
def driver() -> Iterator[Driver]:
    with drivers() as start:
        yield start


@pytest.mark.parametrize("where", ["/applications/", "/sql/", "/stages?status", "/allexecutors"])
@pytest.mark.parametrize(
    "behaviour",
    ["says nothing", "sends without end", "announces 300 MB", "a gzip bomb", "NaN", "a key twice"],
)
def test_a_hostile_answer_costs_one_observation(driver: Driver, where: str, behaviour: str) -> None:
    ui = driver(EARLY, 2.0, 4.0, *LOOKS)
    engine = ForeignEngine(find(ui.url), window=15.0, timeout=2.0, limits=LIMITS)
    engine.begin()
    ui.hostile[where] = [HOSTILE[behaviour]]
    with pytest.raises(EngineError, match=ui.url):
        engine.observe()
    with pytest.raises(NotReady, match="from now on"):
        engine.observe()
    seen = first_seen(engine)
    assert seen.slots("executors") == 2


@pytest.mark.parametrize(
    "page", [[{"id": "app-1"}], [{"attempts": [{}]}], [{"id": "app-1", "attempts": [3]}], [[]], 7]
)
def test_no_document_of_another_shape_breaks_the_search(driver: Driver, page: Any) -> None:
    ui = driver()
    ui.broken["/api/v1/applications"] = [(200, json.dumps(page))]
    with pytest.raises((InputError, MissingError)):
        find(ui.url)


def test_nor_does_a_page_of_a_master(driver: Driver) -> None:
    ui = driver()
    ui.broken["/api/v1/applications"] = [(404, "")]
    ui.broken["/json/"] = [(200, '{"activeapps": [{}]}')]
    with pytest.raises(MissingError, match="answered strangely"):
        find(ui.url)


def test_a_driver_of_a_billion_cores_is_not_believed(driver: Driver) -> None:
    ui = driver(EARLY, *LOOKS)
    ui.executors = [{**ui.executors[0], "id": "driver"}]
    engine = ForeignEngine(find(ui.url), window=15.0)
    engine.begin()
    ui.spoilt = ("/allexecutors", "totalCores", 10**9)
    with pytest.raises(EngineError, match="1000000000 cores of one driver cannot be true"):
        engine.observe()


def test_a_clock_that_goes_back_makes_no_negative_load(driver: Driver) -> None:
    ui = driver(EARLY, LOOKS[1], LOOKS[0], LOOKS[1])
    engine = ForeignEngine(find(ui.url), window=15.0)
    engine.begin()
    for _ in range(3):
        loads = [slot.load for slot in engine.observe().pools["executors"]]
        assert all(load is None or load >= 0 for load in loads)


class TestTooMany:
    def test_a_look_takes_half_of_the_budget_and_the_next_goes_on(self, driver: Driver) -> None:
        ui = driver(EARLY)
        executions = following(ui)
        ui.now = end_of(ui)
        found: list[Execution] = []
        looks = 0
        while len(found) < len(to_come(ui)):
            ui.asked.clear()
            found += look(executions, requests=8)
            assert len(ui.asked) <= 5  # one more where it was idle
            looks += 1
        assert looks > 3
        assert [e.id for e in found] == [e.id for e in to_come(ui)]

    def test_batches_are_the_same_as_in_one_look(self, driver: Driver) -> None:
        """One that is cut in two by the end of a look is not taken for a whole one."""
        ui = driver(EARLY)
        executions = following(ui)
        ui.now = end_of(ui)
        at_once = Batches()
        at_once.add(look(executions), running=executions.running(), now=ui.now)
        for requests in range(8, 16):  # so that the cuts fall everywhere
            executions = following(ui, EARLY)
            piecemeal, before = Batches(), 0
            for _ in range(len(to_come(ui)) + LOOK_AHEAD):
                ended = look(executions, requests=requests)
                piecemeal.add(ended, running=executions.running(), now=ui.now)
                now = count(piecemeal, ui.now)
                assert now >= before
                before = now
            assert plain(piecemeal, ui.now) == plain(at_once, ui.now)

    def test_batches_are_seen_while_it_never_catches_up(self, driver: Driver) -> None:
        ui = driver(EARLY)
        executions = following(ui)
        ui.now = end_of(ui)
        batches = Batches()
        for _ in range(len(to_come(ui)) // 3):
            batches.add(look(executions, requests=4), running=executions.running(), now=ui.now)
            assert executions.running()
        assert count(batches, ui.now) > 3

    def test_those_that_run_share_what_can_be_read(self, driver: Driver) -> None:
        """None is looked at twice before each was looked at once."""
        ui = driver(EARLY)
        executions = following(ui)
        ui.now = end_of(ui)
        ran = [e.id for e in to_come(ui)][:8]
        for e in ui.sql:
            e["duration"] = 10**9
        while look(executions, requests=100) or len(executions._open) < len(ran):
            pass
        ui.asked.clear()
        for _ in range(len(executions._open)):
            look(executions, requests=4)
        asked = [int(p.rsplit("/", 1)[1].partition("?")[0]) for p in ui.asked if "/sql/" in p]
        again = [id for id in asked if id in executions._open]
        assert sorted(again[: len(executions._open)]) == sorted(executions._open)

    def test_old_runs_make_room(self) -> None:
        batches = Batches()
        runs = [ended_run(n) for n in range(MOST_RUNS + 20)]
        for e in runs:
            batches.add([e], running=set(), now=e.end)
        kept = batches.queries(runs[-1].end)
        assert len(kept) == MOST_RUNS
        assert runs[-1].run_id in kept and runs[0].run_id not in kept


class TestDropped:
    def test_it_begins_afresh_at_once_and_is_counted(self, driver: Driver) -> None:
        ui = driver(EARLY, 2.0, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        everything = ui.sql
        ui.now = ui.start + 2.0
        last = ui.begun(everything)[-1]
        ui.sql = [{**last, "id": last["id"] + 5}]
        with pytest.raises(DroppedError, match=r"dropped execution .*begun afresh at \d+"):
            engine.observe()
        assert engine.resynchronised == 1
        later = [{**e, "id": e["id"] + 5} for e in everything if e["id"] > last["id"]]
        ui.sql = [*ui.sql, *later]
        seen = first_seen(engine)
        assert seen.slots("executors") == 2
        assert engine.resynchronised == 1

    def test_an_old_one_that_still_runs_does_not_hide_it(self, driver: Driver) -> None:
        ui = driver(EARLY)
        executions = following(ui)
        ui.now = end_of(ui)
        old = min(ui.sql, key=lambda e: int(e["id"]))
        ui.sql = [{**old, "duration": 10**9}, *ui.sql[-4:]]
        for _ in range(DOUBTED - 1):
            assert look(executions) == []
        with pytest.raises(DroppedError, match="retainedExecutions"):
            look(executions)

    def test_one_of_ours_that_still_runs_does_not_hide_it(self, driver: Driver) -> None:
        """A batch that hangs was a reason not to look for any other."""
        ui = driver(EARLY)
        executions = following(ui)
        ui.now = end_of(ui)
        first, *_, last = sorted(ui.sql, key=lambda e: int(e["id"]))
        ours = {**first, "id": to_come(ui)[0].id, "duration": 10**9}
        ui.sql = [ours]
        assert look(executions) == []
        ui.sql = [ours, {**last, "id": 900}]
        for _ in range(DOUBTED - 1):
            assert look(executions) == []
        with pytest.raises(DroppedError):
            look(executions)

    def test_one_that_begins_at_this_moment_was_not_dropped(self, driver: Driver) -> None:
        ui = driver(EARLY)
        executions = following(ui)
        for _ in range(DOUBTED - 1):
            assert look(executions) == []

        def begin_now(c: Connection) -> None:
            ui.now = end_of(ui)
            c.send(b"HTTP/1.1 404 Not Found\r\n\r\n")

        nothing: list[Any] = [lambda c: c.send(b"HTTP/1.1 404 Not Found\r\n\r\n")]
        ui.hostile["/sql/"] = nothing * (LOOK_AHEAD - 1) + [begin_now]
        assert look(executions) == []
        assert len(look(executions)) == len(to_come(ui))

    def test_stages_that_were_dropped_are_a_gap_too(self, driver: Driver) -> None:
        ui = driver(EARLY, 2.0, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        known = max(s["stageId"] for s in ui.begun(ui.stages))
        ui.stages = [{**s, "stageId": s["stageId"] + 50} for s in ui.stages if s["stageId"] > known]
        ui.stages[0] |= {"completionTime": "2999-01-01T00:00:00.000GMT"}
        ui.stages[0]["submissionTime"] = ui.sql[0]["submissionTime"]
        with pytest.raises(DroppedError, match="retainedStages"):
            engine.observe()
        assert engine.resynchronised == 1


def following(ui: ForeignDriver, moment: float | None = None) -> Executions:
    """Executions that were followed from a moment of the recording on."""
    later = ui.now
    if moment is not None:
        ui.now = ui.start + moment
    application: Application = find(ui.url)
    executions = Executions(Endpoint(ui.url), application.path)
    executions.begin()
    ui.now = later
    return executions


def look(executions: Executions, requests: int = 1000) -> list[Execution]:
    with executions._endpoint.budget(requests=requests):
        return executions.ended()


def to_come(ui: ForeignDriver) -> Sequence[Execution]:
    """All that begins after the first moment, ended in the end."""
    found = (execution_of(e) for e in ui.sql)
    return sorted((e for e in found if e.start > ui.start + EARLY), key=lambda e: e.id)


def end_of(ui: ForeignDriver) -> float:
    """When the last execution had ended."""
    return max(execution_of(e).end for e in ui.sql)


def plain(batches: Batches, now: float) -> dict[str, list[Batch]]:
    return {run: list(kept) for run, kept in batches.queries(now).items()}


def count(batches: Batches, now: float) -> int:
    return sum(len(kept) for kept in batches.queries(now).values())


def ended_run(n: int) -> Execution:
    start = 1e9 + n * 0.1
    whole = Execution(
        id=n, query="q", run_id="", batch=0, running=False, failed=False, start=start, end=start
    )
    return replace(whole, run_id=f"run-{n}", rows=(1,))


def first_seen(engine: ForeignEngine) -> Snapshot:
    """The next observation that shows something."""
    for _ in LOOKS:
        with suppress(NotReady):
            return engine.observe()
    raise AssertionError("nothing was seen again")
