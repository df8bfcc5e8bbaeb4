"""Runs in batches for Spark: how they are packed, what they send back, where they may go."""

from __future__ import annotations

import itertools
import pickle
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.bench.spread.job import OnSpark, explained
from penstock.bench.spread.sessions import Master
from penstock.bench.spread.tasks import LARGEST, JobTerms, in_batches, versions, work
from penstock.comparison.cell import Cell
from penstock.comparison.runner import Task
from penstock.core.errors import EngineError, InputError, MissingError
from tests.fakes.shell import Shell

HERE = JobTerms(versions=versions(), files={})


def cell(minutes: float = 5.0, key: str = "x") -> Cell:
    return Cell(key=key, query="q1", workload="cosine", policy="ds2", minutes=minutes)


def runs_of(tasks: Sequence[Task]) -> list[tuple[str, int]]:
    return [(each.key, task.seed) for task in tasks for each in task.cells]


def cost(batch: Sequence[Task]) -> float:
    return sum(task.cells[0].minutes * (10.0 if task.journals else 1.0) for task in batch)


@st.composite
def benches(draw: st.DrawFn) -> list[Task]:
    lengths = st.lists(st.floats(min_value=1.0, max_value=20_000.0), min_size=1, max_size=8)
    tasks = []
    for seed in range(draw(st.integers(min_value=1, max_value=12))):
        group = tuple(cell(minutes, f"c{n}") for n, minutes in enumerate(draw(lengths)))
        tasks.append(Task(cells=group, seed=seed, folder=Path("bench"), journals=seed == 0))
    return tasks


@given(benches(), st.integers(min_value=1, max_value=64))
def test_every_run_is_packed_once_in_order_and_no_parcel_is_too_large(
    tasks: list[Task], slots: int
) -> None:
    packed = in_batches(tasks, slots)
    whole = [task for batch in packed for task in batch]
    assert runs_of(whole) == runs_of(tasks)
    assert [t.journals for t in whole] == [t.journals for t in tasks for _ in t.cells]
    left = cost(whole)
    for batch, after in itertools.zip_longest(packed, packed[1:], fillvalue=()):
        room = min(LARGEST, left / slots / 2)
        assert len(batch) == 1 or cost(batch) <= room * (1 + 1e-9) + 1e-6
        if after:  # it could not have been filled up
            assert cost(batch) + cost(after[:1]) > room * (1 - 1e-9) - 1e-6
        left -= cost(batch)


def test_a_thousand_runs_make_tens_of_tasks_not_two_and_not_a_thousand() -> None:
    pair = (cell(140.0, "a"), cell(140.0, "b"))
    tasks = [Task(cells=pair, seed=seed, folder=Path()) for seed in range(500)]
    sizes = [len(batch) for batch in in_batches(tasks, 2)]
    assert sizes[:20] == [35] * 20  # of 140 minutes each
    assert sizes == sorted(sizes, reverse=True) and sizes[-4:] == [1] * 4  # no slot waits long
    assert len(sizes) < 50
    assert [len(batch) for batch in in_batches(tasks[:2], 2)] == [1] * 4


def test_a_parcel_sends_back_what_its_runs_would_have_written(tmp_path: Path) -> None:
    run = Task(cells=(cell(),), seed=3, folder=tmp_path / "bench", journals=True, traces=True)
    reply = pickle.loads(pickle.dumps(work((run, replace(run, seed=4, journals=False)), HERE)))
    assert reply.error is None and not run.folder.exists()
    assert reply.rows == [("x", seed, cell().run(seed).scores) for seed in (3, 4)]
    reply.write(run.folder)
    journal = tmp_path / "alone.jsonl"
    cell().run(3, journal=journal)
    assert (run.folder / "journals" / "x.jsonl").read_bytes() == journal.read_bytes()
    names = {str(p.relative_to(run.folder)) for p in run.folder.rglob("*") if p.is_file()}
    assert names == {"journals/x.jsonl", "traces/x.npz"}


def test_a_run_that_fails_is_an_answer_and_keeps_those_before_it() -> None:
    good = Task(cells=(cell(),), seed=0, folder=Path())
    bad = replace(good, cells=(replace(cell(), spec={"speed": 9}),), journals=True)
    reply = pickle.loads(pickle.dumps(work((good, bad, good), HERE)))
    assert [seed for _, seed, _ in reply.rows] == [0] and reply.files == {}
    assert isinstance(reply.error, InputError) and "'speed'" in str(reply.error)


def test_another_version_of_numpy_is_refused_where_it_is() -> None:
    terms = JobTerms(versions={**versions(), "numpy": "1.2.3"}, files={})
    reply = work((Task(cells=(cell(),), seed=0, folder=Path()),), terms)
    assert reply.rows == [] and isinstance(reply.error, MissingError)
    assert socket.gethostname() in str(reply.error) and "numpy==1.2.3" in str(reply.error)


def test_a_file_that_was_sent_along_is_found_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(penstock, "__file__", str(tmp_path / "penstock" / "__init__.py"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "0-a.csv").write_text("time,count\n0,60\n60,120\n")
    recorded = replace(cell(), workload="trace", workload_parameters={"file": "/absent/a.csv"})
    run = Task(cells=(recorded,), seed=0, folder=Path())
    assert isinstance(work((run,), HERE).error, InputError)
    sent = JobTerms(versions=versions(), files={"/absent/a.csv": "files/0-a.csv"})
    assert len(work((run,), sent).rows) == 1


def test_a_reply_replaces_a_file_at_once(tmp_path: Path) -> None:
    reply = work((Task(cells=(cell(),), seed=0, folder=Path(), traces=True),), HERE)
    for _ in range(2):  # a task that Spark repeats
        reply.write(tmp_path)
    assert [p.name for p in (tmp_path / "traces").iterdir()] == ["x.npz"]


@pytest.mark.parametrize(
    ("url", "slots"),
    [("local", 1), ("local[3]", 3), ("spark://a:7077", None), ("spark://a:1,b.c:2", None)],
)
def test_masters_that_can_be(url: str, slots: int | None) -> None:
    assert Master(url=url).slots == slots
    assert Master(url=url).remote == (slots is None)


@pytest.mark.parametrize(
    "url",
    ["", "local[0]", "local[-1]", "local[2.5]", "local[99999]", "yarn", "spark://a", "spark://:1",
     "spark://a:b", "k8s://https://a:1", "local[2] ", "spark://a:1/x"],
)  # fmt: skip
def test_masters_that_cannot_be(url: str) -> None:
    with pytest.raises(InputError, match=r"must be spark://HOST:PORT, local"):
        Master(url=url)


def test_cores_are_for_clusters() -> None:
    assert Master(url="spark://a:1", cores=4).slots == 4
    with pytest.raises(InputError, match=r"3 workers on local\[2\]: say local\[3\]"):
        Master(url="local[2]", cores=3)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens to, kept so that nobody else gets it."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


def test_a_master_that_does_not_answer_is_named(closed_port: int) -> None:
    master = Master(url=f"spark://127.0.0.1:{closed_port},127.0.0.1:{closed_port}")
    with pytest.raises(MissingError, match=rf"127\.0\.0\.1:{closed_port}: Connection refused"):
        master.address()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        second = Master(url=f"spark://127.0.0.1:{closed_port},127.0.0.1:{port}")
        assert second.address() == "127.0.0.1"


def test_nothing_is_started_for_nothing() -> None:
    OnSpark(Master(url="spark://nowhere.invalid:1"))((), lambda rows: None)


SPEC = """\
seeds = 2
minutes = 10
[[pipeline]]
query = "q1"
[[workload]]
name = "cosine"
[[policy]]
name = "ds2"
"""


@pytest.mark.parametrize(
    ("spec", "arguments", "code", "words"),
    [
        ("", ("--on", "mesos://a:1"), 2, "the master 'mesos://a:1' must be spark://HOST:PORT"),
        ("", ("--on", "local[2]", "--workers", "3"), 2, "say local[3] instead"),
        ("", ("--on", "local[2]", "--workers", "0"), 2, "--workers 0 must be ≥ 1"),
        ('engine = "spark"\n', ("--on", "local[2]"), 2, "needs a cluster of its own"),
        ("", ("--on", "spark://nowhere.invalid:7077"), 3, "no Spark master answers (nowhere"),
    ],
)
def test_what_cannot_be_spread_is_refused_before_anything_is_written(
    spec: str,
    arguments: tuple[str, ...],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shell = Shell.at(tmp_path, monkeypatch, capsys, "bench")
    (tmp_path / "a.toml").write_text(spec + SPEC)
    done = shell("a.toml", *arguments)
    assert done.code == code and words in done.err and done.out == ""
    assert [p.name for p in tmp_path.iterdir()] == ["a.toml"]


def test_without_pyspark_the_way_to_get_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell.at(tmp_path, monkeypatch, capsys, "bench")
    (tmp_path / "a.toml").write_text(SPEC)
    monkeypatch.setitem(sys.modules, "pyspark", None)  # importing it fails
    done = shell("a.toml", "--on", "local[2]")
    assert done.code == 3 and "pip install 'penstock[spark]'" in done.err
    assert shell("a.toml", "--on", "local[2]", "--dry-run").code == 0


LOST = "most recent failure: Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): "


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("x\nImportError: No module named 'numba' in /opt/py on w7\n at java", MissingError,
         r"/opt/py on w7 has no numba\. There: pip install numba=="),
        (LOST + 'java.io.IOException: Cannot run program "/opt/py": error=2', MissingError,
         r"the executor on 10\.0\.0\.7 has no /opt/py\. Set PYSPARK_PYTHON"),
        (LOST + "[PYTHON_VERSION_MISMATCH] Python in worker", MissingError, "Set PYSPARK_PYTHON"),
        (LOST + "ExecutorLostFailure (executor 1 exited)\nDriver stacktrace:\nmore", EngineError,
         r"gave up: Lost task .* \(executor 1 exited\)\. What was finished is kept$"),
        ("Connection refused\nmore", EngineError, "gave up: Connection refused"),
        ("An error occurred while calling z:x.\n: org.SparkException: no room\n\tat x", EngineError,
         r"gave up: org\.SparkException: no room\."),
    ],
)  # fmt: skip
def test_why_a_job_failed_is_said_with_the_way_out(
    said: str, kind: type[Exception], words: str
) -> None:
    error = explained(RuntimeError(said))
    assert type(error) is kind
    with pytest.raises(kind, match=words):
        raise error
