"""Simulated runs spread over real Spark: the same results, whatever happens on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.bench.specs.spec import load
from penstock.comparison.results import Results
from penstock.comparison.runner import run
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.host import leftovers
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

BENCH = [sys.executable, "-m", "penstock", "bench"]
TIMEOUT = 300.0
SPEC = """\
name = "sweep"
seeds = {seeds}
minutes = {minutes}
[[pipeline]]
query = ["q1", "q3"]
[[workload]]
name = "cosine"
[[workload]]
name = "trace"
file = "recorded.csv"
[[policy]]
name = "ds2"
"""


def spec_in(folder: Path, *, seeds: int, minutes: int) -> Path:
    path = folder / "sweep.toml"
    path.write_text(SPEC.format(seeds=seeds, minutes=minutes))
    (folder / "recorded.csv").write_text("time,count\n0,600\n60,900\n120,700\n")
    return path


def contents(folder: Path) -> dict[str, object]:
    """What a bench is made of; the lines of its scores in any order."""
    files: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes()
        for kind in ("journals", "traces")
        for path in (folder / kind).iterdir()
    }
    return files | {"scores": sorted((folder / "scores.jsonl").read_text().splitlines())}


def in_one_process(spec: Path, folder: Path) -> dict[str, object]:
    plan = load(spec)
    run(plan.cells, plan.seeds, folder, workers=1, journals=True)
    return contents(folder)


def nothing_left() -> bool:
    """No run whose owner has ended is still recorded; other tests may be running."""
    return not [r for r in leftovers.runs(leftovers.cache_folder()) if r.owner.dead]


@contextmanager
def started(*arguments: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "stderr").open("wb") as stderr:
        bench = subprocess.Popen(
            [*BENCH, *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            yield bench
        finally:
            if bench.poll() is None:
                os.killpg(bench.pid, signal.SIGKILL)
                bench.wait()


DAEMON = b"-m\0penstock.bench.spread.warm_daemon"


def python_workers(owner: int) -> list[int]:
    """The Python processes that run the tasks of a command's Spark: forks of Spark's daemon."""
    found = []
    for each in leftovers.runs(leftovers.cache_folder()):
        if each.owner.pid == owner:
            daemons = [pid for pid in each.processes() if DAEMON in command(pid)]
            found += [pid for pid in daemons if parent(pid) in daemons]
    return found


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


@pytest.mark.long
def test_interrupted_resumed_with_a_worker_killed_it_is_as_in_one_process(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, seeds=15, minutes=140)
    said = tmp_path / "stderr"
    scores = tmp_path / "runs" / "latest" / "scores.jsonl"

    with started(str(spec), "--on", "local[2]", folder=tmp_path) as bench:
        until("a run is kept", lambda: scores.exists() and b"\n" in scores.read_bytes(), TIMEOUT)
        os.killpg(bench.pid, signal.SIGINT)  # as a terminal does
        assert bench.wait(TIMEOUT) == 130
    text = said.read_text()
    assert "of 60 runs; they are in" in text and "penstock bench --resume" in text
    assert "Traceback" not in text, text
    kept = scores.read_text().splitlines()
    assert 0 < len(kept) < 60

    with started("--resume", "latest", "--on", "local[2]", folder=tmp_path) as bench:
        until("two workers", lambda: len(python_workers(bench.pid)) == 2, TIMEOUT)
        os.kill(python_workers(bench.pid)[0], signal.SIGKILL)
        assert bench.wait(TIMEOUT) == 0, said.read_text()
    assert scores.read_text().splitlines()[: len(kept)] == kept
    assert contents(scores.parent.resolve()) == in_one_process(spec, tmp_path / "alone")
    assert Results.load(scores.parent.resolve()).complete
    assert nothing_left()


FAILING = """
import sys
from dataclasses import replace
from pathlib import Path
from penstock.comparison.cell import Cell
from penstock.bench.spread.sessions import Master
from penstock.bench.spread.job import OnSpark
from penstock.comparison.runner import run

good = Cell(key="good", query="q1", workload="cosine", policy="ds2", minutes=10)
bad = replace(good, key="bad", workload_parameters={"low": "none"})
for name, way in (("alone", None), ("spread", OnSpark(Master(url="local[2]")))):
    try:
        run([good, bad], range(3), Path(name), workers=1, way=way)
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_run_that_fails_says_the_same_as_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING],
        cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    alone, spread = done.stdout.splitlines()
    assert alone == spread, done.stderr
    assert alone == "InputError cosine: low = 'none' is not a number"
    assert {cell for cell, _ in finished(tmp_path / "spread")} <= {"good"}
    assert nothing_left()


def finished(folder: Path) -> set[tuple[str, int]]:
    results = Results.load(folder)
    return {(cell.key, seed) for cell in results.cells for seed in results.seeds_of(cell.key)}


@pytest.mark.long
def test_executors_of_a_cluster_need_neither_our_package_nor_our_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CLASS_DATA", "off")
    spec = spec_in(tmp_path, seeds=2, minutes=10)
    with LocalCluster(ClusterSpec(slots=2, cpu_share=None)) as cluster:
        done = subprocess.run(
            [*BENCH, str(spec), "--on", cluster.url, "--workers", "2", "--json"],
            cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT,
        )  # fmt: skip
        code = list(cluster.folder.glob("work/*/*/penstock-code/penstock/__init__.py"))
    assert done.returncode == 0, done.stderr
    assert len(code) == 1  # one executor with both cores, and it had the package from here
    folder = (tmp_path / "runs" / "latest").resolve()
    assert contents(folder) == in_one_process(spec, tmp_path / "alone")
    assert nothing_left()
