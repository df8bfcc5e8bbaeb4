"""Files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file has its own name when the block ends without an error.

    A crash leaves ``<name>.part`` behind and whatever ``path`` held before; the next writer
    overwrites the part. The folder is made if it is missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.part")
    yield partial
    partial.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, whole or not at all."""
    with atomic(path) as partial:
        partial.write_text(text, encoding="utf-8")
