"""Spark's own allocation in a bench, without Spark: sessions, their order, time, actions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.cell import SparkCell
from penstock.bench.spark import runner, worker
from penstock.bench.spark.plan import plan_lines, spark_config, wall_seconds
from penstock.bench.specs.spec import load
from penstock.comparison.cell import CellRun
from penstock.core.errors import EngineError
from penstock.core.guards import Guards
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.clusters.standalone.full_speed import full_speed
from penstock.lab.rig import capacity, rig
from penstock.lab.rig.allocation import (
    QUIET,
    Allocation,
    actions_seen,
    on_the_clock,
)
from penstock.lab.rig.capacity_file import Capacity, read_capacities, write_capacities
from penstock.lab.rig.settings import SparkSettings
from penstock.policies import SparkDra


def cell(key: str, policy: str = "spark-dra", **given: Any) -> SparkCell:
    settings = given.pop("spark", SparkSettings())
    guards = settings.guards(given.pop("guards", Guards(minimum=2, maximum=80, cap=6)))
    fields = {"query": "q1", "workload": "constant", "minutes": 20.0, "start": 3, **given}
    return SparkCell(key=key, policy=policy, guards=guards, spark=settings, **fields)


# ---- the session ----------------------------------------------------------------------------


def test_the_configuration_of_a_session_by_hand() -> None:
    tuned = {
        "backlog_timeout": 40.0,
        "idle_timeout": 30.0,
        "allocation_ratio": 0.5,
        "shuffle_tracking": False,
    }
    found = cell("a", policy_parameters=tuned).allocation()
    assert found is not None
    assert found.conf() == {
        "spark.decommission.enabled": "true",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "false",
        "spark.dynamicAllocation.minExecutors": "2",
        "spark.dynamicAllocation.maxExecutors": "6",  # the cap; there are 8 slots
        "spark.dynamicAllocation.initialExecutors": "3",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "2s",  # 20 times as fast
        "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout": "1s",
        "spark.dynamicAllocation.executorIdleTimeout": "2s",  # 1.5 s cannot be said
        "spark.dynamicAllocation.executorAllocationRatio": "0.5",
    }


def test_only_spark_s_own_allocation_needs_a_session_of_its_own() -> None:
    assert cell("a", "ds2").allocation() is None
    assert cell("a").allocation() == cell("b", query="q11").allocation()
    assert cell("a").allocation() != cell("b", start=2).allocation()
    plain = cell("a", guards=Guards(), start=None).allocation()
    assert plain is not None and (plain.least, plain.most, plain.start) == (1, 8, 1)


SECONDS = st.floats(0.01, 1e5)


@given(minute=st.floats(0.5, 60.0), idle=SECONDS, backlog=SECONDS, ratio=st.floats(0.01, 1.0))
def test_timeouts_are_whole_seconds_as_near_as_can_be(
    minute: float, idle: float, backlog: float, ratio: float
) -> None:
    settings = SparkSettings(minute=minute)
    given = SparkDra(idle_timeout=idle, backlog_timeout=backlog, allocation_ratio=ratio)
    told = on_the_clock(given, settings)
    for name in ("idle_timeout", "backlog_timeout", "sustained_backlog_timeout"):
        value, exact = getattr(told, name), settings.clock(getattr(given, name))
        assert value == int(value) >= 1
        assert abs(value - exact) <= 0.5 or (value == 1 and exact < 1)
    assert told.allocation_ratio == ratio


def test_in_real_time_spark_is_told_exactly_what_it_ships_with() -> None:
    assert on_the_clock(SparkDra(), SparkSettings(minute=60)) == SparkDra()


# ---- the rig and the worker -----------------------------------------------------------------


class FakeSession:
    stopped = False

    def stop(self) -> None:
        self.stopped = True


class FakeCluster:
    """Hands out sessions, one at a time as Spark does."""

    made: list[FakeCluster]

    def __init__(self, *_: Any, **__: Any) -> None:
        self.sessions: list[tuple[int, dict[str, str], FakeSession]] = []
        self.made.append(self)

    def start(self) -> FakeCluster:
        return self

    def session(self, name: str, *, start_with: int, conf: dict[str, str]) -> FakeSession:
        assert all(session.stopped for *_, session in self.sessions)
        self.sessions.append((start_with, conf, FakeSession()))
        return self.sessions[-1][2]

    def stop(self) -> None:
        pass

    @property
    def kinds(self) -> list[tuple[int, str | None]]:
        """How each session began, and its idle timeout."""
        key = "spark.dynamicAllocation.executorIdleTimeout"
        return [(first, conf.get(key)) for first, conf, _ in self.sessions]


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> list[FakeCluster]:
    made: list[FakeCluster] = []
    monkeypatch.setattr(FakeCluster, "made", made, raising=False)
    monkeypatch.setattr(rig, "LocalCluster", FakeCluster)
    return made


def test_another_kind_of_session_on_the_same_cluster(clusters: list[FakeCluster]) -> None:
    kind = cell("a").allocation()
    with rig.Rig(SparkSettings(), say=print) as one:
        first = one.session()
        one.warmed.add("q1")
        one.use(None)
        assert one.session() is first and one.warmed == {"q1"}
        one.use(kind)
        second = one.session()
        assert second is not first and not one.warmed  # its driver is new
        one.use(kind)
        assert one.session() is second
        one.renew()  # after a failure: the same kind on a new cluster
        one.session()
    assert [c.kinds for c in clusters] == [[(1, None), (3, "3s")], [(3, "3s")]]


def test_queries_are_measured_without_allocation_and_warmed_up_with_it(
    clusters: list[FakeCluster], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same measurement for all policies; the warm-up in the session that then runs."""
    seen: list[tuple[str, str | None]] = []

    def note(what: str) -> None:
        seen.append((what, clusters[-1].kinds[-1][1]))

    def measure(rigged: rig.Rig, query: str) -> Capacity:
        rigged.session()
        note(f"measure {query}")
        return Capacity(slots=8, one=100.0, all=500.0, rows=1000)

    def warm_up(rigged: rig.Rig, query: str, _: Capacity) -> None:
        rigged.session()
        note(f"warm up {query}")

    def run_on_spark(rigged: rig.Rig, cell: SparkCell, *_: Any, **__: Any) -> CellRun:
        note(f"run {cell.key}")
        return CellRun(scores={})

    monkeypatch.setattr(capacity, "measure", measure)
    monkeypatch.setattr(capacity, "warm_up", warm_up)
    monkeypatch.setattr(worker, "run_on_spark", run_on_spark)
    with worker.SparkWorker(SparkSettings(), tmp_path, say=print, watch=print) as spark:
        for one in (cell("a"), cell("b"), cell("c", query="q11"), cell("d", "ds2")):
            spark.run(one, 0, journal=None, first=True)
    assert seen == [
        ("measure q1", None), ("warm up q1", "3s"), ("run a", "3s"), ("warm up q1", "3s"),
        ("run b", "3s"), ("measure q11", None), ("warm up q11", "3s"), ("run c", "3s"),
        ("warm up q1", None), ("run d", None),
    ]  # fmt: skip
    assert len(clusters) == 1


def test_the_machine_is_measured_again_for_every_further_seed(
    clusters: list[FakeCluster], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once a seed, without allocation; the loads go on resting on the first measurement."""
    rates = iter([450.0, 400.0])
    loads: list[float] = []

    def run_on_spark(_: rig.Rig, __: SparkCell, ___: int, known: Capacity, **____: Any) -> CellRun:
        loads.append(known.all)
        return CellRun(scores={})

    write_capacities(tmp_path, {"q1": Capacity(slots=8, one=100.0, all=500.0, rows=1000)})
    monkeypatch.setattr(capacity, "warm_up", lambda rigged, *_: rigged.session())
    monkeypatch.setattr(capacity, "again", lambda *_: next(rates))
    monkeypatch.setattr(worker, "run_on_spark", run_on_spark)
    with worker.SparkWorker(SparkSettings(), tmp_path, say=print, watch=print) as spark:
        for seed in range(3):
            for one in (cell("a"), cell("b", "ds2"), cell("c", "hpa-cpu")):
                spark.run(one, seed, journal=None, first=seed == 0)
    kept = read_capacities(tmp_path)["q1"]
    assert kept.again == (450.0, 400.0)
    assert (kept.all, kept.pace) == (500.0, 450.0)
    assert set(loads) == {500.0}


def test_an_executor_that_leaves_at_the_wrong_moment_does_no_harm() -> None:
    shares: dict[str, float] = {}

    class Leaving:
        limited = True
        spec = ClusterSpec(slots=2, cpu_share=0.2)

        def executors(self) -> dict[str, int]:
            return {"0": 10, "1": 11}

        def nominal_share(self, executor: str) -> float:
            return 0.2

        def set_share(self, executor: str, share: float) -> None:
            if executor == "1":
                raise EngineError("executor 1 has no control group")
            shares[executor] = share

    with full_speed(cast("LocalCluster", Leaving())):
        assert shares == {"0": 1.0}
    assert shares == {"0": 0.2}


# ---- the order of the runs ------------------------------------------------------------------

QUICK: dict[str, Any] = {"policy_parameters": {"idle_timeout": 20.0}}
MIXED = [
    cell("dra-1"),
    cell("ds2-1", "ds2"),
    cell("quick-1", **QUICK),
    cell("dra-11", query="q11"),
    cell("ds2-11", "ds2", query="q11"),
]


class Recorder:
    """RunRecord what it is asked to run; ``stop_at`` presses Ctrl-C at a run."""

    def __init__(self, stop_at: tuple[str, int] | None = None) -> None:
        self.runs: list[tuple[str, int]] = []
        self.kinds: list[Allocation | None] = []
        self._stop_at = stop_at

    def run(self, cell: SparkCell, seed: int, *, journal: Path | None, first: bool) -> CellRun:
        if (cell.key, seed) == self._stop_at:
            raise KeyboardInterrupt
        self.runs.append((cell.key, seed))
        self.kinds.append(cell.allocation())
        return CellRun(scores={"cost": 1.0})

    def recover(self) -> None:
        raise AssertionError("nothing fails here")

    @property
    def switches(self) -> int:
        return sum(a != b for a, b in zip(self.kinds, self.kinds[1:], strict=False))


def test_few_sessions_are_started_and_seeds_stay_together(tmp_path: Path) -> None:
    made = Recorder()
    assert runner.run(MIXED, (0, 1, 2), tmp_path, made) == []
    keys = [key for key, _ in made.runs]
    assert [seed for _, seed in made.runs] == [0] * 5 + [1] * 5 + [2] * 5
    assert keys[:5] == ["ds2-1", "ds2-11", "dra-1", "dra-11", "quick-1"]  # ours first: it measures
    assert keys[5:10] == ["quick-1", "dra-1", "dra-11", "ds2-1", "ds2-11"]
    assert made.switches == 6  # two for each seed, with three kinds


def test_a_bench_that_is_resumed_runs_what_is_missing_and_nothing_twice(tmp_path: Path) -> None:
    first, second = Recorder(stop_at=("dra-11", 0)), Recorder()
    with pytest.raises(KeyboardInterrupt):
        runner.run(MIXED, (0, 1), tmp_path, first)
    assert runner.run(MIXED, (0, 1), tmp_path, second) == []
    assert [seed for _, seed in second.runs] == [0] * 2 + [1] * 5
    every = {(cell.key, seed) for cell in MIXED for seed in (0, 1)}
    assert sorted(first.runs + second.runs) == sorted(every)


@given(st.lists(st.sampled_from([None, 20.0, 40.0, 60.0]), min_size=1, max_size=8))
def test_every_cell_runs_once_and_every_kind_begins_once(idle: list[float | None]) -> None:
    cells = [
        cell(f"c{i}", "ds2")
        if value is None
        else cell(f"c{i}", policy_parameters={"idle_timeout": value})
        for i, value in enumerate(idle)
    ]
    for kind in {None, *(c.allocation() for c in cells)}:
        ordered = runner.by_session(cells, kind)
        assert sorted(c.key for c in ordered) == sorted(c.key for c in cells)
        kinds = [c.allocation() for c in ordered]
        begun = [k for i, k in enumerate(kinds) if i == 0 or kinds[i - 1] != k]
        assert len(begun) == len(set(begun))
        assert kind not in kinds or kinds[0] == kind
        for one in set(kinds):  # within a kind in the order of the spec
            mine = [c.key for c in ordered if c.allocation() == one]
            assert mine == sorted(mine)


# ---- what Spark did -------------------------------------------------------------------------


def stairs(*levels: tuple[int, int]) -> Any:
    """Executors for so many seconds each."""
    return np.concatenate([np.full(seconds, float(slots)) for slots, seconds in levels])


def test_executors_that_come_one_after_the_other_are_one_action() -> None:
    speed = 20.0  # so 100 s of thesis time are quiet enough
    slots = stairs((1, 60), (2, 15), (4, 30), (8, 400), (7, 3), (6, 300), (7, 200), (8, 90))
    found = actions_seen(slots, speed)
    # 1→8 in steps, 8→6, then up twice: 200 s lie between.
    assert found.times == [61.0, 506.0, 809.0, 1009.0]
    assert found.reconfigurations == 4


def test_a_change_of_direction_is_another_action() -> None:
    assert actions_seen(stairs((1, 5), (3, 2), (2, 2), (3, 9)), 1.0).times == [6.0, 8.0, 10.0]


@given(slots=st.lists(st.integers(1, 8), min_size=1, max_size=60), speed=st.floats(1.0, 60.0))
def test_actions_are_changes_and_a_steady_pool_has_none(slots: list[int], speed: float) -> None:
    found = actions_seen(np.repeat(np.array(slots, dtype=float), 7), speed)
    changes = [7.0 * i + 1 for i in range(1, len(slots)) if slots[i] != slots[i - 1]]
    assert set(found.times) <= set(changes) and found.reconfigurations == len(found.times)
    assert found.times[:1] == changes[:1]
    if QUIET * speed < 7.0:  # each stands alone
        assert found.times == changes


# ---- the plan -------------------------------------------------------------------------------


def test_the_plan_says_what_the_timeouts_are_on_the_clock() -> None:
    cells = [cell("a"), cell("b", **QUICK), cell("c", "ds2")]
    lines = plan_lines(cells, SparkSettings())
    text = [" ".join(line.split()) for line in lines]
    assert "spark-dra: Spark takes whole seconds on the clock, at least 1:" in text
    assert "backlog-timeout 1 s → 1 s, 20 s of thesis time" in text
    assert "idle-timeout 60 s → 3 s" in text and "idle-timeout 20 s → 1 s" in text
    assert all(len(line) <= 80 for line in lines)
    seconds = spark_config(cells)["spark"]["seconds"]
    assert seconds["spark-dra idle_timeout"] == {"thesis": 60.0, "clock": 3.0}
    assert seconds["spark-dra 20 idle_timeout"] == {"thesis": 20.0, "clock": 1.0}
    json.dumps(seconds)
    ours = plan_lines([cell("c", "ds2")], SparkSettings())
    assert not any("Spark takes" in line for line in ours)


def test_more_kinds_of_sessions_take_longer() -> None:
    settings = SparkSettings()
    plain = [cell("a", "ds2"), cell("b", "hpa-cpu")]
    mixed = [cell("a", "ds2"), cell("b")]
    assert wall_seconds(mixed, 3, settings) > wall_seconds(plain, 3, settings)


def test_a_spec_with_both_variants(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(
        'engine = "spark"\n[[pipeline]]\nquery = "q1"\n[[workload]]\nname = "cosine"\n'
        '[[policy]]\nname = "spark-dra"\n'
        '[[policy]]\nname = "spark-dra"\nidle_timeout = 20\nshuffle_tracking = false\n'
    )
    keys = [c.key for c in load(path).cells]
    assert keys == ["q1-cosine-spark-dra", "q1-cosine-spark-dra-20-no-shuffle_tracking"]


def test_a_journal_says_that_we_only_looked() -> None:
    one = cell("a")
    assert one.header(one.create_policy(), 0).mode == "advise"
    ours = cell("a", "ds2")
    assert ours.header(ours.create_policy(), 0).mode == "act"


def test_measured_capacities_are_used_without_a_session(
    clusters: list[FakeCluster], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A resumed bench of which only such runs are left begins with their session."""
    write_capacities(tmp_path, {"q1": Capacity(slots=8, one=100.0, all=500.0, rows=1000)})
    monkeypatch.setattr(capacity, "warm_up", lambda rigged, *_: rigged.session())
    monkeypatch.setattr(worker, "run_on_spark", lambda *_, **__: CellRun(scores={}))
    with worker.SparkWorker(SparkSettings(), tmp_path, say=print, watch=print) as spark:
        spark.run(cell("a"), 1, journal=None, first=False)
    assert [c.kinds for c in clusters] == [[(3, "3s")]]
