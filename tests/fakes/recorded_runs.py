"""One simulated run as Spark and Penstock would have written it down: event log and journal."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.batches.values import Batch, Stage
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.history.journal import Header, Journal
from penstock.policies import create
from penstock.simulator.microbatch import Profile
from penstock.workloads.patterns import Pattern
from tests.fakes.profile_experiments import Laboratory

EPOCH = 1_800_000_000.0
STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
Event = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDown:
    """Where a run is written down, and how many batches it had."""

    log: Path
    journal: Path
    batches: int


def write_down(
    folder: Path,
    profile: Profile,
    load: Pattern,
    *,
    seconds: float,
    start: int,
    seed: int,
    policy: str = "ds2",
) -> WrittenDown:
    """Run the only query of a profile under a policy and write down what happens, both ways."""
    (query,) = profile.queries
    lab = Laboratory(
        profile, {query.sources[0].name: load}, seconds=seconds, start=start, seed=seed
    )
    stages: dict[int, list[Stage]] = defaultdict(list)
    add = lab.engine._stages.add

    def kept(some: Sequence[Stage]) -> None:
        add(some)
        for stage in (s for s in some if s.done):
            assert stage.batch is not None
            stages[stage.batch].append(stage)

    lab.engine._stages.add = kept  # type: ignore[method-assign, assignment]
    own, guards = create(policy), Guards(maximum=8)
    journal = folder / "decisions.jsonl"
    header = Header(policy=policy, guards=guards, mode="act", period=15.0)
    with Journal(journal, header) as written:
        loop = Loop(lab.engine, own, guards, mode="act", record=written.record)
        loop.run(period=15.0, ticks=int(seconds / 15.0))
    lab.engine.finish()
    record = lab.engine.record()
    batches = record.batches[query.name]
    events = [*_executors(lab, record.executors), *_batches(lab, batches, stages)]
    log = folder / "app-1"
    first = {"Event": "SparkListenerApplicationStart", "App Name": "simulated", "App ID": "app-1"}
    last = {"Event": "SparkListenerApplicationEnd", "Timestamp": _millis(record.seconds)}
    ordered = [event for _, event in sorted(events, key=lambda pair: pair[0])]
    log.write_text("".join(_line(event) for event in (first, *ordered, last)))
    return WrittenDown(log=log, journal=journal, batches=sum(not b.idle for b in batches))


def _executors(lab: Laboratory, executors: Sequence[Any]) -> Iterator[tuple[float, Event]]:
    for e in executors:
        info = {"Host": "h", "Total Cores": e.cores}
        yield e.added, {"Event": "SparkListenerExecutorAdded", "Timestamp": _millis(e.added),
                        "Executor ID": e.id, "Executor Info": info}  # fmt: skip
        if e.removed is not None:
            yield e.removed, {"Event": "SparkListenerExecutorRemoved",
                              "Timestamp": _millis(e.removed), "Executor ID": e.id}  # fmt: skip


def _batches(
    lab: Laboratory, batches: Sequence[Batch], stages: dict[int, list[Stage]]
) -> Iterator[tuple[float, Event]]:
    (query,) = lab.engine.profile.queries
    for batch in batches:
        if batch.idle:
            yield batch.start, {"Event": f"{STREAMING}IdleEvent", "runId": "run-1",
                                "timestamp": _moment(batch.start)}  # fmt: skip
            continue
        for place, stage in enumerate(sorted(stages[batch.id], key=lambda s: s.id)):
            for event in _stage(lab, stage, place):
                yield batch.end, event
        yield (
            batch.end,
            {
                "Event": f"{STREAMING}ProgressEvent",
                "progress": _progress(batch, query.commit),
            },
        )


def _stage(lab: Laboratory, stage: Stage, place: int) -> Iterator[Event]:
    (query,) = lab.engine.profile.queries
    words = f"{query.name}\nid = x\nrunId = run-1\nbatch = {stage.batch}"
    about = {"Stage ID": stage.id, "Stage Attempt ID": 0, "Number of Tasks": stage.tasks}
    yield {"Event": "SparkListenerStageSubmitted", "Stage Info": about,
           "Properties": {"spark.job.description": words}}  # fmt: skip
    written = _parts(stage.write_records, stage.tasks, stage.id)
    inputs = _parts(stage.input_records, stage.tasks, stage.id)
    fetched = _parts(stage.read_records, stage.tasks, stage.id)
    for partition, executor, seconds in lab._seats[stage.id]:
        yield {
            "Event": "SparkListenerTaskEnd",
            "Stage ID": stage.id,
            "Task End Reason": {"Reason": "Success"},
            "Task Info": {"Index": partition, "Executor ID": executor},
            "Task Metrics": {
                "Executor Run Time": round(seconds * 1e3),
                "Executor Deserialize Time": 0,
                "Input Metrics": {"Records Read": inputs[partition]},
                "Shuffle Read Metrics": {
                    "Total Records Read": fetched[partition],
                    "Fetch Wait Time": 0,
                },
                "Shuffle Write Metrics": {"Shuffle Records Written": written[partition]},
            },
        }
    yield {"Event": "SparkListenerStageCompleted", "Stage Info": about}


def _progress(batch: Batch, commit: float) -> Event:
    rows = [batch.state_rows, *[0] * len(batch.state)]
    sizes = [batch.state_bytes, *[0] * len(batch.state)]
    (source,) = batch.sources
    return {
        "runId": "run-1",
        "name": batch.query,
        "batchId": batch.id,
        "timestamp": _moment(batch.start),
        "batchDuration": round(batch.duration * 1e3),
        "durationMs": {"addBatch": round((batch.duration - commit) * 1e3),
                       "commitOffsets": round(commit * 1e3)},
        "sources": [{
            "description": source.name, "numInputRows": source.rows,
            "endOffset": {"offset": source.taken}, "latestOffset": {"offset": source.available},
        }],
        "stateOperators": [
            {"operatorName": name, "numRowsTotal": n, "memoryUsedBytes": size}
            for name, n, size in reversed(list(zip(batch.state, rows, sizes, strict=False)))
        ],
        "sink": {"description": "sink", "numOutputRows": batch.written},
    }  # fmt: skip


def _parts(count: int, tasks: int, turn: int) -> list[int]:
    """As even as can be; what is left goes to other tasks in each turn."""
    return [count // tasks + ((place + turn) % tasks < count % tasks) for place in range(tasks)]


def _millis(seconds: float) -> int:
    return round((EPOCH + seconds) * 1e3)


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(EPOCH + seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _line(event: Event) -> str:
    return json.dumps(event, separators=(",", ":")) + "\n"
