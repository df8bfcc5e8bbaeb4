"""Journals that rotate, survive crashes and full disks, and are gone on from."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.history.journal import Header, Journal, read, replay
from penstock.history.resumption import Resumed, resume
from penstock.policies import create, parameters_of
from tests.fakes.scenarios import healthy, with_all
from tests.fakes.spark import FakeSession, look, looks, played

POLICY = create("hpa-cpu", {"window": 60.0})
HEADER = Header(policy="hpa-cpu", parameters=parameters_of(POLICY), mode="act", period=15.0)


def write(journal: Journal, count: int, state: State | None = None, start: int = 0) -> State:
    """``count`` decisions of a policy that remembers, every 15 s from time 1000 on."""
    state = state or State(memory=POLICY.start(0))
    for i in range(start, start + count):
        seen = with_all(healthy(time=1000.0 + 15 * i), cpu=0.3 + 0.1 * (i % 5))
        decision, state = plan(POLICY, Guards(), seen, state)
        journal.record(decision, state)
    return state


def times(path: Path) -> list[float]:
    return [entry.decision.seen.time for entry in read(path)[1]]


def resumed(path: Path, header: Header = HEADER, now: float = 1e6, **kw: Any) -> Resumed:
    found = resume(path, header, now=now, **kw)
    found.journal.close()
    return found


def test_it_rotates_by_size_and_each_file_replays_on_its_own(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    with Journal(path, HEADER, max_bytes=20_000, keep=2) as journal:
        write(journal, 100)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["decisions.jsonl", "decisions.jsonl.1", "decisions.jsonl.2"]
    newest_first = [path, Path(f"{path}.1"), Path(f"{path}.2")]
    assert all(p.stat().st_size <= 20_000 for p in newest_first)
    assert all(p.stat().st_size > 15_000 for p in newest_first[1:])
    kept = [t for p in reversed(newest_first) for t in times(p)]
    assert kept == [1000.0 + 15 * i for i in range(100)][-len(kept) :]
    for file in newest_first:
        header, entries = read(file)
        assert replace(header, state=None) == HEADER
        again = replay(entries, POLICY, Guards(), 0, header.state)
        assert [d.proposal for d in again] == [e.decision.proposal for e in entries]


def test_a_line_larger_than_the_limit_is_written_all_the_same(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER, max_bytes=10, keep=3) as journal:
        write(journal, 3)
    assert [times(tmp_path / n) for n in ("j.2", "j.1", "j")] == [[1000.0], [1015.0], [1030.0]]


def test_keep_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER, max_bytes=10, keep=0) as journal:
        write(journal, 3)
    assert [p.name for p in tmp_path.iterdir()] == ["j"]
    assert times(tmp_path / "j") == [1030.0]


def test_without_a_limit_a_fresh_file_is_written_over(tmp_path: Path) -> None:
    for count in (3, 1):
        with Journal(tmp_path / "j", HEADER) as journal:
            write(journal, count)
    assert times(tmp_path / "j") == [1000.0]
    assert len(list(tmp_path.iterdir())) == 1


def test_the_same_policy_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, HEADER) as journal:
        state = write(journal, 5)
    found = resume(path, HEADER, now=2000.0)
    assert found.state == state and found.state.memory
    assert found.why == "goes on from the journal's last decision of 940 s ago"
    write(found.journal, 3, found.state, start=5)
    found.journal.close()
    header, entries = read(path)
    assert len(entries) == 8
    again = replay(entries, POLICY, Guards(), header.seed)  # as if it had never stopped
    assert [d.proposal for d in again] == [e.decision.proposal for e in entries]


def test_other_guards_go_on_in_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, HEADER) as journal:
        state = write(journal, 5)
    other = replace(HEADER, guards=Guards(maximum=7), mode="advise")
    assert resumed(path, other).state == state
    assert read(path) == (replace(other, state=state), [])
    assert len(times(tmp_path / "j.1")) == 5
    assert resumed(path, other).state == state  # nothing was decided meanwhile
    assert not (tmp_path / "j.2").exists()


@pytest.mark.parametrize(
    ("header", "now", "said"),
    [
        (replace(HEADER, policy="ds2", parameters={}), 1e6, "the journal is of hpa-cpu"),
        (replace(HEADER, seed=3), 1e6, "with seed 0"),
        (replace(HEADER, parameters={**HEADER.parameters, "target": 0.5}), 1e6, "target of hpa"),
        (HEADER, 1030.0, "last decision is 30 s from now"),
    ],
)
def test_anything_else_begins_anew_and_says_why(
    tmp_path: Path, header: Header, now: float, said: str
) -> None:
    path = tmp_path / "j"
    with Journal(path, HEADER) as journal:
        write(journal, 5)
    found = resumed(path, header, now)
    assert found.state is None
    assert found.why.startswith("begins anew") and said in found.why
    assert read(path) == (header, [])
    assert len(times(tmp_path / "j.1")) == 5


CRASHES: dict[str, Callable[[bytes], bytes]] = {
    "half a line": lambda data: data[:-40],
    "inside a character": lambda data: data + '{"decision":"→'.encode()[:-1],
    "zeros, as after a power cut": lambda data: data + bytes(5000),
    "a line of something else": lambda data: data + b"not ours\n",
    "two of them": lambda data: data + b'{"a":1}\n' + b"{",
}


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
def test_what_is_torn_is_cut_off_before_appending(
    tmp_path: Path, crash: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "j"
    with Journal(path, HEADER) as journal:
        write(journal, 5)
    path.write_bytes(crash(path.read_bytes()))
    found = resume(path, HEADER, now=2000.0)
    assert found.state is not None
    write(found.journal, 1, found.state, start=50)
    found.journal.close()
    kept = times(path)
    assert kept[-1] == 1750.0
    assert kept[:-1] == [1000.0 + 15 * i for i in range(len(kept) - 1)] and len(kept) >= 5


def test_a_torn_header_and_an_empty_file_begin_anew(tmp_path: Path) -> None:
    for torn in (b"", b'{"policy":"hpa'):
        path = tmp_path / "j"
        path.write_bytes(torn)
        assert resumed(path).state is None
        assert read(path) == (HEADER, [])
        assert len(list(tmp_path.iterdir())) == 1


def test_lines_longer_than_a_block_are_found(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "j"
    with Journal(path, HEADER) as journal:
        state = write(journal, 5)
    for block in (1, 7, 100, 1021):
        monkeypatch.setattr("penstock.history.resumption.BLOCK", block)
        assert resumed(path).state == state


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"[1]\n", b"dear diary"])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "diary"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a journal; name another file"):
        resumed(path)
    assert path.read_bytes() == content


def test_a_journal_of_another_version_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_text('{"policy":"ds2","colour":"blue"}\n{"x":1}\n')
    assert "another version" in resumed(path).why
    assert read(path) == (HEADER, [])
    assert (tmp_path / "j.1").exists()


def test_a_full_disk_tears_no_line(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, HEADER) as journal:
        state = write(journal, 3)
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, unlimited[1]))
        try:
            for _ in range(2):
                with pytest.raises(OSError):
                    write(journal, 1, state, start=3)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        write(journal, 1, state, start=4)  # there is room again
    assert times(path) == [1000.0, 1015.0, 1030.0, 1060.0]


def test_the_cool_down_holds_across_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "j"
    options: Any = {"journal": path, "guards": Guards(maximum=20, cool_down=300.0)}
    first, made = played([look(1000.0, rate=2000.0)], "ds2", **options)
    assert made[0].applied and first.requests == [10]
    second, made = played([look(1100.0, rate=4000.0), look(1310.0, rate=4000.0)], "ds2", **options)
    assert [e.guard for e in made[0].effects] == ["cool-down"]
    assert made[1].applied and second.requests == [20]
    assert times(path) == [1000.0, 1100.0, 1310.0]
    third, _ = played([look(1400.0, rate=100.0)], "static", parameters={"slots": 3}, **options)
    assert third.requests == [3]  # another policy: begins anew
    assert len(times(tmp_path / "j.1")) == 3


def test_the_autoscaler_rotates_as_configured(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        f'journal = "{tmp_path}/j"\njournal_max_bytes = 10000\njournal_keep = 1\nperiod = "1s"\n'
    )
    session, _ = played(looks(*[1000.0] * 40), config=file)
    assert isinstance(session, FakeSession)
    assert {p.name for p in tmp_path.iterdir()} == {"c.toml", "j", "j.1"}
