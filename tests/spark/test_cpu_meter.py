"""What is told of the CPU of executors, by a cluster whose readings are given."""

from __future__ import annotations

import pytest

from penstock.spark.read.cpu import CpuMeter

ONE = {"1": 1}


class Cluster:
    """One executor: CPU seconds so far and its quota are set by the test."""

    def __init__(self, *, limited: bool = True, share: float | None = 0.2) -> None:
        self.limited, self.quota, self.used = limited, share, 0.0

    def cpu_seconds(self, app: str | None = None) -> dict[str, float]:
        return {"1": self.used}

    def share(self, executor_id: str, app: str | None = None) -> float | None:
        return self.quota


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("penstock.spark.read.cpu.time.time", lambda: now[0])
    return now


def later(cluster: Cluster, clock: list[float], *, used: float) -> None:
    """Ten seconds later it has used so much more."""
    clock[0] += 10.0
    cluster.used += used


def test_use_is_a_share_of_the_quota(clock: list[float]) -> None:
    cluster = Cluster(share=0.2)
    meter = CpuMeter(cluster)
    assert meter.used("app", ONE) == {}, "nothing to compare with"
    later(cluster, clock, used=1.5)
    assert meter.used("app", ONE) == {"1": pytest.approx(0.75)}


def test_an_executor_that_warms_up_at_full_speed_is_not_measured(clock: list[float]) -> None:
    cluster = Cluster(share=None)
    meter = CpuMeter(cluster)
    meter.used("app", ONE)
    later(cluster, clock, used=6.0)
    assert meter.used("app", ONE) == {}, "it still warms up"
    later(cluster, clock, used=3.0)
    cluster.quota = 0.2
    assert meter.used("app", ONE) == {}, "it did for a part of the time"
    later(cluster, clock, used=1.0)
    assert meter.used("app", ONE) == {"1": pytest.approx(0.5)}


def test_without_limits_use_is_a_share_of_a_core(clock: list[float]) -> None:
    cluster = Cluster(limited=False, share=None)
    meter = CpuMeter(cluster)
    meter.used("app", ONE)
    later(cluster, clock, used=6.0)
    assert meter.used("app", ONE) == {"1": pytest.approx(0.6)}


def test_another_quota_counts_from_when_it_was_set(clock: list[float]) -> None:
    cluster = Cluster(share=0.2)
    meter = CpuMeter(cluster)
    meter.used("app", ONE)
    cluster.quota = 0.4  # a policy sets it right after a look
    later(cluster, clock, used=2.0)
    assert meter.used("app", ONE) == {"1": pytest.approx(0.5)}


@pytest.mark.parametrize("cores", [1, 2, 4, 8])
def test_of_several_cores_without_limits_all_of_them_are_allowed(
    clock: list[float], cores: int
) -> None:
    cluster = Cluster(limited=False, share=None)
    meter = CpuMeter(cluster)
    meter.used("app", {"1": cores})
    later(cluster, clock, used=6.0 * cores)
    assert meter.used("app", {"1": cores}) == {"1": pytest.approx(0.6)}


@pytest.mark.parametrize("cores", [1, 2, 4, 8])
def test_a_quota_is_of_the_whole_executor(clock: list[float], cores: int) -> None:
    cluster = Cluster(share=0.5)
    meter = CpuMeter(cluster)
    meter.used("app", {"1": cores})
    later(cluster, clock, used=4.0)
    assert meter.used("app", {"1": cores}) == {"1": pytest.approx(0.8)}
