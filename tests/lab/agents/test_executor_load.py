"""The load of an executor, read from a pretended control group."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.core.errors import InputError
from penstock.lab.agents.executors.load import GroupAccount, LoadMeter, ProcessAccount, account_of
from penstock.lab.host.cgroups import Groups, Hierarchy

WINDOW = 12.0


class Executor:
    """A control group that uses CPU as time passes."""

    def __init__(self, folder: Path, version: int = 2) -> None:
        self.folder, self.version = folder / "run" / "app.3", version
        self.folder.mkdir(parents=True)
        self.now, self.seconds = 100.0, 40.0
        hierarchy = Hierarchy(version=version, cpu=folder, account=folder)  # type: ignore[arg-type]
        self.account = GroupAccount(groups=Groups(hierarchy=hierarchy, name="run"), key="app.3")
        self.meter = LoadMeter(self.account, WINDOW, lambda: self.now)
        self.limit(0.2)
        self.write()

    def limit(self, quota: float | None) -> None:
        text = str(round(quota * 1e5)) if quota is not None else None
        if self.version == 1:
            (self.folder / "cpu.cfs_quota_us").write_text(text or "-1")
            (self.folder / "cpu.cfs_period_us").write_text("100000")
        else:
            (self.folder / "cpu.max").write_text(f"{text or 'max'} 100000\n")

    def write(self) -> None:
        if self.version == 1:
            (self.folder / "cpuacct.usage").write_text(str(round(self.seconds * 1e9)))
        else:
            text = f"usage_usec {round(self.seconds * 1e6)}\nuser_usec 1\n"
            (self.folder / "cpu.stat").write_text(text)

    def run(self, seconds: int, cores: float) -> float | None:
        """Use so much CPU for a while; the load that is read then."""
        for _ in range(seconds):
            self.now += 1.0
            self.seconds += cores
            self.write()
            self.meter.sample()
        return self.meter.load()


@pytest.mark.parametrize("version", [1, 2])
def test_the_load_is_the_share_of_the_quota_over_the_window(tmp_path: Path, version: int) -> None:
    executor = Executor(tmp_path, version)
    assert executor.run(20, 0.15) == pytest.approx(0.75)
    assert executor.run(12, 0.05) == pytest.approx(0.25)


def test_bursts_of_micro_batches_are_averaged(tmp_path: Path) -> None:
    executor = Executor(tmp_path)
    for _ in range(6):
        executor.run(1, 0.2)
        executor.run(3, 0.0)
    assert executor.meter.load() == pytest.approx(0.25)


def test_a_window_must_be_covered_first(tmp_path: Path) -> None:
    executor = Executor(tmp_path)
    assert executor.meter.load() is None
    assert executor.run(5, 0.2) is None
    assert executor.run(7, 0.2) == pytest.approx(1.0)


def test_an_executor_that_warms_up_without_a_limit_is_not_measured(tmp_path: Path) -> None:
    executor = Executor(tmp_path)
    executor.limit(None)
    assert executor.run(30, 0.9) is None
    executor.limit(0.2)
    assert executor.run(8, 0.1) is None
    assert executor.run(8, 0.1) == pytest.approx(0.5)


def test_another_quota_begins_a_new_window(tmp_path: Path) -> None:
    executor = Executor(tmp_path)
    executor.run(20, 0.1)
    executor.limit(0.4)
    assert executor.run(2, 0.1) is None
    assert executor.run(12, 0.1) == pytest.approx(0.25)


def test_what_cannot_be_is_no_load(tmp_path: Path) -> None:
    executor = Executor(tmp_path)
    assert executor.run(15, 0.3) is None  # half again as much as it may have
    executor.run(15, 0.1)
    executor.seconds -= 5.0  # a counter that runs backwards
    assert executor.run(1, 0.1) is None


def test_a_reading_gets_old(tmp_path: Path) -> None:
    executor = Executor(tmp_path)
    executor.run(15, 0.1)
    executor.now += 5.0  # the process was stopped meanwhile
    assert executor.meter.load() is None
    assert executor.run(1, 0.1) is None  # and nobody knows what happened in the gap


def test_a_group_that_is_gone_has_no_load(tmp_path: Path) -> None:
    executor = Executor(tmp_path)
    executor.run(15, 0.1)
    (executor.folder / "cpu.stat").unlink()
    executor.meter.sample()
    assert executor.meter.load() is None


def test_accounts_survive_being_written_down(tmp_path: Path) -> None:
    for account in (Executor(tmp_path).account, ProcessAccount(pid=1)):
        assert account_of(account.document()) == account
    with pytest.raises(InputError, match="no account"):
        account_of({"group": 3})
    with pytest.raises(InputError, match="above 0"):
        LoadMeter(ProcessAccount(pid=1), 0.0, lambda: 0.0)


def test_an_executor_without_a_group_is_its_processes() -> None:
    account = ProcessAccount(pid=os.getpid())
    assert (account.seconds() or 0.0) > 0.0
    assert account.quota() == 1.0
    assert ProcessAccount(pid=2**22 + 1).seconds() is None
