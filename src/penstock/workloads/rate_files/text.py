"""The rows of a file, whatever it is: CSV by any separator, Prometheus JSON, a web server's log."""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import InputError

MOST_BYTES = 1 << 30  # of text, unpacked
DEEPEST = 64  # brackets within brackets of a JSON file
SEPARATORS = (",", ";", "\t", "|")
_LOG_LINE = re.compile(r"^\S+ \S+ \S+ \[([^\]]+)\] ")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The cells of a file, column by column.

    form: what kind of file it is, in words
    header: the names of the columns
    columns: the cells of each, as they are written
    lines: the line of the file that each row stands on
    """

    path: Path
    form: str
    header: tuple[str, ...]
    columns: tuple[list[str], ...]
    lines: list[int]

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        return f"{self.path}, line {self.lines[row]}"


def read_rows(path: Path) -> Rows:
    """All rows of a file, plain or gzipped; raises :class:`InputError` where it is none of these.

    Commas, semicolons, tabs or bars may separate the cells; ``sep=;`` before the header and lines
    that begin with ``#`` are passed over.
    """
    text = read_text(path)
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return _prometheus(path, text)
    if _LOG_LINE.match(text):
        return _web_log(path, text)
    return _separated(path, text)


def read_text(path: Path) -> str:
    """A text file in UTF-8, unpacked if it is gzipped; never more than ``MOST_BYTES``."""
    try:
        with path.open("rb") as file:
            data = _unpacked(path, file) if file.read(2) == b"\x1f\x8b" else _plain(path, file)
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: the gzip file is damaged ({error})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a text file in UTF-8 ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _plain(path: Path, file: io.BufferedReader) -> bytes:
    file.seek(0)
    data = file.read(MOST_BYTES + 1)
    _check_size(path, len(data))
    return data


def _unpacked(path: Path, file: io.BufferedReader) -> bytes:
    """All members of a gzip file; stops as soon as they are too much."""
    file.seek(0)
    parts: list[bytes] = []
    size = 0
    unpack = zlib.decompressobj(wbits=31)
    while packed := file.read(_CHUNK):
        while packed:
            part = unpack.decompress(packed, MOST_BYTES + 1 - size)
            parts.append(part)
            size += len(part)
            _check_size(path, size)
            packed = unpack.unconsumed_tail
            if unpack.eof:
                packed = unpack.unused_data.lstrip(b"\0")
                if packed:
                    unpack = zlib.decompressobj(wbits=31)
    if not unpack.eof:
        raise EOFError("it ends in the middle")
    return b"".join(parts)


def _check_size(path: Path, size: int) -> None:
    if size > MOST_BYTES:
        raise InputError(
            f"{path}: holds more than {MOST_BYTES >> 20} MiB of text; cut it, or sum it up to one "
            "row per second or minute"
        )


def _separated(path: Path, text: str) -> Rows:
    separator, skipped = _separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    header: tuple[str, ...] | None = None
    columns: tuple[list[str], ...] = ()
    lines: list[int] = []
    try:
        for line, cells in _full_lines(path, reader, skipped):
            if header is None:
                header = tuple(_plain_name(cell) for cell in cells)
                columns = tuple([] for _ in header)
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{path}, line {line}: {len(cells)} values under {len(header)} columns "
                    f"({', '.join(header)}); every row needs one value per column"
                )
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell)
            lines.append(line)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: is not CSV ({error})") from None
    if header is None:
        raise InputError(
            f"{path}: is empty; a trace needs a header and one row per second or minute"
        )
    form = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}[separator]
    return Rows(path=path, form=f"CSV with {form}", header=header, columns=columns, lines=lines)


def _separator(text: str) -> tuple[str, int]:
    """What separates the cells of the header, and how many lines stand before it."""
    for number, line in enumerate(io.StringIO(text)):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        if number == 0 and re.fullmatch(r"sep=.", plain):
            return plain[-1] if plain[-1] in SEPARATORS else ",", 1
        name = plain.partition("#")[0]
        return max(SEPARATORS, key=lambda s: (name.count(s), -SEPARATORS.index(s))), 0
    return ",", 0


def _full_lines(path: Path, reader: Any, skipped: int) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells; empty lines are allowed only at the end."""
    empty = 0
    for cells in reader:
        if reader.line_num <= skipped or (cells and cells[0].lstrip().startswith("#")):
            continue
        if not any(cell.strip() for cell in cells):
            empty = empty or reader.line_num
            continue
        if empty:
            raise InputError(f"{path}, line {empty}: is empty; remove it or fill it in")
        yield reader.line_num, cells


def _plain_name(cell: str) -> str:
    return cell.partition("#")[0].strip()


def _web_log(path: Path, text: str) -> Rows:
    """One row per request of a web server's log (common or combined format)."""
    times: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found = _LOG_LINE.match(line)
        if found is None:
            raise InputError(
                f"{path}, line {number}: {line[:60]!r} is no request of a web log like the lines "
                "before it; remove the line"
            )
        times.append(found[1])
        lines.append(number)
    return Rows(path=path, form="a web log", header=("time",), columns=(times,), lines=lines)


def _prometheus(path: Path, text: str) -> Rows:
    """The answer of Prometheus to a range query: a row for each value of each series."""
    if _depth(text) > DEEPEST:
        raise InputError(f"{path}: brackets are nested deeper than {DEEPEST}; this is no trace")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); export it as CSV") from None
    series = _matrix(found)
    if series is None:
        raise InputError(
            f"{path}: is JSON, but not Prometheus's answer to a range query "
            "(data.result with metric and values); export it as CSV"
        )
    times: list[str] = []
    values: list[str] = []
    labels: list[str] = []
    name = ""
    for number, one in enumerate(series, 1):
        metric = one.get("metric") or {}
        name = name or str(metric.get("__name__", ""))
        label = ",".join(f"{k}={v}" for k, v in sorted(metric.items()) if k != "__name__")
        for pair in one["values"]:
            if not (isinstance(pair, list) and len(pair) == 2):
                raise InputError(f"{path}, series {number}: {pair!r} is no [time, value] pair")
            times.append(str(pair[0]))
            values.append(str(pair[1]))
            labels.append(label)
    lines = list(range(1, len(times) + 1))
    return Rows(
        path=path,
        form=f"Prometheus JSON of {len(series)} series",
        header=("time", name or "value", "series"),
        columns=(times, values, labels),
        lines=lines,
    )


def _matrix(found: Any) -> list[dict[str, Any]] | None:
    data = found.get("data", found) if isinstance(found, dict) else found
    result = data.get("result") if isinstance(data, dict) else data
    if not isinstance(result, list) or not result:
        return None
    good = all(isinstance(one, dict) and isinstance(one.get("values"), list) for one in result)
    return result if good else None


def _depth(text: str) -> int:
    """How deep brackets are nested, without building anything."""
    deepest = depth = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > DEEPEST:
                break
        elif mark in "]}":
            depth -= 1
    return deepest
