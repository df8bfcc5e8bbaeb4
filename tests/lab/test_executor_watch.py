"""Executors get their quota when they are warm; a process of our own stands in for one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.lab.clusters.standalone.watch import REGISTERED, Executor, ExecutorWatch
from tests.fakes.waiting import until


class FakeGroups:
    """Control groups whose CPU clock the test turns."""

    def __init__(self) -> None:
        self.cpu = 2.0
        self.shares: dict[str, float | None] = {}

    def cpu_seconds(self, key: str) -> float:
        return self.cpu

    def set_share(self, key: str, share: float) -> None:
        self.shares[key] = share

    def limit(self, key: str, share: float | None) -> None:
        self.shares[key] = share

    def clear(self, key: str) -> bool:
        return True


@pytest.fixture
def groups() -> FakeGroups:
    return FakeGroups()


def share_of(executor: Executor) -> float:
    """This process stands in for an executor, so its own parent is the worker."""
    return 0.2 if executor.worker == os.getppid() else 0.9


def watch(folder: Path, groups: Any, warm_up: float) -> ExecutorWatch:
    (folder / "executors").mkdir()
    (folder / "executors" / "app-1.0").write_text(str(os.getpid()))
    log = folder / "work" / "app-1" / "0" / "stderr"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"INFO starting\n")
    return ExecutorWatch(folder, groups, share_of, warm_up)


@pytest.fixture
def warming(tmp_path: Path, groups: FakeGroups) -> Iterator[ExecutorWatch]:
    watching = watch(tmp_path, groups, 5.0)
    (tmp_path / "work" / "app-1" / "0" / "stderr").write_bytes(REGISTERED)
    until("registered", lambda: "0" in watching.of("app-1"), 10)
    yield watching
    watching.stop()


def test_without_a_warm_up_the_quota_comes_with_the_registration(
    tmp_path: Path, groups: FakeGroups
) -> None:
    watching = watch(tmp_path, groups, 0.0)
    assert watching.of(None) == {}
    (tmp_path / "work" / "app-1" / "0" / "stderr").write_bytes(REGISTERED)
    until("limited", lambda: groups.shares.get("app-1.0") == 0.2, 10)
    watching.stop()
    assert groups.shares == {"app-1.0": None}  # it may end at full speed


def test_the_quota_waits_for_the_cpu_seconds_after_registration(
    warming: ExecutorWatch, groups: FakeGroups
) -> None:
    groups.cpu = 6.9
    assert groups.shares == {}
    groups.cpu = 7.1
    until("limited", lambda: groups.shares.get("app-1.0") == 0.2, 10)


def test_a_share_set_by_hand_ends_the_warm_up(
    tmp_path: Path, warming: ExecutorWatch, groups: FakeGroups
) -> None:
    executor = warming.of("app-1")["0"]
    warming.end_warm_up(executor)
    groups.set_share(executor.key, 0.9)
    groups.cpu = 100.0
    # A second executor that is seen proves that the watch has looked since.
    log = tmp_path / "work" / "app-1" / "1" / "stderr"
    log.parent.mkdir()
    log.write_bytes(REGISTERED)
    (tmp_path / "executors" / "app-1.1").write_text(str(os.getpid()))
    until("looked again", lambda: "1" in warming.of("app-1"), 10)
    assert groups.shares == {"app-1.0": 0.9}
