"""``penstock lab validate`` without Spark: the twin pretends to be Spark, with other noise."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.bench.cell import SparkCell, read_cell
from penstock.bench.twin.twin import Twin
from penstock.bench.validation.comparison import Validation, twin_cells, validate
from penstock.bench.validation.validation_tables import verdict_lines
from penstock.bench.validation.verdicts import verdicts
from penstock.comparison import trace as traces
from penstock.comparison.results import Results
from penstock.comparison.runner import run
from penstock.core.errors import InputError
from penstock.lab.rig.capacity_file import CAPACITY, Capacity
from penstock.simulator.microbatch import Profile
from tests.fakes.shell import Shell
from tests.fakes.twin_examples import (
    GUARDS,
    profile_folder,
    spark_cell,
    spark_folder,
    twin_of,
    windowed,
)

POLICIES = ("static1", "ds2", "static4")
SEEDS = (0, 1, 2)
CAPACITIES = Capacity(slots=4, one=930.0, all=2_410.0, rows=4_000)  # what the profile does
SHORT: dict[str, Any] = {"minutes": 20.0, "workload_parameters": {"period": 600.0}}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three policies as "Spark" ran them, and profiles: the right one, one of a machine that is
    half as fast, and a wrong one, whose time goes to the driver.
    """
    root = tmp_path_factory.mktemp("validate")
    cells = [spark_cell(policy, **SHORT) for policy in POLICIES]
    spark_folder(
        root / "bench", cells, SEEDS, {"q5": Twin(profile=windowed(), capacity=CAPACITIES)}
    )
    profile_folder(root / "right", windowed())
    profile_folder(root / "slow", windowed().slower(2.0))
    profile_folder(root / "wrong", busy_driver())
    return root


def busy_driver() -> Profile:
    made = windowed()
    query = made.queries[0]
    stages = tuple(replace(s, per_record=0.2 * s.per_record) for s in query.stages)
    query = replace(query, planning=query.planning + 2.0, stages=stages)
    return replace(made, queries=(query,))


def validated(bench: Path, profiles: str, out: Path) -> Validation:
    spark = Results.load(bench / "bench", read=read_cell)
    cells = twin_cells(spark, bench / profiles)
    return validate(spark, run(cells, spark.seeds, out, workers=1), name="b")


def test_the_right_profile_holds(bench: Path, tmp_path: Path) -> None:
    found = validated(bench, "right", tmp_path)
    (scene,) = found.scenes
    assert [p.label for p in scene.policies] == ["static 1", "ds2", "static 4"]
    assert [v.held for v in verdicts([scene])] == [True] * 4
    for policy in scene.policies:
        figures = policy.figures
        assert policy.seeds == figures["slots_mean"].spark.count == 3
        assert abs(figures["slots_mean"].error or 0.0) < 0.15
        assert figures["throughput"].error == pytest.approx(0.0, abs=0.05)
        assert policy.over is not None and policy.over.executors < 0.6
    assert [order.verdict for order in scene.orders["slots_mean"]].count("swapped") == 0
    assert len(scene.orders["slots_mean"]) == 3


def test_a_machine_that_was_slower_in_calibration_is_made_up_for(
    bench: Path, tmp_path: Path
) -> None:
    found = validated(bench, "slow", tmp_path)
    assert [v.held for v in verdicts(found.scenes)] == [True] * 4
    (twin,) = {
        c.twin for c in twin_cells(Results.load(bench / "bench", read=read_cell), bench / "slow")
    }
    assert twin is not None
    planning = windowed().queries[0].planning
    assert twin.profile.queries[0].planning == pytest.approx(planning, rel=0.03)


def test_a_wrong_profile_does_not_hold_and_it_says_where(bench: Path, tmp_path: Path) -> None:
    found = validated(bench, "wrong", tmp_path)
    executors, lag, *_ = verdicts(found.scenes)
    assert executors.held is False and lag.held is False
    assert [text.split(" −")[0] for text in executors.broken] == ["ds2"]  # others are fixed sizes
    assert len(lag.broken) == 3
    ds2 = found.scenes[0].policies[1].figures
    assert ds2["slots_mean"].held is False and (ds2["slots_mean"].error or 0.0) < -0.15
    assert ds2["e2e_mean"].held is None


def test_the_twin_has_exactly_the_loads_of_spark(bench: Path, tmp_path: Path) -> None:
    """Also where its own profile would have had another capacity."""
    spark = Results.load(bench / "bench", read=read_cell)
    cells = twin_cells(spark, bench / "wrong")
    twin = run(cells[:1], spark.seeds, tmp_path, workers=1)
    for seed in SEEDS:
        peak = spark.scores("static1", seed)["peak_rate"]
        assert twin.scores("static1", seed)["peak_rate"] == peak
    assert np.array_equal(twin.trace("static1").offered, spark.trace("static1").offered)


def test_the_error_over_time_by_hand(bench: Path, tmp_path: Path) -> None:
    """The twin is Spark's own run, with one executor more and 3 s less lag at every tick."""
    spark = Results.load(bench / "bench", read=read_cell)
    cells = twin_cells(spark, bench / "right")
    scores = {(c.key, s): spark.scores(c.key, s) for c in cells for s in SEEDS}
    real = spark.trace("ds2")
    moved = replace(real, slots=real.slots + 1.0, latency=real.latency - 3.0)
    traces.save(moved, tmp_path / "traces" / "ds2.npz")
    found = validate(spark, Results(cells, SEEDS, scores, tmp_path), name="b")
    fixed, ds2, _ = found.scenes[0].policies
    assert ds2.over is not None and fixed.over is None  # which left no trace here
    assert (ds2.over.executors, ds2.over.lag) == pytest.approx((1.0, 3.0))
    assert all(c.error == 0.0 for c in ds2.figures.values())
    assert [v.held for v in verdicts(found.scenes)] == [True] * 4


def test_an_unfinished_bench_is_compared_as_far_as_it_is(bench: Path, tmp_path: Path) -> None:
    folder = tmp_path / "half"
    folder.mkdir()
    for name in ("cells.json", CAPACITY):
        (folder / name).write_bytes((bench / "bench" / name).read_bytes())
    lines = (bench / "bench" / "scores.jsonl").read_text().splitlines(keepends=True)
    some = [line for line in lines if '"ds2"' in line][:2]
    some += [line for line in lines if '"static4"' in line][:1]
    (folder / "scores.jsonl").write_text("".join(some))
    spark = Results.load(folder, read=read_cell)
    cells = twin_cells(spark, bench / "right")
    found = validate(spark, run(cells, SEEDS[:2], tmp_path / "twin", workers=1), name="b")
    ds2, static = found.scenes[0].policies
    assert not found.complete and (ds2.seeds, static.seeds) == (2, 1)
    assert ds2.figures["slots_mean"].twin.count == 2
    assert static.figures["slots_mean"].twin.count == 1
    assert static.figures["slots_mean"].spark.half_width is None
    assert len(found.scenes[0].orders["slots_mean"]) == 1  # over the seed that both have


def test_several_scenes_are_judged_alone_and_together(tmp_path: Path) -> None:
    """By hand: under cosine all is well; under step the twin has ds2 and dhalion swapped."""
    lively = replace(GUARDS, cool_down=15.0)
    scenes = {"cosine": GUARDS, "step": GUARDS, "calm": GUARDS, "lively": lively}
    means = {"ds2": 2.0, "hpa-cpu": 3.0, "dhalion": 4.0}
    cells, real, played = [], {}, {}
    for name, guards in scenes.items():
        workload = name if name in ("cosine", "step") else "constant"
        given = {"workload": workload, "workload_parameters": {}, "guards": guards}
        for policy, mean in means.items():
            key = f"{name}-{policy}"
            cells.append(spark_cell(policy, key=key, **given))
            swapped = {"ds2": 4.4, "dhalion": 2.0}.get(policy, mean) if name == "step" else mean
            for seed in SEEDS:
                real[key, seed] = {"slots_mean": mean + seed / 10, "latency_p95": 50.0}
                played[key, seed] = {"slots_mean": swapped + seed / 10, "latency_p95": 60.0}
    twin = twin_of(windowed())
    doubles = [replace(cell, twin=twin) for cell in cells]
    spark = Results(cells, SEEDS, real, tmp_path)
    found = validate(spark, Results(doubles, SEEDS, played, tmp_path), name="b")
    titles = [scene.title for scene in found.scenes]
    assert titles[:2] == ["q5 · cosine", "q5 · step"]
    assert titles[2].startswith("q5 · constant · guards") and titles[2] != titles[3]
    well, wrong = verdicts([found.scenes[0]]), verdicts([found.scenes[1]])
    assert [v.held for v in well] == [True, True, True, None]
    assert [v.word for v in wrong] == ["not held", "held", "not held", "not judged"]
    assert wrong[0].broken == ("ds2 +114 % (allowed 15 %)", "dhalion −49 % (allowed 15 %)")
    assert wrong[2].broken == (
        "ds2 < hpa-cpu on Spark only",
        "ds2 < dhalion on Spark only",
        "hpa-cpu < dhalion on Spark only",
    )
    assert wrong[3].count == "Spark tells no pair apart; 3 ties; 3 of 3 by the means alone"
    executors, _, order, _ = verdicts(found.scenes)
    assert executors.count == "10 of 12 policies" and not executors.held
    assert executors.broken[0].startswith("q5 · step: ds2 +114 %")
    assert order.count.startswith("9 of 12 pairs") and order.held is False  # 10 are needed
    assert all(len(line) <= 80 for line in verdict_lines(verdicts(found.scenes)))


def test_what_cannot_be_compared(bench: Path, tmp_path: Path) -> None:
    spark = Results.load(bench / "bench", read=read_cell)
    with pytest.raises(InputError, match=r"no profile .*q5.json; `penstock lab calibrate"):
        twin_cells(spark, tmp_path)
    nothing = Results(spark.cells, SEEDS, {}, tmp_path)
    with pytest.raises(InputError, match="no finished run yet"):
        twin_cells(nothing, bench / "right")
    scores = {("ds2", 0): spark.scores("ds2", 0)}
    with pytest.raises(InputError, match=r"no capacity of q5.*restore the file"):
        twin_cells(Results(spark.cells, SEEDS, scores, tmp_path), bench / "right")
    played = Results(twin_cells(spark, bench / "right"), SEEDS, scores, tmp_path)
    with pytest.raises(InputError, match=r'ran on engine = "micro-batch"; only runs on Spark'):
        twin_cells(played, bench / "right")


# ---- the command ----------------------------------------------------------------------------


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell.at(tmp_path, monkeypatch, capsys, "validate")


def test_a_finding_that_does_not_hold_is_a_result(
    bench: Path, shell: Shell, tmp_path: Path
) -> None:
    done = shell(str(bench / "bench"), "--profiles", str(bench / "wrong"), "--workers", "1")
    assert done.code == 0, done.err
    words = " ".join(done.out.split())
    assert "not held mean executors within 15 %: 2 of 3 policies" in words
    assert "order by executors, ≥ 80 %: 2 of 3 pairs that Spark tells apart" in words
    assert "q5: made up for a test; seeds 77, machine none" in words
    assert "no validation" in words
    table, _, paths = done.out.partition("\nrun ")
    assert all(len(line) <= 80 for line in table.replace(str(bench), "").splitlines())
    (folder,) = (tmp_path / "runs").glob("*-validate-bench")
    assert str(folder.name) in paths
    assert (folder / "report.png").read_bytes().startswith(b"\x89PNG")
    assert "not held" in (folder / "tables.txt").read_text()
    document = json.loads((folder / "validation.json").read_text())
    assert document["scenes"][0]["verdicts"][0]["held"] is False
    assert Results.load(folder / "twin", read=read_cell).complete


def test_json_is_all_there_is_on_standard_output(bench: Path, shell: Shell) -> None:
    done = shell(str(bench / "bench"), "--profiles", str(bench / "right"), "--workers=1", "--json")
    document = done.json
    assert [v["held"] for v in document["verdicts"]] == [True] * 4
    assert document["profiles"]["q5"]["provenance"]["seeds"] == "77"
    score = document["scenes"][0]["policies"][1]["scores"]["latency_p95"]
    assert score["held"] and score["allowed"] >= 0.3 and score["spark"]["count"] == 3
    assert {pair["verdict"] for pair in document["scenes"][0]["pairs"]["slots_mean"]} == {"same"}
    assert Path(document["files"]["document"]).is_file()


SPEC = """\
engine = "{engine}"
[spark]
slots = 4
cpu_share = "none"
partitions = 6
[[pipeline]]
query = "{query}"
[[workload]]
name = "cosine"
[[policy]]
name = "ds2"
"""


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ("nowhere", (), "no bench at nowhere"),
        ("spec.toml", (), 'has engine = "simulated"'),
        ("q1.toml", (), "no profile .*q1.json"),
        ("BENCH", ("--workers", "0"), "--workers 0 must be ≥ 1"),
        ("BENCH", ("--profiles", "none"), "--profiles none: no such folder"),
    ],
)
def test_a_mistake_is_refused_before_anything_runs(
    source: str, more: tuple[str, ...], words: str, bench: Path, shell: Shell, tmp_path: Path
) -> None:
    simulated = SPEC.format(engine="simulated", query="q5")
    start, end = simulated.index("[spark]"), simulated.index("[[pipeline]]")
    (tmp_path / "spec.toml").write_text(simulated[:start] + simulated[end:])
    (tmp_path / "q1.toml").write_text(SPEC.format(engine="spark", query="q1"))
    name = str(bench / "bench") if source == "BENCH" else source
    done = shell(name, "--profiles", str(bench / "right"), *more)
    assert done.code == 2 and not done.out
    assert Path(tmp_path / "runs").exists() is False
    assert re.search(words, done.err), done.err


def test_a_spec_runs_on_spark_first(
    bench: Path, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for Spark whose last run fails: what there is is compared, exit code 1."""
    from penstock.bench.spark.runner import Failure
    from penstock.cli import bench_spark

    def ran(plan: Any, folder: Path) -> list[Failure]:
        spark_folder(folder, plan.cells, plan.seeds, {"q5": twin_of(windowed())})
        return [Failure(key="x", seed=0, why="lost")]

    monkeypatch.setattr(bench_spark, "run_spark_plan", ran)
    text = 'name = "mine"\nminutes = 10\nseeds = 1\n' + SPEC.format(engine="spark", query="q5")
    (tmp_path / "spec.toml").write_text(text)
    done = shell("spec.toml", "--profiles", str(bench / "right"))
    assert done.code == 1 and "x, seed 0: lost" in done.err
    assert "mean executors within 15 %" in done.out
    assert len(list((tmp_path / "runs").glob("*Z-mine"))) == 1
    assert len(list((tmp_path / "runs").glob("*-validate-mine"))) == 1


def test_an_interrupted_validation_leaves_nothing(
    bench: Path, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SparkCell, "run", interrupted)
    done = shell(str(bench / "bench"), "--profiles", str(bench / "right"), "--workers", "1")
    assert done.code == 130
    assert list((tmp_path / "runs").glob("*")) == []
