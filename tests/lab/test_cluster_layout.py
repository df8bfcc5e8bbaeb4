"""What master, workers and executors of a cluster are started with, on loopback and at sites."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.lab.clusters.standalone import layout
from penstock.lab.clusters.standalone.layout import Layout
from penstock.lab.host import leftovers, processes
from penstock.lab.host.java import ClassData, Java
from tests.fakes.waiting import until


def laid_out(folder: Path, host: str) -> Layout:
    java = Java(home=folder / "java-home", version="17", vector=True)
    binary = java.home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text('#!/bin/sh\necho "$@" >"$TMPDIR/said"\nexec sleep 600\n')
    binary.chmod(0o755)
    run = leftovers.open_run(folder / "cache")
    made = Layout(
        run=run,
        java=java,
        spark=folder / "spark",
        data=ClassData(
            java=java, spark=folder, archive=folder / "none.jsa", lists=run.folder / "classes"
        ),
        host=host,
    )
    made.make()
    return made


@pytest.fixture(autouse=True)
def no_class_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CLASS_DATA", "off")


def test_on_loopback_names_are_looked_up_as_always(tmp_path: Path) -> None:
    made = laid_out(tmp_path, "127.0.0.1")
    assert made.names == []
    assert not any("hosts.file" in word for word in made.command("worker", "w", []))
    assert made.environment()["PENSTOCK_TIED"] == ""


def test_at_a_site_no_question_for_a_name_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tmp_path / "etc-hosts"
    names.write_text("10.1.2.3 database\n")
    monkeypatch.setattr(layout, "NAMES", names)
    made = laid_out(tmp_path, "198.18.0.1")
    file = made.run.folder / "hosts"
    assert made.names == [f"-Djdk.net.hosts.file={file}"]
    assert made.names[0] in made.command("master", "master", [])
    assert "10.1.2.3 database" in file.read_text()
    assert f"127.0.0.1 localhost {os.uname().nodename}" in file.read_text()


@pytest.mark.parametrize("host", ["127.0.0.1", "198.18.0.1"])
def test_an_executor_at_a_site_ends_with_its_worker(tmp_path: Path, host: str) -> None:
    """A shell stands in for the worker; the news of its end cannot come by the network."""
    made = laid_out(tmp_path, host)
    shim = made.run.folder / "java/bin/java"
    backend = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
    start = f"{shim} {backend} --app-id app-1 --executor-id 0"
    worker = subprocess.Popen(
        ["sh", "-c", f"{start} & wait"], env=dict(os.environ) | made.environment()
    )
    announced = made.run.folder / "executors" / "app-1.0"
    until("it is announced", announced.exists, 10)
    executor = int(announced.read_text())
    said = made.run.folder / "tmp" / "said"
    until("it runs", lambda: said.exists() and backend in said.read_text(), 10)
    assert ("-Djdk.net.hosts.file=" in said.read_text()) == (host != "127.0.0.1")
    worker.kill()
    worker.wait()
    if host == "127.0.0.1":
        assert processes.running(executor), "Spark notices by itself"
    else:
        until("it has ended", lambda: not processes.running(executor), 10)
    assert made.run.clear() == []
    assert not processes.running(executor)
