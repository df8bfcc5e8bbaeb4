"""Windows of arrivals beside a journal: by digest, replayable, gone with the last line."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.model import Arrivals
from penstock.history.journal import Header, Journal, read, replay
from penstock.history.resumption import resume
from penstock.policies import create
from penstock.queueing.map2 import hyperexponential
from penstock.simulator.tuples import TupleEngine, log_analysis

GUARDS = Guards()


def recorded(path: Path, *, max_bytes: int | None = None, keep: int = 4) -> None:
    process = hyperexponential(r2=2.0, low=0.3, gamma=math.exp(-1 / 10)).scaled(0.05)
    times = np.cumsum(process.sample(12_000, np.random.default_rng(0)))
    engine = TupleEngine(log_analysis(0.05), times, window=2_000)
    header = Header(policy="mead", guards=GUARDS, mode="act")
    with Journal(path, header, max_bytes=max_bytes, keep=keep) as journal:
        loop = Loop(engine, create("mead"), GUARDS, mode="act", record=journal.record)
        loop.run(period=60.0, ticks=8)


def test_a_journal_with_arrivals_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    recorded(path)
    header, entries = read(path)
    assert len(entries) == 8 and max(map(len, path.read_bytes().splitlines())) < 5_000
    windows = [e.decision.seen.operators["source"].arrivals for e in entries]
    assert all(isinstance(w, Arrivals) for w in windows) and len({*windows}) == 8
    again = replay(entries, create("mead"), header.guards, header.seed)
    assert [d.proposal for d in again] == [e.decision.proposal for e in entries]
    assert [d.targets for d in again] == [e.decision.targets for e in entries]


@pytest.mark.parametrize("kept", [True, False])
def test_a_journal_with_arrivals_is_gone_on_from(tmp_path: Path, kept: bool) -> None:
    path = tmp_path / "decisions.jsonl"
    recorded(path)
    header, entries = read(path)
    before = path.read_bytes()
    if not kept:  # windows that are lost cost a replay, not the journal
        shutil.rmtree(tmp_path / "decisions.jsonl.arrivals")
    resumed = resume(path, header, now=1e9)
    resumed.journal.close()
    assert resumed.state == entries[-1].state
    assert path.read_bytes() == before


def test_windows_go_with_the_journal_that_names_them(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    recorded(path, max_bytes=6_000, keep=1)
    folder = tmp_path / "decisions.jsonl.arrivals"
    entries = [*read(path)[1], *read(tmp_path / "decisions.jsonl.1")[1]]
    named = {
        window.digest
        for e in entries
        if (window := e.decision.seen.operators["source"].arrivals) is not None
    }
    assert {p.name for p in folder.iterdir()} == named and 0 < len(named) < 8


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_window_that_is_gone_is_said(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "decisions.jsonl"
    recorded(path)
    window = next((tmp_path / "decisions.jsonl.arrivals").iterdir())
    if damage == "missing":
        window.unlink()
    else:
        window.write_bytes(window.read_bytes()[:-9])
    with pytest.raises(InputError, match="not there or not whole"):
        read(path)


def test_equality_is_by_value() -> None:
    one = Arrivals([0.5, 0.25])
    assert one == Arrivals(np.array([0.5, 0.25])) and hash(one) == hash(Arrivals([0.5, 0.25]))
    assert one != Arrivals([0.25, 0.5]) and one != replace_first(one)
    assert one.last(1) == Arrivals([0.25]) and one.last(9) is one
    with pytest.raises(ValueError):
        one.intervals[0] = 1.0


def replace_first(arrivals: Arrivals) -> Arrivals:
    values = arrivals.intervals.copy()
    values[0] += 1.0
    return Arrivals(values)
