"""Windows of arrivals beside a journal: a file each, named by digest."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from penstock.core.arrivals import Arrivals
from penstock.core.errors import InputError
from penstock.core.model import Snapshot

SUFFIX = ".arrivals"
_DIGEST = re.compile(rb'"arrivals":\{"digest":"([0-9a-f]{32})"')


def folder_of(journal: Path) -> Path:
    """Where the windows of a journal, and of those that it was rotated from, are."""
    return journal.with_name(journal.name + SUFFIX)


def keep(journal: Path, seen: Snapshot) -> None:
    """Write the windows of a snapshot that are not there yet, each whole or not at all."""
    for operator in seen.operators.values():
        window = operator.arrivals
        if window is None:
            continue
        path = folder_of(journal) / window.digest
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.part")
        partial.write_bytes(zlib.compress(window.intervals.astype("<f8").tobytes(), 1))
        partial.replace(path)


def put_back(journal: Path, document: Any) -> None:
    """Replace the digests in an entry of a journal by the windows."""
    for operator in _operators(document):
        kept = operator.get("arrivals")
        if isinstance(kept, dict):
            path = folder_of(journal) / str(kept.get("digest"))
            operator["arrivals"] = _read(path, float(kept.get("each", 1.0)))


def forget(journal: Path, journals: Iterable[Path]) -> None:
    """Remove windows that none of these journals names."""
    folder = folder_of(journal)
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


def _read(path: Path, each: float) -> Arrivals:
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
