"""What is on the wire between agents: frames, messages, greetings, numbers."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decentralized.messages import (
    DELETION_ACK,
    DUPLICATION_ACK,
    Address,
    Deletion,
    Duplication,
    Message,
    Start,
)
from penstock.lab.agents.transport import frames, handshake
from penstock.lab.agents.transport.channel import Incoming, Outgoing, RecordBatch
from penstock.lab.agents.transport.frames import (
    FrameError,
    FrameReader,
    Kind,
    Malformed,
    frame,
    ids_of,
)
from penstock.lab.agents.transport.handshake import Hello
from penstock.lab.agents.transport.wire import Place, decode, encode, read_place
from tests.fakes.agents_memory import run

# ---- frames ---------------------------------------------------------------------------------


def read_all(data: bytes, *, pieces: int = 1, most: int = frames.MOST_BYTES) -> list[bytes]:
    """The payloads of all frames in some bytes, which come in pieces."""

    async def work() -> list[bytes]:
        reader = asyncio.StreamReader()
        incoming = FrameReader(reader)
        incoming.most = most
        for at in range(0, len(data), pieces):
            reader.feed_data(data[at : at + pieces])
        reader.feed_eof()
        found = []
        try:
            while True:
                found.append((await incoming.read())[1])
        except EOFError:
            return found

    return run(work())


@given(st.lists(st.binary(max_size=50), max_size=8), st.integers(1, 20))
def test_frames_come_out_as_they_went_in(payloads: list[bytes], pieces: int) -> None:
    data = b"".join(frame(Kind.MESSAGE, payload) for payload in payloads)
    assert read_all(data, pieces=pieces) == payloads


def test_a_frame_above_the_bound_is_refused_before_it_is_read() -> None:
    with pytest.raises(FrameError, match="a frame of 4294967295 bytes; at most 131072"):
        read_all(b"\xff\xff\xff\xff\x05")
    with pytest.raises(FrameError, match="at most 1024"):
        read_all(frame(Kind.HELLO, bytes(1025)), most=frames.FIRST_BYTES)


def test_a_read_that_was_given_up_loses_nothing() -> None:
    async def work() -> tuple[int, bytes]:
        reader = asyncio.StreamReader()
        incoming = FrameReader(reader)
        data = frame(Kind.DONE, b"12345678")
        reader.feed_data(data[:7])  # the header and a part of the rest
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await incoming.read()
        reader.feed_data(data[7:])
        return await incoming.read()

    assert run(work()) == (Kind.DONE, b"12345678")


@given(st.integers(1, 2**63), st.integers(1, 2**31), st.integers(1, frames.MOST_RECORDS))
def test_records_come_out_as_they_went_in(number: int, siblings: int, count: int) -> None:
    ids = ids_of(range(number, number + count))
    made = frames.records_frame(number, siblings, ids)
    assert frames.read_records(made[frames.HEADER.size :]) == (number, siblings, ids)
    assert len(made) < frames.MOST_BYTES


@pytest.mark.parametrize(
    "payload",
    [b"", bytes(12), bytes(12 + 7), bytes(12 + 8 * (frames.MOST_RECORDS + 1))],
    ids=["empty", "no ids", "a broken id", "too many"],
)
def test_a_frame_of_records_must_hold_whole_ids(payload: bytes) -> None:
    with pytest.raises(Malformed):
        frames.read_records(payload)


def test_numbers_must_be_whole() -> None:
    assert frames.read_done(frames.done_frame([3, 2**63])[5:]) == [3, 2**63]
    for payload in (b"", bytes(9)):
        with pytest.raises(Malformed):
            frames.read_done(payload)
    with pytest.raises(Malformed):
        frames.read_message(bytes(8))


# ---- messages -------------------------------------------------------------------------------

ADDRESSES = st.frozensets(
    st.builds(Address, st.sampled_from(["A", "B", "counter"]), st.integers(0, 2**31 - 1)),
    max_size=5,
)
ROLES = st.sampled_from(["successor", "predecessor"])
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Duplication, role=ROLES, new=ADDRESSES.filter(bool)),
    st.builds(Deletion, role=ROLES),
    st.just(DUPLICATION_ACK),
    st.just(DELETION_ACK),
    st.builds(Start, succs=ADDRESSES, preds=ADDRESSES),
)


def named(message: Message) -> frozenset[Address]:
    match message:
        case Duplication(new=new):
            return new
        case Start(succs=succs, preds=preds):
            return succs | preds
    return frozenset()


@given(MESSAGES, st.integers(1, 65535))
def test_messages_come_out_as_they_went_in_with_the_places_they_name(
    message: Message, port: int
) -> None:
    places = {a: Place(f"127.0.0.{a.serial % 9}", port) for a in named(message)}
    assert decode(encode(message, places)) == (message, places)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        b'["duplication","successor",[]]',
        b'["duplication","sibling",[["A",1,"h",1]]]',
        b'["duplication","successor",[["A",-1,"h",1]]]',
        b'["duplication","successor",[["A",1,"h",70000]]]',
        b'["duplication","successor",[["A","1","h",1]]]',
        b'["duplication","successor",["A"]]',
        b'["deletion"]',
        b'["start",[]]',
        b'["shutdown"]',
    ],
)
def test_what_is_no_message_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        decode(body)


@given(st.binary(max_size=60))
def test_random_bytes_are_never_more_than_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        decode(body)


def test_names_are_bounded() -> None:
    with pytest.raises(Malformed):
        read_place(["A" * 41, 0, "h", 1])


# ---- greetings ------------------------------------------------------------------------------

HELLO = Hello(
    sender=Address("A", 1),
    place=Place("127.0.0.1", 5),
    life=2,
    channel=3,
    role="successor",
    receiver=Address("B", 0),
)


def test_both_sides_learn_who_the_other_is() -> None:
    challenge, mine = handshake.nonce(), handshake.nonce()
    payload = handshake.hello(b"secret", challenge, mine, HELLO)
    assert handshake.read_hello(b"secret", challenge, payload) == (mine, HELLO)
    answer = handshake.welcome(b"secret", challenge, mine, "welcome", 7)
    assert handshake.read_welcome(b"secret", challenge, mine, answer) == ("welcome", 7)
    assert len(payload) < frames.FIRST_BYTES


def test_without_the_secret_nobody_is_believed() -> None:
    challenge, mine = handshake.nonce(), handshake.nonce()
    payload = handshake.hello(b"another", challenge, mine, HELLO)
    with pytest.raises(FrameError, match="does not know the secret"):
        handshake.read_hello(b"secret", challenge, payload)
    answer = handshake.welcome(b"another", challenge, mine, "gone", 1)
    with pytest.raises(FrameError, match="does not know the secret"):
        handshake.read_welcome(b"secret", challenge, mine, answer)


def test_a_recorded_greeting_is_worth_nothing() -> None:
    challenge, mine = handshake.nonce(), handshake.nonce()
    payload = handshake.hello(b"secret", challenge, mine, HELLO)
    with pytest.raises(FrameError):
        handshake.read_hello(b"secret", handshake.nonce(), payload)
    answer = handshake.welcome(b"secret", challenge, mine, "welcome", 1)
    with pytest.raises(FrameError):
        handshake.read_welcome(b"secret", challenge, handshake.nonce(), answer)


@given(st.integers(0, 300), st.integers(1, 255))
def test_a_changed_greeting_is_refused(at: int, change: int) -> None:
    challenge, mine = bytes(32), bytes(32)
    payload = bytearray(handshake.hello(b"secret", challenge, mine, HELLO))
    payload[at % len(payload)] ^= change
    with pytest.raises(FrameError):
        handshake.read_hello(b"secret", challenge, bytes(payload))


@given(st.binary(max_size=200))
def test_random_bytes_are_no_greeting(payload: bytes) -> None:
    with pytest.raises(FrameError):
        handshake.read_hello(b"secret", bytes(32), payload)
    with pytest.raises(FrameError):
        handshake.read_welcome(b"secret", bytes(32), bytes(32), payload)


# ---- channels -------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["send", "arrive", "finish", "answer", "break"]), max_size=80))
def test_a_channel_gives_everything_once_and_in_order_whatever_breaks(steps: list[str]) -> None:
    """Two queues stand for a connection; when it breaks, what is in them is gone."""
    out, incoming = Outgoing(), Incoming()
    there: list[int] = []
    back: list[int] = []
    taken: list[int] = []
    open_numbers: list[int] = []
    done: Counter[int] = Counter()
    sent = 0

    def act(step: str) -> None:
        nonlocal sent
        if step == "send":
            sent += 1
            number = sent
            ids = ids_of(range(number))
            out.batch(RecordBatch(ids=ids, done=lambda: done.update([number])), 1)
            there.append(number)
        elif step == "arrive" and there:
            number = there.pop(0)
            state = incoming.take(number)
            if state == "new":
                taken.append(number)
                open_numbers.append(number)
            elif state == "done":
                back.append(number)
        elif step == "finish" and open_numbers:
            number = open_numbers.pop()
            incoming.finish(number)
            back.append(number)
        elif step == "answer" and back:
            out.done(back.pop(0))
        elif step == "break":
            back.clear()
            there[:] = [frames.read_records(f[5:])[0] for f in out.frames()]

    for step in steps:
        act(step)
    act("break")
    for _ in range(3 * sent):
        for step in ("arrive", "finish", "answer"):
            act(step)
    assert taken == list(range(1, sent + 1))
    assert done == Counter(range(1, sent + 1))
    assert out.empty and incoming.empty and out.records == 0


def test_a_gap_breaks_a_channel() -> None:
    incoming = Incoming()
    assert incoming.take(1) == "new"
    with pytest.raises(FrameError, match="frame 3 after 1: one is missing"):
        incoming.take(3)
