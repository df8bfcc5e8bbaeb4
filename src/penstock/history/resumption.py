"""Going on from a journal: what a restarted controller knew, and a place to write on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError
from penstock.core.loop import State
from penstock.history.journal import FORMAT, Header, Journal, set_aside

BLOCK = 65536  # bytes read at a time from the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A journal to write to, the state to go on from (``None``: begin anew), and why."""

    journal: Journal
    state: State | None
    why: str


def resume(
    path: Path, header: Header, *, now: float, max_bytes: int | None = None, keep: int = 4
) -> Resumed:
    """Go on from the journal at ``path`` if the same policy with the same parameters wrote it.

    With the same header, lines are appended to it; else it is set aside as ``<name>.1`` and a new
    one begins. A torn last line is cut off first.
    """
    found = _last(path)
    state, append, why = (None, False, "") if found is None else _judged(*found, header, now)
    if found is not None and not append:
        set_aside(path, keep)
    journal = Journal(
        path, replace(header, state=state), max_bytes=max_bytes, keep=keep, append=append
    )
    return Resumed(journal=journal, state=state, why=why)


def _judged(
    old: Header | None, last: State | None, new: Header, now: float
) -> tuple[State | None, bool, str]:
    """The state to go on from, whether to append to the same file, and why."""
    if old is None or old.format != FORMAT:
        return None, False, "begins anew: another version of Penstock wrote the journal"
    if (old.policy, old.seed) != (new.policy, new.seed):
        return None, False, (
            f"begins anew: the journal is of {old.policy} with seed {old.seed}, "
            f"this is {new.policy} with seed {new.seed}"
        )  # fmt: skip
    if _different(old.parameters, to_json(new.parameters)):
        names = ", ".join(_different(old.parameters, to_json(new.parameters)))
        return None, False, f"begins anew: {names} of {new.policy} differs from the journal"
    state = last if last is not None else old.state
    same = replace(old, state=None) == from_json(Header, to_json(replace(new, state=None)))
    if state is None:
        return None, same, ""
    if state.last_seen is not None and state.last_seen > now:
        ahead = state.last_seen - now
        return None, False, f"begins anew: the journal's last decision is {ahead:.0f} s from now"
    ago = "" if state.last_seen is None else f" of {now - state.last_seen:.0f} s ago"
    return state, same, f"goes on from the journal's last decision{ago}"


def _different(a: Mapping[str, object], b: Mapping[str, object]) -> list[str]:
    return sorted(key for key in {*a, *b} if (key in a, a.get(key)) != (key in b, b.get(key)))


def _last(path: Path) -> tuple[Header | None, State | None] | None:
    """Header and last state of a journal, what is torn behind it cut off; ``None`` if empty.

    The header is ``None`` if it is one of another version. Only the end of the file is read.
    """
    if not path.exists():
        return None
    with path.open("rb+") as file:
        first = file.readline()
        if not first.endswith(b"\n"):  # not even the header was written whole
            _check_ours(path, first, torn=True)
            file.truncate(0)
            return None
        _check_ours(path, first, torn=False)
        try:
            header = from_json(Header, json.loads(first))
        except InputError:
            return None, None
        for start, line in _backwards(file, len(first)):
            try:
                return header, _state_of(line)
            except ValueError:
                file.truncate(start)
        return header, None


def _state_of(line: bytes) -> State:
    """The state in a line of a journal; raises if the line is torn.

    What was seen is not looked at: windows of arrivals lie in files of their own.
    """
    document = json.loads(line)
    if not isinstance(document, dict) or not {"decision", "state"} <= document.keys():
        raise InputError("not an entry of a journal")
    return from_json(State, document["state"])


def _check_ours(path: Path, first: bytes, *, torn: bool) -> None:
    """Refuse to write into a file that is not a journal."""
    try:
        ours = first == b"" or (first.startswith(b'{"policy"') if torn else _names_policy(first))
    except ValueError:
        ours = False
    if not ours:
        raise InputError(f"{path} is not a journal; name another file, or move this one away")


def _names_policy(line: bytes) -> bool:
    document = json.loads(line)
    return isinstance(document, dict) and "policy" in document


def _backwards(file: IO[bytes], begin: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a file behind ``begin``, the last first, with the place each one starts at."""
    end = position = file.seek(0, os.SEEK_END)
    kept = b""
    while position > begin:
        size = min(BLOCK, position - begin)
        position -= size
        file.seek(position)
        kept = file.read(size) + kept
        # A line begins behind a line end that is not its own.
        while (cut := kept.rfind(b"\n", 0, len(kept) - 1)) >= 0:
            start = end - (len(kept) - cut - 1)
            yield start, kept[cut + 1 :]
            kept, end = kept[: cut + 1], start
    if kept:
        yield begin, kept
