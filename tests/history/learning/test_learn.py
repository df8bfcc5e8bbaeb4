"""A profile learnt from what Spark and what Penstock wrote of one simulated run.

The simulator is the oracle: its numbers are known.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.batches.values import Batch, Source, Stage
from penstock.comparison.sources import read_source
from penstock.core.errors import InputError, MissingError
from penstock.history.learning.learn import Learned, learn
from penstock.history.learning.told import limits_of, trigger_of
from penstock.history.recording import RecordedApplication, RecordedQuery
from penstock.simulator.microbatch import Profile, QueryProfile, read_profile, write_profile
from penstock.workloads.patterns import Cosine
from tests.fakes.recorded_runs import EPOCH, WrittenDown, write_down
from tests.places import ROOT

LOAD = Cosine(low=500.0, high=12_000.0, period=600.0)
USUAL = 15_000.0  # records of a batch
SEEN = 6.0  # standard errors; those of a fit are of chance only


@pytest.fixture(scope="module")
def true() -> Profile:
    return read_profile(ROOT / "examples/twin/profiles/q5.json")


@pytest.fixture(scope="module")
def written(true: Profile, tmp_path_factory: pytest.TempPathFactory) -> WrittenDown:
    folder = tmp_path_factory.mktemp("run")
    return write_down(folder, true, LOAD, seconds=1800.0, start=2, seed=7)


@pytest.fixture(scope="module")
def by_log(written: WrittenDown) -> Learned:
    return learn(read_source(written.log))


@pytest.fixture(scope="module")
def by_journal(written: WrittenDown) -> Learned:
    return learn(read_source(written.journal.parent))


def only(found: Learned) -> QueryProfile:
    (query,) = found.profile.queries
    return query


def costs(query: QueryProfile, rows: float) -> list[float]:
    """Busy seconds of each stage of a batch of so many rows, in equilibrium of its state."""
    found, read = [], rows
    for stage in query.stages:
        found.append(stage.tasks * stage.fixed + stage.per_record * read)
        read *= stage.selectivity
        if stage.most_out is not None:
            read = min(read, stage.most_out * stage.tasks)
    return found


@pytest.mark.parametrize("side", ["by_log", "by_journal"])
def test_parameters_are_found_again(
    side: str, true: Profile, request: pytest.FixtureRequest
) -> None:
    found: Learned = request.getfixturevalue(side)
    mine, query = only(found), true.queries[0]
    assert [s.name for s in mine.stages] == [s.name for s in query.stages]
    assert [s.upstream for s in mine.stages] == [s.upstream for s in query.stages]
    assert mine.sources == query.sources
    assert mine.planning + mine.commit == pytest.approx(query.planning + query.commit, rel=0.1)
    assert mine.task_noise == pytest.approx(query.task_noise, rel=0.1)
    assert mine.batch_noise == pytest.approx(query.batch_noise, rel=0.35)
    errors = found.profile.errors
    for got, stage in zip(mine.stages, query.stages, strict=True):
        assert got.tasks == stage.tasks and not got.shares
        off = abs(got.fixed - stage.fixed)
        assert off <= max(SEEN * errors[f"{stage.name}.fixed"], 0.05 * stage.fixed)
        off = abs(got.per_record - stage.per_record)
        # What a row of state costs goes with the records, where the state does.
        assert off <= max(SEEN * errors[f"{stage.name}.per_record"], 0.35 * stage.per_record)
    assert found.error < 0.12


def test_both_sides_agree(by_log: Learned, by_journal: Learned) -> None:
    a, b = only(by_log), only(by_journal)
    assert a.planning + a.commit == pytest.approx(b.planning + b.commit, rel=0.1)
    read_a, read_b = a.stages[0], b.stages[0]
    assert read_a.per_record == pytest.approx(read_b.per_record, rel=0.1)
    for x, y in zip(a.stages, b.stages, strict=True):
        assert x.fixed == pytest.approx(y.fixed, rel=0.15)
        assert x.selectivity == pytest.approx(y.selectivity, rel=0.1)
    assert costs(a, USUAL) == pytest.approx(costs(b, USUAL), rel=0.2)


def test_demand_and_executors_are_found_again(
    written: WrittenDown, by_log: Learned, by_journal: Learned
) -> None:
    for found in (by_log, by_journal):
        (demand,) = found.demand.values()
        assert demand.mean == pytest.approx((LOAD.low + LOAD.high) / 2, rel=0.01)
        assert demand.peak == pytest.approx(LOAD.high, rel=0.02)
        assert demand.lower_bound == 0.0
        assert demand.start == found.start
        assert found.sizes == (2, 3) and not found.linear
    assert by_log.batches == written.batches
    assert by_log.start == pytest.approx(EPOCH, abs=2.0)
    assert by_log.executors.counts == by_journal.executors.counts
    apart = by_log.executors.edges - by_journal.executors.edges
    assert abs(apart).max() < 15.0


def test_how_executors_start_and_warm_up(
    true: Profile, by_log: Learned, by_journal: Learned
) -> None:
    executor = by_log.profile.executor
    assert executor.slowdown == pytest.approx(true.executor.slowdown, rel=0.3)
    assert executor.warm_up == pytest.approx(true.executor.warm_up, rel=0.3)
    assert any("start = 15 s is assumed" in note for note in by_log.profile.notes)
    assert by_journal.profile.executor.start == pytest.approx(true.executor.start, rel=0.2)
    assert not any("is assumed" in note for note in by_journal.profile.notes)


def test_a_profile_with_errors_and_notes_is_read_again(by_log: Learned, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write_profile(by_log.profile, path)
    assert read_profile(path) == by_log.profile
    assert read_profile(path).errors == by_log.profile.errors
    assert '"notes": []' not in path.read_text()


def test_a_query_that_is_not_there(written: WrittenDown) -> None:
    with pytest.raises(InputError, match="Known: q5"):
        learn(read_source(written.log), queries=["q6"])


def test_what_it_ran_on_is_told_by_the_source_itself(written: WrittenDown) -> None:
    with pytest.raises(InputError, match="--executors 3 is for files of progress documents only"):
        learn(read_source(written.log), executors=3)


def test_scipy_is_asked_for(written: WrittenDown, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_source(written.log)
    monkeypatch.setitem(__import__("sys").modules, "scipy", None)
    with pytest.raises(MissingError, match=r"pip install 'penstock\[sim\]'"):
        learn(found)


def stage(id: int, batch: int, tasks: int, seconds: float, *, read: int = 0, fetched: int = 0,
          wrote: int = 0) -> Stage:  # fmt: skip
    return Stage(id=id, run_id="r", batch=batch, done=True, tasks=tasks, run_time=seconds,
                 cpu_time=0.0, fetch_wait=0.0, input_records=read, read_records=fetched,
                 write_records=wrote)  # fmt: skip


def wordcount(written: RecordedApplication, *, same: bool, adaptive: bool) -> RecordedApplication:
    """Like Spark's example: a socket without offsets, 200 tasks of which most are empty, no
    trigger; ``same`` batches of one size, ``adaptive`` another number of stages in each.
    """
    batches, stages, at = [], {}, EPOCH
    for id in range(60):
        rows = 1000 if same else 200 + 97 * (id * 7 % 31)
        some = [stage(10 * id, id, 1, 0.01 + 1e-5 * rows, read=rows, wrote=40),
                stage(10 * id + 1, id, 200, 200 * 0.02, fetched=40)]  # fmt: skip
        if adaptive:
            some += [stage(10 * id + 2 + n, id, 1, 0.01) for n in range(id % 4)]
        duration = 0.3 + sum(s.run_time / min(s.tasks, 4) for s in some)
        batches.append(Batch(query="query-9f", run_id="r", id=id, start=at, duration=duration,
                             rows=rows, sources=(Source(rows=rows, name="TextSocketV2[a]"),),
                             state=("stateStoreSave",), state_rows=40))  # fmt: skip
        stages[id] = some
        at += duration + 0.01
    executor = replace(written.executors[0], cores=4, added=EPOCH - 5.0, removed=None)
    query = RecordedQuery(name="query-9f", run_id="r", batches=tuple(batches), stages=stages)
    return replace(written, executors=(executor,), queries=(query,), rescales=())


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("adaptive", [True, False])
def test_an_example_of_spark_as_it_is(written: WrittenDown, same: bool, adaptive: bool) -> None:
    found = learn(wordcount(read_source(written.log), same=same, adaptive=adaptive))
    query = only(found)
    assert found.profile.executor.cores == 4
    assert query.source_names == ("socket",) and query.trigger == 0.0
    assert found.error < 0.1 and found.linear
    notes = "\n".join(found.profile.notes)
    assert "seen at one size only, 1 executors" in notes
    assert "one batch follows the other" in notes
    assert ("taken together as one" in notes) == adaptive
    if not adaptive:
        assert [s.tasks for s in query.stages] == [1, 200]
        assert query.stages[1].fixed == pytest.approx(0.02, rel=0.05) or same


def test_too_few_batches_are_refused(written: WrittenDown) -> None:
    whole = wordcount(read_source(written.log), same=False, adaptive=False)
    (query,) = whole.queries
    few = replace(whole, queries=(replace(query, batches=query.batches[:8]),))
    assert any("only 8 batches ran: all numbers are rough" in n for n in learn(few).profile.notes)
    fewer = replace(whole, queries=(replace(query, batches=query.batches[:4]),))
    with pytest.raises(InputError, match=r"query-9f: .* at least 5 are needed .* run for longer"):
        learn(fewer)


def test_without_executors_nothing_is_said_of_them(written: WrittenDown) -> None:
    with pytest.raises(InputError, match="tells of no executors"):
        learn(replace(read_source(written.log), executors=()))


def planned(starts: list[float], duration: float) -> list[Batch]:
    return [Batch(query="q", run_id="r", id=n, start=s, duration=duration, rows=1)
            for n, s in enumerate(starts)]  # fmt: skip


def test_triggers_that_nobody_told() -> None:
    every_ten = [EPOCH + 10.0 * n + 0.004 * (n % 3) for n in range(30)]
    assert trigger_of(planned(every_ten, 2.0)) == 10.0
    at_once = [EPOCH + 2.35 * n for n in range(30)]
    assert trigger_of(planned(at_once, 2.34)) == 0.0
    whenever = [EPOCH + 3.77 * n + 0.31 * (n * n % 7) for n in range(30)]
    assert trigger_of(planned(whenever, 0.4)) == 0.0
    assert trigger_of(planned(every_ten[:2], 2.0)) is None


def test_limits_that_nobody_told() -> None:
    def took(rows: int, waits: int) -> Batch:
        source = Source(rows=rows, available=rows + waits, taken=rows)
        return replace(planned([0.0], 1.0)[0], rows=rows, sources=(source,))

    assert limits_of([took(500, 900), took(500, 400), took(499, 10), took(90, 0)]) == (500,)
    assert limits_of([took(500, 0), took(400, 0), took(300, 0)]) == (None,)
    assert limits_of([]) == ()
