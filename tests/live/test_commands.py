"""The commands that start Spark, as a user runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.history.journal import read
from penstock.lab.host import java
from tests.fakes.shell import Shell
from tests.live.left_behind import nothing_left

pytestmark = pytest.mark.spark

PENSTOCK = [sys.executable, "-m", "penstock"]

# A plain job: it knows nothing of Penstock.
SCRIPT = """
import sys, time
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.appName("plain").config("spark.sql.shuffle.partitions", "2").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 500).load()
counts = rows.groupBy((F.col("value") % 10).alias("key")).count()
query = counts.writeStream.format("noop").outputMode("update").trigger(processingTime="1 second").start()
deadline = time.time() + 100
while time.time() < deadline and len(query.recentProgress) < int(sys.argv[1]):
    query.awaitTermination(1)
print("executors", spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1)
print("master", spark.sparkContext.master)
print("active", query.isActive)
query.stop()
sys.exit(7)
"""  # noqa: E501


# What spark-submit would give it: settings by precedence, a module for driver and executors.
SUBMITTED = """
import helper
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.x.code", "code").getOrCreate()
for key in ("code", "conf", "file"):
    print(key, spark.conf.get("spark.x." + key))
print("name", spark.sparkContext.appName)
numbers = spark.sparkContext.parallelize([1], 1)
print("executors say", numbers.map(lambda n: helper.plus(n)).collect())
helper.fail()
"""


@pytest.mark.parametrize(
    "where",
    [pytest.param(["--local-cluster", "1"], marks=pytest.mark.long), ["--master", "local[1]"]],
)
def test_run_takes_what_spark_submit_takes(where: list[str], tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SUBMITTED)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text(
        "def plus(n):\n    return n + 41\n\ndef fail():\n    raise ValueError('its own')\n"
    )
    (tmp_path / "my.conf").write_text(
        "spark.x.code file\nspark.x.conf file\nspark.x.file file\nspark.executor.memory 600m\n"
    )
    done = subprocess.run(
        [*PENSTOCK, "run", "job.py", *where, "--properties-file", "my.conf", "--name", "mine",
         "--conf", "spark.x.code=conf", "--conf", "spark.x.conf=conf",
         "--py-files", "lib/helper.py"],
        capture_output=True, text=True, cwd=tmp_path, timeout=240,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "code code", "conf conf", "file file", "name mine", "executors say [42]",
    ], done.stderr  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("penstock: Spark UI at http://") == 1
    trace = done.stderr[done.stderr.index("Traceback") :]
    assert "penstock/cli" not in trace and "runpy" not in trace
    assert "ValueError: its own" in trace.splitlines()  # Spark may log after it
    assert nothing_left()


def test_run_wraps_an_unmodified_script_on_a_local_cluster(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(SCRIPT)
    journal = tmp_path / "journal.jsonl"
    done = subprocess.run(
        [*PENSTOCK, "run", str(script), "12", "--policy", "static", "--set", "slots=2",
         "--mode", "act", "--max", "2", "--period", "1", "--cool-down", "1",
         "--local-cluster", "2", "--cpu-share", "1.0", "--journal", str(journal)],
        capture_output=True, text=True, cwd=tmp_path, timeout=240,
    )  # fmt: skip
    assert done.returncode == 7, done.stderr  # the script's own exit code
    assert "active True" in done.stdout
    assert "executors 2" in done.stdout
    assert "master spark://127.0.0.1" in done.stdout
    assert "executors 1→2: the size is fixed at 2" in done.stderr
    header, entries = read(journal)
    assert (header.policy, header.mode) == ("static", "act")
    assert sum(e.decision.applied for e in entries) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["journal.jsonl", "plain.py"]
    assert nothing_left()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demo", "--policy", "ds3"], "did you mean 'ds2'"),
        (["demo", "--set", "speed=9"], "unknown parameter of policy ds2 'speed'"),
        (["demo", "--seconds", "5"], "--seconds 5 must lie between 30 and 3600"),
        (["demo", "--low", "-1"], "low = -1.0 must be a finite number ≥ 0"),
        (["demo", "--max", "0"], "0"),
        (["demo", "--out", "/proc/none"], "cannot write a run under /proc/none"),
        (["run", "missing.py"], "no script at missing.py"),
        (["run", "README.md", "--mode", "auto"], "--mode 'auto' must be advise or act"),
        (["run", "README.md", "--min", "5", "--max", "2"], "minimum 5 is above maximum 2"),
        (["calibrate", "--executors", "1,two"], "must look like 1,2,4,8"),
        (["calibrate", "--executors", "0"], "must be different numbers ≥ 1"),
    ],
)
def test_bad_usage_is_refused_before_anything_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    done = Shell.at(tmp_path, monkeypatch, capsys)(*arguments)
    assert done.code == 2, done.err
    assert said in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_without_java_the_way_to_get_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "JVMS", tmp_path / "none")
    monkeypatch.setattr(sys, "argv", ["penstock", "demo", "--out", str(tmp_path / "runs")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 3
    assert "openjdk-17-jre-headless" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
