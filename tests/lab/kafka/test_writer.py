"""What one process of the producer hands to the client: its partitions, in order, on time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import EngineError, InputError
from penstock.lab.kafka import writer
from penstock.lab.kafka.producer import NexmarkProducer, Progress
from penstock.lab.kafka.records import encode
from penstock.lab.kafka.writer import SPREAD, TableWriter, Writer
from penstock.lab.proofs.producer import rate_of
from penstock.workloads.nexmark import NexmarkStream, Reading
from penstock.workloads.patterns import Constant

START = 1_700_000_000.0


class FakeClient:
    """Takes records as librdkafka's producer does; acknowledges them when it is flushed."""

    def __init__(self) -> None:
        self.records: dict[int, list[tuple[bytes, int]]] = {}
        self.waiting = 0

    def produce(self, topic: str, value: bytes, *, partition: int, timestamp: int) -> None:
        self.records.setdefault(partition, []).append((value, timestamp))
        self.waiting += 1

    def flush(self, timeout: float) -> int:
        self.waiting = 0
        return 0

    poll = flush

    def __len__(self) -> int:
        return self.waiting


def stream(partitions: int, seconds: float = 2.0) -> NexmarkStream:
    return NexmarkStream(
        pattern=Constant(rps=200.0), start=START, seconds=seconds, partitions=partitions
    )


def table(events: NexmarkStream, following: dict[int, int]) -> TableWriter:
    return TableWriter("t", Reading(stream=events, table="bid"), following)


@given(st.data())
def test_processes_that_start_anywhere_write_each_row_once(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6), "partitions")
    processes = data.draw(st.integers(1, count), "processes")
    events = stream(count)
    total = events.total("bid")
    have = data.draw(st.lists(st.integers(0, 20), min_size=count, max_size=count), "written")
    moments = sorted(data.draw(st.lists(st.floats(0, 3), max_size=3), "looks"))
    client: Any = FakeClient()
    for number in range(processes):
        mine = table(events, {p: have[p] for p in range(count) if p % processes == number})
        sent = 0
        for moment in [*moments, 3.0]:
            for begin, end in mine.blocks(round((START + moment) * 1e6)):
                sent += mine.send(client, begin, end)
        assert mine.blocks(round(events.end * 1e6)) == [] or mine.first >= total
        assert sent == sum(len(client.records.get(p, ())) for p in mine.next)
    values = encode(events.rows("bid", 0, total)).to_pylist()
    times = (events.release_times("bid", 0, total) // 1000).tolist()
    for p in range(count):
        rest = list(zip(values[p::count], times[p::count], strict=True))[have[p] :]
        assert client.records.get(p, []) == rest


@given(st.floats(0, 2.5))
def test_nothing_is_sent_before_its_release(moment: float) -> None:
    events = stream(3)
    client: Any = FakeClient()
    mine = table(events, {0: 0, 1: 0, 2: 0})
    micros = round((START + moment) * 1e6)
    for begin, end in mine.blocks(micros):
        mine.send(client, begin, end)
    sent = sum(map(len, client.records.values()))
    assert sent == int((events.release_times("bid", 0, 400) <= micros).sum())


@pytest.fixture
def run_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A writer over a past stream, in this process; other processes are rows of its board."""

    def run(others: list[float], seconds: float = 2.0) -> tuple[Writer, FakeClient]:
        client = FakeClient()
        monkeypatch.setattr(writer, "producer", lambda *_: client)
        monkeypatch.setattr(writer, "WAIT", 0.0)
        shared = np.zeros((1 + len(others), 2), dtype=np.int64)
        for place, moment in enumerate(others):
            shared[1 + place, 0] = round((START + moment) * 1e6)
        mine = table(stream(4, seconds), {0: 0, 2: 0})
        return Writer([mine], 0, shared, "127.0.0.1:9"), client

    return run


def test_a_writer_alone_writes_all_and_tells_how_far_it_is(run_one: Any) -> None:
    made, client = run_one([])
    made.run()
    assert {p: len(r) for p, r in client.records.items()} == {0: 100, 2: 100}
    assert made.shared.tolist() == [[round((START + 2) * 1e6), 200]]


def test_a_writer_is_never_further_ahead_of_another_than_allowed(
    run_one: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, client = run_one([0.6])
    looks = []

    def wait(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 20:
            made.stopping = True

    monkeypatch.setattr(time, "sleep", wait)
    made.run()
    assert made.shared[0, 0] == round((START + 0.6 + SPREAD) * 1e6)
    newest = max(moment for record in client.records.values() for _, moment in record)
    assert newest <= (START + 0.6 + SPREAD) * 1000


def test_a_record_that_kafka_does_not_take_ends_it(run_one: Any) -> None:
    made, _ = run_one([])

    refused: Any = SimpleNamespace(str=lambda: "too large", topic=lambda: "t")
    made._lost(refused, refused)
    with pytest.raises(EngineError, match="did not take a record of t: too large"):
        made.run()


def test_a_producer_is_done_when_all_is_written() -> None:
    assert not Progress(written=40, released=100, total=200, behind_seconds=1.5).done
    assert Progress(written=200, released=190, total=200, behind_seconds=0.0).done


@pytest.mark.parametrize("processes", [0, 5])
def test_more_processes_than_partitions_are_refused(processes: int) -> None:
    with pytest.raises(InputError, match=f"processes {processes} must be between 1 and 4"):
        NexmarkProducer(stream(4), bootstrap_servers="127.0.0.1:9", processes=processes)


def test_the_rate_leaves_out_the_start_and_the_end() -> None:
    samples = [(0.0, 0), (1.0, 0), (2.0, 1000), (4.0, 5000), (6.0, 9000), (6.1, 9000), (8.0, 9000)]
    assert rate_of(samples) == 2000.0


@pytest.mark.parametrize("samples", [[], [(0.0, 0)], [(0.0, 0), (1.0, 500), (2.0, 500)]])
def test_too_few_events_have_no_rate(samples: list[tuple[float, int]]) -> None:
    with pytest.raises(EngineError, match="too few to tell a rate"):
        rate_of(samples)


def test_the_job_of_a_process_is_plain_json() -> None:
    events = stream(4)
    made = NexmarkProducer(
        events, bootstrap_servers="127.0.0.1:9", columns={"bid": ["price"]}, extra={"k": "v"}
    )
    job = json.loads(json.dumps(made._job("board", {"bid": [1, 2, 3, 4]})))
    (only,) = job["tables"]
    assert Reading.from_options(only["reading"]) == Reading(
        stream=events, table="bid", columns=("price",)
    )
    assert (only["topic"], only["next"], job["extra"]) == ("nexmark-bid", [1, 2, 3, 4], {"k": "v"})
