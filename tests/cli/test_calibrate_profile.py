"""``penstock lab calibrate --profile`` without Spark: what it prints, and which runs it plans."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.snapshot import POOL
from penstock.bench.cell import settings_of
from penstock.bench.specs.spec import load
from penstock.core.errors import EngineError
from penstock.core.model import Change
from penstock.history.profiling.fit import fit
from penstock.lab.calibrate.profile import measure
from penstock.lab.calibrate.profile.measure import Measured
from penstock.lab.calibrate.profile.steps import (
    BATCHES,
    LONGEST_BATCH,
    SHARES,
    ProfileRun,
    ProfileSpec,
    seconds_of,
    seconds_of_events,
    steps_of,
)
from penstock.lab.host import java
from penstock.lab.rig.capacity_file import Capacity
from penstock.lab.rig.settings import SparkSettings
from penstock.simulator.microbatch import Profile, read_profile
from penstock.simulator.microbatch.profile import VERSION
from tests.fakes.microbatch_examples import EXECUTOR, counting
from tests.fakes.profile_experiments import resized, saturated
from tests.fakes.shell import Shell
from tests.places import ROOT

CAPACITY = Capacity(slots=8, one=1_300.0, all=10_000.0, rows=20_000)


@pytest.fixture
def calibrate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setattr(java, "find_java", lambda: None)  # none of these tests starts Spark
    return Shell.at(tmp_path, monkeypatch, capsys, "calibrate")


@pytest.fixture(scope="module")
def measured() -> Measured:
    """What a measurement returns, from a simulated application."""
    query = counting()
    true = Profile(version=VERSION, queries=(query,), executor=EXECUTOR)
    seen = [saturated(true, n, s, seconds=30.0, seed=n) for n in (1, 4) for s in (0.2, 1.0)]
    seen.append(resized(true, 500.0, (1, 4, 2), hold=30.0, seed=9))
    made = fit("q5", seen, query.sources, trigger=query.trigger)
    profile = Profile(
        version=VERSION,
        queries=(made.query,),
        executor=made.executor,
        measured="for a test",
        provenance={"cpu_share": "0.2", "query": "q5"},
    )
    return Measured(
        profile=profile, fit=made, capacity=CAPACITY, limited=True, runs=len(seen), batches=99
    )


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch, measured: Measured) -> list[ProfileSpec]:
    """Measurements that are asked for, each answered at once."""
    asked: list[ProfileSpec] = []

    def answer(
        spec: ProfileSpec,
        *,
        servers: str | None,
        say: Callable[[str], None],
        begun: Callable[[int, int], None],
    ) -> Measured:
        assert servers is None
        asked.append(spec)
        begun(0, 2)
        say("run 1 of 2")
        return measured

    monkeypatch.setattr(measure, "measure", answer)
    return asked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--profile", "p.json", "--query", "q7"], "unknown query 'q7'"),
        (["--profile", "p.json", "--executors", "1"], "slots = 1 must lie between 2 and 64"),
        (["--profile", "p.json", "--executors", "4"], "at least two different numbers"),
        (["--profile", "p.json", "--executors", "1,two"], "must look like 1,2,4,8"),
        (["--profile", "p.json", "--seconds", "0"], "seconds 0.0 must be above 0"),
        (["--profile", "p.json", "--cpu-share", "0"], "cpu_share = 0.0 must be a share"),
        (["--profile", "p.json", "--repeats", "0"], "--repeats 0 must lie between 1 and 20"),
        (["--profile", "p.json", "--rows", "2"], "--rows means nothing with --profile"),
        (["--profile", "p.json", "--no-save"], "--no-save means nothing with --profile"),
        (["--profile", "none/p.json"], "there is no folder none; create it first"),
        (["--profile", "."], "is a folder"),
        (["--force"], "--force means nothing without --profile"),
        (["--quick"], "--quick means nothing without --profile"),
        (["--like", "s.toml"], "--like means nothing without --profile"),
        (["--profile", "p.json", "--like", "s.toml"], "no file s.toml"),
        (
            ["--profile", "p.json", "--like", "s.toml", "--cpu-share", "0.1"],
            "--cpu-share is what s.toml says; leave it or --like out",
        ),
        (
            ["--profile", "p.json", "--bootstrap-servers", "127.0.0.1:1"],
            "this bench does not read from Kafka",
        ),
    ],
)
def test_bad_usage_is_refused_before_anything_starts(
    calibrate: Shell, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = calibrate(*arguments)
    assert done.code == 2, done.err
    assert said in " ".join(done.err.split())
    assert "Traceback" not in done.err and done.out == ""
    assert list(tmp_path.iterdir()) == []


def test_it_measures_on_the_cluster_of_a_bench(
    calibrate: Shell, pretended: list[ProfileSpec], tmp_path: Path
) -> None:
    example = ROOT / "examples" / "bench" / "kafka.toml"
    done = calibrate("--query", "q5", "--profile", "q5.json", "--like", str(example))
    assert done.code == 0, done.err
    (asked,) = pretended
    assert asked.sizes == (1, 2, 4)
    assert asked.settings == settings_of(load(example).cells)
    assert asked.settings.source == "kafka"


def test_what_waits_in_kafka_is_what_a_run_may_take() -> None:
    embedded, kafka = (SparkSettings(source=source) for source in ("embedded", "kafka"))
    step = ProfileRun(before=2, executors=2, rows=1_000, density=500.0)
    waiting, whole = seconds_of_events(step, kafka)
    assert whole * step.density >= (BATCHES + 1) * step.rows
    assert 2 * step.rows <= waiting * step.density < whole * step.density
    assert whole < min(seconds_of_events(step, embedded))
    last = replace(step, last=True)
    assert seconds_of_events(last, kafka) == seconds_of_events(last, embedded) == (6.0, 6.0)


def test_the_profile_is_written_and_shown(
    calibrate: Shell, pretended: list[ProfileSpec], measured: Measured, tmp_path: Path
) -> None:
    done = calibrate("--query", "q5", "--profile", "q5.json", "--cpu-share", "0.25", "--seed", "3")
    assert done.code == 0, done.err
    assert read_profile(tmp_path / "q5.json") == measured.profile
    (spec,) = pretended
    assert spec.query == "q5" and spec.seed == 3 and spec.sizes == (1, 2, 4, 8)
    assert spec.settings.cpu_share == 0.25 and spec.settings.slots == 8
    for word in ("read", "aggregate", "ms per task", "planning", "mean error", "q5.json"):
        assert word in done.out
    assert all(
        note.split(":")[0][:40] in done.out.replace("\n", " ") for note in measured.fit.notes
    )
    assert max(map(len, done.out.splitlines())) <= 80
    assert "run 1 of 2" in done.err and "minutes" in done.err


def test_json_is_one_document_and_nothing_else(
    calibrate: Shell, pretended: list[ProfileSpec], measured: Measured
) -> None:
    done = calibrate("--query", "q5", "--profile", "q5.json", "--json")
    assert done.code == 0, done.err
    document = done.json
    assert document["file"] == "q5.json"
    assert document["profile"]["queries"][0]["name"] == "q5"
    assert document["mean_error"] == pytest.approx(measured.fit.error)
    assert document["errors"]["read.fixed"] > 0
    assert document["notes"] == list(measured.fit.notes)
    assert sum(e["batches"] for e in document["explained"]) > 0


def test_a_file_is_only_replaced_by_force(
    calibrate: Shell, pretended: list[ProfileSpec], tmp_path: Path
) -> None:
    file = tmp_path / "q5.json"
    file.write_text("mine")
    done = calibrate("--query", "q5", "--profile", "q5.json")
    assert done.code == 2 and "--force replaces it" in " ".join(done.err.split())
    assert file.read_text() == "mine" and pretended == []
    assert calibrate("--query", "q5", "--profile", "q5.json", "--force").code == 0
    assert read_profile(file).queries[0].name == "q5"


@pytest.mark.parametrize(
    ("problem", "code"), [(EngineError("it stopped"), 1), (KeyboardInterrupt(), 130)]
)
def test_what_fails_leaves_no_file(
    calibrate: Shell,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    problem: BaseException,
    code: int,
) -> None:
    def fail(*_: object, **__: object) -> Measured:
        raise problem

    monkeypatch.setattr(measure, "measure", fail)
    assert calibrate("--query", "q5", "--profile", "q5.json").code == code
    assert list(tmp_path.iterdir()) == []


class Pretended:
    """A running query and who watches it: every wait is a second and ends a batch.

    After ``data`` batches there are no more rows.
    """

    def __init__(self, *, data: int = 10**6, acting: int = 0) -> None:
        self.now = time.time()
        self.recentProgress: list[Any] = []
        self.name, self.isActive = "q", True
        self.status = {"isTriggerActive": False}
        self.data, self.acting = data, acting
        self.asked: list[tuple[int, Change]] = []
        self.cpus = 0
        self.engine = self
        self.pool = self

    def wait(self, running: Any, seconds: float = 1.0) -> None:
        assert running is self
        self.acting = max(0, self.acting - 1)
        number = len(self.recentProgress)
        left = number < self.data
        document = {
            "runId": "r",
            "batchId": number,
            "timestamp": datetime.fromtimestamp(self.now + number, UTC).isoformat(),
            "batchDuration": 900,
            "numInputRows": 100 * left,
            "sources": [{"endOffset": {"offset": 100 * min(number + 1, self.data)}}],
        }
        self.recentProgress.append(SimpleNamespace(json=json.dumps(document)))

    @property
    def lastProgress(self) -> Any:  # noqa: N802
        return json.loads(self.recentProgress[-1].json) if self.recentProgress else None

    def apply(self, changes: Mapping[str, Change]) -> None:
        self.asked.append((len(self.recentProgress), changes[POOL]))

    def cpu(self) -> None:
        self.cpus += 1


def test_a_run_goes_on_for_eight_batches_or_some_seconds() -> None:
    query: Any = Pretended()
    measure.some_batches(query, query, seconds=100.0)
    assert len(query.recentProgress) == 1 + 8 and query.cpus == 2
    query = Pretended()
    measure.some_batches(query, query, seconds=4.5)
    assert len(query.recentProgress) == 1 + 5
    query = Pretended()
    measure.some_batches(query, query, seconds=0.1)
    assert len(query.recentProgress) == 1 + 3


def test_executors_come_at_once_and_go_between_batches() -> None:
    up = ProfileRun(before=1, executors=4, rows=100, density=100.0, warm=True)
    query: Any = Pretended(acting=5)
    looks = iter([False, False, True])
    measure.resize(query, query, up, warm=lambda: next(looks))
    ((batches, change),) = query.asked
    assert (change.before, change.slots) == (1, 4) and batches == 1
    assert next(looks, None) is None and query.acting == 0
    query = Pretended()
    down = ProfileRun(before=4, executors=1, rows=100, density=100.0)
    measure.resize(query, query, down, warm=lambda: False)
    ((batches, change),) = query.asked
    assert (change.before, change.slots) == (4, 1) and batches == 2


def test_the_last_run_goes_on_after_its_data() -> None:
    query: Any = Pretended(data=3)
    measure.until_the_end(query, query, (300,), quiet=4.0)
    rows = [json.loads(p.json)["numInputRows"] for p in query.recentProgress]
    assert rows == [100, 100, 100, 0] and query.cpus == 2


def spec_of(
    seed: int = 0, sizes: tuple[int, ...] = (1, 2, 4, 8), quick: bool = False
) -> ProfileSpec:
    settings = SparkSettings(slots=max(sizes))
    return ProfileSpec(query="q5", settings=settings, sizes=sizes, seed=seed, quick=quick)


@given(
    seed=st.integers(0, 1000),
    sizes=st.lists(st.integers(1, 16), min_size=2, max_size=5, unique=True),
    quick=st.booleans(),
)
def test_every_plan_can_be_run_and_tells_what_is_needed(
    seed: int, sizes: list[int], quick: bool
) -> None:
    if max(sizes) < 2:
        return
    capacity = Capacity(slots=max(sizes), one=1_300.0, all=10_000.0, rows=20_000)
    steps = steps_of(spec_of(seed, tuple(sizes), quick), capacity)
    # Each begins with the executors that the one before left.
    assert steps[0].before == 1
    assert all(a.executors == b.before for a, b in pairwise(steps))
    still = [s for s in steps if not s.resizes]
    assert {s.executors for s in still} >= set(sizes)
    assert len({s.rows for s in still}) >= 2  # else fixed and per record stay one
    assert any(s.executors > s.before for s in steps)
    assert any(s.executors < s.before for s in steps)
    assert [s.last for s in steps] == [False] * (len(steps) - 1) + [True]
    measured = still[:-1]  # the last one shows how data end
    smallest = min(s.rows for s in measured)
    for s in measured:
        assert s.rows == smallest or s.rows * capacity.slots <= (
            LONGEST_BATCH * capacity.all * s.executors * 1.001
        )


def test_the_order_is_random_and_the_seeds() -> None:
    plans = [[str(s) for s in steps_of(spec_of(seed), CAPACITY)] for seed in range(6)]
    assert plans[0] == [str(s) for s in steps_of(spec_of(0), CAPACITY)]
    assert len({tuple(p) for p in plans}) > 3
    full = [s for s in steps_of(spec_of(), CAPACITY) if s.executors == 8 and not s.resizes]
    assert {s.rows for s in full} >= {round(20_000 * share) for share in SHARES}


def test_a_quick_plan_is_shorter() -> None:
    assert seconds_of(spec_of(quick=True)) < seconds_of(spec_of())
    assert len(steps_of(spec_of(quick=True), CAPACITY)) < len(steps_of(spec_of(), CAPACITY))
