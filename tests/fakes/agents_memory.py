"""Agents in one process: connections in memory, and time that passes only when all wait."""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from penstock.decentralized import Address, wired
from penstock.lab.agents.pipeline.agent import InstanceAgent, InstanceSetup
from penstock.lab.agents.pipeline.operators import SINK, SOURCE, Pipeline
from penstock.lab.agents.pipeline.stages import Sink, Source
from penstock.lab.agents.protocol.setup import AgentSetup
from penstock.lab.agents.transport.link import Connection
from penstock.lab.agents.transport.wire import Place, Places

T = TypeVar("T")
Neighbours = list[tuple[Address, Place]]
SECRET = b"a secret of this run"
DELAY = 0.001  # seconds that a frame is under way
LONGEST = 200.0  # seconds of a run
RESTART = 0.05  # seconds until a keeper is back


class _Selector(selectors.DefaultSelector):
    """Never waits: where it would, time passes."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("nothing will ever happen")
        self.now += max(0.0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run in virtual time, but not for ever."""

    async def bounded() -> T:
        async with asyncio.timeout(LONGEST):
            return await work

    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(bounded())


class MemoryWriter:
    """Feeds what is written to the reader at the other end, a millisecond later."""

    def __init__(self, mine: asyncio.StreamReader, theirs: asyncio.StreamReader) -> None:
        self._ends = mine, theirs
        self._under_way: deque[bytes | None] = deque()
        self.closed = False
        self.stuck = False  # nothing arrives, and nobody hangs up

    def write(self, data: bytes) -> None:
        if not self.closed:
            self._send(data)

    def close(self) -> None:
        """What is under way still arrives."""
        if not self.closed:
            self.closed = True
            self._send(None)
            self._ends[0].feed_eof()

    def cut(self) -> None:
        """What is under way is lost."""
        self.closed = True
        self._under_way.clear()
        for end in self._ends:
            end.feed_eof()

    def _send(self, item: bytes | None) -> None:
        self._under_way.append(item)
        asyncio.get_running_loop().call_later(DELAY, self._arrive)

    def _arrive(self) -> None:
        while self._under_way and not self.stuck:  # what was written in between comes with it
            item = self._under_way.popleft()
            if item is None:
                self._ends[1].feed_eof()
            elif not self._ends[1]._eof:  # type: ignore[attr-defined]
                self._ends[1].feed_data(item)


def pair() -> tuple[Connection, Connection]:
    """Both ends of a connection."""
    one, other = asyncio.StreamReader(), asyncio.StreamReader()
    return (one, MemoryWriter(one, other)), (other, MemoryWriter(other, one))


class System:
    """A pipeline of agents that find each other in memory."""

    def __init__(self, pipeline: Pipeline, *, seed: int = 0, patience: float = 2.0) -> None:
        self.pipeline = pipeline
        self.agents: dict[Address, InstanceAgent] = {}
        self.told: list[tuple[Address, dict[str, Any]]] = []
        self.all: list[InstanceAgent] = []
        self.result: dict[str, int] = {}
        self._seed = seed
        self._patience = patience
        self._next = dict(pipeline.sizes)
        self._ports = iter(range(1, 1 << 16))
        self._listening: dict[Place, InstanceAgent] = {}
        self._connections: dict[tuple[Address, Address], list[MemoryWriter]] = {}
        self._tasks: dict[Address, asyncio.Task[str]] = {}
        self._queues: dict[Place, list[Connection]] = {}  # at keepers that are not back yet
        self._stopping = False
        self._hostless: set[Address] = set()
        self._keepers: dict[Address, tuple[Neighbours, Neighbours]] = {}
        self._frozen: set[tuple[Address, Address]] = set()
        self._serving: set[asyncio.Task[None]] = set()

    # ---- building ----------------------------------------------------------------------------

    async def start(self) -> None:
        instances = wired(self.pipeline.sizes, self.pipeline.edges)
        places: Places = {}
        for address in instances:
            places[address] = self._create(address).setup.me.place
        for address, me in instances.items():
            self._keepers[address] = (
                [(a, places[a]) for a in me.succs if a.keeper],
                [(a, places[a]) for a in me.preds if a.keeper],
            )
            self.agents[address].begin(
                {a: places[a] for a in me.succs}, {a: places[a] for a in me.preds}
            )

    def _create(
        self,
        address: Address,
        *,
        creator: InstanceAgent | None = None,
        place: Place | None = None,
        life: int = 1,
        succs: Sequence[tuple[Address, Place]] = (),
        preds: Sequence[tuple[Address, Place]] = (),
    ) -> InstanceAgent:
        setup = InstanceSetup(
            me=AgentSetup(
                address=address,
                place=place or Place("memory", next(self._ports)),
                secret=SECRET,
                life=life,
                creator=None
                if creator is None
                else (creator.setup.me.address, creator.setup.me.place),
                patience=self._patience,
                succs=tuple(succs),
                preds=tuple(preds),
            ),
            pipeline=self.pipeline,
            seed=self._seed,
        )

        async def dial(to: Place) -> Connection:
            return self._connect(address, to)

        async def spawn(count: int) -> Places:
            return self._spawn(agent, count)

        def tell(what: dict[str, Any]) -> None:
            self.told.append((address, what))

        clock = asyncio.get_running_loop().time
        agent = InstanceAgent(setup, dial=dial, spawn=spawn, tell=tell, clock=clock)
        self.agents[address] = self._listening[setup.me.place] = agent
        self.all.append(agent)
        task = self._tasks[address] = asyncio.create_task(agent.run(), name=str(address))
        task.add_done_callback(lambda _: self._gone(agent))
        return agent

    def _spawn(self, creator: InstanceAgent, count: int) -> Places:
        operator, made = creator.setup.me.address.operator, {}
        for _ in range(count):
            address = Address(operator, self._next[operator])
            self._next[operator] += 1
            made[address] = self._create(address, creator=creator).setup.me.place
        return made

    def _connect(self, dialler: Address, to: Place) -> Connection:
        """To who listens there, or to the queue of a keeper that will be back."""
        listener, queue = self._listening.get(to), self._queues.get(to)
        near, far = pair()
        if listener is not None:
            assert isinstance(near[1], MemoryWriter) and isinstance(far[1], MemoryWriter)
            key = dialler, listener.setup.me.address
            near[1].stuck = far[1].stuck = key in self._frozen
            self._connections.setdefault(key, []).extend([near[1], far[1]])
            self._serve(listener, far)
        elif queue is not None:
            queue.append(far)
        else:
            raise ConnectionRefusedError
        return near

    def _serve(self, listener: InstanceAgent, far: Connection) -> None:
        task = asyncio.create_task(listener.reception.serve(*far))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    # ---- what can happen ---------------------------------------------------------------------

    def go(self) -> None:
        for address, agent in self.agents.items():
            if address.operator == SOURCE:
                assert isinstance(agent.stage, Source)
                agent.stage.go()

    def cut(self, one: Address, other: Address) -> None:
        """All connections between two break, what is under way on them with them."""
        for key in ((one, other), (other, one)):
            for writer in self._connections.pop(key, []):
                writer.cut()

    def kill(self, who: Address, *, host: bool = False) -> None:
        """A crash; with its ``host`` nobody starts a keeper again."""
        agent = self.agents[who]
        if host:
            self._hostless.add(who)
        self._gone(agent)
        self._tasks[who].cancel()

    def _restart(self, before: AgentSetup) -> None:
        """A keeper's next process, as a host starts it."""
        if not self._stopping:
            place, life = before.place, before.life + 1
            succs, preds = self._keepers[before.address]
            agent = self._create(before.address, place=place, life=life, succs=succs, preds=preds)
            for far in self._queues.pop(before.place):
                self._serve(agent, far)

    def freeze(self, who: Address, *, for_good: bool = False) -> None:
        """Nothing comes to it or from it on its connections; ``for_good``: nor on new ones."""
        for other in list(self.agents):
            for way in ((who, other), (other, who)):
                self.freeze_way(*way, for_good=for_good)

    def freeze_way(self, dialler: Address, listener: Address, *, for_good: bool = True) -> None:
        """The same for what one of them dials."""
        for writer in self._connections.get((dialler, listener), []):
            writer.stuck = True
        if for_good:
            self._frozen.add((dialler, listener))

    async def in_flight(self, who: Address) -> None:
        """Until somebody has sent it records that are not done."""
        while not any(
            who in a.peers.links and a.peers.links[who].out.records for a in self.agents.values()
        ):
            await asyncio.sleep(0.001)

    def _gone(self, agent: InstanceAgent) -> None:
        """A process has ended; a keeper's is followed by another."""
        who, place = agent.setup.me.address, agent.setup.me.place
        if self.agents.get(who) is not agent:
            return
        del self.agents[who]
        del self._listening[place]
        replaced = who.keeper and who not in self._hostless
        if replaced and self.pipeline.operator(who.operator) is not None:
            self._queues[place] = []
            loop = asyncio.get_running_loop()
            loop.call_later(RESTART, self._restart, agent.setup.me)
        for key in list(self._connections):
            if who in key:
                self.cut(*key)

    # ---- what must be ------------------------------------------------------------------------

    def living(self, operator: str) -> list[Address]:
        return sorted(a for a in self.agents if a.operator == operator)

    async def drained(self) -> None:
        """Until all records are done."""
        while not all(self._source(serial) for serial in range(self.pipeline.sources)):
            await asyncio.sleep(0.05)

    def _source(self, serial: int) -> bool:
        stage = self.agents[Address(SOURCE, serial)].stage
        assert isinstance(stage, Source)
        return stage.done == stage.total

    async def quiet(self) -> None:
        """Until nothing is under way between instances; nobody decides any more."""
        for agent in self.all:
            agent.rest()
        while not all(a.membership.me.phase == "active" for a in self.agents.values()):
            await asyncio.sleep(0.05)

    def audit(self) -> dict[str, int]:
        sink = self.agents[Address(SINK, 0)].stage
        assert isinstance(sink, Sink)
        emitted = {}
        for serial in range(self.pipeline.sources):
            stage = self.agents[Address(SOURCE, serial)].stage
            assert isinstance(stage, Source)
            emitted[serial] = stage.emitted
        return sink.audit(emitted)

    def count(self, name: str) -> int:
        return sum(agent.counts[name] for agent in self.all)

    def check_views(self) -> None:
        """Every instance knows all instances next to it, and nobody else."""
        members = {name: set(self.living(name)) for name in self.pipeline.names}
        before = {b: a for a, b in self.pipeline.edges}
        after = dict(self.pipeline.edges)
        for address, agent in self.agents.items():
            me = agent.membership.me
            assert me.phase == "active", me
            assert me.succs == members.get(after.get(address.operator, ""), set()), me
            assert me.preds == members.get(before.get(address.operator, ""), set()), me

    async def stop(self) -> None:
        self._stopping = True
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), *self._serving, return_exceptions=True)
