"""Spark's event log: what an application did, told by its driver, one event per line.

A log is a file, plain or compressed by zstd, or a folder of such files where it is rolled over. It
is read once from its beginning to its end; what is kept is small: sums over the tasks of a stage,
and single tasks of some hundred batches.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from penstock.core.errors import InputError, MissingError
from penstock.history.event_reader import EventReader
from penstock.history.recording import RecordedApplication

LONGEST_LINE = 1 << 26  # bytes
FREE = 1 << 32  # bytes that any file may unpack to
MOST_RATIO = 500  # times its size that a larger file may; logs reach a tenth of that
PACKED = (".zstd", ".zst")
OTHER_CODECS = (".lz4", ".lzf", ".snappy")
ZSTD = b"\x28\xb5\x2f\xfd"
_ROLLED = re.compile(r"events_(\d+)_")
Progress = Callable[[int, int], None]  # bytes read, and of all


def is_event_log(path: Path) -> bool:
    """Whether a path looks like a log of Spark's: by its folder, or its first line."""
    if path.is_dir():
        return bool(_rolled(path))
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False
    return head.startswith(b'{"Event":"') or (head[:4] == ZSTD and path.suffix in PACKED)


def read_event_log(
    path: Path, *, progress: Progress = lambda done, total: None
) -> RecordedApplication:
    """Read a log, also one that is still written; a torn last line is left out, and told."""
    if not path.exists():
        raise InputError(f"{path}: cannot be read (there is no such file or folder)")
    files = _rolled(path) if path.is_dir() else [path]
    if not files:
        raise InputError(
            f"{path}: no event log is in this folder; give a file, or a folder with "
            "events_1_… in it"
        )
    reader = EventReader(path)
    total = sum(file.stat().st_size for file in files)
    before = 0
    for file in files:
        for line, text, at in _lines(file):
            reader.take(file, line, text)
            if line % 1000 == 0:
                progress(before + at, total)
        before += file.stat().st_size
        progress(before, total)
    return reader.done()


def _rolled(folder: Path) -> list[Path]:
    """The files of a log that was rolled over, in their order."""
    found = [(m, p) for p in folder.iterdir() if (m := _ROLLED.match(p.name)) and p.is_file()]
    parts = sorted((int(m[1]), p) for m, p in found)
    # Spark sums up the oldest ones in a file of their own, which takes their place.
    compact = max((n for n, p in parts if ".compact" in p.name), default=None)
    if compact is not None:
        parts = [
            (n, p) for n, p in parts if n > compact or (n, ".compact" in p.name) == (compact, True)
        ]
    for (before, _), (number, path) in pairwise(parts):
        if number != before + 1:
            raise InputError(
                f"{path}: part {before + 1} of the log is missing before it; copy it back, or give "
                "the parts before it in a folder of their own"
            )
    return [path for _, path in parts]


def _lines(path: Path) -> Iterator[tuple[int, bytes, int]]:
    """Line numbers, lines, and how far the file has been read."""
    if path.suffix in OTHER_CODECS:
        raise InputError(
            f"{path}: is compressed by {path.suffix[1:]}, which cannot be read here; write logs "
            "with spark.eventLog.compression.codec=zstd, or without compression"
        )
    try:
        with ExitStack() as stack:
            raw = stack.enter_context(path.open("rb"))
            packed = raw.read(4) == ZSTD
            raw.seek(0)
            source: BinaryIO = _unpacked(raw, path) if packed else raw
            number = unpacked = 0
            most = max(FREE, MOST_RATIO * path.stat().st_size)
            while text := source.readline(LONGEST_LINE + 1):
                number += 1
                if len(text) > LONGEST_LINE:
                    raise InputError(
                        f"{path}, line {number}: is longer than {LONGEST_LINE >> 20} MiB; this is "
                        "no event log"
                    )
                unpacked += len(text)
                if packed and unpacked > most:
                    raise InputError(
                        f"{path}, line {number}: unpacks to more than {MOST_RATIO} times its size, "
                        f"{most >> 20:,} MiB so far; no log does. Unpack it yourself if it is one"
                    )
                yield number, text, raw.tell()
            if packed and isinstance(source, io.BufferedReader):
                _check_whole(path, number, source.raw)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _unpacked(raw: BinaryIO, path: Path) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise MissingError(
            f"{path} is compressed by zstd: pip install 'penstock[sim]' (or zstandard)"
        ) from None
    stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        raw, read_across_frames=True
    )
    return io.BufferedReader(_Readable(stream, zstandard.ZstdError), 1 << 20)


class _Readable(io.RawIOBase):
    """A stream that ends where its source was cut off: a log that is still written."""

    def __init__(self, stream: Any, error: type[Exception]) -> None:
        self._stream, self._error = stream, error
        self.damage = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except self._error as error:
            self.damage = str(error)
            return 0
        buffer[: len(data)] = data
        return len(data)


def _check_whole(path: Path, line: int, stream: io.RawIOBase) -> None:
    """Refuse a file whose packed data are damaged; one that merely ends is still written."""
    if isinstance(stream, _Readable) and stream.damage:
        raise InputError(
            f"{path}, after line {line}: the packed data are damaged ({stream.damage}); copy the "
            "log again"
        )
