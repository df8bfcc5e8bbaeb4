"""The local cluster: executors, quotas, growing and shrinking, and that nothing is ever left.

One cluster serves the tests of a running cluster, in their order. Those of its end run a cluster
in a Python process of its own, end that in various ways and look at what is left.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import EngineError, InputError, MissingError
from penstock.lab.clusters.standalone import cluster, layout
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.host import cgroups, java, leftovers, processes
from tests.fakes.waiting import until

SLOTS, SHARE = 4, 0.4
NOBODY = 65534


def eventually(condition: Callable[[], bool], what: str, *, within: float = 40.0) -> None:
    until(what, condition, within)


def run_of(folder: Path) -> leftovers.OwnedRun:
    return next(run for run in leftovers.runs(folder.parents[1]) if run.folder == folder)


def left_of(run: leftovers.OwnedRun) -> list[object]:
    """What is still there of a run: processes, cgroups, its folder, its record."""
    places = [*run.groups, run.folder, run.record]
    return [*run.processes(), *(place for place in places if place.exists())]


def backends(started: LocalCluster) -> list[int]:
    """Processes that are an executor, or a shell that holds one back."""
    commands = {pid: Path(f"/proc/{pid}/cmdline") for pid in run_of(started.folder).processes()}
    return [p for p, c in commands.items() if b"CoarseGrainedExecutorBackend" in c.read_bytes()]


def executor_groups(run: leftovers.OwnedRun) -> set[str]:
    """Names of the executors' groups, the same in every hierarchy."""
    names = [{entry.name for entry in group.iterdir() if entry.is_dir()} for group in run.groups]
    assert all(some == names[0] for some in names)
    return names[0] if names else set()


# ---- specifications ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"slots": 0}, "slots is 0; it must be between 1 and 256"),
        ({"executor_memory": "much"}, "executor_memory is 'much'; write it like '512m'"),
        ({"executor_memory": "100m"}, "executor_memory is 100m; Spark refuses less than 450m"),
        ({"cpu_share": 0.0}, "cpu_share is 0; it must be between 0.01 and"),
        ({"cpu_share": 1000.0}, "cpu_share is 1000; it must be between 0.01 and"),
        ({"cpu_share": float("nan")}, "cpu_share is nan"),
    ],
)
def test_bad_values_are_refused_at_construction(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        ClusterSpec(**wrong)


def test_the_worker_has_memory_for_all_slots() -> None:
    assert ClusterSpec(slots=4, executor_memory="1g").worker_memory(4) == "4097m"


# ---- failures at start leave nothing -------------------------------------------------------


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "penstock"


def test_no_java_is_missing(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "JVMS", Path("/nowhere"))
    with pytest.raises(MissingError, match="openjdk-17-jre-headless"):
        LocalCluster().start()
    assert not empty_cache.exists()


def test_no_pyspark_is_missing(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setattr(cluster, "find_java", lambda: None)
    with pytest.raises(MissingError, match=r"pip install 'penstock\[spark\]'"):
        LocalCluster().start()
    assert not empty_cache.exists()


@pytest.mark.spark
def test_a_master_that_dies_is_reported_with_its_last_words(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "class_path", lambda spark: "/nowhere")
    made = LocalCluster()
    with pytest.raises(EngineError, match=r"(?s)master ended with exit code 1.*ClassNotFound"):
        made.start()
    assert not any((empty_cache / "runs").iterdir())
    made.stop()
    with pytest.raises(InputError, match="a LocalCluster starts once"):
        made.start()
    with pytest.raises(EngineError, match="the cluster is not running"):
        made.conf()


# ---- a running cluster ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty working folder."""
    folder = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def spark(class_data: None, work: Path) -> Iterator[tuple[LocalCluster, Any]]:
    with LocalCluster(ClusterSpec(slots=SLOTS, cpu_share=SHARE, warm_up=0)) as started:
        yield started, started.session("test", start_with=1)


def scheduler(session: Any) -> tuple[Any, Any]:
    """Spark's own context and the JVM's names."""
    return session.sparkContext._jsc.sc(), session.sparkContext._jvm


def request_total(session: Any, count: int) -> None:
    context, jvm = scheduler(session)
    nothing = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
    context.requestTotalExecutors(count, 0, nothing)


def decommission(session: Any, executor_id: str) -> None:
    context, jvm = scheduler(session)
    info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("test", jvm.scala.Option.empty())
    context.schedulerBackend().decommissionExecutor(executor_id, info, True, False)


@pytest.mark.spark
def test_it_begins_with_the_executors_asked_for(spark: tuple[LocalCluster, Any]) -> None:
    started, session = spark
    assert list(started.executors()) == ["0"]
    assert session.range(1000).selectExpr("sum(id)").first()[0] == 499_500
    eventually(lambda: len(backends(started)) == 1, "the executors held back are gone")
    assert backends(started) == list(started.executors().values())


@pytest.mark.spark
def test_the_quota_is_in_force_after_registration(spark: tuple[LocalCluster, Any]) -> None:
    started, session = spark
    if not started.limited:
        pytest.skip(str(started.why_unlimited))
    run = run_of(started.folder)
    app = session.sparkContext.applicationId
    assert executor_groups(run) == {f"{app}.0"}
    quota = run.groups[0] / f"{app}.0" / "cpu.cfs_quota_us"
    if quota.exists():
        assert int(quota.read_text()) == SHARE * cgroups.PERIOD
    assert started.share("0") == SHARE
    started.set_share("0", 1.0)
    assert started.share("0") == 1.0
    assert started.why_unlimited is None


@pytest.mark.spark
def test_cpu_time_is_counted(spark: tuple[LocalCluster, Any]) -> None:
    started, session = spark
    before = started.cpu_seconds()["0"]
    assert before > 0.5, "starting an executor takes more"
    session.range(3_000_000).selectExpr("sum(hash(id))").collect()
    assert before < started.cpu_seconds()["0"] < before + 60


@pytest.mark.spark
def test_unknown_executors_and_shares_are_refused(spark: tuple[LocalCluster, Any]) -> None:
    started, _ = spark
    with pytest.raises(InputError, match="no executor '77' is registered; there are: 0"):
        started.share("77")
    with pytest.raises(InputError, match="cpu_share is 0"):
        started.set_share("0", 0.0)
    with pytest.raises(InputError, match="start_with is 5; it must be between 1 and the 4 slots"):
        started.conf(start_with=5)
    with pytest.raises(InputError, match="already has a Spark session on spark://"):
        started.session("second")


@pytest.mark.spark
def test_groups_follow_growing_shrinking_and_loss(spark: tuple[LocalCluster, Any]) -> None:
    started, session = spark
    app = session.sparkContext.applicationId

    def groups_follow() -> bool:
        wanted = {f"{app}.{id}" for id in started.executors()}
        return not started.limited or executor_groups(run_of(started.folder)) == wanted

    request_total(session, 3)
    eventually(lambda: len(started.executors()) == 3, "three executors")
    assert groups_follow()
    new = [id for id in started.executors() if id != "0"]
    assert [started.share(id) for id in new] == [SHARE if started.limited else None] * 2

    decommission(session, new[0])
    eventually(lambda: new[0] not in started.executors(), "the decommissioned executor is gone")
    eventually(groups_follow, "its group is gone")
    assert len(started.executors()) == 2

    os.kill(started.executors()[new[1]], signal.SIGKILL)
    eventually(lambda: new[1] not in started.executors(), "the killed executor is gone")
    eventually(lambda: len(started.executors()) == 2, "it was replaced")
    eventually(groups_follow, "groups follow")


@pytest.mark.spark
def test_a_killed_worker_is_replaced_and_the_query_goes_on(
    spark: tuple[LocalCluster, Any],
) -> None:
    started, session = spark
    query = session.readStream.format("rate").load().writeStream.format("noop").start()

    def batch() -> int:
        return int(query.lastProgress["batchId"]) if query.lastProgress else -1

    eventually(lambda: batch() >= 1, "the query runs")
    size, before, worker = len(started.executors()), started.executors(), started.worker
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: not any(map(processes.running, before.values())), "its executors ended")
    eventually(lambda: started.worker != worker, "a new worker")
    eventually(
        lambda: len(started.executors()) == size and not set(started.executors()) & set(before),
        "as many new executors as there were",
    )
    last = batch()
    eventually(lambda: batch() > last, "the query goes on")
    query.stop()
    assert started.failure is None
    assert len(backends(started)) == size


@pytest.mark.spark
def test_after_stop_nothing_is_left(spark: tuple[LocalCluster, Any], work: Path) -> None:
    started, _ = spark
    run = run_of(started.folder)
    assert len(run.processes()) >= 4  # master, worker, driver, executors
    started.stop()
    assert left_of(run) == []
    assert list(work.iterdir()) == []
    started.stop()


# ---- the end of the owner ------------------------------------------------------------------

CHILD = """
import json, sys, time
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster

def show(cluster, **more):
    seen = {"folder": str(cluster.folder), "limited": cluster.limited}
    print(json.dumps(seen | {"why": cluster.why_unlimited} | more), flush=True)

"""
WAIT_IN_BLOCK = """
with LocalCluster(ClusterSpec(slots=2)) as cluster:
    show(cluster)
    time.sleep(600)
"""
WAIT_WITHOUT_BLOCK = """
cluster = LocalCluster(ClusterSpec(slots=2)).start()
show(cluster)
time.sleep(600)
"""
WAIT_WITH_SESSION = """
with LocalCluster(ClusterSpec(slots=2)) as cluster:
    session = cluster.session("killed")
    show(cluster)
    time.sleep(600)
"""
WORK_AND_END = """
with LocalCluster(ClusterSpec(slots=2)) as cluster:
    session = cluster.session("unlimited")
    before = cluster.cpu_seconds()["0"]
    session.range(3_000_000).selectExpr("sum(hash(id))").collect()
    show(cluster, cpu=[before, cluster.cpu_seconds()["0"]], share=cluster.share("0"))
"""


def child(script: str, *, prefix: tuple[str, ...] = (), **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", CHILD + script],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | env,
    )


def first_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the child ended with {process.wait()}"
    value = json.loads(line)
    assert isinstance(value, dict)
    return value


@pytest.mark.spark
def test_a_killed_run_dies_and_the_next_start_cleans_up(class_data: None, work: Path) -> None:
    with child(WAIT_WITH_SESSION) as killed:
        run = run_of(Path(first_line(killed)["folder"]))
        assert len(run.processes()) >= 4
        killed.kill()
    eventually(lambda: not run.processes(), "its processes ended", within=15)

    with child(WAIT_IN_BLOCK) as interrupted:
        second = run_of(Path(first_line(interrupted)["folder"]))
        assert left_of(run) == []
        assert left_of(second) != []
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait(30) == -signal.SIGINT
    assert left_of(second) == []


@pytest.mark.spark
def test_terminated_without_a_with_block(class_data: None, work: Path) -> None:
    with child(WAIT_WITHOUT_BLOCK) as terminated:
        run = run_of(Path(first_line(terminated)["folder"]))
        terminated.terminate()
        assert terminated.wait(30) == 128 + signal.SIGTERM
    assert left_of(run) == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach; pytest's own cannot be."""
    with tempfile.TemporaryDirectory(prefix="penstock-test-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.spark
def test_without_permission_it_runs_unlimited_and_says_so(open_folder: Path) -> None:
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv (util-linux) is needed to give up root")
        # Reading stays allowed: Python itself may be installed in root's home.
        keep = "-all,+dac_read_search"
        prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        prefix += (f"--inh-caps={keep}", f"--ambient-caps={keep}", f"--bounding-set={keep}")
    elif cgroups.probe().hierarchy is not None:
        pytest.skip("this user may make control groups")
    env = {"HOME": "/nowhere", "XDG_CACHE_HOME": "", "TMPDIR": str(open_folder)}
    with child(WORK_AND_END, prefix=prefix, PENSTOCK_CLASS_DATA="off", **env) as unlimited:
        seen = first_line(unlimited)
        assert unlimited.wait(30) == 0
    assert not seen["limited"] and seen["share"] is None
    assert "compete for the" in seen["why"] and "run as root" in seen["why"]
    before, after = seen["cpu"]
    assert 0.5 < before < after < before + 60
    folder = Path(seen["folder"])
    assert open_folder in folder.parents
    assert list(folder.parent.iterdir()) == []
    assert not processes.with_variable(leftovers.RUN_VARIABLE, folder.name)
