"""What an instance does with records: an operator's work, the source, or the sink."""

from __future__ import annotations

from typing import Protocol

from penstock.core.errors import unknown
from penstock.decentralized.messages import Address
from penstock.lab.agents.pipeline.operators import SINK, SOURCE, Pipeline
from penstock.lab.agents.pipeline.outbox import Clock, Outbox
from penstock.lab.agents.pipeline.sink import Sink
from penstock.lab.agents.pipeline.source import Source
from penstock.lab.agents.pipeline.worker import Worker
from penstock.lab.agents.protocol.trial import Sleep
from penstock.lab.agents.transport.channel import Done


class Stage(Protocol):
    """Records come to it; it works when it has been started."""

    @property
    def waiting(self) -> int:
        """Records that wait for it."""

    @property
    def processed(self) -> int:
        """Records that it is through with."""

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do."""

    def put(self, ids: bytes, done: Done) -> None:
        """Records have come."""

    def start(self) -> None:
        """It may work."""

    async def run(self) -> None:
        """Work."""


def made_stage(
    address: Address, pipeline: Pipeline, outbox: Outbox, clock: Clock, sleep: Sleep
) -> Stage:
    """What the instance at an address does."""
    if address.operator == SOURCE:
        return Source(pipeline, address.serial, outbox, clock, sleep)
    if address.operator == SINK:
        return Sink(pipeline)
    operator = pipeline.operator(address.operator)
    if operator is None:
        raise unknown("operator", address.operator, pipeline.names)
    return Worker(operator, outbox, clock, sleep)
