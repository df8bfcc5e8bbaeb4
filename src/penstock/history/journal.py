"""The journal: one JSON line per tick, replayable through any policy.

The first line says who decided: ``{"policy": …, "parameters": …, "guards": …, "mode": …}``.
Every other line is one decision and the state after it, so that a restarted controller goes on
where the last one stopped. A journal that has grown too large is renamed to ``<name>.1`` (the
older ones to ``.2``, ``.3``, …) and a new one begins, with the state at its start in its header.
Windows of single arrivals lie beside it in ``<name>.arrivals/``, by digest.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Fault, Outcome, State, plan
from penstock.core.model import Arrivals, Snapshot
from penstock.core.ports import Policy
from penstock.history.files import atomic

FORMAT = 1
_IGNORED = "cannot be true, ignored"  # how a note about a reading ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Who decided: a policy by name and parameters, its guards, mode and seed.

    period: seconds between two ticks, where it is fixed
    format: of the lines; one that this version does not know is refused
    state: what the loop carried over from an earlier journal, if it did
    """

    policy: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    guards: Guards = field(default_factory=Guards)
    mode: str = "advise"
    seed: int = 0
    period: float | None = None
    format: int = FORMAT
    state: State | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line: a decision and the state of the loop after it."""

    decision: Decision
    state: State


class Journal:
    """Writes a journal; each line is written at once, so a crash loses at most the last one.

    A line that could not be written whole (a full disk) is taken back, so that later ones stay
    readable.

    max_bytes: size after which it is rotated
    keep: how many old ones stay
    append: whether lines go behind those that a file of the same header holds already, instead
        of into a new file
    """

    def __init__(
        self,
        path: Path,
        header: Header,
        *,
        max_bytes: int | None = None,
        keep: int = 4,
        append: bool = False,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._header = header
        self._max_bytes, self._keep = max_bytes, keep
        self._state = header.state
        self._closed = False
        self._begin("ab" if append else "wb")

    def record(self, decision: Decision, state: State) -> None:
        """Append one tick."""
        if self._closed:
            raise ValueError(f"{self.path} was closed: the line is not written")
        line = _line(Entry(decision=decision, state=state))
        full = self._max_bytes is not None and self._size + len(line) > self._max_bytes
        if full and self._size > self._head:
            self._rotate()
        keep_arrivals(self.path, decision.seen)
        self._write(line)
        self._state = state

    def close(self) -> None:
        """Close the file; further calls do nothing, and no more lines are taken."""
        self._closed = True
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, how: str) -> None:
        self._file = self.path.open(how, buffering=0)
        self._size = self._head = self._file.seek(0, os.SEEK_END)
        if self._size == 0:
            self._write(_line(replace(self._header, state=self._state)))
            self._head = self._size

    def _rotate(self) -> None:
        self._file.close()
        names = set_aside(self.path, self._keep)
        self._begin("wb")
        forget_arrivals(self.path, names)

    def _write(self, line: bytes) -> None:
        if self._file.closed and not self._closed:  # a rotation failed half-way
            self._begin("ab")
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            if len(rest) < len(line):
                self._file.truncate(self._size)
                self._file.seek(self._size)
            raise
        self._size += len(line)


def set_aside(path: Path, keep: int) -> list[Path]:
    """Rename a journal to ``<name>.1`` and the older ones up; the oldest goes. Return all names."""
    names = [path, *(path.with_name(f"{path.name}.{n}") for n in range(1, keep + 1))]
    names[-1].unlink(missing_ok=True)
    for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
        if newer.exists():
            newer.replace(older)
    return names


def read(path: Path, *, arrivals: bool = True) -> tuple[Header, list[Entry]]:
    """A journal as it was written, also while it is being written.

    A torn last line (a crash, or one on its way) is left out; others are errors.

    arrivals: whether to read the windows of single arrivals that lie beside it
    """
    try:
        # Bytes: a torn line may end inside a character, and text has more kinds of line ends.
        lines = [line for line in path.read_bytes().split(b"\n") if line]
    except FileNotFoundError:
        raise InputError(f"no journal at {path}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not a journal") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not lines:
        raise InputError(f"{path} is empty; a journal begins with a header line")
    _refuse_others(path, lines[0])
    documents = list(_documents(path, lines))
    for document in documents[1:]:
        if arrivals:
            put_arrivals_back(_unrotated(path), document)
        else:
            for operator in _operators(document):
                operator.pop("arrivals", None)
        as_written_now(document)
    header = from_json(Header, documents[0])
    if header.format != FORMAT:
        raise InputError(f"{path} has journal format {header.format}, this version reads {FORMAT}")
    return header, [_entry(path, number, d) for number, d in enumerate(documents[1:], 2)]


def _entry(path: Path, number: int, document: Any) -> Entry:
    if not isinstance(document, dict) or not {"decision", "state"} <= document.keys():
        raise InputError(f"{path}, line {number}: not a decision but {described(document)}")
    try:
        return entry_of(document)
    except (InputError, TypeError, AttributeError, KeyError) as error:
        raise InputError(f"{path}, line {number}: not a decision: {error}") from error


def _refuse_others(path: Path, first: bytes) -> None:
    """Say what a file is whose first line is no header of a journal."""
    try:
        document = json.loads(first)
    except (ValueError, RecursionError) as error:
        found = f"not JSON ({_problem(error)}) but {shown(first)}"
    else:
        if isinstance(document, dict) and isinstance(document.get("policy"), str):
            return
        found = described(document)
    raise InputError(
        f"{path} is no journal: line 1: {found}. A journal begins with a line that names the "
        'policy: {"policy": …}'
    )


def described(document: Any) -> str:
    """A JSON document of something else, in a few words."""
    if not isinstance(document, dict):
        return f"a JSON {type(document).__name__}"
    if "Event" in document:
        return f"{document['Event']!s:.60} of a Spark event log"
    if {"batchId", "runId"} <= document.keys():
        return "the progress of a streaming query"
    if {"decision", "state"} <= document.keys():
        return "a decision without the header before it"
    keys = ", ".join(repr(str(key)) for key in list(document)[:5])
    return f"a JSON object with {keys or 'nothing in it'}"


def shown(line: bytes) -> str:
    """The beginning of a line that is no JSON."""
    if any(byte < 9 for byte in line[:200]) or not line[:200].isascii():
        return "binary data"
    text = line[:40].decode().strip()
    return repr(text + "…" if len(line) > 40 else text)


def entry_of(document: Any) -> Entry:
    """One line of a journal, of this version or of 0.1, which wrote no outcome."""
    entry = from_json(Entry, document)
    if "outcome" in document["decision"]:
        return entry
    return replace(entry, decision=_with_outcome(entry.decision))


def as_written_now(document: Any) -> None:
    """Change an entry of version 0.1 to what this one would have written.

    It did not say what execution it saw: only micro-batches had queries. And where it could not
    tell the fixed cost of batches, what it called cost per record was busy seconds over rows.
    """
    seen = document.get("decision", {}).get("seen", {}) if isinstance(document, dict) else {}
    queries = seen.get("queries")
    if not queries:
        return
    seen.setdefault("execution", "micro-batch")
    for query in queries.values() if isinstance(queries, dict) else ():
        if isinstance(query, dict) and "cost_per_record" in query and "cost_fixed" not in query:
            query.setdefault("busy_per_record", query.pop("cost_per_record"))


def replay(
    entries: list[Entry], policy: Policy, guards: Guards, seed: int, state: State | None = None
) -> list[Decision]:
    """What a policy says to the snapshots of a journal; nothing is applied.

    The journal's own actions have shaped its snapshots, so the cool-down starts where they were.

    state: of its header, to go on from there with the same policy
    """
    state = state if state is not None else State(memory=policy.start(seed))
    decisions = []
    for entry in entries:
        decision, state = plan(policy, guards, entry.decision.seen, state)
        state = replace(state, last_action=entry.state.last_action)
        decisions.append(decision)
    return decisions


def _with_outcome(decision: Decision) -> Decision:
    """A decision of 0.1 with what became of it. For journals of 0.1 only.

    0.1 said it in sentences, so this is the one place where they are read.
    """
    last = decision.notes[-1] if decision.notes else ""
    if last.endswith(_IGNORED):
        last = ""  # of a reading, whatever its operator is called
    reason = decision.proposal.reason
    faults: tuple[Fault, ...] = ()
    if reason.startswith("no change: the policy raised "):
        faults = ("policy-raised",)
    elif reason.startswith("no change: the policy's proposal is unusable, "):
        faults = ("proposal-unusable",)
    bound: str = "policy" if faults else ""
    if decision.effects:
        bound = decision.effects[-1].guard
    elif reason.startswith("no change: asleep, "):
        bound = "sleep"
    outcome: Outcome = "failed" if faults else "advised" if decision.changes else "held"
    why = ""
    if decision.applied:
        outcome = "acted"
    elif last.startswith(("frozen: ", "not done: frozen: ")):
        outcome, bound, why = "frozen", "kill-switch", last.partition("frozen: ")[2]
    elif last.startswith("not done: "):
        outcome, bound, why = "refused", "engine", last.removeprefix("not done: ")
    elif not decision.targets:
        outcome, bound = "unusable", "sanity"
    if last.startswith("not done: "):
        faults = (*faults, "engine-refused")
    return replace(decision, outcome=outcome, bound=bound, faults=faults, why=why)


def _unrotated(path: Path) -> Path:
    """The name that a journal had before it was rotated."""
    return path.with_suffix("") if path.suffix[1:].isdecimal() else path


def _line(value: Header | Entry) -> bytes:
    text = json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))
    return (text + "\n").encode("utf-8", "replace")  # half a surrogate pair has no bytes


def _documents(path: Path, lines: list[bytes]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines) and number > 1:
                return
            raise InputError(f"{path}, line {number}: not JSON ({_problem(error)})") from None


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else "not UTF-8"


ARRIVALS = ".arrivals"
_DIGEST = re.compile(rb'"arrivals":\{"digest":"([0-9a-f]{32})"')


def arrivals_folder(journal: Path) -> Path:
    """Where the windows of a journal, and of those that it was rotated from, are."""
    return journal.with_name(journal.name + ARRIVALS)


def keep_arrivals(journal: Path, seen: Snapshot) -> None:
    """Write the windows of a snapshot that are not there yet, each whole or not at all."""
    for operator in seen.operators.values():
        window = operator.arrivals
        if window is None:
            continue
        path = arrivals_folder(journal) / window.digest
        if path.exists():
            continue
        with atomic(path) as partial:
            partial.write_bytes(zlib.compress(window.intervals.astype("<f8").tobytes(), 1))


def put_arrivals_back(journal: Path, document: Any) -> None:
    """Replace the digests in an entry of a journal by the windows."""
    for operator in _operators(document):
        kept = operator.get("arrivals")
        if isinstance(kept, dict):
            path = arrivals_folder(journal) / str(kept.get("digest"))
            operator["arrivals"] = _read_arrivals(path, float(kept.get("each", 1.0)))


def forget_arrivals(journal: Path, journals: Iterable[Path]) -> None:
    """Remove windows that none of these journals names."""
    folder = arrivals_folder(journal)
    if not folder.is_dir():
        return
    named = {
        digest.decode()
        for path in journals
        if path.exists()
        for digest in _DIGEST.findall(path.read_bytes())
    }
    for path in folder.iterdir():
        if path.name not in named:
            path.unlink()


def _read_arrivals(path: Path, each: float) -> Arrivals:
    import numpy as np  # here: most commands have no use for it

    try:
        values = np.frombuffer(zlib.decompress(path.read_bytes()), dtype="<f8")
    except (OSError, zlib.error, ValueError):
        raise InputError(
            f"the window of arrivals {path} that a journal names is not there or not whole; it "
            "belongs beside the journal"
        ) from None
    return Arrivals(values, each)


def _operators(document: Any) -> Iterator[dict[str, Any]]:
    seen = document.get("decision", {}).get("seen", {}) if isinstance(document, dict) else {}
    for operator in seen.get("operators", {}).values():
        if isinstance(operator, dict):
            yield operator
