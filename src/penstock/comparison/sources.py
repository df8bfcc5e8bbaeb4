"""Whatever a user has of an application, as a recording: a journal, a log, a file, an address."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from penstock.core.errors import InputError, PenstockError
from penstock.history.event_log import OTHER_CODECS, is_event_log, read_event_log
from penstock.history.journal import described, shown
from penstock.history.learning.durations import refuse_sizes, with_stages
from penstock.history.progress_file import is_progress_file, read_progress_file
from penstock.history.recorded_journal import read_recorded_journal
from penstock.history.recording import RecordedApplication

JOURNAL = "decisions.jsonl"  # of a run's folder
HEAD = 1 << 16  # bytes that tell what a file is
LISTED = 5  # names of a folder that an error repeats
WAYS = (
    "give a journal (decisions.jsonl), the folder of a run, an event log of Spark, a file of "
    "StreamingQueryProgress documents, or the address of a Spark UI or History Server"
)

Progress = Callable[[int, int], None]  # done, and of all: bytes, or documents of an address


def read_source(
    source: str | Path,
    *,
    app: str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    progress: Progress = lambda done, total: None,
) -> RecordedApplication:
    """The application that a file, a folder or an address tells of.

    app: its id, where an address knows several
    executors, cores, partitions: what it ran on, for files of progress documents, which do not
        tell; without ``executors`` these come without stages
    progress: is called with what has been read, and of how much
    """
    text = str(source)
    if text.startswith(("http://", "https://")):
        from penstock.spark.foreign.recorded import read_address

        refuse_sizes(text, executors=executors, cores=cores, partitions=partitions)
        return read_address(text, app=app, progress=progress)
    if app is not None:
        raise InputError(
            f"--app {app} chooses among the applications of an address; {text} is none: leave it "
            "out, or give http://HOST:18080"
        )
    path = Path(text)
    try:
        return _from_path(
            path, executors=executors, cores=cores, partitions=partitions, progress=progress
        )
    except PenstockError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _from_path(
    path: Path,
    *,
    executors: int | None,
    cores: int | None,
    partitions: int | None,
    progress: Progress,
) -> RecordedApplication:
    if path.is_symlink() and not path.exists():
        _refuse_link(path)
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder; {WAYS}")
    if not (path.is_dir() or path.is_file()):
        raise InputError(f"{path}: is no ordinary file; {WAYS}")
    first = b"" if path.is_dir() else _first_line(path)
    log, journal = is_event_log(path) or path.suffix in OTHER_CODECS, _names_policy(first)
    if not (path.is_dir() or log or journal) and is_progress_file(path):
        found = read_progress_file(path)
        if executors is None:
            return found
        return with_stages(found, executors=executors, cores=cores, partitions=partitions)
    refuse_sizes(path, executors=executors, cores=cores, partitions=partitions)
    if log:
        return read_event_log(path, progress=progress)
    if path.is_dir():
        return _from_folder(path, progress)
    if journal:
        return read_recorded_journal(path, progress=progress)
    raise _unknown(path, first)


def _from_folder(path: Path, progress: Progress) -> RecordedApplication:
    if (path / JOURNAL).is_file():
        return read_recorded_journal(path / JOURNAL, progress=progress)
    names = sorted(p.name for p in path.iterdir())
    logs = [name for name in names if is_event_log(path / name)]
    if logs:
        listed = "".join(f"\n  {path / name}" for name in logs[:LISTED])
        more = f"\n  … and {len(logs) - LISTED} more" if len(logs) > LISTED else ""
        raise InputError(f"{path}: holds {len(logs)} event logs; give one of them:{listed}{more}")
    listed = ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
    raise InputError(
        f"{path}: a folder with {listed or 'nothing in it'}: neither the folder of a run "
        f"({JOURNAL}) nor an event log (events_1_…); {WAYS}"
    )


def _refuse_link(path: Path) -> None:
    try:
        path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "it leads to itself"
        raise InputError(f"{path}: is a link that leads nowhere ({why}); {WAYS}") from None


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(HEAD)


def _names_policy(first: bytes) -> bool:
    """Whether a line is the header of a journal, also one that was reformatted."""
    if first.startswith(b'{"policy"'):
        return True  # perhaps longer than what was read of it
    try:
        document = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and isinstance(document.get("policy"), str)


def _unknown(path: Path, first: bytes) -> InputError:
    """Say what a file is that nothing here reads."""
    if not first:
        return InputError(f"{path}: is empty; {WAYS}")
    try:
        document = json.loads(first)
    except (ValueError, RecursionError):
        if _is_csv(first):
            header = first.decode("utf-8", "replace").strip()[:60]
            return InputError(
                f"{path}, line 1: {header!r} is the header of a table: traffic, which says nothing "
                f"of what batches cost. penstock compare --trace {path} replays it"
            )
        if first[:2] == b"\x1f\x8b":
            return InputError(f"{path}: is compressed by gzip; unpack it first (gunzip)")
        return InputError(f"{path}, line 1: {shown(first)} is no recording; {WAYS}")
    return InputError(f"{path}, line 1: {described(document)} is no recording; {WAYS}")


def _is_csv(first: bytes) -> bool:
    """Whether a line looks like the names of columns."""
    try:
        text = first.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return False
    cells = [cell.strip() for mark in ",;\t" for cell in text.split(mark) if mark in text]
    return len(cells) > 1 and text.isprintable() and text[:1] not in "{[<"
