"""Files of progress documents: as a listener, a notebook or a log writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import InputError
from penstock.history.progress_file import is_progress_file, read_progress_file


def document(batch: int, rows: int = 100, run: str = "run-1", **more: Any) -> dict[str, Any]:
    return {
        "runId": run,
        "name": "orders",
        "batchId": batch,
        "timestamp": f"2026-11-18T10:{batch // 60:02}:{batch % 60:02}.000Z",
        "batchDuration": 700,
        "numInputRows": rows,
        "sources": [{"description": "k", "numInputRows": rows}],
        **more,
    }


DOCUMENTS = [document(0), document(1, 200), document(2, 300)]
WAYS = {
    "a line each": "\n".join(map(json.dumps, DOCUMENTS)) + "\n",
    "indented": "\n\n".join(json.dumps(d, indent=2) for d in DOCUMENTS),
    "one list": json.dumps(DOCUMENTS),
    "commas between": ",\n".join(map(json.dumps, DOCUMENTS)),
    "with a mark of order": "\ufeff" + "\r\n".join(map(json.dumps, DOCUMENTS)),
}


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS)
def test_ways_to_write_them(text: str, tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    path.write_text(text, encoding="utf-8")
    assert is_progress_file(path)
    found = read_progress_file(path)
    assert (found.name, found.executors, found.remarks) == ("orders", (), ())
    assert [(b.id, b.rows) for b in found.query("orders").batches] == [(0, 100), (1, 200), (2, 300)]


def test_runs_and_repetitions(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    some = [*DOCUMENTS, document(1, 250), document(0, 5, run="run-2")]
    path.write_text("\n".join(map(json.dumps, some)))
    found = read_progress_file(path)
    assert [len(q.batches) for q in found.queries] == [3, 1]
    assert found.query("run-1").batches[1].rows == 250
    assert found.query("orders").run_id == "run-2"  # the last run of that name
    assert found.remarks == ("1 batches are there twice; the last of each counts",)
    with pytest.raises(InputError, match="did you mean 'orders'"):
        found.query("order")


def test_half_a_document_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    path.write_text(WAYS["a line each"][:-30])
    found = read_progress_file(path)
    assert len(found.queries[0].batches) == 2
    assert found.remarks == ("line 3: half a document at the end was left out",)


LINES = WAYS["a line each"].splitlines(keepends=True)
REFUSED = {
    "empty": ("\n", "has no progress of any query"),
    "text": (
        "26/11/18 INFO started\n",
        "line 1: '26/11/18 INFO started.* is no JSON document|no pro",
    ),
    "damaged": (LINES[0] + LINES[1][:50] + "\n" + LINES[2], "line 2: .* is no JSON document"),
    "other documents": ('{"a": 1}\n', 'line 1: {"a": 1} is no progress of a query: it needs runId'),
    "numbers": ("1\n2\n", "line 1: 1 is no progress of a query"),
    "a time that is none": (
        json.dumps(document(0) | {"timestamp": "noon"}),
        "line 1: is no progress as Spark writes it",
    ),
    "deep": ("[" * 100_000, "has no progress of any query"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_progress_file(path)
    assert "progress.json" in str(caught.value)


def test_what_looks_like_one(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"Event":"SparkListenerLogStart"}')
    assert not is_progress_file(other) and not is_progress_file(tmp_path / "nothing")
