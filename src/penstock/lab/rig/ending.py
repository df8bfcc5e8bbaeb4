"""The end of a run: until which moment the result of its query is final."""

from __future__ import annotations

import time
from typing import Any

from penstock.core.errors import EngineError
from penstock.lab.queries import nexmark
from penstock.lab.queries.running import consumed_of
from penstock.workloads.nexmark import NexmarkStream

CATCH_UP = 180.0  # seconds until everything is read
CLOSING = 10.0  # seconds for the windows that the last events close
NEAR = 0.5  # seconds before the end that the watermark may stop at
LOOK = 0.2


def final_moment(running: Any, query: nexmark.NexmarkQuery, events: NexmarkStream) -> float:
    """Wait until all events are read; the moment (epoch s) up to which the result is complete.

    No event comes after the load, so the watermark stops a little before the last of them and
    the windows behind it stay open.
    """
    wanted = tuple(events.total(table) for table in query.tables)
    deadline = time.monotonic() + CATCH_UP
    while (have := consumed_of(running.lastProgress)) != wanted:
        if running.awaitTermination(LOOK):
            raise EngineError(f"query {query.name} stopped before its end")
        if time.monotonic() > deadline:
            raise EngineError(
                f"query {query.name} has read {have} of {wanted} events {CATCH_UP:.0f} s after "
                "the load ended. Set a lower peak"
            )
    if query.emits == "at once":
        return events.end
    deadline = time.monotonic() + CLOSING
    while True:
        moment = nexmark.watermark_of(running.lastProgress) or events.start
        if moment >= events.end - NEAR or time.monotonic() > deadline:
            return min(moment, events.end)
        running.awaitTermination(LOOK)
