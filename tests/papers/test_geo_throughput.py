"""How throughput is worked out of batches, and when the batches of a saturated query count."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.values import Batch, Stage, Task
from penstock.core.errors import EngineError, InputError
from penstock.lab.queries.geo import create
from penstock.lab.rig import saturation
from penstock.lab.rig.saturation import SaturatedThroughput, cut
from penstock.papers.geo.spark.measure import (
    PARTITIONS,
    Course,
    measure,
    session_conf,
    throughput_of,
)

T = 1_700_000_000.0


def batches_of(*seconds: float, rows: int = 100) -> list[Batch]:
    """One right after the other."""
    made, start = [], T
    for number, duration in enumerate(seconds):
        made.append(
            Batch(query="q", run_id="r", id=number, start=start, duration=duration, rows=rows)
        )
        start += duration
    return made


def stage_of(number: int, batch: int, *, tasks: int, busy: float, wait: float = 0.0) -> Stage:
    return Stage(
        id=number,
        run_id="r",
        batch=batch,
        done=True,
        tasks=tasks,
        run_time=busy + wait,
        cpu_time=busy,
        fetch_wait=wait,
        input_records=0,
        read_records=0,
        write_records=0,
    )


class TestThroughput:
    def test_where_the_time_went(self) -> None:
        """Two batches of 4 s on two executors; the second stage has a hot partition and waits."""
        stages = {
            n: [
                stage_of(2 * n, n, tasks=2, busy=2.0),
                stage_of(2 * n + 1, n, tasks=2, busy=4.0, wait=2.0),
            ]
            for n in (0, 1)
        }
        tasks = {
            s.id: [
                Task(partition=0, executor="1", busy=1.0 if s.id % 2 == 0 else 3.0, records=10),
                Task(partition=1, executor="2", busy=1.0, records=10),
            ]
            for some in stages.values()
            for s in some
        }
        found = throughput_of(
            "id-id",
            SaturatedThroughput(batches=tuple(batches_of(4.0, 4.0, rows=800))),
            stages,
            tasks,
            executors=["1", "2", "3"],
            cpu={"1": 0.9},
            rows=800,
            windows=2,
        )
        assert found.windows == (200.0, 200.0)
        assert found.executors == 3
        assert found.busy == {"1": 1.0, "2": 0.5, "3": 0.0}
        assert found.fetch_wait == pytest.approx(4.0 / 16.0)
        assert found.skew == pytest.approx(3.0 / 2.0)
        assert found.durations == (4.0, 4.0)
        assert "200 records/s" in str(found) and "waits 25%" in str(found)

    def test_mean_least_and_most_are_of_the_windows(self) -> None:
        found = throughput_of(
            "map",
            SaturatedThroughput(batches=tuple(batches_of(1.0, 1.0, 4.0))),
            {},
            {},
            executors=["1"],
            cpu={},
            rows=100,
            windows=2,
        )
        assert found.windows == (100.0, 25.0)
        assert (found.mean, found.least, found.most) == (62.5, 25.0, 100.0)
        assert (found.fetch_wait, found.skew, found.busy) == (0.0, None, {"1": 0.0})

    @given(st.lists(st.floats(0.1, 30.0), min_size=1, max_size=30), st.integers(1, 30))
    def test_parts_are_whole_and_all_are_there(self, seconds: list[float], parts: int) -> None:
        batches = batches_of(*seconds)
        if parts > len(batches):
            with pytest.raises(InputError, match="cannot be cut"):
                cut(batches, parts)
            return
        found = cut(batches, parts)
        assert len(found) == parts and all(found)
        assert [b for part in found for b in part] == batches

    def test_parts_last_about_as_long(self) -> None:
        found = cut(batches_of(*[1.0] * 30), 3)
        assert [len(part) for part in found] == [10, 10, 10]


@dataclass
class FakeQuery:
    """A query that finishes its batches one per look; its clock is that of the batches."""

    batches: Sequence[Batch]
    name: str = "fake"
    ends: bool = False
    looks: int = 0

    def awaitTermination(self, seconds: float) -> bool:  # noqa: N802 (Spark's name)
        self.looks += 1
        return self.ends and self.looks > len(self.batches)

    @property
    def recentProgress(self) -> Iterator[Any]:  # noqa: N802
        for batch in self.batches[: self.looks]:
            document = {
                "runId": "r",
                "name": self.name,
                "batchId": batch.id,
                "timestamp": datetime.fromtimestamp(batch.start, UTC).isoformat(),
                "batchDuration": batch.duration * 1e3,
                "numInputRows": batch.rows,
            }
            yield type("Progress", (), {"json": json.dumps(document)})()


class TestCountedBatches:
    def counted(self, query: FakeQuery, **other: Any) -> list[int]:
        given: dict[str, Any] = {"enough": lambda b: len(b) >= 2, "skip": 0, "within": 5.0}
        found = saturation.counted_batches(
            query, saturation.Counting(**given | {"hint": "wait"} | other)
        )
        return [batch.id for batch in found]

    def test_the_first_ones_are_skipped(self) -> None:
        assert self.counted(FakeQuery(batches_of(*[1.0] * 9)), skip=3) == [3, 4]

    def test_batches_without_records_do_not_count(self) -> None:
        batches = batches_of(1.0, 1.0, 1.0, 1.0)
        batches[1] = batches_of(1.0, 1.0, rows=0)[1]
        assert self.counted(FakeQuery(batches)) == [0, 2]

    def test_only_batches_planned_after_it_was_ready_count(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        query = FakeQuery(batches_of(*[1.0] * 9))
        monkeypatch.setattr("penstock.lab.rig.saturation.time.time", lambda: T + query.looks)
        # Ready at the third look, when batch 2 has ended and batch 3 is about to be planned.
        assert self.counted(query, ready=lambda: query.looks >= 3) == [3, 4]

    def test_a_query_that_ends_is_an_error(self) -> None:
        with pytest.raises(EngineError, match="fake stopped while it was measured"):
            self.counted(FakeQuery(batches_of(1.0), ends=True))

    def test_it_is_given_up_with_a_hint(self) -> None:
        with pytest.raises(EngineError, match=r"did not finish enough .* take fewer"):
            self.counted(FakeQuery([]), within=0.01, hint="take fewer rows")

    def test_figures_of_batches(self) -> None:
        batches = batches_of(1.0, 3.0, rows=200)
        assert saturation.lasted(batches) == pytest.approx(4.0)
        assert saturation.rate(batches) == pytest.approx(100.0)
        assert saturation.mean_duration(batches) == pytest.approx(2.0)


class TestCourse:
    def test_all_windows_have_to_be_full_with_a_batch_in_each(self) -> None:
        course = Course(rows=10, windows=3, seconds=2.0)
        assert not course.enough(batches_of(1.0, 1.0, 1.0))
        assert not course.enough(batches_of(9.0, 9.0))
        assert course.enough(batches_of(2.0, 2.0, 2.0))

    @pytest.mark.parametrize(
        "wrong",
        [{"rows": 0}, {"partitions": 0}, {"windows": 0}, {"skip": -1}, {"seconds": 0.0}],
    )
    def test_wrong_courses_are_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=next(iter(wrong))):
            Course(**{"rows": 10, **wrong})

    def test_a_batch_of_a_join_that_is_no_whole_window_is_refused(self) -> None:
        nothing: Any = None
        with pytest.raises(InputError, match="rows 4,000 must be a multiple of 8,000"):
            measure(nothing, nothing, create("id-value"), Course(rows=4_000))

    def test_a_session_has_as_many_partitions_as_a_course(self) -> None:
        assert session_conf()["spark.sql.shuffle.partitions"] == str(PARTITIONS)
        assert Course(rows=1).partitions == PARTITIONS
