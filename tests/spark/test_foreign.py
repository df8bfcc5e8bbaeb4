"""A foreign application seen through REST alone: its address, its batches, its snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from penstock.core.errors import EngineError, InputError, MissingError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Loop
from penstock.core.model import Change, Need, Proposal, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies import create
from penstock.spark.foreign.address import find, split
from penstock.spark.foreign.batches import Batches
from penstock.spark.foreign.engine import ForeignEngine
from penstock.spark.foreign.reader import execution_of
from penstock.spark.foreign.summary import summarise
from tests.fakes.foreign_driver import EARLY, LOOKS, Driver, ForeignDriver, drivers


@pytest.fixture
def driver() -> Iterator[Driver]:
    with drivers() as start:
        yield start


class TestAddress:
    @pytest.mark.parametrize(
        "page",
        ["", "/", "/jobs/", "/StreamingQuery/", "/SQL/execution/?id=7", "/api/v1", "/executors/"],
    )
    def test_any_page_of_a_ui_will_do(self, driver: Driver, page: str) -> None:
        ui = driver()
        assert find(ui.url + page).id == ui.id
        assert find(ui.host + page).id == ui.id  # without http://

    @pytest.mark.parametrize("page", ["", "/", "/jobs/"])
    def test_a_proxy_path_is_kept(self, driver: Driver, page: str) -> None:
        ui = driver(prefix="/proxy/application_1_0042")
        found = find(ui.url + page)
        assert (found.id, found.base) == (ui.id, ui.url)

    def test_an_application_named_like_a_page_is_kept_behind_a_proxy(self) -> None:
        assert split("http://rm/proxy/jobs/jobs/") == ("http://rm/proxy/jobs", None)

    def test_of_several_applications_one_must_be_chosen(self, driver: Driver) -> None:
        ui = driver()
        ui.others = [{**ui.application, "id": "app-2", "name": "billing"}]
        with pytest.raises(InputError, match=r"2 applications; choose one with --app[^$]*billing"):
            find(ui.url)
        assert find(ui.url, ui.id).id == ui.id
        assert find(f"{ui.url}/history/{ui.id}/jobs/").id == ui.id
        with pytest.raises(InputError, match=r"'app-3'; did you mean 'app-2'"):
            find(ui.url, "app-3")

    def test_the_attempt_of_an_application_on_yarn_is_part_of_its_path(
        self, driver: Driver
    ) -> None:
        ui = driver()
        ui.application["attempts"][0]["attemptId"] = "2"
        assert find(ui.url).path == f"{ui.id}/2"

    def test_one_that_has_ended_is_refused(self, driver: Driver) -> None:
        ui = driver()
        ui.application["attempts"][0]["completed"] = True
        with pytest.raises(InputError, match="has ended; advise watches one that runs"):
            find(ui.url)

    def test_nothing_listens(self, driver: Driver) -> None:
        ui = ForeignDriver()
        ui.close()
        with pytest.raises(MissingError, match=r"nothing listens at .*spark.ui.enabled"):
            find(ui.url)

    def test_something_else_listens(self, driver: Driver) -> None:
        ui = driver()
        with pytest.raises(InputError, match=r"is not a Spark UI"):
            find(f"{ui.url}/elsewhere")

    def test_a_master_that_passes_nothing_on_is_explained(self, driver: Driver) -> None:
        ui = driver(prefix="/driver")  # the driver is not where the master is
        page = {"activeapps": [{"id": ui.id, "name": "web shop"}]}
        ui.broken["/json/"] = [(200, json.dumps(page))] * 2
        with pytest.raises(InputError, match=r"standalone master .*web shop.*reverseProxy is off"):
            find(f"http://{ui.host}")

    def test_a_master_that_passes_on_is_enough(self, driver: Driver) -> None:
        ui = driver()
        ui.prefix = f"/proxy/{ui.id}"
        page = {"activeapps": [{"id": ui.id, "name": "web shop"}]}
        ui.broken["/json/"] = [(200, json.dumps(page))]
        assert find(f"http://{ui.host}").base == ui.url

    @pytest.mark.parametrize("url", ["", "ftp://host", "http://", "http://host:99999", "http://:1"])
    def test_no_address(self, url: str) -> None:
        with pytest.raises(InputError, match="must look like http://HOST:4040"):
            find(url)

    def test_a_password_is_refused_and_not_repeated(self) -> None:
        with pytest.raises(InputError) as refused:
            find("http://me:secret@host:4040")
        assert "secret" not in str(refused.value)

    def test_a_login_page_is_something_missing(self, driver: Driver) -> None:
        ui = driver()
        ui.broken["/api"] = [(401, "")]
        with pytest.raises(MissingError, match="401"):
            find(ui.url)


class TestBatches:
    def test_they_are_what_the_progress_of_the_same_run_says(self, driver: Driver) -> None:
        ui = driver()
        told = {(p["name"], p["batchId"]): p for p in ui.progress}
        batches = Batches()
        executions = [execution_of(e) for e in ui.sql]
        now = max(e.end for e in executions)
        batches.add(executions, running=set(), now=now)
        rebuilt = [b for kept in batches.queries(now).values() for b in kept]
        assert {(b.query, b.id) for b in rebuilt} > set(told)
        for b in (b for b in rebuilt if (b.query, b.id) in told):
            progress = told[b.query, b.id]
            assert b.rows == progress["numInputRows"]
            assert b.state_rows == sum(o["numRowsTotal"] for o in progress["stateOperators"])
            assert [*b.state] == [o["operatorName"] for o in reversed(progress["stateOperators"])]
            # Without the planning before it and the commit after it.
            assert epoch(progress) <= b.start
            assert b.end <= epoch(progress) + progress["batchDuration"] / 1e3 + 0.05

    def test_a_batch_without_data_took_no_rows(self, driver: Driver) -> None:
        """The last batch of the file stream only moved the watermark."""
        (last,) = [e for e in map(execution_of, driver().sql) if e.id == 42]
        assert (last.query, last.batch, last.rows) == ("clicks", 9, (0,))

    def test_a_file_stream_beside_a_static_table_cannot_be_told_apart(self) -> None:
        assert execution_of(execution(("Scan csv", "600"))).rows == (600,)
        assert execution_of(execution(("Scan csv", "600"), ("Scan parquet", "50"))).rows is None
        assert execution_of(
            execution(("MicroBatchScan", "1,600"), ("Scan parquet", "50"))
        ).rows == (1600,)

    def test_a_source_that_counts_nothing_has_no_rows(self) -> None:
        assert execution_of(execution(("MicroBatchScan", None))).rows is None
        assert execution_of(execution(("Scan ExistingRDD", "7"))).rows is None

    def test_a_batch_read_twice_has_its_rows_once(self) -> None:
        twice = [
            execution_of(execution(("MicroBatchScan", None), id=1)),
            execution_of(execution(("MicroBatchScan", "500"), id=2)),
            execution_of(execution(("MicroBatchScan", "500"), id=3)),
        ]
        batches = Batches()
        batches.add(twice, running=set(), now=twice[0].end)
        (batch,) = batches.queries(twice[0].end)["run"]
        assert batch.rows == 500

    def test_a_batch_is_there_when_none_of_its_executions_runs(self) -> None:
        inner = execution_of(execution(("MicroBatchScan", "500"), id=2))
        outer = execution_of(execution(("MicroBatchScan", None), id=1))
        now = outer.end + 1
        batches = Batches()
        batches.add([inner], running={("run", 3)}, now=now)
        assert not batches.queries(now)
        batches.add([outer], running=set(), now=now)
        assert len(batches.queries(now)["run"]) == 1

    def test_a_query_that_fell_silent_is_left_out(self) -> None:
        ran = execution_of(execution(("MicroBatchScan", "500")))
        batches = Batches()
        batches.add([ran], running=set(), now=ran.end)
        assert batches.queries(ran.end + 59)
        assert not batches.queries(ran.end + 61)

    def test_a_failed_batch_is_none(self) -> None:
        failed = execution_of({**execution(("MicroBatchScan", "500")), "status": "FAILED"})
        batches = Batches()
        batches.add([failed], running=set(), now=failed.end)
        assert not batches.queries(failed.end)


class TestEngine:
    def test_what_rest_does_not_show_is_not_measured(self, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        seen = engine.observe()
        assert seen.slots("executors") == 2
        assert {name.partition("/")[0] for name in seen.operators} == {"counts", "clicks"}
        for o in seen.operators.values():
            assert (o.lag, o.idle, o.backpressured, o.latency) == (None, None, None, None)
            assert o.arrival_rate is not None and o.busy is not None
        for q in seen.queries.values():
            assert (q.lag, q.lag_seconds, q.backpressured, q.latency_p95) == (None,) * 4

    def test_the_clock_is_the_drivers(self, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        assert engine.observe().time == pytest.approx(ui.start + LOOKS[0], abs=1.5)

    def test_it_only_reads(self, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        decision = Change(before=2, slots=1, raw=1.0)
        with pytest.raises(EngineError, match="only watched"):
            engine.apply({"executors": decision})
        for _ in LOOKS:
            engine.observe()
        assert ui.methods == {"GET"}

    def test_requests_follow_what_has_run_and_not_how_long_it_has(self, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        for _ in LOOKS:
            before = [len(ui.begun(d)) for d in (ui.sql, ui.stages)]
            ui.asked.clear()
            engine.observe()
            new = sum(len(ui.begun(d)) for d in (ui.sql, ui.stages)) - sum(before)
            still_open = 6  # executions and stages that ran at the last look
            assert len(ui.asked) <= new + still_open + 2 * 3 + 2

    def test_a_gap_in_the_readings_starts_afresh(self, driver: Driver) -> None:
        """A batch of which a stage was missed would look cheaper than it was."""
        ui = driver(EARLY, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=100.0)
        engine.begin()
        engine.observe()
        known = engine._batches
        ui.broken["/allexecutors"] = [(500, "")]
        with pytest.raises(EngineError, match="500"):
            engine.observe()
        with pytest.raises(EngineError, match="from now on"):
            engine.observe()
        assert engine._batches is not known
        assert all(key in engine._batches.ignored for key in keys(ui, LOOKS[2]))  # type: ignore[union-attr]

    def test_a_port_that_closes_is_an_end(self, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        ui.close()
        for _ in range(3):
            assert engine.advance(0.0)
            with pytest.raises(EngineError, match="nothing listens"):
                engine.observe()
        assert not engine.advance(0.0)

    def test_executions_that_spark_dropped_are_noticed(self, driver: Driver) -> None:
        ui = driver(EARLY, LOOKS[-1])
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        ui.sql = ui.sql[-4:]
        with pytest.raises(EngineError, match=r"dropped execution .*retainedExecutions"):
            engine.observe()


ABSURD = [-(10**9), 10**30, "many", None]


class TestAbsurd:
    """Answers that cannot be true never lead to a decision that acts."""

    @pytest.mark.parametrize("value", ABSURD, ids=repr)
    @pytest.mark.parametrize(
        ("where", "key"),
        [
            ("/stages", "executorRunTime"),
            ("/stages", "numTasks"),
            ("/sql", "duration"),
            ("/sql", "submissionTime"),
            ("/sql", "nodes"),
            ("/allexecutors", "totalCores"),
            ("/allexecutors", "addTime"),
        ],
    )
    def test_no_action(self, driver: Driver, where: str, key: str, value: Any) -> None:
        ui = driver(EARLY, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        loop = Loop(engine, create("ds2", {"over_provisioning": 0.6}), Guards())
        ui.spoilt = (where, key, value)
        for _ in LOOKS:
            with suppress(EngineError):
                assert loop.tick().changes == {}

    def test_the_same_without_them_acts(self, driver: Driver) -> None:
        ui = driver(EARLY, *LOOKS)
        engine = ForeignEngine(find(ui.url), window=15.0)
        engine.begin()
        loop = Loop(engine, create("ds2", {"over_provisioning": 0.6}), Guards())
        assert all(loop.tick().changes for _ in LOOKS)


class TestSummary:
    def test_hours_are_held_until_the_next_decision(self) -> None:
        made = [decided(0, 4, 2), decided(1800, 4, 6), decided(3600, 4, None), decided(5400, 4, 4)]
        s = summarise(made, end=7200)
        # −2 for half an hour, +2 until the next that said a size an hour later.
        assert s.hours == pytest.approx(-2 * 0.5 + 2 * 1.0)
        assert (s.ticks, s.sized, s.acted, s.seconds) == (4, 3, 2, 7200)
        assert s.target is not None and s.present is not None
        assert (s.target.least, s.target.mean, s.target.most) == (2, 4.0, 6)
        assert (s.present.least, s.present.most) == (4, 4)

    def test_nothing_decided(self) -> None:
        s = summarise([], end=100.0)
        assert (s.ticks, s.acted, s.hours, s.present, s.target) == (0, 0, None, None, None)


def decided(time: float, before: int, slots: int | None) -> Decision:
    pipeline = Pipeline(operators={"read": Operator(pool="executors")}, edges=())
    seen = Snapshot(time=time, window=15.0, pipeline=pipeline, operators={}, pools={})
    if slots is None:
        proposal = Proposal(reason="no change: not measured")
        target = Change(before=before, slots=before, raw=float(before))
    else:
        proposal = Proposal(reason="asked", pool_needs={"executors": Need(slots=slots)})
        target = Change(before=before, slots=slots, raw=float(slots))
    return Decision(seen=seen, proposal=proposal, targets={"executors": target})


def execution(*scans: tuple[str, str | None], id: int = 1) -> dict[str, Any]:
    """An execution as Spark writes it, with these scans and the rows that each counted."""
    return {
        "id": id,
        "status": "COMPLETED",
        "description": "counts\nid = q\nrunId = run\nbatch = 3",
        "submissionTime": f"2026-11-16T02:25:3{id}.262GMT",
        "duration": 5000 - 1000 * id,
        "nodes": [
            {
                "nodeId": n,
                "nodeName": name,
                "metrics": []
                if rows is None
                else [{"name": "number of output rows", "value": rows}],
            }
            for n, (name, rows) in enumerate(scans)
        ],
    }


def keys(ui: ForeignDriver, moment: float) -> set[tuple[str, int]]:
    """The batches that had begun by a moment of the recording."""
    found = (execution_of(e) for e in ui.sql)
    return {e.key for e in found if e.key is not None and e.start <= ui.start + moment}


def epoch(progress: dict[str, Any]) -> float:
    return datetime.fromisoformat(progress["timestamp"]).timestamp()
