"""Files of ``StreamingQueryProgress``: one JSON document after the other, as queries report them.

What a listener or ``query.recentProgress`` writes down: one document per line, indented ones, or
one list of all. They tell of batches only: nothing of stages, tasks and executors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.batches.progress import batch_of
from penstock.batches.values import Batch
from penstock.core.errors import InputError
from penstock.history.plausible import ODD, check_batch
from penstock.history.profiling.experiment import Detail, detail_of
from penstock.history.recording import RecordedApplication, RecordedQuery
from penstock.workloads.rate_files.text import read_text

KIND = "file of progress documents"
NEEDED = ("runId", "batchId", "timestamp")


def is_progress_file(path: Path) -> bool:
    """Whether the first document of a file looks like the progress of a query."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            head = file.read(1 << 16)
    except (OSError, UnicodeDecodeError):
        return False
    return head.lstrip()[:1] in ("{", "[") and '"batchId"' in head and '"runId"' in head


def read_progress_file(path: Path) -> RecordedApplication:
    """Read a file; the last document may be half written, which is told."""
    batches: dict[str, dict[int, Batch]] = {}
    details: dict[str, dict[int, Detail]] = {}
    rests: dict[str, list[Batch]] = {}
    remarks: list[str] = []
    again = 0
    for line, document in _documents(path, remarks):
        batch = _batch(path, line, document)
        if batch.idle:
            rests.setdefault(batch.run_id, []).append(batch)
            continue
        kept = batches.setdefault(batch.run_id, {})
        again += batch.id in kept
        kept[batch.id] = batch
        details.setdefault(batch.run_id, {})[batch.id] = detail_of(document)
    if not batches:
        raise InputError(f"{path}: has no progress of any query; nothing to learn from")
    if again:
        remarks.append(f"{again} batches are there twice; the last of each counts")
    queries = tuple(
        RecordedQuery(
            name=next(reversed(kept.values())).query,
            run_id=run,
            batches=tuple(sorted([*kept.values(), *rests.get(run, ())], key=lambda b: b.start)),
            details=details[run],
        )
        for run, kept in batches.items()
    )
    return RecordedApplication(
        source=str(path),
        id="",
        name=queries[-1].name,
        executors=(),
        queries=queries,
        remarks=tuple(remarks),
        kind=KIND,
    )


def _documents(path: Path, remarks: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The documents of a file with the lines on which they begin."""
    text = read_text(path)
    decoder = json.JSONDecoder()
    at, line = 0, 1
    while True:
        begin = at
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        line += text.count("\n", begin, at)
        if at == len(text):
            return
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if text[at] in "{[" and "\n{" not in text[at + 1 :]:  # nothing follows it
                remarks.append(f"line {line}: half a document at the end was left out")
                return
            raise InputError(
                f"{path}, line {line}: {text[at : at + 40]!r} is no JSON document; remove it, or "
                "give a file of StreamingQueryProgress documents"
            ) from None
        for document in found if isinstance(found, list) else [found]:
            yield line, document
        line += text.count("\n", at, end)
        at = end


def _batch(path: Path, line: int, document: Any) -> Batch:
    where = f"{path}, line {line}"
    if not isinstance(document, dict) or any(name not in document for name in NEEDED):
        raise InputError(
            f"{where}: {json.dumps(document)[:60]} is no progress of a query: it needs "
            f"{', '.join(NEEDED)}"
        )
    try:
        batch = batch_of(document)
        check_batch(batch)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except ODD as error:
        raise InputError(
            f"{where}: is no progress as Spark writes it ({repr(error)[:80]}); remove it"
        ) from None
    if batch.phases and "addBatch" not in batch.phases and not batch.rows:
        return batch.idle_at(batch.start)  # so says Spark before 3.5 that there is nothing to do
    return batch
