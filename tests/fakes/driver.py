"""A small server on loopback that answers like the REST interface of Spark's driver."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

EXECUTOR = {
    "id": "3", "hostPort": "10.0.0.7:4040", "isActive": True, "totalCores": 1, "activeTasks": 1,
    "completedTasks": 26, "totalDuration": 23227, "addTime": "2026-11-15T20:33:19.424GMT",
}  # fmt: skip


def stage(id: int, status: str = "COMPLETE", **kw: Any) -> dict[str, Any]:
    """A stage as Spark 4.3 writes it, shortened."""
    return {
        "status": status, "stageId": id, "numTasks": 2, "executorRunTime": 346,
        "executorDeserializeTime": 29, "executorCpuTime": 57_832_323, "inputRecords": 20_000,
        "attemptId": 0, "shuffleWriteRecords": 14, "shuffleFetchWaitTime": 5,
        "description": f"demo\nid = ad6f\nrunId = 0cda\nbatch = {id // 2}", **kw,
    }  # fmt: skip


def task(partition: int, millis: int, *, executor: str = "3", records: int = 0) -> dict[str, Any]:
    """A task as Spark 4.3 writes it, shortened."""
    return {
        "index": partition, "partitionId": partition, "executorId": executor,
        "taskMetrics": {
            "executorDeserializeTime": 10, "executorRunTime": millis - 5,
            "inputMetrics": {"recordsRead": records},
            "shuffleReadMetrics": {"fetchWaitTime": 5, "recordsRead": 0},
        },
    }  # fmt: skip


class FakeDriver:
    """Serves what is put into its fields, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.stages: dict[int, dict[str, Any] | list[dict[str, Any]]] = {}
        self.tasks: dict[tuple[int, int], list[dict[str, Any]]] = {}
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
        if "/stages?status=" in path:
            asked = {s.upper() for s in re.findall(r"status=(\w+)", path)}
            return [a for a in self.all_attempts() if a["status"] in asked]
        if path.endswith("/stages"):
            return self.all_attempts()
        if match := re.search(r"/stages/(\d+)/(\d+)/taskList\?sortBy=-runtime&length=64$", path):
            return self.tasks.get((int(match[1]), int(match[2])))
        match = re.search(r"/stages/(\d+)\?details=false$", path)
        return self.attempts(int(match[1])) or None if match else None

    def all_attempts(self) -> list[dict[str, Any]]:
        return [attempt for id in self.stages for attempt in self.attempts(id)]

    def attempts(self, id: int) -> list[dict[str, Any]]:
        """A stage of a fake driver is one attempt, or a list of them."""
        found = self.stages.get(id, [])
        return found if isinstance(found, list) else [found]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
