"""What is found on a machine: Java, class data, the cache folder, owners of runs, the doctor."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.core.errors import MissingError
from penstock.lab.host import java, leftovers, probes, processes
from penstock.lab.host.java import ClassData, Java


def make_java(home: Path, *, version: str = "17.0.15", modules: str = java.VECTOR) -> Path:
    (home / "bin").mkdir(parents=True)
    binary = home / "bin" / "java"
    binary.write_text("#!/bin/sh\nexit 1\n")
    binary.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="java.base {modules}"\n')
    return home


@pytest.fixture
def no_jvms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "jvm"
    folder.mkdir()
    monkeypatch.setattr(java, "JVMS", folder)
    return folder


def test_java_home_wins_over_the_path(tmp_path: Path, no_jvms: Path) -> None:
    chosen, other = make_java(tmp_path / "chosen"), make_java(tmp_path / "other")
    environ = {"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}
    assert java.find_java(environ).home == chosen
    assert java.find_java({"PATH": str(other / "bin")}).home == other


def test_an_unfit_java_is_passed_over(tmp_path: Path, no_jvms: Path) -> None:
    old = make_java(tmp_path / "old", version="11.0.2")
    good = make_java(no_jvms / "java-21", version="21.0.1")
    assert java.find_java({"JAVA_HOME": str(old)}) == Java(home=good, version="21.0.1", vector=True)


@pytest.mark.parametrize(
    ("version", "modules", "said"),
    [
        ("1.8.0_402", java.VECTOR, "Java 1.8.0_402 in .* is older than 17"),
        ("17.0.1", "java.sql", r"lacks the module jdk\.incubator\.vector"),
    ],
)
def test_only_unfit_javas(
    tmp_path: Path, no_jvms: Path, version: str, modules: str, said: str
) -> None:
    home = make_java(tmp_path / "java", version=version, modules=modules)
    with pytest.raises(MissingError, match=said):
        java.find_java({"JAVA_HOME": str(home)})


def test_no_java_says_how_to_get_one(no_jvms: Path) -> None:
    with pytest.raises(MissingError, match="apt-get install openjdk-17-jre-headless") as caught:
        java.find_java({"PATH": ""})
    assert caught.value.exit_code == 3


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassData:
    monkeypatch.delenv("PENSTOCK_CLASS_DATA", raising=False)
    (tmp_path / "lists").mkdir()
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return ClassData(
        java=Java(home=tmp_path / "java", version="17", vector=True),
        spark=tmp_path / "spark",
        archive=tmp_path / "cache" / "spark-1.jsa",
        lists=tmp_path / "lists",
    )


def test_class_data_is_listed_then_dumped_then_used(data: ClassData) -> None:
    assert data.options("master") == [f"-XX:DumpLoadedClassList={data.lists}/master.classes"]
    (data.lists / "master.classes").write_text("a/B\njdk/$Proxy1\nc/D\n")
    (data.lists / "app-1.classes").write_text("a/B\ne/F\n")

    def dump(command: list[str]) -> bool:
        (data.lists / "fresh.jsa").write_text("archive")
        return True

    assert data.dump(dump, lambda line: None)
    assert (data.lists / "merged.list").read_text() == "a/B\nc/D\ne/F\n"
    assert data.archive.read_text() == "archive"
    assert f"-XX:SharedArchiveFile={data.archive}" in data.options("master")


def test_class_data_without_an_executor_is_not_worth_an_archive(data: ClassData) -> None:
    (data.lists / "master.classes").write_text("a/B\n")
    assert not data.dump(lambda command: True, lambda line: None)


def test_class_data_that_java_refuses_is_not_kept(data: ClassData) -> None:
    (data.lists / "app-1.classes").write_text("a/B\n")
    said: list[str] = []
    assert not data.dump(lambda command: "-Xshare:dump" in command, said.append)
    assert not data.archive.exists()
    assert "could not be saved" in said[-1]


def test_class_data_can_be_switched_off(data: ClassData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CLASS_DATA", "off")
    assert data.options("master") == []
    assert not data.wanted


def test_a_broken_archive_does_not_break_a_start(tmp_path: Path) -> None:
    try:
        real = java.find_java()
    except MissingError as problem:
        pytest.skip(str(problem))
    broken = tmp_path / "broken.jsa"
    broken.write_bytes(os.urandom(100_000))
    data = ClassData(java=real, spark=tmp_path, archive=broken, lists=tmp_path)
    done = subprocess.run(
        [real.binary, *data.options("x"), "-version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""  # a warning there would spoil --json


def test_the_cache_folder_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = tmp_path / "file"
    file.touch()
    xdg, home = tmp_path / "xdg", tmp_path / "home"
    everything = {"XDG_CACHE_HOME": str(xdg), "HOME": str(home)}
    assert leftovers.cache_folder(everything) == xdg / "penstock"
    assert leftovers.cache_folder({"HOME": str(home)}) == home / ".cache" / "penstock"
    fallback = leftovers.cache_folder({"HOME": str(file)})
    assert fallback == tmp_path / f"penstock-{os.geteuid()}"
    assert fallback.stat().st_mode & 0o077 == 0


def test_a_trap_in_the_temporary_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"penstock-{os.geteuid()}").symlink_to(elsewhere)
    folder = leftovers.cache_folder({})
    assert folder.resolve() != elsewhere
    assert not any(elsewhere.iterdir())


def test_an_owner_is_known_by_more_than_its_pid() -> None:
    me = leftovers.Owner.me()
    assert not me.dead
    assert dataclasses.replace(me, started=me.started - 1).dead  # the pid was used again
    assert dataclasses.replace(me, boot="before").dead
    assert not dataclasses.replace(me, boot="other", host="elsewhere").dead  # a shared home
    assert not dataclasses.replace(me, started=0, space="pid:[1]").dead  # another container


def test_cleaning_touches_only_runs_of_dead_owners(tmp_path: Path) -> None:
    alive = leftovers.open_run(tmp_path)
    dead = leftovers.open_run(tmp_path)
    gone = dataclasses.replace(dead, owner=dataclasses.replace(dead.owner, started=0))
    gone.save()
    (gone.folder / "left").touch()
    env = os.environ | {leftovers.RUN_VARIABLE: gone.id}
    with subprocess.Popen(["sleep", "60"], env=env) as survivor:
        cleaner = "from penstock.lab.host import leftovers; from pathlib import Path; import sys\n"
        cleaner += "print(leftovers.clean(Path(sys.argv[1])))"
        clean = subprocess.Popen(
            [sys.executable, "-c", cleaner, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert survivor.wait(20) == -9
        assert clean.communicate(timeout=20)[0].strip() == str([gone.id])
    assert alive.folder.is_dir() and alive.record.is_file()
    assert not gone.folder.exists() and not gone.record.exists()
    assert alive.clear() == []
    assert not any((tmp_path / "runs").iterdir())


def test_an_unreadable_record_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.json").write_text('{"id": "x"')
    assert leftovers.clean(tmp_path) == []


def test_cpu_of_a_process_tree_counts_children() -> None:
    spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    with subprocess.Popen(["sh", "-c", f"sh -c '{spin}'; exec sleep 60"]) as tree:
        deadline = time.monotonic() + 30
        used = 0.0
        while used < 0.1 and time.monotonic() < deadline:
            now = processes.tree_cpu_seconds([tree.pid])[tree.pid]
            assert now >= used, "CPU time went back"
            used = now
        tree.kill()
    assert used >= 0.1


def test_a_child_dies_with_the_thread_that_guards_it(tmp_path: Path) -> None:
    nursery = processes.Nursery()
    child = nursery.start(["sleep", "60"], env={}, cwd=tmp_path, log=tmp_path / "log")
    assert os.getpgid(child.pid) == child.pid  # Ctrl-C in the terminal does not reach it
    nursery.close()
    assert child.wait(10) == -9


def test_a_child_that_cannot_start_says_so(tmp_path: Path) -> None:
    nursery = processes.Nursery()
    with pytest.raises(FileNotFoundError):
        nursery.start(["/nowhere/java"], env={}, cwd=tmp_path, log=tmp_path / "log")
    nursery.close()


def test_the_doctor_looks_at_everything_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    seen = {check.name: check for check in probes.checks()}
    assert list(seen) == [
        "Python",
        "Java",
        "pyspark",
        "control groups",
        "network namespaces",
        "TUN device",
        "cores",
        "memory",
        "cache folder",
    ]
    assert all(check.fix for check in seen.values() if not check.ok)
    assert seen["cache folder"].found == str(tmp_path / "cache" / "penstock")
    assert not any(tmp_path.iterdir())


def test_the_doctor_on_a_bare_machine(no_jvms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(probes, "TUN", Path("/nowhere/tun"))
    assert not probes.java().ok
    assert not probes.tun().ok
    assert not probes.network_namespaces().ok
    assert not probes.cache().ok
