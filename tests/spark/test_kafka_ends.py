"""What Kafka has by now, asked beside the query: bounded, and never an error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.batches.progress import count_of, partitions_of
from penstock.spark.read import kafka
from penstock.spark.read.kafka import KafkaEnds, Partitions
from penstock.spark.read.underway import underway_of
from tests.fakes.waiting import until

PLACES = {"t": ("0", "1")}


@dataclass
class Consumer:
    """Answers what it is told to; a question waits until it may be answered."""

    answers: list[int | Exception]
    may_answer: threading.Event = field(default_factory=threading.Event)
    asked: list[Partitions] = field(default_factory=list)
    closed: bool = False
    threads: set[int] = field(default_factory=set)

    def __call__(self, partitions: Partitions) -> int:
        self.threads.add(threading.get_ident())
        self.asked.append(partitions)
        assert self.may_answer.wait(60.0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


def prompt(*answers: int | Exception) -> Consumer:
    found = Consumer(list(answers))
    found.may_answer.set()
    return found


def ask(ends: KafkaEnds, run: str = "run-1", number: int = 0) -> int | None:
    return ends.newest(run, number, None, PLACES)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine may be slow to hand a question to a thread."""
    monkeypatch.setattr(kafka, "WAIT", 60.0)
    monkeypatch.setattr(kafka, "WAIT_FOR_ALL", 60.0)


@pytest.mark.usefixtures("patient")
def test_every_look_asks_again_by_one_thread_that_is_not_ours() -> None:
    consumer = prompt(10, 25)
    ends = KafkaEnds(lambda source: consumer)
    assert [ask(ends), ask(ends)] == [10, 25]
    assert consumer.asked == [PLACES, PLACES]
    assert len(consumer.threads) == 1 and threading.get_ident() not in consumer.threads
    assert ends.newest("run-1", 0, None, {}) is None  # nothing was planned yet
    ends.close()
    until("its consumer is closed", lambda: consumer.closed)


def test_a_slow_answer_is_not_waited_for_and_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka, "WAIT", 0.0)
    consumer = Consumer([10, 25])
    ends = KafkaEnds(lambda source: consumer)
    assert ask(ends) is None
    until("it was asked", lambda: bool(consumer.asked))
    assert [ask(ends), ask(ends)] == [None, None]
    assert len(consumer.asked) == 1  # one question at a time
    monkeypatch.setattr(kafka, "WAIT", 60.0)
    monkeypatch.setattr(kafka, "WAIT_FOR_ALL", 1e9)
    consumer.may_answer.set()
    until("it answers in time again", lambda: ask(ends) == 25)
    ends.close()


def test_all_sources_together_are_waited_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "WAIT_FOR_ALL", 0.0)
    consumer = Consumer([10] * (kafka.MOST_SOURCES + 1))
    ends = KafkaEnds(lambda source: consumer)
    assert [ask(ends, number=n) for n in range(kafka.MOST_SOURCES + 1)] == [None] * 21
    consumer.may_answer.set()
    ends.close()


@pytest.mark.usefixtures("patient")
def test_trouble_is_said_once_and_left_alone_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made: list[Consumer] = []

    def connect(source: Any) -> Consumer:
        made.append(prompt(RuntimeError("TimeoutException: no broker\n at …")))
        return made[-1]

    ends = KafkaEnds(connect)
    with caplog.at_level(logging.WARNING, "penstock"):
        assert [ask(ends), ask(ends), ask(ends)] == [None, None, None]
        assert len(made) == 1  # not asked again within a minute
        assert made[0].closed
    assert [r.getMessage() for r in caplog.records] == [
        "Kafka does not tell its newest offsets, what has come is estimated: "
        "TimeoutException: no broker"
    ]
    ends.close()


@pytest.mark.usefixtures("patient")
def test_sources_of_queries_that_ended_are_let_go() -> None:
    consumers = {"run-1": prompt(1), "run-2": prompt(2, 3)}
    order = iter(consumers.values())
    ends = KafkaEnds(lambda source: next(order))
    assert (ask(ends, "run-1"), ask(ends, "run-2")) == (1, 2)
    ends.retain({"run-2"})
    until("the first is closed", lambda: consumers["run-1"].closed)
    assert ask(ends, "run-2") == 3
    assert not consumers["run-2"].closed
    ends.close()


# ---- in a query ---------------------------------------------------------------------------------


def gives(value: Any) -> Callable[..., Any]:
    return lambda *_: value


class Java:
    """An object of the JVM with some methods, each giving one value."""

    def __init__(self, **methods: Any) -> None:
        for name, value in methods.items():
            setattr(self, name, gives(value))


def offsets(text: str | None) -> Java:
    found = Java(isDefined=text is not None, get=Java(json=text))
    return Java(get=found)


def query(end: str | None, start: str | None) -> Any:
    source = Java(getClass=Java(getSimpleName=kafka.KAFKA), toString="KafkaV2[Subscribe[t]]")
    sources = Java(size=1, apply=source)
    context = Java(
        batchId=3, isCurrentBatchConstructed=True, startOffsets=offsets(start),
        endOffsets=offsets(end), latestOffsets=offsets(end), currentTriggerStartTimestamp=5000,
    )  # fmt: skip
    trigger = Java(getClass=Java(getSimpleName="ProcessingTimeTrigger"), intervalMs=0)
    execution = Java(sources=sources, getLatestExecutionContext=context, trigger=trigger)
    found = Java()
    found.id, found.runId, found.name = "i", "run-1", "q"  # type: ignore[attr-defined]
    found._jsq = Java(streamingQuery=execution)  # type: ignore[attr-defined]
    return found


@pytest.mark.usefixtures("patient")
def test_a_query_on_kafka_tells_what_came_since_its_batch_was_planned() -> None:
    consumer = prompt(1900)
    ends = KafkaEnds(lambda source: consumer)
    running = query(end='{"t":{"0":700,"1":800}}', start='{"t":{"0":100,"1":100}}')
    at = underway_of([running], {"run-1": 2}, ends)["run-1"]
    assert at.newest == (1900,)
    assert consumer.asked == [PLACES]
    assert at.batch is not None
    assert [(s.rows, s.taken) for s in at.batch.sources] == [(1300, 1500)]
    assert underway_of([running], {"run-1": 2})["run-1"].newest == (None,)  # nobody to ask
    ends.close()


@pytest.mark.parametrize(
    ("offset", "places", "records"),
    [
        ('{"a":{"0":5},"b":{"1":7,"2":0}}', {"a": ("0",), "b": ("1", "2")}, 12),
        ('{"offset":42}', {}, 42),
        ("12", {}, 12),
        ("not JSON", {}, None),
        (None, {}, None),
    ],
)
def test_partitions_are_read_from_offsets_that_have_them(
    offset: str | None, places: Partitions, records: int | None
) -> None:
    assert partitions_of(offset) == places
    assert count_of(offset) == records
