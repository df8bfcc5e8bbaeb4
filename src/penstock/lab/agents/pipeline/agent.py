"""One instance: its neighbours, its records, its trials. It knows nothing of the rest."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from penstock.lab.agents.pipeline.operators import Pipeline
from penstock.lab.agents.pipeline.outbox import Clock, Outbox
from penstock.lab.agents.pipeline.stages import Meter, Sink, Source, made_stage
from penstock.lab.agents.processes.agent import checked, dialler, main
from penstock.lab.agents.processes.lines import tell
from penstock.lab.agents.protocol.peers import Peers, Tell
from penstock.lab.agents.protocol.setup import AgentSetup
from penstock.lab.agents.protocol.trial import HELD_BACK, MEASURED, Trials
from penstock.lab.agents.transport.channel import Done, RecordBatch
from penstock.lab.agents.transport.link import Dial
from penstock.lab.agents.transport.wire import Places, read_place

Spawn = Callable[[int], Awaitable[Places]]
"""Asks the host for so many new instances of this operator; it may give fewer."""
DRAIN_LOOK = 0.01  # seconds between two looks whether a leaving instance has nothing left


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSetup:
    """What an instance is told when it is created: who it is, and what it is part of."""

    me: AgentSetup
    pipeline: Pipeline
    seed: int = 0

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "me": self.me.document(),
            "pipeline": self.pipeline.document(),
            "seed": self.seed,
        }

    @classmethod
    def of(cls, document: dict[str, Any]) -> InstanceSetup:
        """From plain values."""
        return cls(
            me=AgentSetup.of(document["me"]),
            pipeline=Pipeline.of(document["pipeline"]),
            seed=document["seed"],
        )


class InstanceAgent:
    """An instance of an operator, of the source or of the sink."""

    def __init__(
        self,
        setup: InstanceSetup,
        *,
        dial: Dial,
        spawn: Spawn,
        tell: Tell,
        clock: Clock,
    ) -> None:
        self.setup = setup
        self.counts: Counter[str] = Counter()
        self._spawn = spawn
        self._tell = tell
        me, pipeline = setup.me, setup.pipeline
        self.peers = Peers(me, self, dial=dial, tell=tell, counts=self.counts)
        self.membership, self.reception = self.peers.membership, self.peers.reception
        chance = random.Random(f"{setup.seed} {me.address} {me.life}")
        self.outbox = Outbox(
            self.peers.targets,
            self._window,
            lambda: len(self.membership.me.succs),
            clock,
            turn=chance.randrange(1 << 16),
        )
        self.meter = Meter(MEASURED * (pipeline.period or 1.0), clock)
        self.siblings = 1
        self._operator = pipeline.operator(me.address.operator)
        self.stage = made_stage(me.address, pipeline, self.outbox, clock)
        policy = None if self._operator is None else self._operator.policy
        self.trials = Trials(self, policy, pipeline.period, chance)
        self.peers.join()
        if me.life > 1:
            self.begin(dict(me.succs), dict(me.preds))

    async def run(self) -> str:
        """Work until it has left or has to end; returns the reason."""
        return await self.peers.run(self._work(), self.trials.run(), self._drained())

    def begin(self, succs: Places, preds: Places) -> None:
        """Start with a given view."""
        self.peers.begin(succs, preds)

    def rest(self) -> None:
        """Decide nothing any more; an action that is under way goes on."""
        self.trials.rest()

    def report(self) -> dict[str, Any]:
        """How it is, for those who watch."""
        return {
            "phase": self.membership.me.phase,
            "load": round(self.meter.rate(), 1),
            "waiting": self.stage.waiting,
            "processed": self.stage.processed,
            "emitted": self.stage.emitted if isinstance(self.stage, Source) else 0,
            "resting": self.trials.resting,
            "blocked": round(self.outbox.blocked, 3),
            "siblings": self.siblings,
            "neighbours": len(self.membership.neighbours),
            "counts": dict(self.counts),
        }

    # What it decides by, and what it can do.

    @property
    def free(self) -> bool:
        """Whether it may begin an action."""
        return self.membership.free

    @property
    def may_leave(self) -> bool:
        """Whether a low load is a reason to leave.

        Not when much of what it has sent waits below it: it gets less than there is to do, as those
        before it are held back. Nor when it is the only instance that its predecessors know, one
        without a keeper, which is gone with its host.
        """
        return self.siblings > 1 and self.outbox.fill < HELD_BACK

    def load(self) -> float | None:
        """What it gets, as a share of what it can take."""
        return None if self._operator is None else self.meter.rate() / self._operator.capacity

    async def duplicate(self, count: int) -> int:
        """Create new siblings and announce them; how many."""
        new = await self._spawn(count)
        if new and self.membership.free:  # else they end with this one, which has begun to leave
            self.peers.announce(new)
        return len(new)

    def leave(self) -> None:
        """Begin to leave."""
        self.peers.leave()

    # What its peers do to its records.

    @property
    def stranded(self) -> bool:
        """Whether an operator has nobody before or nobody after it."""
        me = self.membership.me
        return self._operator is not None and not (me.succs and me.preds)

    def settled(self) -> None:
        """It works, for whom it knows now."""
        self.stage.start()
        self.outbox.flush()

    def answered(self) -> None:
        """There may be room for more records."""
        self.outbox.flush()

    def received(self, siblings: int, ids: bytes, done: Done) -> None:
        """Work on records that came."""
        self.siblings = max(1, siblings)
        self.meter.note(len(ids) // 8)
        self.stage.put(ids, done)

    def returned(self, batches: list[RecordBatch]) -> None:
        """Send records whose receiver is gone to others."""
        self.counts["records rerouted"] += sum(batch.records for batch in batches)
        self.outbox.put_back(batches)

    # Inside.

    async def _work(self) -> None:
        await self.stage.run()
        if isinstance(self.stage, Source):
            self._tell({"event": "drained", "emitted": self.stage.emitted})

    def _window(self, receivers: int) -> float:
        """Records that a receiver may have that are not done."""
        pipeline, operator = self.setup.pipeline, self._operator
        if operator is None:
            return pipeline.in_flight * pipeline.operators[0].capacity
        return pipeline.in_flight * operator.capacity * operator.selectivity / max(1, receivers)

    async def _drained(self) -> None:
        """When all neighbours know that it leaves, wait until it has nothing left, and end."""
        await self.peers.all_know.wait()
        while not (self.stage.idle and self.peers.quiet):
            await asyncio.sleep(DRAIN_LOOK)
        await self.reception.farewell(self.setup.me.patience)
        self.peers.end("left")


class InstanceProcess:
    """The process of one instance: takes orders, and asks the host for new instances.

    ``python -m penstock.lab.agents.pipeline.agent``, started by a host.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        setup = InstanceSetup.of(document)
        self.agent = InstanceAgent(
            setup,
            dial=dialler(setup.me.place),
            spawn=self.spawn,
            tell=tell,
            clock=asyncio.get_running_loop().time,
        )
        self._answer: asyncio.Future[Places] | None = None
        self._actions: set[asyncio.Task[int]] = set()

    async def spawn(self, count: int) -> Places:
        """Ask the host for new instances; returns those it made."""
        self._answer = asyncio.get_running_loop().create_future()
        tell({"spawn": count})
        try:
            return await self._answer
        finally:
            self._answer = None

    def follow(self, order: dict[str, Any]) -> None:
        """Do what the host, or the runner through it, says."""
        agent = self.agent
        match order:
            case {"spawned": list(places)} if self._answer is not None:
                self._answer.set_result(dict(map(read_place, places)))
            case {"begin": [list(succs), list(preds)]}:
                agent.begin(dict(map(read_place, succs)), dict(map(read_place, preds)))
            case {"go": _} if isinstance(agent.stage, Source):
                agent.stage.go()
            case {"duplicate": int(count)} if agent.membership.free:
                task = asyncio.create_task(agent.duplicate(count))
                self._actions.add(task)
                task.add_done_callback(self._actions.discard)
                task.add_done_callback(checked)
            case {"leave": _} if agent.membership.free:
                agent.leave()
            case {"audit": dict(sent)} if isinstance(agent.stage, Sink):
                found = agent.stage.audit({int(serial): n for serial, n in sent.items()})
                tell({"event": "audited", **found})


if __name__ == "__main__":
    main(InstanceProcess)
