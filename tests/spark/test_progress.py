"""What the listener hears when a query ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.batches.progress import batch_of
from penstock.spark.read.progress import ProgressLog

DOCUMENT = {
    "id": "i", "runId": "run-1", "name": "clicks", "batchId": 3, "batchDuration": 500,
    "timestamp": "2026-01-01T00:00:00.000Z", "numInputRows": 5, "sources": [],
}  # fmt: skip


class Option:
    """Scala's."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    def isDefined(self) -> bool:  # noqa: N802
        return self._value is not None

    def get(self) -> str:
        assert self._value is not None
        return self._value


def ended(log: ProgressLog, error: str | None, run: str = "run-1") -> None:
    """As Spark tells it, through the listener that the log adds."""
    from penstock.spark.read.progress import _JavaListener

    streams = SimpleNamespace(active=[], addListener=lambda listener: heard.append(listener))
    heard: list[Any] = []
    log.attach(SimpleNamespace(streams=streams))
    event = SimpleNamespace(
        runId=lambda: SimpleNamespace(toString=lambda: run), exception=lambda: Option(error)
    )
    _JavaListener(heard[0].callbacks).onQueryTerminated(event)


@pytest.mark.parametrize(
    ("error", "run", "says"),
    [
        ("Job aborted: out of memory\n\tat x\n\tat y", "run-1",
         ["query clicks failed: Job aborted: out of memory"]),
        (None, "run-1", []),
        ("Job aborted", "run-2", []),
    ],
)  # fmt: skip
def test_a_failed_query_that_was_seen_is_mentioned(
    error: str | None, run: str, says: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    log = ProgressLog()
    log.add(batch_of(DOCUMENT))
    ended(log, error, run)
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == says
    assert (log.queries() == {}) == (run == "run-1")
