"""What a running query is told to take at most, read from what it notes of its sources."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.batches.values import Admission
from penstock.spark.read.underway import underway_of


def limit(kind: str, **methods: Any) -> Any:
    """A limit as the JVM shows it."""
    calls = {name: lambda value=value: value for name, value in methods.items()}
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind), **calls)


def query(*limits: Any, notes: bool = True) -> Any:
    """A query of which nothing runs, with sources that have these limits; ``None``: not noted."""
    sources = [
        SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: "S")) for _ in limits
    ]
    noted = {
        id(source): SimpleNamespace(
            isDefined=lambda some=some: some is not None, get=lambda s=some: s
        )
        for source, some in zip(sources, limits, strict=True)
    }

    def unique_sources() -> Any:
        if not notes:
            raise AttributeError("uniqueSources")
        return SimpleNamespace(get=lambda source: noted[id(source)])

    execution = SimpleNamespace(
        sources=lambda: SimpleNamespace(apply=lambda i: sources[i], size=lambda: len(sources)),
        getLatestExecutionContext=lambda: SimpleNamespace(
            batchId=lambda: 0, isCurrentBatchConstructed=lambda: False
        ),
        trigger=lambda: SimpleNamespace(
            getClass=lambda: SimpleNamespace(getSimpleName=lambda: "ProcessingTimeTrigger"),
            intervalMs=lambda: 5000,
        ),
        uniqueSources=unique_sources,
    )
    return SimpleNamespace(
        runId="r", id="i", name="q", _jsq=SimpleNamespace(streamingQuery=lambda: execution)
    )


def python(said: str) -> Any:
    """A limit of a Python source."""
    return limit("PythonStreamingSourceReadLimit", json=said)


ROWS, FILES = limit("ReadMaxRows", maxRows=500), limit("ReadMaxFiles", maxFiles=3)
BYTES, ALL = limit("ReadMaxBytes", maxBytes=10**9), limit("ReadAllAvailable")
LEAST = limit("ReadMinRows", minRows=10)


@pytest.mark.parametrize(
    ("limits", "known"),
    [
        ([ROWS], (Admission(rows=500),)),
        ([FILES], (Admission(files=3),)),
        ([BYTES], (Admission(bytes=10**9),)),
        ([ALL], (Admission(),)),
        ([None], (Admission(),)),
        ([limit("CompositeReadLimit", getReadLimits=[LEAST, ROWS])], (Admission(rows=500),)),
        (
            [limit("CompositeReadLimit", getReadLimits=[FILES, BYTES])],
            (Admission(files=3, bytes=10**9),),
        ),
        ([python('{"_type": "ReadMaxRows", "max_rows": 500}')], (Admission(rows=500),)),
        ([python('{"_type": "ReadAllAvailable"}')], (Admission(),)),
        ([limit("OfTomorrow")], (Admission(),)),
        ([ROWS, ALL], (Admission(rows=500), Admission())),
    ],
)
def test_the_limits_of_a_batch(limits: list[Any], known: tuple[Admission, ...]) -> None:
    (at,) = underway_of([query(*limits)], {}).values()
    assert at.limits == known
    assert at.trigger == 5.0


def test_a_spark_that_notes_nothing_tells_all_else() -> None:
    (at,) = underway_of([query(ROWS, notes=False)], {}).values()
    assert (at.limits, at.trigger) == ((), 5.0)
