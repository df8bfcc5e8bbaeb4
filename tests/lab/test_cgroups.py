"""Control groups: the code against a pretended kernel for both versions, and against the real one.

The pretended kernel keeps the rules that matter: a new group has the control files its parent
passes on, a group that passes controllers on may not hold processes (version 2), a group with
processes cannot be removed, and writing a pid moves it.
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
from pathlib import Path
from typing import Literal

import pytest

from penstock.core.errors import EngineError
from penstock.lab.host import cgroups
from penstock.lab.host.cgroups import Groups, Hierarchy, probe
from tests.fakes.waiting import until

V1_FILES = {
    "cpu": {"cpu.cfs_period_us": "100000\n", "cpu.cfs_quota_us": "-1\n"},
    "cpuacct": {"cpuacct.usage": "1500000000\n"},
}
V2_FILES = {"cpu.max": "max 100000\n", "cpu.stat": "usage_usec 1500000\nuser_usec 1000000\n"}


class PretendedKernel:
    """A cgroup file system in an ordinary folder."""

    def __init__(self, root: Path, version: Literal[1, 2], monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.version = root, version
        self.own = root / "own"
        self.mount = root / "mount"
        if version == 1:
            self.mount.mkdir()
            for controller in V1_FILES:
                self.mkdir(self.mount / controller)
            self.own.write_text("2:cpuacct:/\n1:cpu:/\n0::/\n")
        else:
            self.mkdir(self.mount)
            (self.mount / "cgroup.controllers").write_text("cpu memory\n")
            self.own.write_text("0::/\n")
        monkeypatch.setattr(cgroups, "_mkdir", self.mkdir)
        monkeypatch.setattr(cgroups, "_rmdir", self.rmdir)
        monkeypatch.setattr(cgroups, "_write", self.write)

    def _pids(self, group: Path) -> list[str]:
        return (group / "cgroup.procs").read_text().split()

    def mkdir(self, group: Path) -> None:
        group.mkdir(exist_ok=True)
        if (group / "cgroup.procs").exists():
            return
        (group / "cgroup.procs").write_text("")
        if self.version == 1:
            files = V1_FILES[group.relative_to(self.mount).parts[0]]
        else:
            above = group.parent / "cgroup.subtree_control"
            passed = above.exists() and "cpu" in above.read_text().split()
            files = {"cgroup.controllers": "cpu\n" if passed else "\n"}
            files |= {"cgroup.subtree_control": "\n"} | (V2_FILES if passed else {})
        for name, text in files.items():
            (group / name).write_text(text)

    def rmdir(self, group: Path) -> None:
        if not group.exists():
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(group))
        self._reap(group)
        if self._pids(group) or any(entry.is_dir() for entry in group.iterdir()):
            raise OSError(errno.EBUSY, "Device or resource busy", str(group))
        for file in group.iterdir():
            file.unlink()
        group.rmdir()

    def _reap(self, group: Path) -> None:
        alive = [pid for pid in self._pids(group) if Path(f"/proc/{pid}").exists()]
        (group / "cgroup.procs").write_text("\n".join(alive))

    def write(self, file: Path, text: str) -> None:
        if not file.exists():
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(file))
        if file.name == "cgroup.subtree_control":
            is_root = file.parent == self.mount
            if self._pids(file.parent) and not is_root:
                raise OSError(errno.EBUSY, "Device or resource busy", str(file))
            text = text.replace("+", "")
        if file.name == "cgroup.procs":
            text = "\n".join([*self._pids(file.parent), text])
        file.write_text(text + "\n")


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def kernel(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> PretendedKernel:
    return PretendedKernel(tmp_path, request.param, monkeypatch)


@pytest.fixture
def groups(kernel: PretendedKernel) -> Groups:
    found = probe(kernel.mount, kernel.own)
    assert found.hierarchy is not None, found.reason
    groups = Groups(hierarchy=found.hierarchy, name="penstock-test")
    groups.create()
    return groups


def test_probe_finds_the_version_and_leaves_nothing(kernel: PretendedKernel) -> None:
    before = sorted(path for path in kernel.mount.rglob("*") if path.is_dir())
    found = probe(kernel.mount, kernel.own)
    assert found.hierarchy is not None
    assert found.hierarchy.version == kernel.version
    assert sorted(path for path in kernel.mount.rglob("*") if path.is_dir()) == before


def test_a_new_group_has_no_limit(groups: Groups) -> None:
    groups.add("app.1", 1)
    assert groups.share("app.1") is None


@pytest.mark.parametrize("share", [0.01, 0.2, 1.0, 1.5])
def test_the_share_that_was_set_is_read_back(groups: Groups, share: float) -> None:
    groups.add("app.1", 1)
    groups.set_share("app.1", share)
    assert groups.share("app.1") == share
    groups.limit("app.1", None)
    assert groups.share("app.1") is None


def test_cpu_time_is_in_seconds(groups: Groups) -> None:
    groups.add("app.1", 1)
    assert groups.cpu_seconds("app.1") == 1.5


def test_a_group_that_is_not_there_has_no_figures(groups: Groups) -> None:
    assert groups.cpu_seconds("app.9") is None
    assert groups.share("app.9") is None
    with pytest.raises(EngineError, match=r"executor app\.9 has no cgroup any more"):
        groups.set_share("app.9", 0.5)


def test_clearing_ends_what_is_left_and_removes_the_group(groups: Groups) -> None:
    with subprocess.Popen(["sleep", "60"]) as orphan:
        groups.add("app.1", orphan.pid)
        assert cgroups.members(groups.folders[0]) == [orphan.pid]
        assert not groups.clear("app.1")  # killed, but not gone yet
        assert orphan.wait(5) == -9
    assert groups.clear("app.1")
    assert all(cgroups.remove_tree(folder) for folder in groups.folders)
    assert not any(folder.exists() for folder in groups.folders)


def test_version_2_climbs_to_the_nearest_group_without_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = PretendedKernel(tmp_path, 2, monkeypatch)
    kernel.write(kernel.mount / "cgroup.subtree_control", "+cpu")
    slice_, scope = kernel.mount / "app.slice", kernel.mount / "app.slice" / "me.scope"
    kernel.mkdir(slice_)
    kernel.write(slice_ / "cgroup.subtree_control", "+cpu")
    kernel.mkdir(scope)
    kernel.write(scope / "cgroup.procs", str(os.getpid()))
    kernel.own.write_text("0::/app.slice/me.scope\n")

    assert probe(kernel.mount, kernel.own).hierarchy == Hierarchy(
        version=2, cpu=slice_, account=slice_
    )


def test_no_controller_is_said(tmp_path: Path) -> None:
    found = probe(tmp_path, tmp_path / "own")
    assert found.hierarchy is None
    assert "no cgroup hierarchy with the cpu controller" in found.reason


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EACCES, "Permission denied"), (errno.EROFS, "Read-only file system")],
)
def test_a_refusal_says_why_and_what_helps(
    kernel: PretendedKernel, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def refuse(folder: Path) -> None:
        raise OSError(number, words, str(folder))

    monkeypatch.setattr(cgroups, "_mkdir", refuse)
    found = probe(kernel.mount, kernel.own)
    assert found.hierarchy is None
    assert words in found.reason
    assert found.fix is not None and "run as root" in found.fix


def test_the_real_kernel_throttles() -> None:
    found = probe()
    if found.hierarchy is None:
        pytest.skip(found.reason)
    groups = Groups(hierarchy=found.hierarchy, name=f"penstock-test-{os.getpid()}")
    groups.create()
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        groups.add("app.1", busy.pid)
        groups.set_share("app.1", 0.1)
        assert groups.share("app.1") == 0.1
        used_before, begun = groups.cpu_seconds("app.1"), time.monotonic()
        assert used_before is not None
        enough = used_before + 0.1
        until("0.1 s of CPU", lambda: (groups.cpu_seconds("app.1") or 0.0) >= enough, 10)
        # 0.1 s of CPU at a tenth of a core takes a second; unthrottled it takes 0.1–0.2 s.
        assert time.monotonic() - begun > 0.5
    finally:
        busy.kill()
        busy.wait()
        deadline = time.monotonic() + 5
        while not all(cgroups.remove_tree(folder) for folder in groups.folders):
            assert time.monotonic() < deadline, "the groups could not be removed"
    assert not any(folder.exists() for folder in groups.folders)
