"""Journals of version 0.1 are read as they were meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.history.journal import Entry, Header, Journal, read, replay
from penstock.policies import create
from penstock.simulator.microbatch import MicroBatchEngine, Profile
from penstock.workloads.patterns import Cosine
from tests.fakes.microbatch_examples import EXECUTOR, counting

GUARDS = Guards(minimum=1, maximum=12, cool_down=30.0)


def journalled(policy: str, path: Path) -> None:
    """The journal of a policy on a query in micro-batches."""
    profile = Profile(version=1, queries=(counting(),), executor=EXECUTOR)
    load = Cosine(low=300.0, high=6000.0, period=300.0)
    engine = MicroBatchEngine(profile, load, seconds=400.0, start=2, limits=(1, 12), seed=3)
    header = Header(policy=policy, guards=GUARDS, mode="act", seed=3, period=15.0)
    with Journal(path, header) as journal:
        loop = Loop(engine, create(policy), GUARDS, mode="act", seed=3, record=journal.record)
        engine.advance(30.0)
        while engine.advance(15.0) and engine.now < 400.0:
            loop.tick()


def as_of_0_1(path: Path) -> None:
    """The journal as version 0.1 wrote it, which did not say what kind of execution it saw."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[1:]:
        seen = line["decision"]["seen"]
        assert seen.pop("execution") == "micro-batch"
        assert seen["queries"]
        for query in seen["queries"].values():
            ratio = query.pop("busy_per_record")
            if "cost_fixed" not in query:  # then it stood where the cost of a record does
                query["cost_per_record"] = ratio
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _costs(entry: Entry) -> tuple[float | None, float | None, float | None]:
    (query,) = entry.decision.seen.queries.values()
    return query.cost_fixed, query.cost_per_record, query.busy_per_record


@pytest.mark.parametrize("policy", ["ds2", "gesscale", "gesscale+", "mead", "mead+"])
def test_a_journal_of_0_1_replays_to_the_same_decisions(policy: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journalled(policy, path)
    _, now = read(path)
    as_of_0_1(path)
    header, old = read(path)
    assert len(old) > 20
    assert [_costs(e) for e in old] == [
        (fixed, each, ratio if fixed is None else None) for fixed, each, ratio in map(_costs, now)
    ]
    assert {fixed is None for fixed, _, _ in map(_costs, now)} == {True, False}
    again = replay(old, create(policy), GUARDS, header.seed)
    assert [d.proposal for d in again] == [e.decision.proposal for e in old]
    assert [d.changes for d in again] == [e.decision.changes for e in old]


def test_a_journal_without_queries_was_of_records_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journalled("static", path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[1:]:
        del line["decision"]["seen"]["execution"], line["decision"]["seen"]["queries"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, entries = read(path)
    assert {e.decision.seen.execution for e in entries} == {"continuous"}
