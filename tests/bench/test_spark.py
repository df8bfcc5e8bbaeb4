"""Benches on Spark without Spark: specs, loads, series, scores, capacities."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.snapshot import POOL
from penstock.batches.values import Batch, Executor
from penstock.bench.cell import SparkCell, read_cell, settings_of, spark_cells
from penstock.bench.compressed import load as loads
from penstock.bench.compressed.load import load_of, squeezed
from penstock.bench.compressed.run import demand_of, spark_scores
from penstock.bench.compressed.thesis_time import Scale
from penstock.bench.spark import plan
from penstock.bench.specs.spec import load
from penstock.capacity.curve import PowerCurve
from penstock.comparison import oracle
from penstock.comparison.batch_series import Observed, series_of
from penstock.comparison.cell import Cell
from penstock.comparison.experiment import Experiment
from penstock.comparison.scores import Actions
from penstock.core.errors import InputError
from penstock.lab.rig import capacity, capacity_file
from penstock.lab.rig.capacity_file import Capacity, read_capacities, write_capacities
from penstock.lab.rig.settings import SparkSettings
from penstock.policies import POLICIES
from penstock.workloads.pattern import per_second
from penstock.workloads.patterns import PATTERNS, Constant, Pattern, create
from tests.fakes.spark_bench_examples import SPEC, real_cell, simulated


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def reader(text: str) -> Experiment:
        path = tmp_path / "spec.toml"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return reader


# ---- specs ----------------------------------------------------------------------------------


def test_a_spec_for_spark(read: Any) -> None:
    spec = read(SPEC)
    settings = settings_of(spec.cells)
    assert settings == SparkSettings() and settings.speed == 20.0
    assert [cell.key for cell in spec.cells] == ["q5-random-ds2", "q5-random-hpa-cpu"]
    cell = spec.cells[0]
    assert cell.start_sizes() == {POOL: 1}
    # Everything but the number of slots, and the age of readings, stays in thesis time.
    assert (cell.period, cell.slo, cell.guards.cool_down) == (15.0, 60.0, 300.0)
    assert (cell.guards.maximum, cell.guards.cap, cell.guards.max_age) == (8, 8, 2400.0)
    assert read_cell(json.loads(json.dumps(cell.to_dict()))) == cell


def test_every_key_of_the_table(read: Any) -> None:
    table = """minute = "6s"
slots = 4
cpu_share = "none"
partitions = 16
trigger = "500ms"
peak_rate = 9000
check = true"""
    spec = read(SPEC.replace("minute = 3", table))
    assert settings_of(spec.cells) == SparkSettings(
        minute=6.0, slots=4, cpu_share=None, partitions=16, trigger=0.5, peak_rate=9000.0,
        check=True,
    )  # fmt: skip
    assert spec.cells[0].guards.maximum == 4


def test_a_simulated_cell_is_written_as_before() -> None:
    cell = Cell(key="a", query="q1", workload="cosine", policy="ds2")
    assert "spark" not in cell.to_dict() and "spark" not in cell.scene


def test_executors_join_a_running_query_so_a_policy_expects_no_downtime() -> None:
    fields: Any = {"key": "a", "query": "q1", "workload": "cosine", "policy": "ds2+"}
    assert Cell(**fields).create_policy().downtime > 0  # type: ignore[attr-defined]
    real = SparkCell(**fields, spark=SparkSettings())
    assert real.create_policy().downtime == 0  # type: ignore[attr-defined]
    told = dataclasses.replace(real, policy_parameters={"downtime": 7.0})
    assert told.create_policy().downtime == 7  # type: ignore[attr-defined]


WRONG = {
    "minute": ("minute = 3", "minute = 0", "line 7: minute = 0 must lie between 0.5 and 60"),
    "minute text": ("minute = 3", 'minute = "x"', "line 7: minute = 'x' must be a duration"),
    "slots": ("minute = 3", "slots = 1", "line 7: slots = 1 must lie between 2 and 64"),
    "slots type": ("minute = 3", "slots = 2.5", "line 7: slots = 2.5 must be a whole number"),
    "cpu share": ("minute = 3", "cpu_share = 0", "line 7: cpu_share = 0"),
    "cpu share text": ("minute = 3", 'cpu_share = "all"', "line 7: cpu_share = 'all' must be a"),
    "too many cores": ("minute = 3", "cpu_share = 9999", "line 7: cpu_share is 9999"),
    "partitions": ("minute = 3", "partitions = 0", "line 7: partitions = 0"),
    "trigger": ("minute = 3", "trigger = 0", "line 7: trigger = 0 must lie between 0.1 and 60"),
    "peak": ("minute = 3", "peak = 0", "line 7: peak = 0.0 must be above 0"),
    "peak rate": ("minute = 3", "peak_rate = -4", "line 7: peak_rate = -4"),
    "both peaks": ("minute = 3", "peak = 1\npeak_rate = 3", "line 8: peak and peak_rate both"),
    "check": ("minute = 3", "check = 1", "line 7: check = 1 must be true or false"),
    "unknown": ("minute = 3", "minuet = 3", "line 7: unknown key of \\[spark\\] 'minuet'; did you"),
    "no table": ("[spark]\nminute = 3", "spark = 3", "must be written as a table"),
    "simulated": ('"spark"\n', '"simulated"\n', 'line 6: \\[spark\\] needs engine = "spark"'),
    "profile": ("seeds = 2", 'profile = "live"', "line 3: profile is for simulated benches"),
    "shared": ('"q5"', '"q5"\nshared = true', "line 11: shared is for simulated benches"),
    "start": ('"q5"', '"q5"\nstart = 9', "line 11: start = 9 slots must lie within .* 1 to 8"),
    "period": ("seeds = 2", 'period = "1s"', "line 3: period = 1 s is 0.05 s on the clock"),
    "minimum": ("seeds = 2", "guards = {minimum = 9}", "line 3: minimum 9 is above maximum 8"),
    "query": ('"q5"', '"q4"', "line 10: unknown query 'q4'"),
}


@pytest.mark.parametrize(("old", "new", "words"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_named_with_its_line(old: str, new: str, words: str, read: Any) -> None:
    assert SPEC.count(old) == 1
    with pytest.raises(InputError, match=words):
        read(SPEC.replace(old, new))


# ---- the load -------------------------------------------------------------------------------

GIVEN: Mapping[str, Mapping[str, Any]] = {"cosine": {"noise": 1e5}, "spikes": {"noise": 1e4}}


@pytest.mark.parametrize("name", PATTERNS)
@given(speed=st.floats(1.0, 120.0), rate=st.floats(1e-4, 10.0), share=st.floats(0.0, 1.0))
def test_a_load_is_squeezed_without_changing_its_shape(
    name: str, speed: float, rate: float, share: float
) -> None:
    """r′(t) = rate · r(speed · t), so by t there are rate/speed times the records of speed · t."""
    pattern = create(name, GIVEN.get(name, {}), seed=3)
    small = squeezed(pattern, speed=speed, rate=rate)
    t = share * 8400.0
    expected = pattern.offered(t) * rate / speed
    assert small.offered(t / speed) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert type(small) is type(pattern)


def test_every_parameter_of_a_pattern_is_a_time_a_rate_or_neither() -> None:
    neither = {"seed", "steps", "from_high", "height", "down", "up"}
    for name, kind in PATTERNS.items():
        if name != "trace":  # has a speed and a scale of its own
            fields = {f.name for f in dataclasses.fields(kind) if f.init}
            assert set(loads.TIMES[name]) | set(loads.RATES[name]) == fields - neither


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_highest_second_needs_the_share_of_the_capacity(seed: int) -> None:
    cell = real_cell()
    load = load_of(cell, SparkSettings(peak=0.8), seed, capacity=10_000.0)
    assert load.peak == 8_000.0
    assert max(load.pattern.rate(t) for t in np.arange(0, 60, 0.5)) == pytest.approx(8_000.0)
    again = load_of(real_cell(policy="hpa-cpu"), SparkSettings(), seed, capacity=10_000.0)
    assert again == load  # the same for every policy
    told = load_of(cell, SparkSettings(peak_rate=500.0), seed, capacity=10_000.0)
    assert told.rate == pytest.approx(load.rate / 16)


# ---- series and scores ----------------------------------------------------------------------


def batch(start: float, duration: float, taken: int, rows: int = 1) -> Batch:
    return Batch(
        query="q", run_id="r", id=0, start=start, duration=duration, rows=rows,
        available=None, taken=taken,
    )  # fmt: skip


def executor(added: float, removed: float | None = None) -> Executor:
    return Executor(
        id="1", host="h", cores=1, alive=removed is None, added=added, removed=removed,
        task_seconds=0.0, completed_tasks=0, active_tasks=0,
    )  # fmt: skip


# 10 records/s of thesis time for 10 s, at twice the speed: 10 records/s on the clock for 5 s, and
# each stands for two.
TWICE = Scale(start=1000.0, speed=2.0, rate=1.0)
OBSERVED = Observed(
    batches=[
        batch(1001.0, 1.0, 10),  # thesis time 2 to 4, all 20 that were there
        batch(1002.5, 1.0, 25),  # 5 to 7, all 50
        batch(1003.75, 0.0, 25, rows=0),  # nothing to do
        batch(1004.0, 1.5, 30),  # 8 to 11: takes only 10 of 30, committed after the end
    ],
    executors=[executor(990.0), executor(1002.0, 1004.5)],  # the second from 4 to 9
    cpu=[(4.0, 0.5), (8.0, 0.9)],
)


def test_a_series_from_batches_by_hand() -> None:
    s = series_of(Constant(rps=10.0), 10, TWICE, OBSERVED)
    assert s.offered.tolist() == [10.0] * 10
    assert s.consumed.tolist() == [0, 20, 0, 0, 30, 0, 0, 10, 0, 0]
    assert s.lag.tolist() == [10, 0, 10, 20, 0, 10, 20, 20, 30, 40]
    assert s.queue_latency.tolist() == [1, 0, 1, 2, 0, 1, 2, 2, 3, 4]
    assert s.delivered.tolist() == [0, 0, 0, 0, 20, 0, 0, 30, 0, 0]
    assert s.latency[[4, 7]].tolist() == [4 - 1.0, 7 - 3.5]  # from the mean moment of release
    assert s.latency[3] == s.queue_latency[3]
    assert s.slots[POOL].tolist() == [1, 1, 1, 2, 2, 2, 2, 2, 1, 1]
    assert s.cpu.tolist() == [0.5] * 4 + [0.9] * 6
    assert not s.down.any()


def test_scores_by_hand() -> None:
    s = series_of(Constant(rps=10.0), 10, TWICE, OBSERVED)
    curve = PowerCurve(alpha=8.0, beta=1.0)  # 10 records/s on the clock need two
    demand = demand_of(curve, s, TWICE, most=4)
    actions = Actions(times=[4.0, 9.0], reconfigurations=2)
    scores = spark_scores(s, demand, actions, scale=TWICE, curve=curve, slo=1.5)
    assert scores["slots_mean"] == 1.5 and scores["oracle_slots_mean"] == 2.0
    assert scores["regret"] == -0.25 and scores["accuracy_u"] == scores["timeshare_u"] == 0.5
    assert scores["latency_mean"] == 1.6 and scores["latency_mean_real"] == 0.8
    assert scores["e2e_mean"] == 3.25 and scores["e2e_mean_real"] == 1.625
    assert scores["slo_seconds"] == 5.0 and scores["throughput"] == 0.6
    assert scores["lag_end"] == 40.0 and scores["downtime"] == 0.0
    assert scores["excess_time"] == pytest.approx((100 - 50) / 8 / 10)  # one executor is left
    assert scores["expired"] is None and scores["actions"] == 2.0
    assert scores["cpu_mean"] == pytest.approx(0.74)
    blind = spark_scores(s, demand, actions, scale=TWICE, curve=curve, measured_cpu=False)
    assert blind["cpu_mean"] is None


def test_a_run_on_spark_has_the_scores_of_a_simulated_one() -> None:
    fluid = simulated(real_cell(minutes=5.0)).run(0).scores
    s = series_of(Constant(rps=10.0), 10, TWICE, OBSERVED)
    curve = PowerCurve(alpha=8.0, beta=1.0)
    real = spark_scores(s, demand_of(curve, s, TWICE, 4), Actions(), scale=TWICE, curve=curve)
    assert {name for name in fluid if not name.startswith("late_oracle")} <= set(real)


def test_a_batch_that_asked_its_source_late_takes_no_more_than_was_there() -> None:
    early = Observed(batches=[batch(1001.0, 1.0, 11)], executors=[executor(990.0)])
    s = series_of(Constant(rps=10.0), 4, TWICE, early)
    assert s.lag[1] == 0.0 and s.queue_latency[1] == 0.0
    assert s.lag[2] == pytest.approx(8.0) and s.queue_latency[2] == pytest.approx(0.8)


def test_the_first_record_after_a_silence_has_not_waited_through_it() -> None:
    """Nothing from 2 to 6: what comes at 6 has waited 1 s at 7."""
    silence = create("step", {"low": 10.0, "high": 0.0, "at": 2.0, "hold": 4.0})
    one = Observed(batches=[batch(1001.0, 0.5, 10)], executors=[executor(990.0)])
    s = series_of(silence, 8, TWICE, one)
    assert s.queue_latency.tolist() == [1, 0, 0, 0, 0, 0, 1, 2]


@given(
    beta=st.floats(0.2, 1.2),
    rates=st.lists(st.floats(0.0, 20_000.0), min_size=1, max_size=20),
)
def test_the_oracle_has_enough_executors_and_one_less_is_too_few(
    beta: float, rates: list[float]
) -> None:
    curve = PowerCurve(alpha=1_000.0, beta=beta)
    for rate, slots in zip(rates, oracle.demand_on(curve, np.array(rates), 8), strict=True):
        assert slots == 8 or 1_000.0 * slots**beta >= rate * (1 - 1e-6)
        assert slots == 1 or 1_000.0 * (slots - 1) ** beta < rate


# ---- capacities -----------------------------------------------------------------------------


def test_capacities_are_kept_and_give_the_same_curve(tmp_path: Path) -> None:
    assert read_capacities(tmp_path) == {}
    known = {"q1": Capacity(slots=8, one=1_000.0, all=6_000.0, rows=12_000)}
    write_capacities(tmp_path, known)
    assert read_capacities(tmp_path) == known
    curve = known["q1"].curve
    assert curve.at(1) == pytest.approx(1_000.0) and curve.at(8) == pytest.approx(6_000.0)


@pytest.mark.parametrize("text", ["{", '{"q1": 3}', '{"q1": {"slots": 8}}', "[]"])
def test_damaged_capacities_are_not_measured_anew(text: str, tmp_path: Path) -> None:
    (tmp_path / "capacity.json").write_text(text)
    with pytest.raises(InputError, match="restore the file, or start a new bench"):
        read_capacities(tmp_path)


@given(fixed=st.floats(0.0, 6.0), per_second=st.floats(2_000.0, 200_000.0))
def test_full_batches_take_two_triggers_or_twice_their_fixed_cost_after_a_few_rounds(
    fixed: float, per_second: float
) -> None:
    """Whatever a batch costs, c₀ + c₁·n: a capacity is not one of batches that are mostly c₀."""
    rows = capacity_file.settle(
        lambda rows: fixed + rows / per_second, 10_000, target=2.0, rounds=capacity.ROUNDS
    )
    ideal = max((max(2.0, 2.0 * fixed) - fixed) * per_second, capacity_file.LEAST_ROWS)
    assert ideal / capacity_file.CLOSE <= rows <= ideal * capacity_file.CLOSE


def test_batches_that_take_no_longer_may_be_larger() -> None:
    assert capacity_file.next_rows([(2_000, 3.0), (1_000, 3.1)], target=2.0) == 4_000


def test_a_trigger_that_makes_every_second_late_is_said(read: Any) -> None:
    spec = read(SPEC.replace("minute = 3", "minute = 1"))
    assert any("will be late" in line for line in plan.plan_lines(*_plain(spec)))
    assert not any("late" in line for line in plan.plan_lines(*_plain(read(SPEC))))


def _plain(spec: Experiment) -> tuple[list[SparkCell], SparkSettings]:
    cells = spark_cells(spec.cells)
    return cells, cells[0].spark


def test_every_policy_can_be_benched_on_spark() -> None:
    for name in POLICIES:
        pattern: Pattern = real_cell(policy=name).pattern(0)
        assert real_cell(policy=name).create_policy() and per_second(pattern, 60).any()
