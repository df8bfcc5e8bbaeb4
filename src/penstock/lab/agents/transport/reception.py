"""The receiving end of all channels to an instance: who may come in, and what they send."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Protocol

from penstock.decentralized.messages import Address, Message
from penstock.lab.agents.transport import handshake
from penstock.lab.agents.transport.channel import Done, Incoming
from penstock.lab.agents.transport.frames import (
    MOST_BYTES,
    FrameError,
    FrameReader,
    Kind,
    Malformed,
    done_frame,
    frame,
    read_message,
    read_records,
)
from penstock.lab.agents.transport.handshake import Hello, Verdict
from penstock.lab.agents.transport.link import Writer
from penstock.lab.agents.transport.wire import Places, decode

GREETING_SECONDS = 5.0
MOST_STRANGERS = 256  # connections at a time that have not shown yet that they know the secret


class Receiver(Protocol):
    """The instance behind a reception."""

    @property
    def life(self) -> int:
        """Which process at its address it is."""

    def admit(self, hello: Hello) -> Verdict:
        """Whether a peer that knows the secret may come in."""

    def received(self, sender: Address, siblings: int, ids: bytes, done: Done) -> None:
        """Records came; ``done`` is to be called when they are."""

    def heard(self, sender: Address, message: Message, places: Places) -> None:
        """Take a message that came, and the places it names."""


class _Inbound:
    """One channel from one sender, and the connection that it has now."""

    def __init__(self, hello: Hello) -> None:
        self.sender = hello.sender
        self.age = hello.life, hello.channel
        self.incoming = Incoming()
        self.writer: Writer | None = None

    def finish(self, number: int) -> None:
        self.incoming.finish(number)
        if self.writer is not None:
            self.writer.write(done_frame([number]))


class Reception:
    """Serves connections."""

    def __init__(self, receiver: Receiver, secret: bytes, counts: Counter[str]) -> None:
        self._receiver = receiver
        self._secret = secret
        self._counts = counts
        self._channels: dict[Address, _Inbound] = {}
        self._strangers = 0
        self._writers: set[Writer] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        """One connection from its first byte to its last."""
        self._writers.add(writer)
        self._quiet.clear()
        try:
            frames = FrameReader(reader)
            hello = await self._greeted(frames, writer)
            if hello is not None:
                frames.most = MOST_BYTES
                await self._listen(self._channel(hello, writer), frames, writer)
        except (OSError, EOFError):
            pass  # the sender dials again, or has ended
        except FrameError:
            self._counts["broken connections"] += 1
        finally:
            for inbound in self._channels.values():
                if inbound.writer is writer:
                    inbound.writer = None
            writer.close()
            self._writers.discard(writer)
            if not self._writers:
                self._quiet.set()

    async def farewell(self, patience: float) -> None:
        """Tell all senders that this instance ends, and let them hang up."""
        for writer in self._writers:
            writer.write(frame(Kind.BYE))
        try:
            async with asyncio.timeout(patience):
                await self._quiet.wait()
        except TimeoutError:
            self._counts["peers that did not hang up"] += len(self._writers)

    def forget(self, sender: Address) -> None:
        """A sender was given up; if it lives, it dials again and is told so."""
        inbound = self._channels.pop(sender, None)
        if inbound is not None and inbound.writer is not None:
            inbound.writer.close()

    def close(self) -> None:
        """End all connections at once."""
        for writer in list(self._writers):
            writer.close()

    async def _greeted(self, frames: FrameReader, writer: Writer) -> Hello | None:
        """Who has come in; ``None`` if nobody may."""
        if self._strangers >= MOST_STRANGERS:
            self._counts["refused connections"] += 1
            return None
        self._strangers += 1
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                challenge = handshake.nonce()
                writer.write(frame(Kind.CHALLENGE, challenge))
                kind, payload = await frames.read()
                if kind != Kind.HELLO:
                    raise FrameError(f"a frame of kind {kind} where HELLO was due")
                theirs, hello = handshake.read_hello(self._secret, challenge, payload)
        except (OSError, EOFError, FrameError):
            self._counts["refused connections"] += 1
            return None
        finally:
            self._strangers -= 1
        verdict = self._verdict(hello)
        answer = handshake.welcome(self._secret, challenge, theirs, verdict, self._receiver.life)
        writer.write(frame(Kind.WELCOME, answer))
        return hello if verdict == "welcome" else None

    def _verdict(self, hello: Hello) -> Verdict:
        known = self._channels.get(hello.sender)
        if known is not None and (hello.life, hello.channel) < known.age:
            return "gone"  # a process, or a channel, that a newer one has replaced
        return self._receiver.admit(hello)

    def _channel(self, hello: Hello, writer: Writer) -> _Inbound:
        known = self._channels.get(hello.sender)
        if known is None or known.age != (hello.life, hello.channel):
            known = self._channels[hello.sender] = _Inbound(hello)
        if known.writer is not None:
            known.writer.close()
        known.writer = writer
        return known

    async def _listen(self, inbound: _Inbound, frames: FrameReader, writer: Writer) -> None:
        while True:
            kind, payload = await frames.read()
            try:
                match kind:
                    case Kind.RECORDS:
                        self._records(inbound, payload)
                    case Kind.MESSAGE:
                        self._message(inbound, payload)
                    case Kind.PING:
                        writer.write(frame(Kind.PONG))
                    case _:
                        raise Malformed(f"kind {kind}")
            except Malformed:
                self._counts["malformed frames"] += 1

    def _records(self, inbound: _Inbound, payload: bytes) -> None:
        number, siblings, ids = read_records(payload)
        if self._is_new(inbound, number):
            done = partial(inbound.finish, number)
            self._receiver.received(inbound.sender, siblings, ids, done)

    def _message(self, inbound: _Inbound, payload: bytes) -> None:
        number, body = read_message(payload)
        if self._is_new(inbound, number):
            inbound.finish(number)
            message, places = decode(body)
            self._receiver.heard(inbound.sender, message, places)

    def _is_new(self, inbound: _Inbound, number: int) -> bool:
        state = inbound.incoming.take(number)
        if state != "new":
            self._counts["frames had before"] += 1
        if state == "done":  # the sender has not heard it
            inbound.finish(number)
        return state == "new"
