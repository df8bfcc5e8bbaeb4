"""``penstock profile``: tables, JSON, files, and demand that compare replays."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from penstock.simulator.microbatch import read_profile
from penstock.workloads.patterns import Cosine
from penstock.workloads.trace import Trace
from tests.fakes.microbatch_examples import single
from tests.fakes.recorded_runs import EPOCH, WrittenDown, write_down
from tests.fakes.shell import Shell
from tests.history.test_progress_file import document

LOAD = Cosine(low=400.0, high=2000.0, period=300.0)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> WrittenDown:
    made = single(max_rows=6000, trigger=1.0, planning=0.1, commit=0.05, task_noise=0.1)
    folder = tmp_path_factory.mktemp("run")
    return write_down(folder, made, LOAD, seconds=900.0, start=2, seed=3)


def test_tables_within_80_columns(shell: Shell, written: WrittenDown) -> None:
    done = shell("profile", str(written.log))
    assert (done.code, done.err) == (0, "")
    for part in ("what was understood", "demand, records/s", "what each stage costs", "planning",
                 "batches that it was made of", "not learnt, or taken for granted",
                 "profile profile.json"):  # fmt: skip
        assert part in done.out
    paths = ("source", "profile")
    lines = [line for line in done.out.splitlines() if not line.startswith(paths)]
    assert max(map(len, lines)) <= 80
    assert read_profile(Path("profile.json")).queries[0].name == "q"


def test_one_json_document(shell: Shell, written: WrittenDown) -> None:
    done = shell("profile", str(written.journal), "-o", "mine.json", "--json")
    assert done.code == 0
    found = done.json
    assert found["kind"] == "journal" and found["sizes"] and found["not_learnt"]
    assert found["profile"] == json.loads(Path("mine.json").read_text())
    assert found["demand"]["bids"]["peak"] == pytest.approx(2000.0, rel=0.1)
    assert found["files"] == {"profile": "mine.json"}


def test_demand_is_replayed_by_compare(shell: Shell, written: WrittenDown) -> None:
    done = shell("profile", str(written.log), "--demand", "demand.csv")
    assert done.code == 0 and "demand  demand.csv" in done.out
    with Path("demand.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["time"]) == pytest.approx(EPOCH, abs=2.0)
    trace = Trace("demand.csv")
    offered = LOAD.offered(900.0) - LOAD.offered(1.0)
    assert trace.offered(1e6) == pytest.approx(offered, rel=0.01)
    assert trace.understood.values.startswith("records_per_s, rate")
    compared = shell("compare", "--trace", "demand.csv", "--policies", "ds2,static", "--seeds", "1",
                     "--no-save", "--json")  # fmt: skip
    assert compared.code == 0


def test_only_a_profile_is_replaced(shell: Shell, written: WrittenDown) -> None:
    Path("notes.json").write_text('{"mine": 1}')
    done = shell("profile", str(written.log), "-o", "notes.json")
    assert done.code == 2 and "is no profile; name another file" in done.err
    assert Path("notes.json").read_text() == '{"mine": 1}'
    for _ in range(2):
        assert shell("profile", str(written.log), "-o", "mine.json").code == 0
    assert shell("profile", str(written.log), "-o", ".").code == 2
    assert "no folder" in shell("profile", str(written.log), "-o", "gone/mine.json").err
    assert "--demand" in shell("profile", str(written.log), "--demand", "gone/d.csv").err


def test_progress_documents_need_the_executors(shell: Shell) -> None:
    documents = [document(n, 100 + 10 * (n % 7), batchDuration=300 + 5 * (n % 7))
                 for n in range(40)]  # fmt: skip
    Path("progress.jsonl").write_text("\n".join(map(json.dumps, documents)))
    refused = shell("profile", "progress.jsonl")
    assert refused.code == 2 and "--executors N" in refused.err
    done = shell("profile", "progress.jsonl", "--executors", "2", "--cores", "4")
    assert done.code == 0 and "only durations of batches are known" in " ".join(done.out.split())
    assert read_profile(Path("profile.json")).executor.cores == 4


def test_a_query_by_its_name(shell: Shell, written: WrittenDown) -> None:
    assert shell("profile", str(written.log), "--query", "q").code == 0
    done = shell("profile", str(written.log), "--query", "other")
    assert done.code == 2 and "Known: q" in done.err


def test_a_trace_is_no_recording(shell: Shell) -> None:
    Path("week.csv").write_text("time,count\n0,1\n")
    done = shell("profile", "week.csv")
    assert done.code == 2 and "penstock compare --trace week.csv" in done.err
