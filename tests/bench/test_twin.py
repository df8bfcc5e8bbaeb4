"""Benches on Spark's twin: specs, capacities, runs in thesis time, scores as on Spark."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.cell import SparkCell, read_cell, settings_of, spark_cells
from penstock.bench.specs.spec import load
from penstock.bench.spread.tasks import JobTerms, in_batches, versions, work
from penstock.bench.twin.profiles import capacity_of, paced
from penstock.bench.twin.twin import limited, run_twin, shares_of
from penstock.comparison.experiment import Experiment
from penstock.comparison.folder import finish
from penstock.comparison.results import Results
from penstock.comparison.runner import Task, run
from penstock.core.errors import InputError
from penstock.history import journal
from penstock.lab.rig.capacity_file import CLOSE, TRIGGERS, Capacity, write_capacities
from penstock.lab.rig.settings import SparkSettings
from penstock.policies import POLICIES
from penstock.simulator.microbatch import ExecutorProfile, Profile, SourceProfile
from tests.fakes.microbatch_examples import single
from tests.fakes.shell import Shell
from tests.fakes.spark_bench_examples import simulated
from tests.fakes.twin_examples import (
    SETTINGS,
    joined,
    profile_folder,
    spark_cell,
    twin_of,
    windowed,
)
from tests.places import ROOT

SPEC = """\
name = "twin"
engine = "micro-batch"
profiles = "profiles"
seeds = 2
minutes = 10

[spark]
minute = 3
slots = 4
cpu_share = "none"
partitions = 6

[[pipeline]]
query = "q5"

[[workload]]
name = "cosine"

[[policy]]
name = ["ds2", "spark-dra"]
"""


TWIN = twin_of(windowed())


@pytest.fixture
def read(tmp_path: Path) -> Any:
    profile_folder(tmp_path / "profiles", windowed())

    def reader(text: str) -> Experiment:
        path = tmp_path / "spec.toml"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return reader


# ---- specs ----------------------------------------------------------------------------------


def test_a_spec_for_the_twin_holds_all_that_a_run_needs(read: Any) -> None:
    spec = read(SPEC)
    assert spec.engine == "micro-batch" and settings_of(spec.cells) == SETTINGS
    for cell in spec.cells:
        assert cell.engine == "micro-batch"
        assert cell.twin == TWIN  # the capacity is the profile's own
        assert cell.guards.maximum == 4
        assert SparkCell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell


@pytest.mark.parametrize("beside", [True, False])
def test_the_capacity_of_a_bench_is_taken_where_it_is_given(
    beside: bool, read: Any, tmp_path: Path
) -> None:
    known = Capacity(slots=4, one=900.0, all=2_000.0, rows=4_000)
    folder = tmp_path / ("profiles" if beside else "bench")
    folder.mkdir(exist_ok=True)
    write_capacities(folder, {"q5": known})
    text = SPEC if beside else SPEC.replace("seeds = 2", 'seeds = 2\ncapacities = "bench"')
    assert read(text).cells[0].twin.capacity == known


WRONG = {
    "no profiles": ('profiles = "profiles"', "", "line 2: .*needs profiles"),
    "no folder": ('"profiles"', '"elsewhere"', "line 3: profiles = 'elsewhere': no such folder"),
    "not a path": ('"profiles"', "3", "line 3: profiles = 3 must be the path"),
    "other engine": ('"micro-batch"', '"spark"', 'line 3: profiles needs engine = "micro-batch"'),
    "simulated": ('engine = "micro-batch"\n', "", "needs engine"),
    "no profile": ('"q5"', '"q1"', "line 3: no profile .*q1.json; .*calibrate --query q1"),
    "no capacity": ("seeds = 2", 'capacities = "."', "line 4: .*no capacity of q5"),
    "partitions": ("partitions = 6", "partitions = 8", "has 6 tasks .* partitions = 8"),
    "profile": ("seeds = 2", 'profile = "live"', "line 4: profile is for simulated benches"),
    "engine": ('"micro-batch"', '"microbatch"', "line 2: unknown engine 'microbatch'; did you"),
}


@pytest.mark.parametrize(("old", "new", "words"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_named_with_its_line(old: str, new: str, words: str, read: Any) -> None:
    assert SPEC.count(old) == 1
    with pytest.raises(InputError, match=words):
        read(SPEC.replace(old, new))


def test_a_profile_of_other_executors_or_queries_is_refused(read: Any, tmp_path: Path) -> None:
    path = tmp_path / "profiles"
    profile_folder(path, replace(windowed(), provenance={"cpu_share": "0.2"}))
    with pytest.raises(InputError, match=r"measured with cpu_share 0.2, the bench has None"):
        read(SPEC)
    assert read(SPEC.replace('"none"', "0.2")).engine == "micro-batch"
    profile_folder(path, replace(windowed(), provenance={"minute": "6"}))  # other windows
    with pytest.raises(InputError, match=r"measured with minute 6, the bench has 3.0"):
        read(SPEC)
    (path / "q5.json").write_text((profile_folder(path, joined()) / "q3.json").read_text())
    with pytest.raises(InputError, match=r"q5.json: it is a profile of q3, not of q5"):
        read(SPEC)


def test_the_example_is_ready_to_run() -> None:
    spec = load(ROOT / "examples" / "bench" / "twin.toml")
    assert spec.name == "twin" and len(spec.cells) == 12
    assert {cell.twin.capacity.slots for cell in spark_cells(spec.cells) if cell.twin} == {4}


def test_the_capacity_of_another_cluster_is_refused(read: Any, tmp_path: Path) -> None:
    known = Capacity(slots=8, one=900.0, all=2_000.0, rows=4_000)
    write_capacities(tmp_path / "profiles", {"q5": known})
    with pytest.raises(InputError, match="measured with 8 executors, the bench has slots = 4"):
        read(SPEC)


def test_a_twin_without_settings_is_refused() -> None:
    document = spark_cell(twin=TWIN).to_dict()
    del document["spark"]
    with pytest.raises(InputError, match="'twin'"):
        read_cell(document)


# ---- the application ------------------------------------------------------------------------


def test_tables_share_the_load_and_the_limit_as_in_the_source() -> None:
    """In the thesis's events a person comes with three auctions."""
    assert shares_of(joined()) == {"person": 0.25, "auction": 0.75}
    played = limited(joined(), SETTINGS, 1_001).queries[0]
    assert {s.name: s.max_rows for s in played.sources} == {"auction": 750, "person": 250}
    assert played.trigger == SETTINGS.trigger
    assert limited(windowed(), SETTINGS, 1_001).queries[0].sources[0].max_rows == 1_001


def test_a_capacity_by_hand() -> None:
    """Four tasks of 0.1 s + 1 ms per record of their own, no noise: on four executors a batch of
    n takes 0.1 + n/4000 s and in two triggers 7,600 are done, on one it takes 0.4 + n/1000 s.
    """
    settings = SparkSettings(slots=4, partitions=4, trigger=1.0)
    capacity = capacity_of(_plain(), settings)
    rows = capacity.rows
    assert 7_600 / CLOSE <= rows <= 7_600 * CLOSE
    # Batches end between triggers, so the next begins at once: nothing is lost.
    assert capacity.all == pytest.approx(rows / (0.1 + rows / 4_000), rel=1e-6)
    assert capacity.one == pytest.approx(rows / (0.4 + rows / 1_000), rel=1e-6)
    assert (rows / capacity.all) / settings.trigger == pytest.approx(TRIGGERS, rel=CLOSE - 1)


def test_a_twin_is_as_fast_as_the_machine_was_in_the_mean_over_the_bench() -> None:
    settings = SparkSettings(slots=4, partitions=4, trigger=1.0)
    profile = _plain()
    known = capacity_of(profile, settings)
    slowed = replace(known, again=(0.8 * known.all, 0.6 * known.all))
    (stage,) = paced(profile, settings, slowed).queries[0].stages
    assert stage.per_record == pytest.approx(1e-3 / 0.8, rel=0.02)
    assert stage.fixed == pytest.approx(0.1 / 0.8, rel=0.02)


def _plain() -> Profile:
    made = single(tasks=4, fixed=0.1, per_record=1e-3, executor=ExecutorProfile())
    query = made.queries[0]
    stages = (replace(query.stages[0], source="bid"),)
    named = replace(query, name="q5", sources=(SourceProfile(name="bid"),), stages=stages)
    return replace(made, queries=(named,))


def test_a_profile_that_hardly_moves_has_no_capacity() -> None:
    with pytest.raises(InputError, match="does not finish batches"):
        capacity_of(windowed().slower(1e5), SETTINGS)


# ---- runs -----------------------------------------------------------------------------------


def twin_cell(policy: str = "ds2", **given: Any) -> SparkCell:
    fields: dict[str, Any] = {"minutes": 10.0, "twin": TWIN}
    return spark_cell(policy, **{**fields, **given})


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_runs_and_has_the_scores_of_a_run_on_spark(policy: str) -> None:
    scores = twin_cell(policy, minutes=6.0).run(0).scores
    assert scores["throughput"] is not None and 0.3 < scores["throughput"] <= 1.0
    assert scores["slots_mean"] is not None and 0.99 <= scores["slots_mean"] <= 4.0
    assert scores["e2e_mean_real"] == pytest.approx((scores["e2e_mean"] or 0.0) / 20)
    assert scores["peak_rate"] == pytest.approx(0.8 * TWIN.capacity.all)
    assert scores["cpu_mean"] is not None and scores["expired"] is None


def test_a_cell_and_a_seed_give_one_outcome_and_luck_another() -> None:
    cell = twin_cell()
    assert cell.run(3).scores == cell.run(3).scores
    assert cell.twin is not None
    on: Any = {"settings": cell.spark, "twin": cell.twin, "trace": True}
    first, second = run_twin(cell, 3, **on), run_twin(cell, 3, **on, luck=99)
    assert first.scores["e2e_mean"] != second.scores["e2e_mean"]
    assert first.trace is not None and second.trace is not None
    assert first.trace.offered.tolist() == second.trace.offered.tolist()  # the same load


def test_all_executors_of_a_fixed_size_keep_up_and_one_does_not() -> None:
    """The highest second needs 80 % of what all executors do, some 2 times what one does."""
    start = {"start": 4, "workload": "constant", "workload_parameters": {}}
    every = twin_cell("static4", **start).run(0).scores
    assert every["slots_mean"] == 4.0 and every["actions"] == 0.0
    assert every["throughput"] is not None and every["throughput"] > 0.9
    one = twin_cell("static1", **{**start, "start": 1}).run(0).scores
    capacity = TWIN.capacity
    share = capacity.one / (0.8 * capacity.all)
    assert one["throughput"] == pytest.approx(share, rel=0.1)


def test_two_tables_are_one_load() -> None:
    cell = twin_cell("static4", query="q3", start=4, twin=twin_of(joined()))
    outcome = cell.run(0, trace=True)
    assert outcome.scores["throughput"] == pytest.approx(1.0, abs=0.1)
    assert outcome.trace is not None
    lag = outcome.trace.lag / outcome.trace.offered.sum() / cell.period
    assert lag.min() >= 0.0 and lag.max() < 0.2


def test_spark_s_own_allocation_acts_and_its_timeouts_are_whole_seconds(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    cell = twin_cell("spark-dra", minutes=20.0)
    outcome = cell.run(0, journal=path, trace=True)
    header, entries = journal.read(path)
    assert header.mode == "advise" and not any(e.decision.applied for e in entries)
    assert outcome.trace is not None and outcome.trace.slots.max() > 1.0
    # 1 and 10 s of thesis time are both the least that Spark takes, 1 s on the clock.
    same = replace(cell, policy_parameters={"backlog_timeout": 10.0})
    later = replace(cell, policy_parameters={"backlog_timeout": 200.0})
    assert same.run(0).scores == outcome.scores
    assert later.run(0).scores != outcome.scores


def test_a_journal_is_in_thesis_time(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    twin_cell().run(0, journal=path)
    _, entries = journal.read(path)
    times = [entry.decision.seen.time for entry in entries]
    assert times[-1] == pytest.approx(600.0) and times[-1] - times[-2] == pytest.approx(15.0)


# ---- the bench ------------------------------------------------------------------------------


def test_workers_change_no_figure_and_a_bench_goes_on(tmp_path: Path) -> None:
    cells = [twin_cell("ds2"), twin_cell("hpa-cpu")]
    alone = run(cells, (0, 1), tmp_path / "a", workers=1, journals=True)
    many = run(cells, (0, 1), tmp_path / "b", workers=2, journals=True)
    for cell in cells:
        for seed in (0, 1):
            assert alone.scores(cell.key, seed) == many.scores(cell.key, seed)
        name = f"journals/{cell.key}.jsonl"
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    book = tmp_path / "a" / "scores.jsonl"
    lines = book.read_text().splitlines(keepends=True)
    book.write_text("".join(lines[:2]))
    again = run(cells, (0, 1), tmp_path / "a", workers=1)
    assert again.complete and sorted(book.read_text().splitlines(True)) == sorted(lines)
    assert "twin" in (finish(tmp_path / "a", read=read_cell).files["page"]).read_text()


def test_a_run_can_be_sent_elsewhere(tmp_path: Path) -> None:
    """As ``--on`` does: pickled, run without any file of this machine, and sent back."""
    cell = twin_cell(minutes=5.0)
    task = Task(cells=(cell,), seed=3, folder=tmp_path, traces=True)
    (batch,) = pickle.loads(pickle.dumps(in_batches([task], slots=1)))
    reply = work(batch, JobTerms(versions=versions(), files={}))
    assert reply.error is None and reply.rows == [("ds2", 3, cell.run(3).scores)]
    assert list(reply.files) == ["traces/ds2.npz"]


def test_runs_that_take_longer_go_into_smaller_batches(tmp_path: Path) -> None:
    fluid = simulated(twin_cell())
    cells = {"fluid": (fluid,) * 100, "twin": (twin_cell(),) * 100}
    sizes = {
        name: len(in_batches([Task(cells=some, seed=0, folder=tmp_path)], slots=1))
        for name, some in cells.items()
    }
    assert sizes["twin"] > sizes["fluid"]


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell.at(tmp_path, monkeypatch, capsys, "bench")
    profile_folder(tmp_path / "profiles", windowed())
    (tmp_path / "spec.toml").write_text(SPEC)
    plan = shell("spec.toml", "--dry-run")
    assert plan.code == 0 and "On Spark's twin" in plan.out and "made up for a test" in plan.out
    assert all(len(line) <= 80 for line in plan.out.splitlines())
    done = shell("spec.toml", "--workers", "1", "--json")
    assert done.code == 0 and done.json["complete"]
    labels = [row["label"] for row in done.json["groups"][0]["policies"]]
    assert labels == ["ds2", "spark-dra"]
    config = json.loads((tmp_path / "runs" / "latest" / "config.json").read_text())
    assert config["engine"] == "micro-batch"
    assert Results.load(tmp_path / "runs" / "latest", read=read_cell).has_trace("q5-cosine-ds2")


def test_a_cell_for_spark_is_written_as_before() -> None:
    assert "twin" not in spark_cell().to_dict() and "twin" not in spark_cell().scene
    assert spark_cell().engine == "spark"
    assert simulated(spark_cell()).engine == "simulated"
