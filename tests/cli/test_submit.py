"""What ``penstock run`` takes of ``spark-submit``, and how it reaches the script's session."""

from __future__ import annotations

import os
import shlex
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.cli.submit import SHELL, VARIABLE, Submit, read_properties
from penstock.core.errors import InputError
from tests.fakes.shell import Shell

SCRIPT = """
import os, sys
import helper, packed
print(os.environ["PYSPARK_SUBMIT_ARGS"])
print(helper.NAME, packed.NAME, sys.argv[1:])
"""


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("helper", "packed"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("NAME = 'a module'\n")
    with zipfile.ZipFile(tmp_path / "lib" / "packed.zip", "w") as archive:
        archive.writestr("packed.py", "NAME = 'an archive'\n")
    (tmp_path / "a.jar").touch()
    (tmp_path / "my.conf").write_text("spark.executor.memory 2g\nspark.ui.port=4050\n")
    return Shell.at(tmp_path, monkeypatch, capsys, "run", "job.py")


def test_all_of_it_reaches_the_session_and_the_script(shell: Shell, tmp_path: Path) -> None:
    path = sys.path[:]
    done = shell(
        "--conf", "spark.a=1", "-c", "spark.b=x y=z", "--properties-file", "my.conf",
        "--packages", "org.x:y_2.13:1.0", "--jars", "*.jar,hdfs:///b.jar", "--name", "my job",
        "--py-files", "lib/helper.py,lib/packed.zip", "--master", "local[1]", "--", "--own",
    )  # fmt: skip
    assert done.code == 0, done.err
    arguments, rest = done.out.splitlines()
    assert rest == "a module an archive ['--own']"
    assert shlex.split(arguments) == [
        "--properties-file", "my.conf", "--master", "local[1]", "--name", "my job",
        "--conf", "spark.a=1", "--conf", "spark.b=x y=z", "--packages", "org.x:y_2.13:1.0",
        "--jars", f"{tmp_path}/a.jar,hdfs:///b.jar",
        "--py-files", f"{tmp_path}/lib/helper.py,{tmp_path}/lib/packed.zip", SHELL,
    ]  # fmt: skip
    assert VARIABLE not in os.environ
    assert not [p for p in sys.path if "py-files" in p and p not in path]


def test_what_the_environment_says_stays_and_is_weaker(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, "--conf spark.a=0 pyspark-shell")
    (tmp_path / "job.py").write_text("import os; print(os.environ['PYSPARK_SUBMIT_ARGS'])")
    done = shell("--conf", "spark.a=1")
    assert done.out == "--conf spark.a=0 --conf spark.a=1 pyspark-shell\n"
    assert os.environ[VARIABLE] == "--conf spark.a=0 pyspark-shell"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--conf", "a"], "--conf 'a' must look like KEY=VALUE"),
        (["--conf", "=b"], "--conf '=b' must look like KEY=VALUE"),
        (["--conf", "my.key=1"], "Spark ignores keys that do not begin with 'spark.'"),
        (["--jars", "a.jar,none.jar"], "--jars none.jar: there is no such file"),
        (["--jars", "file:///none/*.jar"], "there is no such file"),
        (["--py-files", "none.py"], "--py-files none.py: there is no such file"),
        (["--py-files", "my.conf"], "--py-files my.conf must be one of .py, .zip"),
        (["--properties-file", "none"], "--properties-file none: there is no such file"),
        (["--packages", "kafka"], "--packages 'kafka' must look like GROUP:ARTIFACT:VERSION"),
        (["--conf", "spark.penstock.mode=ac"], "spark.penstock.mode = 'ac' must be advise or act"),
        (["--local-cluster", "2", "--master", "yarn"], "either --master yarn or --local-cluster"),
        (["--local-cluster", "2", "--conf", "spark.executor.cores=4"], "have one core each"),
        (["--step-up", "0"], "--step-up 0"),
        (["--drain", "soon"], "--drain 'soon'"),
        (["--blackout", "noon"], "--blackout"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    shell: Shell, given: list[str], says: str
) -> None:
    done = shell(*given)
    assert (done.code, done.out) == (2, "")
    assert says in " ".join(done.err.split())
    assert "starting" not in done.err


def test_guards_and_spark_penstock_settings_count_from_the_start(shell: Shell) -> None:
    done = shell(
        "--print-config", "--conf", "spark.penstock.mode=act", "--step-up", "2", "--drain", "2m",
        "--blackout", "22:00-06:30", "--blackout", "12:00-13:00", "--tolerance", "0.2",
    )  # fmt: skip
    rows = {row.split()[0]: row for row in done.out.splitlines()}
    assert "spark.penstock.mode" in rows["mode"] and "act" in rows["mode"]
    assert rows["guards.drain"].split()[1:] == ["120s", "--drain"]
    assert rows["guards.step_up"].split()[1:] == ["2", "--step-up"]
    assert "22:00-06:30, 12:00-13:00" in rows["blackouts"]


def test_on_a_cluster_that_is_started_for_it_the_file_comes_over_its_settings(
    tmp_path: Path,
) -> None:
    file = tmp_path / "my.conf"
    file.write_text(
        "# of production\nspark.master yarn\nspark.executor.cores: 4\nspark.a b c\n"
        "spark.executor.extraJavaOptions -Dx=\\\n  1\nother 1\n"
    )
    cluster = {
        "spark.master": "spark://here", "spark.executor.cores": "1", "spark.ui.port": "0",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
    }  # fmt: skip
    submit = Submit.of(
        conf=["spark.driver.extraJavaOptions=-Dy=2", "spark.executor.extraJavaOptions=-Dz=3"],
        properties_file=file,
    )
    assert submit.defaults(cluster) == {
        "spark.master": "spark://here", "spark.executor.cores": "1", "spark.ui.port": "0",
        "spark.a": "b c", "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -Dx=1",
    }  # fmt: skip
    assert submit.arguments(cluster) == [
        "--conf", "spark.driver.extraJavaOptions=-Dy=2",
        "--conf", "spark.executor.extraJavaOptions=-XX:+UseSerialGC -Dz=3",
    ]  # fmt: skip


def test_properties_as_spark_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "my.conf"
    file.write_text(
        "! said\n\nspark.a=1\nspark.b  2 3\n  spark.c : x=y\nspark.d\nspark.path\\:x 4\n"
    )
    assert read_properties(file) == {
        "spark.a": "1", "spark.b": "2 3", "spark.c": "x=y", "spark.d": "", "spark.path:x": "4",
    }  # fmt: skip
    file.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read"):
        read_properties(file)
