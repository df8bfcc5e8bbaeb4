"""The sink: counts what comes out, every record once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from penstock.lab.agents.pipeline.operators import Pipeline
from penstock.lab.agents.pipeline.records import Seen, audit
from penstock.lab.agents.transport.channel import Done


class Sink:
    """Takes a record the first time it comes and drops it when it comes again."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._seen = Seen()
        self._ended = asyncio.Event()

    waiting = 0
    idle = True

    @property
    def processed(self) -> int:
        """Different records that came."""
        return self._seen.distinct

    def put(self, ids: bytes, done: Done) -> None:
        """Records have come."""
        self._seen.add(ids)
        done()

    def start(self) -> None:
        """Nothing: a sink has nobody to wait for."""

    async def run(self) -> None:
        """Nothing but what comes."""
        await self._ended.wait()

    def audit(self, sent: Mapping[int, int]) -> dict[str, int]:
        """What came against what should have."""
        return audit(self._seen, self._pipeline, sent)
