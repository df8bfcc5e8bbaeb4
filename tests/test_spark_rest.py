"""The REST reader against a small server on loopback that answers like Spark."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from penstock.core.errors import EngineError
from penstock.spark.rest import Rest

EXECUTOR = {
    "id": "3", "hostPort": "10.0.0.7:4040", "isActive": True, "totalCores": 1, "activeTasks": 1,
    "completedTasks": 26, "totalDuration": 23227, "addTime": "2026-11-15T20:33:19.424GMT",
}  # fmt: skip


def stage(id: int, status: str = "COMPLETE", **kw: Any) -> dict[str, Any]:
    """A stage as Spark 4.3 writes it, shortened."""
    return {
        "status": status, "stageId": id, "numTasks": 2, "executorRunTime": 346,
        "executorDeserializeTime": 29, "executorCpuTime": 57_832_323, "inputRecords": 20_000,
        "shuffleWriteRecords": 14, "shuffleFetchWaitTime": 5,
        "description": f"demo\nid = ad6f\nrunId = 0cda\nbatch = {id // 2}", **kw,
    }  # fmt: skip


class FakeDriver:
    def __init__(self) -> None:
        self.stages: dict[int, dict[str, Any]] = {}
        self.executors: list[dict[str, Any]] = [{**EXECUTOR, "id": "driver"}, EXECUTOR]
        self.asked: list[str] = []
        driver = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                driver.asked.append(self.path)
                body = driver.answer(self.path)
                self.send_response(404 if body is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def answer(self, path: str) -> Any:
        if path.endswith("/allexecutors"):
            return self.executors
        if path.endswith("/stages"):
            return list(self.stages.values())
        match = re.search(r"/stages/(\d+)\?details=false$", path)
        found = self.stages.get(int(match[1])) if match else None
        return [found] if found else None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    fake = FakeDriver()
    yield fake
    fake.close()


def test_each_stage_is_reported_once_when_it_has_ended(driver: FakeDriver) -> None:
    driver.stages = {0: stage(0), 1: stage(1, "ACTIVE")}
    rest = Rest(driver.url, "app-1")
    assert rest.new_stages() == []  # 0 is the past, 1 still runs
    driver.stages |= {1: stage(1), 2: stage(2, "PENDING"), 3: stage(3)}
    assert [s.id for s in rest.new_stages()] == [1, 3]
    assert rest.new_stages() == []
    driver.stages[2] = stage(2, "SKIPPED")
    driver.stages[5] = stage(5)  # a gap
    found = rest.new_stages()
    assert [s.id for s in found] == [2, 5]
    assert found[0].tasks == 0


def test_the_long_list_of_stages_is_read_only_once(driver: FakeDriver) -> None:
    driver.stages = {i: stage(i) for i in range(5)}
    rest = Rest(driver.url, "app-1")
    for _ in range(4):
        rest.new_stages()
    assert sum(path.endswith("/stages") for path in driver.asked) == 1


def test_times_are_seconds_and_the_description_is_understood(driver: FakeDriver) -> None:
    rest = Rest(driver.url, "app-1")
    rest.new_stages()
    driver.stages[0] = stage(0)
    (s,) = rest.new_stages()
    assert s.run_time == pytest.approx(0.375)
    assert s.cpu_time == pytest.approx(0.057832323)
    assert s.fetch_wait == pytest.approx(0.005)
    assert (s.run_id, s.batch, s.input_records, s.write_records) == ("0cda", 0, 20_000, 14)


def test_executors_without_the_driver(driver: FakeDriver) -> None:
    gone = {**EXECUTOR, "id": "4", "isActive": False, "removeTime": "2026-11-15T20:34:19.424GMT"}
    driver.executors.append(gone)
    alive, dead = Rest(driver.url, "app-1").executors()
    assert (alive.id, alive.host, alive.alive, alive.removed) == ("3", "10.0.0.7", True, None)
    assert dead.removed is not None
    assert dead.removed - dead.added == 60.0
    assert alive.task_seconds == pytest.approx(23.227)


def test_a_dead_endpoint_is_an_engine_error_with_a_hint() -> None:
    driver = FakeDriver()
    driver.close()
    with pytest.raises(EngineError, match=r"did not answer at .*spark.ui.enabled"):
        Rest(driver.url, "app-1").executors()


def test_an_unknown_application_is_an_engine_error(driver: FakeDriver) -> None:
    driver.executors = None  # type: ignore[assignment]
    with pytest.raises(EngineError, match="answered 404"):
        Rest(driver.url, "app-1").executors()
