"""The folder of a run: what was run, every decision, the measurements, the picture, the page.

::

    runs/<UTC time>-<name>/
        config.json        what was run, with every effective parameter
        decisions.jsonl    the journal (penstock.history.journal)
        metrics.parquet    one row per tick and operator
        report.png         the picture
        report.html        the page

``config.json`` and ``decisions.jsonl`` make a run; the rest can be rebuilt from them.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from penstock.core.errors import InputError
from penstock.core.loop import Decision, State
from penstock.core.model import OperatorSeen
from penstock.history.files import atomic, write_text
from penstock.history.journal import Entry, Header, Journal, read

CONFIG = "config.json"
JOURNAL = "decisions.jsonl"
CELLS = "cells.json"  # of a bench, which has many journals
METRICS = "metrics.parquet"
PICTURE = "report.png"
PAGE = "report.html"
LATEST = "latest"

_SEEN_FIELDS = tuple(f.name for f in fields(OperatorSeen) if f.name != "arrivals")  # numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it was written; ``folder`` is its journal, where there is nothing else."""

    folder: Path
    config: Mapping[str, Any]
    header: Header
    entries: Sequence[Entry]


def create(root: Path, name: str, config: Mapping[str, Any]) -> Path:
    """A new folder under ``root`` with its ``config.json``; never one that exists already."""
    now = datetime.now(UTC)
    stem = f"{now:%Y%m%dT%H%M%SZ}-{_short(name)}"
    document = {"name": name, "created": now.isoformat(timespec="seconds"), **config}
    try:
        root.mkdir(parents=True, exist_ok=True)
        folder = root / stem
        number = 1
        while True:
            try:
                folder.mkdir()
                break
            except FileExistsError:
                number += 1
                folder = root / f"{stem}-{number}"
        _write_json(folder / CONFIG, document)
    except OSError as error:
        raise InputError(
            f"cannot write a run under {root}: {error.strerror}; choose another folder"
        ) from error
    return folder


def check_writable(root: Path) -> None:
    """Fail now rather than after minutes of work if no run can be written under ``root``.

    By trying: permissions do not tell (root may write everywhere, but not into ``/proc``).
    """
    made = [path for path in (root, *root.parents) if not path.exists()]
    try:
        root.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=root):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write a run under {root}: {error.strerror}; choose another folder"
        ) from None
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()


class Recording:
    """A run being written: pass ``record`` to the loop, then ``finish`` its folder."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self.folder = folder
        self.ticks = 0
        self._journal = journal

    def record(self, decision: Decision, state: State) -> None:
        """Append one tick to the journal."""
        self._journal.record(decision, state)
        self.ticks += 1


@contextmanager
def recording(
    root: Path, name: str, config: Mapping[str, Any], header: Header
) -> Iterator[Recording]:
    """A new folder with an open journal; removed again if it fails before the first tick.

    Left by an error or Ctrl-C after the first tick, it is a valid run of what was done till then.
    """
    folder = create(root, name, config)
    run: Recording | None = None
    try:
        with Journal(folder / JOURNAL, header) as journal:
            run = Recording(folder, journal)
            yield run
    except BaseException as error:
        if run is not None and run.ticks:
            _note_end(folder / CONFIG, error)
        elif {path.name for path in folder.iterdir()} <= {CONFIG, JOURNAL}:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def load(folder: Path) -> Run:
    """A run from its folder."""
    if not folder.is_dir():
        raise InputError(f"no run at {folder}; give the folder of a run, or 'latest'")
    missing = [name for name in (CONFIG, JOURNAL) if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder} is not a complete run: {' and '.join(missing)} missing. "
            f"A run needs {CONFIG} and {JOURNAL}; run it again, or copy them back"
        )
    config = read_config(folder / CONFIG)
    path = folder / JOURNAL
    try:
        header, entries = read(path)
    except (InputError, OSError, UnicodeDecodeError, AttributeError, KeyError) as error:
        where = "" if str(path) in str(error) else f"{path}: "
        raise InputError(f"{where}{error}. The run is damaged; run it again") from error
    if not entries:
        raise InputError(
            f"{path} holds no decision: the run ended before its first tick; run it again"
        )
    return Run(folder=folder, config=config, header=header, entries=entries)


def load_journal(path: Path) -> Run:
    """A journal alone, such as one that an Autoscaler writes at this moment."""
    header, entries = read(path)
    if not entries:
        raise InputError(f"{path} holds no decision yet; wait for the first one")
    return Run(folder=path, config={"name": path.name}, header=header, entries=entries)


def find(name: str, root: Path = Path("runs")) -> Path:
    """What a user means: a folder, a journal, the id of a run under ``root``, or ``latest``.

    The journal of a run that is whole stands for its folder.
    """
    if name != LATEST:
        path = Path(name)
        if path.is_file():
            whole = path.name == JOURNAL and (path.parent / CONFIG).is_file()
            return path.parent if whole else path
        return path if path.is_dir() or not (root / name).is_dir() else root / name
    link = root / LATEST
    if link.is_dir():
        return link.resolve()
    runs = sorted(p.parent for name in (JOURNAL, CELLS) for p in root.glob(f"*/{name}"))
    if not runs:
        raise InputError(f"no run under {root.resolve()} yet; `penstock simulate` makes one")
    return runs[-1]


def can_write_metrics() -> bool:
    """Whether pyarrow is installed; a run is whole without its table of measurements."""
    return find_spec("pyarrow") is not None


def write_metrics(folder: Path, entries: Sequence[Entry]) -> Path:
    """``metrics.parquet``: one row per tick and operator; what was not measured is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, whole = ("operator", "pool"), ("slots", "target_slots")
    names = ("time", *texts, *whole, "raw_target", *_SEEN_FIELDS)
    kinds = {**dict.fromkeys(texts, pa.string()), **dict.fromkeys(whole, pa.int64())}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in names])
    rows = [row for entry in entries for row in _rows(entry.decision)]
    path = folder / METRICS
    with atomic(path) as partial:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), partial)
    return path


def point_latest(folder: Path) -> None:
    """Let ``latest`` beside a run point at it, where links are possible."""
    link = folder.parent / LATEST
    if link.exists() and not link.is_symlink():
        return  # someone's own folder of that name
    with suppress(OSError):
        fresh = folder.parent / f".{LATEST}-{folder.name}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(folder.name, target_is_directory=True)
        fresh.replace(link)


def _note_end(path: Path, error: BaseException) -> None:
    """Say in the configuration that a run did not reach its end, and why."""
    why = f"{type(error).__name__}: {error}".rstrip(": ")
    with suppress(OSError, InputError):
        _write_json(path, {**read_config(path), "ended_by": why})


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def _rows(decision: Decision) -> Iterator[dict[str, Any]]:
    seen = decision.seen
    for name, operator in seen.pipeline.operators.items():
        target = decision.targets.get(operator.pool)
        row = {
            "time": seen.time,
            "operator": name,
            "pool": operator.pool,
            "slots": seen.slots(operator.pool),
            "target_slots": target.slots if target else None,
            "raw_target": target.raw if target else None,
        }
        o = seen.operators.get(name)
        yield row | {field: getattr(o, field) if o else None for field in _SEEN_FIELDS}


def read_config(path: Path) -> dict[str, Any]:
    """A ``config.json``, or why it is none."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read as JSON ({error}); restore it or run again"
        ) from None
    if not isinstance(config, dict):
        raise InputError(f"{path} must hold an object, found {config!r:.60}")
    return config


def _short(name: str) -> str:
    """A name that is safe in a path."""
    return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.")[:40] or "run"
