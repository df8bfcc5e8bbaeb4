"""CPU shares of executors while they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.core.errors import EngineError, InputError
from penstock.spark.act.shares import CpuShares


@dataclass
class Cluster:
    """Executors by id with the quota that each has now; ``None`` while it warms up."""

    quotas: dict[str, float | None]
    nominal: float | None = 0.5
    ours: bool = True
    nominals: dict[str, float] = field(default_factory=dict)
    set: list[tuple[str, float]] = field(default_factory=list)

    @property
    def limited(self) -> bool:
        return self.ours and self.nominal is not None

    def executors(self, app: str) -> dict[str, int]:
        assert app == "app-1"
        return dict.fromkeys(self.quotas, 1)

    def share(self, executor: str, app: str) -> float | None:
        return self.quotas[executor]

    def nominal_share(self, executor: str, app: str) -> float | None:
        return self.nominals.get(executor, self.nominal)

    def set_share(self, executor: str, share: float, app: str) -> None:
        if executor == "gone":
            raise InputError("no such executor")
        self.set.append((executor, share))
        self.quotas[executor] = share


def shares_of(cluster: Any) -> CpuShares:
    return CpuShares(cluster, "app-1")


def test_every_executor_gets_its_part_of_the_nominal_quota() -> None:
    cluster = Cluster({"0": 0.5, "1": 0.5})
    shares = shares_of(cluster)
    assert shares.now == 1.0
    shares.set(0.7)
    assert cluster.quotas == {"0": pytest.approx(0.35), "1": pytest.approx(0.35)}
    shares.set(0.7)
    assert len(cluster.set) == 2  # nothing is written twice
    shares.set(1.0)
    assert cluster.quotas == {"0": 0.5, "1": 0.5}


def test_who_comes_later_gets_it_once_warm() -> None:
    cluster = Cluster({"0": 0.5, "1": None, "gone": 0.5})
    shares = shares_of(cluster)
    shares.set(0.4)
    assert cluster.quotas == {"0": pytest.approx(0.2), "1": None, "gone": 0.5}
    cluster.quotas["1"] = 0.5  # the warm-up is over
    shares.keep()
    assert cluster.quotas["1"] == pytest.approx(0.2)


def test_executors_that_were_promised_unequal_cpu_keep_the_proportion() -> None:
    cluster = Cluster({"0": 0.5, "1": 0.2}, nominals={"1": 0.2})
    shares_of(cluster).set(0.5)
    assert cluster.quotas == {"0": pytest.approx(0.25), "1": pytest.approx(0.1)}


@pytest.mark.parametrize(
    "cluster",
    [None, Cluster({"0": None}, ours=False), Cluster({"0": None}, nominal=None)],
)
def test_where_quotas_are_not_ours_it_says_so_and_full_cpu_is_no_request(cluster: Any) -> None:
    shares = shares_of(cluster)
    shares.set(1.0)
    shares.keep()
    with pytest.raises(EngineError, match=r"70% of their CPU.*advise"):
        shares.set(0.7)
    assert shares.now == 1.0


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, float("nan")])
def test_no_share_outside_its_bounds_leaves_here(share: float) -> None:
    cluster = Cluster({"0": 0.5})
    with pytest.raises(EngineError):
        shares_of(cluster).set(share)
    assert cluster.set == []
