"""The two ends of a channel against a scripted peer, and what strangers may not do."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable

from penstock.decentralized.messages import DUPLICATION_ACK, Address, Message
from penstock.lab.agents.transport import frames, handshake
from penstock.lab.agents.transport.channel import Done, RecordBatch
from penstock.lab.agents.transport.frames import FrameReader, Kind, frame, ids_of
from penstock.lab.agents.transport.handshake import Hello, Verdict
from penstock.lab.agents.transport.link import Connection, Link, Writer
from penstock.lab.agents.transport.reception import MOST_STRANGERS, Reception
from penstock.lab.agents.transport.wire import Place, Places, encode
from tests.fakes.agents_memory import SECRET, pair, run

ME, PEER = Address("A", 0), Address("B", 0)
PLACE = Place("memory", 1)


def hello(**values: object) -> Hello:
    given = {"sender": ME, "place": PLACE, "life": 1, "channel": 1, "role": None, "receiver": PEER}
    return Hello(**{**given, **values})  # type: ignore[arg-type]


# ---- the receiving end ----------------------------------------------------------------------


class Listener:
    """A receiver that notes what comes."""

    life = 1

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.heard_messages: list[Message] = []
        self.batches: list[tuple[bytes, Done]] = []
        self.reception = Reception(self, SECRET, self.counts)
        self._serving: list[asyncio.Task[None]] = []

    def admit(self, hello: Hello) -> Verdict:
        return "welcome"

    def received(self, sender: Address, siblings: int, ids: bytes, done: Done) -> None:
        self.batches.append((ids, done))

    def heard(self, sender: Address, message: Message, places: Places) -> None:
        self.heard_messages.append(message)

    def dialled(self) -> tuple[FrameReader, Writer]:
        (reader, writer), far = pair()
        self._serving.append(asyncio.create_task(self.reception.serve(*far)))
        return FrameReader(reader), writer

    async def joined(
        self, what: Hello | None = None, secret: bytes = SECRET
    ) -> tuple[FrameReader, Writer]:
        incoming, writer = self.dialled()
        _, challenge = await incoming.read()
        mine = handshake.nonce()
        payload = handshake.hello(secret, challenge, mine, what or hello())
        writer.write(frame(Kind.HELLO, payload))
        kind, answer = await incoming.read()
        assert kind == Kind.WELCOME
        self.verdict, _ = handshake.read_welcome(secret, challenge, mine, answer)
        incoming.most = frames.MOST_BYTES
        return incoming, writer


async def soon() -> None:
    await asyncio.sleep(0.01)


async def at_end(incoming: FrameReader) -> bool:
    try:
        await incoming.read()
    except EOFError:
        return True
    return False


def test_malformed_frames_are_dropped_and_counted_and_the_next_one_is_taken() -> None:
    async def work() -> None:
        listener = Listener()
        _, writer = await listener.joined()
        writer.write(frame(Kind.RECORDS, b"no records"))
        writer.write(frame(Kind.WELCOME))
        writer.write(HEADER_OF_NO_KIND)
        writer.write(frames.message_frame(1, b"no message"))
        writer.write(frames.message_frame(2, encode(DUPLICATION_ACK, {})))
        await soon()
        assert listener.counts["malformed frames"] == 4
        assert listener.heard_messages == [DUPLICATION_ACK]

    run(work())


HEADER_OF_NO_KIND = frames.HEADER.pack(0, 200)


def test_an_oversized_frame_and_a_gap_end_the_connection_and_are_counted() -> None:
    async def work() -> None:
        listener = Listener()
        for data in (frames.HEADER.pack(1 << 30, Kind.RECORDS), frames.message_frame(2, b"[]")):
            incoming, writer = await listener.joined()
            writer.write(data)
            assert await at_end(incoming)
        assert listener.counts["broken connections"] == 2
        assert not listener.heard_messages

    run(work())


def test_strangers_are_refused() -> None:
    async def work() -> None:
        listener = Listener()
        for attempt in (
            frame(Kind.HELLO, b"let me in"),
            frame(Kind.RECORDS, bytes(20)),
            frames.HEADER.pack(frames.FIRST_BYTES + 1, Kind.HELLO),
            b"GET / HTTP/1.1\r\n\r\n",
        ):
            incoming, writer = listener.dialled()
            kind, _ = await incoming.read()
            assert kind == Kind.CHALLENGE
            writer.write(attempt)
            assert await at_end(incoming)
        incoming, _ = listener.dialled()  # one that says nothing
        await incoming.read()
        assert await at_end(incoming)
        assert listener.counts["refused connections"] == 5
        assert not listener.batches

    run(work())


def test_strangers_do_not_fill_the_house() -> None:
    async def work() -> None:
        listener = Listener()
        waiting = [listener.dialled() for _ in range(MOST_STRANGERS)]
        await soon()
        incoming, _ = listener.dialled()
        assert await at_end(incoming)
        assert listener.counts["refused connections"] == 1
        for _, writer in waiting:
            writer.close()
        await soon()
        await listener.joined()
        assert listener.verdict == "welcome"

    run(work())


def test_an_older_process_or_channel_of_a_sender_is_told_that_it_is_gone() -> None:
    async def work() -> None:
        listener = Listener()
        await listener.joined(hello(life=2, channel=2))
        for older in (hello(life=1, channel=9), hello(life=2, channel=1)):
            await listener.joined(older)
            assert listener.verdict == "gone"
        await listener.joined(hello(life=2, channel=3))
        assert listener.verdict == "welcome"

    run(work())


def test_records_are_answered_when_they_are_done_on_whatever_connection_there_is_then() -> None:
    async def work() -> None:
        listener = Listener()
        _, first = await listener.joined()
        batch = frames.records_frame(1, 1, ids_of(range(3)))
        first.write(batch)
        await soon()
        first.close()
        incoming, writer = await listener.joined()
        writer.write(batch)  # again: it is open, so there is no answer yet
        await soon()
        [(ids, done)] = listener.batches
        assert ids == ids_of(range(3))
        done()
        assert await incoming.read() == (Kind.DONE, frames.done_frame([1])[5:])
        writer.write(batch)  # again: it is done, and that is said again
        assert await incoming.read() == (Kind.DONE, frames.done_frame([1])[5:])
        assert listener.counts["frames had before"] == 2

    run(work())


# ---- the sending end ------------------------------------------------------------------------


class Sender:
    """The owner of a link that notes what it hears; a script answers at the other end."""

    def __init__(self, script: Callable[[FrameReader, Writer, int], Awaitable[None]]) -> None:
        self.counts: Counter[str] = Counter()
        self.events: list[str] = []
        self.batches: list[RecordBatch] = []
        self.close_when_answered = False
        self.dials = 0
        self._script = script
        self._tasks: set[asyncio.Task[None]] = set()
        self.link = Link(
            self, PEER, PLACE, dial=self._dial, secret=SECRET, patience=1.0, counts=self.counts
        )

    async def _dial(self, place: Place) -> Connection:
        self.dials += 1
        near, (reader, writer) = pair()
        self._tasks.add(asyncio.create_task(self._answer(FrameReader(reader), writer, self.dials)))
        return near

    async def _answer(self, incoming: FrameReader, writer: Writer, dial: int) -> None:
        with contextlib.suppress(EOFError):
            await self._script(incoming, writer, dial)

    def hello(self, peer: Address) -> Hello:
        return hello()

    def answered(self, peer: Address) -> None:
        self.events.append("answered")
        if self.close_when_answered:
            self.link.close()

    def lost(self, peer: Address, life: int | None, batches: list[RecordBatch]) -> None:
        self.events.append("lost")
        self.batches = batches

    def restarted(self, peer: Address, batches: list[RecordBatch]) -> None:
        self.events.append("restarted")
        self.batches = batches

    def fenced(self, by: Address) -> None:
        self.events.append("fenced")


async def welcome(
    incoming: FrameReader,
    writer: Writer,
    *,
    verdict: Verdict = "welcome",
    life: int = 1,
    secret: bytes = SECRET,
) -> None:
    challenge = handshake.nonce()
    writer.write(frame(Kind.CHALLENGE, challenge))
    _, payload = await incoming.read()
    theirs, _ = handshake.read_hello(SECRET, challenge, payload)
    answer = handshake.welcome(secret, challenge, theirs, verdict, life)
    writer.write(frame(Kind.WELCOME, answer))
    incoming.most = frames.MOST_BYTES


def some(done: list[str]) -> RecordBatch:
    return RecordBatch(ids=ids_of(range(5)), done=lambda: done.append("done"))


def test_an_answer_and_a_farewell_in_one_piece_end_a_link_once() -> None:
    async def script(incoming: FrameReader, writer: Writer, dial: int) -> None:
        await welcome(incoming, writer)
        await incoming.read()
        writer.write(frames.done_frame([1]) + frame(Kind.BYE))

    async def work() -> None:
        done: list[str] = []
        sender = Sender(script)
        sender.close_when_answered = True
        sender.link.records(some(done), 1)
        await asyncio.sleep(5.0)
        assert done == ["done"] and sender.events == ["answered"] and sender.dials == 1

    run(work())


def test_a_peer_that_does_not_know_the_secret_gets_nothing_and_is_given_up() -> None:
    got: list[int] = []

    async def script(incoming: FrameReader, writer: Writer, dial: int) -> None:
        await welcome(incoming, writer, secret=b"guessed")
        incoming.most = frames.MOST_BYTES
        got.append((await incoming.read())[0])

    async def work() -> None:
        sender = Sender(script)
        sender.link.records(some([]), 1)
        await asyncio.sleep(5.0)
        assert sender.events == ["lost"] and len(sender.batches) == 1 and sender.dials > 1
        assert got == []

    run(work())


def test_a_link_sends_again_what_is_not_done_and_gives_a_new_process_a_fresh_start() -> None:
    seen: list[list[int]] = []

    async def script(incoming: FrameReader, writer: Writer, dial: int) -> None:
        await welcome(incoming, writer, life=1 if dial < 3 else 2)
        numbers: list[int] = []
        seen.append(numbers)
        if dial == 3:
            return
        for _ in range(2 if dial == 1 else 1):
            _, payload = await incoming.read()
            numbers.append(frames.read_records(payload)[0])
        if dial == 1:
            writer.write(frames.done_frame([1]))
        await soon()
        writer.close()

    async def work() -> None:
        done: list[str] = []
        sender = Sender(script)
        sender.link.records(some(done), 1)
        sender.link.records(some(done), 1)
        await asyncio.sleep(0.5)
        assert seen == [[1, 2], [2], []]
        assert done == ["done"]
        assert sender.events == ["answered", "restarted"]
        assert len(sender.batches) == 1 and sender.link.out.empty
        sender.link.close()

    run(work())


def test_a_link_tells_its_owner_when_the_peer_has_given_it_up() -> None:
    async def script(incoming: FrameReader, writer: Writer, dial: int) -> None:
        await welcome(incoming, writer, verdict="gone")

    async def work() -> None:
        sender = Sender(script)
        await asyncio.sleep(1.0)
        assert sender.events == ["fenced"] and sender.dials == 1

    run(work())


def test_a_silent_peer_is_asked_dialled_again_and_given_up() -> None:
    pings = 0

    async def script(incoming: FrameReader, writer: Writer, dial: int) -> None:
        nonlocal pings
        if dial > 1:
            return
        await welcome(incoming, writer)
        while True:
            kind, _ = await incoming.read()
            pings += kind == Kind.PING
            if pings < 3:
                writer.write(frame(Kind.PONG))

    async def work() -> None:
        sender = Sender(script)
        await asyncio.sleep(1.4)
        assert sender.dials == 1 and sender.events == []
        await asyncio.sleep(3.0)
        assert sender.dials >= 2 and sender.events == ["lost"]

    run(work())
    assert pings >= 6
