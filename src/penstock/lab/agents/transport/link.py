"""The sending end of a channel: dials its peer, dials again when the connection breaks, gives up.

A peer that refuses is gone: a place is made known only after somebody listens there. A peer that
is silent for ``patience`` seconds is dialled again; if it does not answer within as long once
more, it is given up.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol

from penstock.decentralized.messages import Address
from penstock.lab.agents.transport import handshake
from penstock.lab.agents.transport.channel import Outgoing, RecordBatch
from penstock.lab.agents.transport.frames import (
    MOST_BYTES,
    FrameError,
    FrameReader,
    Kind,
    Malformed,
    frame,
    read_done,
)
from penstock.lab.agents.transport.handshake import Hello, Verdict
from penstock.lab.agents.transport.wire import Place

BEATS = 4  # times that a silent peer is asked before its connection is given up
RETRY = 0.05  # seconds between two dials


class Writer(Protocol):
    """What is needed of a stream writer."""

    def write(self, data: bytes, /) -> None:
        """Send, or keep until it can be sent."""

    def close(self) -> None:
        """End the connection."""


Connection = tuple[asyncio.StreamReader, Writer]
Dial = Callable[[Place], Awaitable[Connection]]


class Owner(Protocol):
    """The instance that a link belongs to."""

    def hello(self, peer: Address) -> Hello:
        """Who it is to a peer."""

    def answered(self, peer: Address) -> None:
        """Something that was sent to a peer is done."""

    def lost(self, peer: Address, life: int | None, batches: list[RecordBatch]) -> None:
        """A peer is gone; these records it was sent are not done."""

    def restarted(self, peer: Address, batches: list[RecordBatch]) -> None:
        """A new process is at a peer's address, and knows nothing."""

    def fenced(self, by: Address) -> None:
        """A peer has given this instance up."""


class Link:
    """All that an instance sends to one peer."""

    def __init__(
        self,
        owner: Owner,
        peer: Address,
        place: Place,
        *,
        dial: Dial,
        secret: bytes,
        patience: float,
        counts: Counter[str],
    ) -> None:
        self.peer = peer
        self.out = Outgoing()
        self._owner = owner
        self._place = place
        self._dial = dial
        self._secret = secret
        self._patience = patience
        self._counts = counts
        self._life: int | None = None
        self._writer: Writer | None = None
        self._broken = False  # whether there was a connection before this one
        self._closed = False
        self._task = asyncio.create_task(self._run(), name=f"link to {peer}")
        self._task.add_done_callback(self._finished)

    def message(self, body: bytes) -> None:
        """Send a message; returns at once."""
        self._write(self.out.message(body))

    def records(self, batch: RecordBatch, siblings: int) -> None:
        """Send records; returns at once."""
        self._write(self.out.batch(batch, siblings))

    def close(self) -> None:
        """No more is sent, and its owner hears nothing more of it."""
        self._closed = True
        self._task.cancel()
        if self._writer is not None:
            self._writer.close()

    def _write(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.write(data)

    async def _run(self) -> None:
        while (connection := await self._connect()) is not None:
            frames, writer = connection
            again = self.out.frames()
            self._counts["frames sent again"] += len(again) if self._broken else 0
            for data in again:
                writer.write(data)
            self._writer = writer
            try:
                if await self._ended(frames, writer):
                    self._give_up()
                    return
            except (OSError, EOFError, FrameError):
                self._counts["connections lost"] += 1
                self._broken = True
            finally:
                self._writer = None
                writer.close()

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A fault of ours must not pass in silence."""
        if not task.cancelled() and (problem := task.exception()) is not None:
            task.get_loop().call_exception_handler(
                {"message": f"{task.get_name()} failed", "exception": problem, "task": task}
            )

    async def _connect(self) -> tuple[FrameReader, Writer] | None:
        """A connection to a peer that welcomes this instance, or ``None`` when it is gone."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        while True:
            try:
                async with asyncio.timeout(self._patience):
                    frames, writer, verdict, life = await self._greeted()
            except ConnectionRefusedError:
                self._give_up()
                return None
            except (OSError, EOFError, FrameError):  # a timeout is an OSError
                if clock() - begun >= self._patience:
                    self._give_up()
                    return None
                await asyncio.sleep(RETRY)
                continue
            if verdict == "welcome":
                self._meet(life)
                return frames, writer
            writer.close()
            if verdict == "gone":
                self._owner.fenced(self.peer)
            else:
                self._give_up()
            return None

    async def _greeted(self) -> tuple[FrameReader, Writer, Verdict, int]:
        reader, writer = await self._dial(self._place)
        try:
            frames = FrameReader(reader)
            challenge = await _expect(frames, Kind.CHALLENGE)
            mine = handshake.nonce()
            what = self._owner.hello(self.peer)
            writer.write(frame(Kind.HELLO, handshake.hello(self._secret, challenge, mine, what)))
            answer = await _expect(frames, Kind.WELCOME)
            verdict, life = handshake.read_welcome(self._secret, challenge, mine, answer)
        except BaseException:
            writer.close()
            raise
        frames.most = MOST_BYTES
        return frames, writer, verdict, life

    def _meet(self, life: int) -> None:
        before, self._life = self._life, life
        if before not in (None, life):
            batches, self.out = self.out.batches(), Outgoing()
            self._broken = False
            self._owner.restarted(self.peer, batches)

    async def _ended(self, frames: FrameReader, writer: Writer) -> bool:
        """Listen to answers until the peer says that it ends, or the connection breaks."""
        silent = 0
        while True:
            try:
                async with asyncio.timeout(self._patience / BEATS):
                    kind, payload = await frames.read()
            except TimeoutError:
                silent += 1
                if silent > BEATS:
                    raise FrameError(f"{self.peer} is silent") from None
                writer.write(frame(Kind.PING))
                continue
            silent = 0
            if self._closed:  # by an answer that has come with this frame
                raise asyncio.CancelledError
            match kind:
                case Kind.DONE:
                    self._done(payload)
                case Kind.PONG:
                    pass
                case Kind.BYE:
                    return True
                case _:
                    self._counts["malformed frames"] += 1

    def _done(self, payload: bytes) -> None:
        try:
            numbers = read_done(payload)
        except Malformed:
            self._counts["malformed frames"] += 1
            return
        for number in numbers:
            self.out.done(number)
        self._owner.answered(self.peer)

    def _give_up(self) -> None:
        batches, self.out = self.out.batches(), Outgoing()
        self._owner.lost(self.peer, self._life, batches)


async def _expect(frames: FrameReader, kind: Kind) -> bytes:
    found, payload = await frames.read()
    if found != kind:
        raise FrameError(f"a frame of kind {found} where {kind.name} was due")
    return payload
