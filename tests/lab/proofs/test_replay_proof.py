"""What a replay foretells beside real runs: kept, resumed, judged; no Spark runs here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.core.errors import InputError
from penstock.lab.proofs import replay, replay_run
from penstock.lab.proofs.examples_run import ExampleError, Setting
from penstock.lab.proofs.proof import Proof
from penstock.lab.proofs.replay import ReplaySettings, judge, prove
from penstock.lab.proofs.replay_play import EXECUTORS, WAIT, Course, Foretold, Profiles
from penstock.lab.proofs.replay_run import Fed, keep, kept
from penstock.workloads.patterns import Step
from tests.fakes.microbatch_examples import windowed
from tests.fakes.recorded_runs import EPOCH, write_down
from tests.fakes.terminal import assert_fits

SECONDS = 400.0
LOAD = Step(low=200.0, high=2000.0, at=0.35 * SECONDS, hold=0.3 * SECONDS)
SPEC = ReplaySettings(seconds=SECONDS, repeats=1, seeds=1)


def fed(policy: str) -> Fed:
    times = np.arange(0.0, SECONDS + 10.0, 0.5)
    return Fed(
        example="windowed",
        setting=Setting(policy=policy),
        begun=EPOCH,
        rise=EPOCH + LOAD.at,
        fall=EPOCH + LOAD.at + LOAD.hold,
        end=EPOCH + SECONDS,
        counts=tuple((EPOCH + float(t), int(LOAD.offered(float(t)))) for t in times),
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of finished runs, with event logs and journals of a made-up application."""
    root = tmp_path_factory.mktemp("done")
    for seed, (name, policy) in enumerate(SPEC.runs()):
        folder = root / name
        (folder / "events").mkdir(parents=True)
        ran = write_down(
            folder, windowed(), LOAD, seconds=SECONDS, start=1, seed=seed, policy=policy
        )
        ran.log.rename(folder / "events" / ran.log.name)
        keep(fed(policy), folder)
    return root


@pytest.fixture(scope="module")
def profiles(done: Path) -> Profiles:
    return Profiles.read(done / "record")


def not_run(*_: Any, **__: Any) -> Fed:
    raise AssertionError("everything is there already")


def proved(folder: Path, done: Path, **changes: Any) -> Proof:
    folder.mkdir(exist_ok=True)
    return prove(replace(SPEC, done=str(done), **changes), folder=folder, say=lambda text: None)


# ---- finished runs, from their logs to the verdict ---------------------------------------------


def test_finished_runs_are_taken_over_foretold_and_judged(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "really_run", not_run)
    proof = proved(tmp_path, done)
    assert [c.figure for c in proof.checks] == [
        "hpa-cpu: executors foretold", "hpa-cpu: p95 wait foretold",
        "dhalion: executors foretold", "dhalion: p95 wait foretold",
        "profiles agree: seconds of a batch", "profiles agree: mean demand",
    ]  # fmt: skip
    # The runs come from the simulator itself: what is foretold of them is nearly right.
    held = {c.figure for c in proof.checks if c.held}
    assert {"hpa-cpu: executors foretold", "profiles agree: mean demand"} <= held
    assert all(c.value is not None for c in proof.checks)
    assert_fits(proof)
    assert json.dumps(proof.document(), allow_nan=False)
    for name, _ in SPEC.runs():
        assert kept(tmp_path / name) == kept(done / name) is not None
    assert (tmp_path / "report.png").stat().st_size > 10_000


def test_both_profiles_are_shown_number_by_number(profiles: Profiles) -> None:
    rows = {row["number"]: row for row in replay.profile_rows(profiles)}
    assert {"read: a task", "stage-2: a record", "executor start", "demand, mean"} <= set(rows)
    assert "±" in rows["read: a task"]["event log"]
    assert [(c.executors, c.log > 0) for c in profiles.costs()][::2] == [(1, True)] * 2
    assert profiles.demand_off is not None and profiles.demand_off < 0.1


def test_without_the_journal_s_profile_the_log_s_still_foretells(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "really_run", not_run)
    broken = tmp_path / "broken"
    shutil.copytree(done, broken)
    journal = broken / "record" / "decisions.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:3]))
    proof = proved(tmp_path / "new", broken, policies=("dhalion",))
    assert [c.value is None for c in proof.checks] == [False, False, True, True]
    assert proof.details[0]["by journal"] == "–" and not proof.held
    assert any("decisions.jsonl" in note for note in proof.notes)
    assert_fits(proof)


# ---- keeping and resuming ----------------------------------------------------------------------


def test_only_what_is_missing_is_run_and_ctrl_c_shows_the_rest(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = tmp_path / "half"
    shutil.copytree(done, half)
    (half / "dhalion-1" / replay_run.FED).unlink()  # what is not finished does not count
    asked: list[tuple[str, Setting, float, Path]] = []

    def interrupted(example: str, setting: Setting, seconds: float, **given: Any) -> Fed:
        asked.append((example, setting, seconds, given["folder"]))
        raise KeyboardInterrupt

    monkeypatch.setattr(replay, "really_run", interrupted)
    proof = proved(tmp_path / "new", half)
    new = tmp_path / "new"
    assert asked == [("windowed", Setting(policy="dhalion"), SECONDS, new / "dhalion-1")]
    assert proof.interrupted and {row["policy"] for row in proof.details} == {"hpa-cpu"}
    assert kept(new / "hpa-cpu-1") is not None and kept(new / "dhalion-1") is None


def test_a_run_that_fails_by_itself_is_named(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(*_: Any, **__: Any) -> Fed:
        raise ExampleError("it ended with exit code 1:\nTraceback\nOutOfMemoryError: no")

    monkeypatch.setattr(replay, "really_run", failed)
    half = tmp_path / "half"
    shutil.copytree(done, half, ignore=shutil.ignore_patterns("hpa-cpu-1"))
    proof = proved(tmp_path / "new", half)
    assert "not run: hpa-cpu-1: OutOfMemoryError: no" in proof.notes
    with pytest.raises(ExampleError):
        proved(tmp_path / "none", tmp_path / "new" / "dhalion-1")


def test_ctrl_c_while_recording_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Fed:
        raise KeyboardInterrupt

    monkeypatch.setattr(replay, "really_run", interrupted)
    proof = prove(SPEC, folder=tmp_path, say=lambda text: None)
    assert proof.interrupted and not proof.held and not proof.checks


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"period": 5.0}, "record is of windowed under Setting.*options that it was made with"),
        ({"seconds": 600.0}, "record took 400 s, not 600: give --seconds 400"),
        ({"only": "sessions"}, "record is of windowed"),
    ],
)
def test_runs_of_other_options_do_not_count(
    done: Path, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        proved(tmp_path, done, **changes)
    assert not (tmp_path / "record").exists()


# ---- one run -----------------------------------------------------------------------------------


class FakePlay:
    """An example that is fed on a clock of its own."""

    def __init__(self) -> None:
        self.loads: list[float] = []
        self.waited: list[float] = []
        self.feed = self
        self.counts = [(EPOCH, 0), (EPOCH + 1.0, 200)]

    def load(self, rate: float) -> float:
        self.loads.append(rate)
        return EPOCH + len(self.loads)

    def wait(self, holds: Any, seconds: float) -> bool:
        self.waited.append(seconds)
        return bool(holds())


def test_the_load_goes_up_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = FakePlay()

    @contextmanager
    def playing(*_: Any, **__: Any) -> Iterator[FakePlay]:
        yield play

    monkeypatch.setattr(replay_run, "playing", playing)
    monkeypatch.setattr("time.time", lambda: EPOCH)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "app-1.inprogress").write_text("{}\n")
    found = replay_run.run("windowed", Setting(), 100.0, folder=tmp_path, say=lambda text: None)
    assert play.loads == [2000.0, 200.0]
    assert play.waited == [35.0, 65.0, 100.0, replay_run.LAST_BATCH]
    assert kept(tmp_path) == found
    (tmp_path / "events" / "app-2").write_text("")
    with pytest.raises(Exception, match="holds 2 event logs"):
        replay_run.event_log_of(tmp_path)


def test_what_was_fed_is_a_demand() -> None:
    whole = fed("ds2").demand(EPOCH)
    assert whole.records == pytest.approx(LOAD.offered(SECONDS + 9.5), abs=2)
    later = fed("ds2").demand(EPOCH + LOAD.at)
    assert later.start == EPOCH + LOAD.at
    assert later.even(1.0)[1] == pytest.approx(2000.0, rel=0.01)


# ---- judging -----------------------------------------------------------------------------------


def course(executors: float, wait: float) -> Course:
    """The seconds before the span that counts are far off."""
    before = np.full(10, 50.0)
    return Course(
        executors=np.concatenate((before, np.full(90, executors))),
        waits=np.concatenate((before, np.linspace(0.0, wait / 0.95, 90))),
        counted=(10, 100),
    )


def foretold(policy: str, real: tuple[float, float], told: tuple[float, float]) -> Foretold:
    return Foretold(
        name=f"{policy}-1",
        policy=policy,
        rates=np.full(100, 200.0),
        real=course(*real),
        by_log=[course(*told), course(*told)],
        by_journal=[course(*told)],
    )


def test_figures_are_over_the_span_that_counts() -> None:
    assert course(2.0, 20.0).figure(EXECUTORS) == 2.0
    assert course(2.0, 20.0).figure(WAIT) == pytest.approx(20.0, rel=0.02)


@pytest.mark.parametrize(
    ("told", "held"),
    [
        ((2.2, 25.0), [True, True]),
        ((2.4, 25.0), [False, True]),
        ((1.6, 20.0), [False, True]),
        ((2.0, 27.0), [True, False]),
        ((2.0, 13.0), [True, False]),
    ],
)
def test_what_is_foretold_is_compared_with_the_mean_of_real_runs(
    told: tuple[float, float], held: list[bool]
) -> None:
    runs = [foretold("hpa-cpu", (size, wait), told) for size, wait in ((1.9, 19.0), (2.1, 21.0))]
    assert [c.held for c in judge(None, runs).checks] == held


def test_real_runs_that_differ_allow_more() -> None:
    runs = [foretold("hpa-cpu", (2.0, wait), (2.0, 29.0)) for wait in (14.0, 20.0, 26.0)]
    check = judge(None, runs).checks[1]
    assert check.held and check.bound == pytest.approx(12.0, rel=0.05)  # two spreads of 6 s


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"only": "no"}, "unknown example 'no'; there are windowed, sessions"),
        ({"policy": "ds3"}, "did you mean 'ds2'"),
        ({"policies": ("hpa-cpu", "dhalian")}, "did you mean 'dhalion'"),
        ({"policies": ("spark-dra",)}, "spark-dra is Spark's own allocation"),
        ({"policies": ("hpa-cpu", "ds2")}, "ds2 is in the recording already"),
        ({"policies": ("dhalion", "dhalion")}, "names one twice"),
        ({"policies": ()}, "--policies names none"),
        ({"seconds": 30.0}, "--seconds 30 must lie between 120 and 7200"),
        ({"repeats": 0}, "--repeats 0 must lie between 1 and 100"),
        ({"seeds": 0}, "--seeds 0 must lie between 1 and 100"),
        ({"period": 1.0}, "--period 1 must lie between 2 and 60"),
        ({"executors": 1}, "--executors 1 must lie between 2 and 64"),
        ({"done": "/no/such"}, "there is no such folder"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        ReplaySettings(**changes)
