"""One channel: frames in order, each once, whatever happens to the connections under it.

The sender numbers its frames from 1 and keeps each until it is *done*; on a new connection it
sends again what is not. The receiver takes them in order and drops what it has had already. A
message is done when it has been read; records are done when all that became of them has reached
the sink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from penstock.lab.agents.transport.frames import FrameError, message_frame, records_frame

Done = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """Records that were sent: ``ids``, and what to call when they are done."""

    ids: bytes
    done: Done

    @property
    def records(self) -> int:
        """How many records it has."""
        return len(self.ids) // 8


class Outgoing:
    """The sender's end: what was sent and is not done."""

    def __init__(self) -> None:
        self._last = 0
        self._frames: dict[int, tuple[bytes, RecordBatch | None]] = {}
        self.records = 0

    @property
    def empty(self) -> bool:
        """Whether all that was sent is done."""
        return not self._frames

    def message(self, body: bytes) -> bytes:
        """A message as the next frame."""
        self._last += 1
        made = message_frame(self._last, body)
        self._frames[self._last] = made, None
        return made

    def batch(self, batch: RecordBatch, siblings: int) -> bytes:
        """Records as the next frame."""
        self._last += 1
        made = records_frame(self._last, siblings, batch.ids)
        self._frames[self._last] = made, batch
        self.records += batch.records
        return made

    def done(self, number: int) -> None:
        """The receiver is done with a frame; hearing it twice changes nothing."""
        _, batch = self._frames.pop(number, (b"", None))
        if batch is not None:
            self.records -= batch.records
            batch.done()

    def frames(self) -> list[bytes]:
        """What is not done, in order, to be sent again."""
        return [made for made, _ in self._frames.values()]

    def batches(self) -> list[RecordBatch]:
        """The records that are not done, for another receiver."""
        return [batch for _, batch in self._frames.values() if batch is not None]


class Incoming:
    """The receiver's end: what came, and what of it is not done."""

    def __init__(self) -> None:
        self._last = 0
        self._open: set[int] = set()

    def take(self, number: int) -> Literal["new", "open", "done"]:
        """What a frame is: new, had before and not done, or had before and done."""
        if number == self._last + 1:
            self._last = number
            self._open.add(number)
            return "new"
        if number > self._last:
            raise FrameError(f"frame {number} after {self._last}: one is missing")
        return "open" if number in self._open else "done"

    def finish(self, number: int) -> None:
        """Note that a frame is done."""
        self._open.discard(number)

    @property
    def empty(self) -> bool:
        """Whether all that came is done."""
        return not self._open
