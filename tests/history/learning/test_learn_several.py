"""Two queries on the same executors: each has its own costs, both one executor."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.errors import NotReady
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.history.journal import Header, Journal
from penstock.history.learning.learn import Learned, learn
from penstock.history.recorded_journal import read_recorded_journal
from penstock.history.recording import RecordedApplication, RecordedQuery
from penstock.policies import DS2
from penstock.simulator.microbatch import MicroBatchEngine
from penstock.workloads.patterns import Cosine
from tests.fakes.microbatch_examples import pair

SECONDS = 900.0


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Learned, Learned]:
    """From what the engine did, and from the journal of advice beside it."""
    loads = {"bids": Cosine(low=200.0, high=1500.0, period=300.0),
             "people": Cosine(low=20.0, high=150.0, period=200.0)}  # fmt: skip
    engine = MicroBatchEngine(pair(), loads, seconds=SECONDS, start=3, seed=2)
    path = Path(tmp_path_factory.mktemp("pair")) / "decisions.jsonl"
    guards = Guards(maximum=8)
    with Journal(path, Header(policy="ds2", guards=guards, period=15.0)) as journal:
        loop = Loop(engine, DS2(), guards, record=journal.record)
        for _ in range(int(SECONDS / 15.0)):
            engine.advance(15.0)
            try:
                loop.tick()
            except NotReady:
                continue
    engine.finish()
    record = engine.record()
    queries = tuple(
        RecordedQuery(name=name, run_id=name, batches=batches, stages=record.stages[name])
        for name, batches in record.batches.items()
    )
    told = RecordedApplication(
        source="engine", id="", name="pair", executors=record.executors, queries=queries
    )
    return learn(told), learn(read_recorded_journal(path))


def test_each_query_has_its_own_costs(both: tuple[Learned, Learned]) -> None:
    for found in both:
        counts, joins = found.profile.queries
        assert (counts.name, joins.name) == ("counts", "joins")
        assert counts.source_names == ("bids",) and set(joins.source_names) == {"bids", "people"}
        assert counts.stages[0].per_record == pytest.approx(4e-4, rel=0.1)
        assert len(joins.stages) == 3 and joins.stages[2].upstream == ("read-1", "read-2")
        assert "counts/read.per_record" in found.profile.errors
        assert "joins/planning" in found.profile.errors
        notes = "\n".join(found.profile.notes)
        assert "several queries share the executors" in notes
        assert "seen at one size only, 3 executors" in notes


def test_a_stream_that_both_read_counts_once(both: tuple[Learned, Learned]) -> None:
    for found in both:
        assert set(found.demand) == {"bids", "people"}
        assert found.demand["bids"].mean == pytest.approx(850.0, rel=0.03)
        assert found.demand["people"].mean == pytest.approx(85.0, rel=0.06)
        assert found.executors.counts == (3,)
