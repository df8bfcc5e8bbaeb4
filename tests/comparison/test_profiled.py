"""Cells that play a measured application: what they score, what they draw, what they refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.batches.snapshot import POOL
from penstock.bench.cell import read_cell
from penstock.comparison.batch_series import together
from penstock.comparison.profile_capacity import capacity_of
from penstock.comparison.profiled import ProfileCell, drawn
from penstock.comparison.results import Results
from penstock.comparison.scores import total_cost
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.policies import DS2
from penstock.simulator.microbatch import ExecutorProfile, MicroBatchEngine, Profile
from penstock.simulator.microbatch.profile import write_profile
from penstock.simulator.series import Series
from penstock.workloads import Constant, Trace
from tests.fakes.microbatch_examples import EXECUTOR, counting, joining, single, windowed

GUARDS = Guards(minimum=1, maximum=8, cool_down=30.0)
COUNTS = Profile(version=1, queries=(counting(),), executor=EXECUTOR)
JOINS = Profile(version=1, queries=(joining(),), executor=EXECUTOR)


def cell(application: Profile = COUNTS, **fields: Any) -> ProfileCell:
    """A cell of ten minutes under a load that rises and falls."""
    usual: dict[str, Any] = {
        "key": "mine",
        "query": "counts",
        "workload": "cosine",
        "workload_parameters": {"low": 200.0, "high": 3000.0, "period": 300.0, "noise": 0.0},
        "policy": "ds2",
        "guards": GUARDS,
        "minutes": 10.0,
        "slo": 20.0,
        "profile": "live",
        "application": application,
    }
    return ProfileCell(**{**usual, **fields})


# ---- what it takes ----------------------------------------------------------------------------


def test_capacity_follows_from_tasks_waves_and_driver_time() -> None:
    """T(N) on n executors: waves · (0.1 + 0.001 · N / 4), four tasks; batches of 10 s at most."""
    profile = single(tasks=4, fixed=0.1, per_record=1e-3, trigger=2.0)
    found = capacity_of(profile, {"bids": 1.0}, most=6, longest=10.0)
    assert found.rates == pytest.approx((960.0, 1960.0, 1960.0, 3960.0, 3960.0, 3960.0), rel=0.01)
    assert found.fewest(np.array([0.0, 961.0, 1970.0, 1e6])).tolist() == [1.0, 2.0, 4.0, 4.0]
    assert found.most == found.at(4) == found.at(99)


def test_an_admission_limit_bounds_what_can_be_taken() -> None:
    profile = single(tasks=4, fixed=0.1, per_record=1e-3, trigger=2.0, max_rows=1000)
    found = capacity_of(profile, {"bids": 1.0}, most=8, longest=10.0)
    assert found.most == pytest.approx(500.0)  # 1,000 rows every 2 s
    assert found.fewest(np.array([400.0, 5000.0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("share", "keeps_up"), [(0.85, True), (1.25, False)])
def test_the_simulator_takes_what_the_capacity_says(share: float, keeps_up: bool) -> None:
    profile = replace(COUNTS, executor=ExecutorProfile())
    most = capacity_of(profile, {"bids": 1.0}, most=4, longest=10.0).at(2)
    engine = MicroBatchEngine(profile, Constant(rps=share * most), seconds=600.0, start=2)
    engine.advance(600.0)
    behind = engine.waiting["counts"] / (share * most)
    assert (behind < 30.0) == keeps_up


# ---- what it scores ----------------------------------------------------------------------------


def test_a_run_is_scored_as_any_other_and_repeats_itself() -> None:
    made = cell()
    first, again = made.run(0, trace=True), made.run(0)
    assert first.scores == again.scores and first.trace is not None
    scores: Any = first.scores
    assert scores["slots_max"] <= 8 and scores["oracle_slots_mean"] >= 1
    assert scores["late_oracle_slots_mean"] <= scores["oracle_slots_mean"]
    assert 0.9 < scores["throughput"] <= 1.0
    assert len(first.trace.time) == made.ticks


def test_a_fixed_size_is_there_from_the_beginning() -> None:
    made = cell(policy="static", policy_parameters={"pools": f"{POOL}=3"})
    scores: Any = made.run(0).scores
    assert (scores["slots_mean"], scores["actions"]) == (3.0, 0.0)
    assert made.start_sizes() == {POOL: 3}


def test_spark_allocates_where_that_is_the_policy() -> None:
    scores: Any = cell(policy="spark-dra").run(0).scores
    assert scores["actions"] > 0 and scores["slots_max"] <= 8


def test_a_query_without_a_trigger_is_sized_for_a_batch_time() -> None:
    """It is busy with any number of executors; longer batches need fewer of them."""
    made = cell(
        windowed(), query="windowed", policy="ds2", minutes=10.0, batch_time=10.0, start=4,
        workload="constant", workload_parameters={"rps": 400.0},
    )  # fmt: skip
    means = [
        float(replace(made, batch_time=seconds).played(0).series.slots[POOL][300:].mean())
        for seconds in (10.0, 20.0, 40.0)
    ]
    assert means[0] > 4.0 > means[1] > means[2]
    with pytest.raises(InputError, match="batch_time = 0"):
        replace(made, batch_time=0.0)


def test_sources_share_a_load_or_have_their_own(tmp_path: Path) -> None:
    (tmp_path / "both.csv").write_text(
        "time,a,b\n" + "".join(f"{60 * m},{100 + m},{10 * m}\n" for m in range(10))
    )
    file = {"file": str(tmp_path / "both.csv"), "kind": "rate"}
    own = cell(
        JOINS, query="joins", workload="trace", workload_parameters=file,
        columns={"bids": "a", "people": "b"},
    )  # fmt: skip
    assert own.loads(0)["people"].rate(61.0) == 10.0
    assert own.pattern(0).rate(61.0) == 111.0
    shared = cell(JOINS, query="joins", shares={"bids": 0.75, "people": 0.25})
    whole = shared.pattern(0).offered(300.0)
    assert shared.loads(0)["people"].offered(300.0) == pytest.approx(whole / 4)
    scores: Any = own.run(0).scores
    assert scores["throughput"] > 0.8


def test_queries_on_the_same_executors_are_told_as_one() -> None:
    ones, twos = np.ones(3), np.full(3, 2.0)
    one = Series(
        offered=ones, consumed=ones, delivered=ones, lag=ones, queue_latency=ones, latency=ones,
        down=0 * ones, cpu=ones, expired=0 * ones, slots={POOL: ones},
    )  # fmt: skip
    late = replace(one, queue_latency=twos, latency=4 * ones, delivered=3 * ones)
    both = together([one, late])
    assert both.offered.tolist() == [2.0] * 3 and both.queue_latency.tolist() == [2.0] * 3
    assert both.latency.tolist() == [13 / 4] * 3 and both.slots[POOL].tolist() == [1.0] * 3


# ---- what it draws ----------------------------------------------------------------------------


def test_only_what_has_an_error_is_drawn() -> None:
    assert drawn(COUNTS, 1) == COUNTS
    unsure = replace(COUNTS, errors={"read.per_record": 1e-4, "start": 0.5})
    costs = [drawn(unsure, seed).queries[0].stages[0].per_record for seed in range(400)]
    assert len(set(costs)) == 400 and min(costs) > 0
    assert np.mean(costs) == pytest.approx(4e-4, rel=0.1)
    assert np.std(costs) == pytest.approx(1e-4, rel=0.2)
    assert drawn(unsure, 1).queries[0].stages[1] == unsure.queries[0].stages[1]


def test_an_uncertain_profile_gives_other_runs_by_seed() -> None:
    unsure = replace(COUNTS, errors={"read.per_record": 2e-4})
    first, second = (cell(unsure, uncertain=True).run(seed).scores for seed in (0, 1))
    assert first["slot_seconds"] != second["slot_seconds"]


# ---- comparing on it ----------------------------------------------------------------------------


def test_policies_are_compared_on_a_profile(tmp_path: Path) -> None:
    write_profile(COUNTS, tmp_path / "mine.json")
    (tmp_path / "week.csv").write_text(
        "time,rate\n" + "".join(f"{30 * k},{500 + 100 * (k % 7)}\n" for k in range(20))
    )
    found = penstock.compare(
        [DS2(), "hpa-cpu"], Trace(str(tmp_path / "week.csv")), profile=tmp_path / "mine.json",
        seeds=2, slo=20.0, out=tmp_path / "runs", price=0.5,
    )  # fmt: skip
    (group,) = found.groups
    assert [row.label for row in group.rows] == ["ds2", "hpa-cpu", "static (peak)"]
    assert group.title.startswith("counts · trace, file week")
    assert "0.5 a slot-hour" in group.note and "±" in group.note
    assert found.files["page"].is_file()
    again = Results.load(found.files["run"], read=read_cell)
    assert all(isinstance(c, ProfileCell) for c in again.cells)
    assert again.cells[0].scene == found.results.cells[0].scene
    assert again.estimate("counts-trace-ds2", "total_cost").mean > 0


def test_an_application_has_no_rates_of_its_own() -> None:
    with pytest.raises(InputError, match="needs its rates: low, high"):
        penstock.compare(["ds2"], "cosine", profile=COUNTS)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shares": {"bids": 0.5}}, "must sum to 1"),
        ({"shares": {"bits": 1.0}}, "did you mean 'bids'"),
        ({"price": -1.0}, "price = -1.0"),
        ({"late_price": 1.0}, "needs a price"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        cell(**fields)


def test_cost_is_one_for_the_oracle_and_money_with_a_price() -> None:
    oracle = {"slots_mean": 2.0, "slot_seconds": 7200.0, "oracle_slot_seconds": 7200.0}
    assert total_cost({**oracle, "slo_seconds": 0.0}) == 1.0
    late = {**oracle, "slo_seconds": 360.0}  # a tenth of the hour
    assert total_cost(late) == pytest.approx(1.0 + 10 * 0.1)
    assert total_cost(late, price=0.5) == pytest.approx(0.5 * 2 * 2.0)
    assert total_cost(late, price=0.5, late_price=20.0) == pytest.approx(1.0 + 2.0)
    assert total_cost({"slots_mean": 1.0}) is None


def test_in_long_runs_nobody_looks_where_nothing_is_decided() -> None:
    """A fixed size scores the same whether or not it is looked at every minute."""
    about: dict[str, Any] = {
        "policy": "static",
        "policy_parameters": {"pools": f"{POOL}=2"},
        "workload_parameters": {"low": 20.0, "high": 60.0, "period": 7200.0, "noise": 0.0},
        "period": 600.0,
        "application": single(tasks=2, trigger=60.0),
        "query": "q",
    }
    short, long = (cell(minutes=24 * 60.0 + more, **about).run(0).scores for more in (0.0, 10.0))
    assert short["cpu_mean"] is not None and long["cpu_mean"] is None
    assert long["latency_p95"] == pytest.approx(short["latency_p95"], rel=0.02)
    assert (long["slots_mean"], long["actions"]) == (2.0, 0.0)
