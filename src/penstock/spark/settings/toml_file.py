"""A TOML file whose errors say where: file, line, key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from penstock.core.errors import InputError

_HEADER = re.compile(r"^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a file: a table (empty: the top), which of its kind (from 0), and a key."""

    table: str = ""
    number: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlFile:
    """A file that was read, and its text to find lines in."""

    path: Path
    text: str = field(repr=False)
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path, what: str = "bench spec") -> TomlFile:
        """Read and parse a file; ``what`` it should be is said where there is none."""
        try:
            text = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise InputError(f"no file {path}; give the path of a {what} (TOML)") from None
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} is not UTF-8 text ({error.reason} at byte {error.start})"
            ) from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(
                r"^(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error)
            )
            what = found[1] if found else str(error)
            line = found[2] if found and found[2] else str(max(1, len(text.splitlines())))
            raise InputError(
                f"{path}, line {line}: not TOML: {what[:1].lower()}{what[1:]}"
            ) from None
        return cls(path=path, text=text, document=document)

    def fail(self, message: str, place: Place | None = None) -> NoReturn:
        """Raise an error that begins with the file and, where it can be found, the line."""
        line = self.line(place) if place is not None else None
        where = f"{self.path}, line {line}" if line else str(self.path)
        raise InputError(f"{where}: {message}")

    def known(self, table: Mapping[str, Any], keys: Iterable[str], place: Place) -> None:
        """Refuse keys that mean nothing, with the nearest one that does."""
        names = sorted(keys)
        for key in table:
            if key in names:
                continue
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            at = Place(table=place.table, number=place.number, key=key)
            inside = f" of [[{place.table}]]" if place.table else ""
            self.fail(f"unknown key {key!r}{inside}; {hint}Known: {', '.join(names)}", at)

    def line(self, place: Place) -> int | None:
        """The line of a key, or else of its table; found by looking at the text."""
        table, seen, of_table = "", -1, None
        key = re.compile(rf"""^\s*["']?{re.escape(place.key)}["']?\s*[.=]""") if place.key else None
        for number, line in enumerate(self.text.splitlines(), 1):
            header = _HEADER.match(line)
            if header:
                table = header[1]
                if table == place.table:
                    seen += 1
                    if seen == place.number:
                        of_table = number
            inside = table == place.table or table.startswith(f"{place.table}.")
            here = inside and (not place.table or seen == place.number)
            if here and header and place.key and table == f"{place.table}.{place.key}":
                return number
            if here and not header and key is not None and key.match(line):
                return number
        if of_table is None and place.table:  # an inline table: `policy = [{ … }]`
            return self.line(Place(key=place.table))
        return of_table


def mentioned(keys: Iterable[str], text: str) -> str:
    """The first of some keys that a message is about; empty if it names none.

    As in ``key = value``, ``key: …`` or ``'key'``, or else as a word of three letters or more.

    >>> mentioned(["low", "high"], "cosine: high = -1 must be ≥ 0, low is a rate")
    'high'
    """
    names = list(keys)
    for form in (r"(?<!\w){}(?: =|:)|'{}'(?!:)", r"(?<!\w){}(?!\w)"):
        for key in names:
            sure = form.count("{}") > 1
            if (sure or len(key) > 2) and re.search(form.replace("{}", re.escape(key)), text):
                return key
    return ""


def seconds(value: Any) -> float | None:
    """A duration: a number of seconds, or text with a unit. ``None`` if it is neither.

    >>> seconds("15s"), seconds("2.5 min"), seconds(30), seconds("soon")
    (15.0, 150.0, 30.0, None)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = (
        re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([a-z]+)\s*", value)
        if isinstance(value, str)
        else None
    )
    if found is None or found[2] not in _UNITS:
        return None
    return float(found[1]) * _UNITS[found[2]]
