"""An application as a Spark UI or a History Server still tells of it: a recording, read once.

Only what Spark still keeps: the last batches and stages of a running application
(``spark.sql.ui.retainedExecutions``, ``spark.ui.retainedStages``), all of one in a History Server.
What was offered is not told, only what batches took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.batches.partitions import MOST_TASKS
from penstock.batches.values import Batch, Executor, Stage, Task
from penstock.core.errors import EngineError, InputError, MissingError
from penstock.history.recording import RecordedApplication, RecordedQuery
from penstock.spark.foreign.address import Application, find
from penstock.spark.foreign.batches import Batches
from penstock.spark.foreign.reader import Execution, execution_of
from penstock.spark.read.documents import stage_of
from penstock.spark.read.http import (
    Endpoint,
    LimitError,
    Limits,
    NotSparkError,
    strange_answers,
)
from penstock.spark.read.rest import Rest

KIND = "Spark's REST interface"
SECONDS = 300.0  # for all that is read
LIMITS = Limits(seconds=SECONDS, bytes=512 << 20, requests=20_000)
PAGE = 20  # executions that are asked for at once, with their plans
MOST_EXECUTIONS = 4000  # the newest of them
TASK_LISTS = 60  # of stages whose tasks are all told
TIMEOUT = 60.0  # seconds of silence: a History Server reads a log before its first answer
_SETTINGS = (
    "spark.master",
    "spark.dynamicAllocation.enabled",
    "spark.sql.shuffle.partitions",
    "spark.task.cpus",
)

Progress = Callable[[int, int], None]


def read_address(
    url: str,
    *,
    app: str | None = None,
    progress: Progress = lambda done, total: None,
    limits: Limits = LIMITS,
) -> RecordedApplication:
    """What the interface at an address tells of one application, ended or not.

    progress: documents read, and of how many
    limits: the time, bytes and requests for all of it together
    """
    try:
        application = find(url, app, ended=True)
    except InputError as error:
        raise InputError(str(error).replace("--app-url ", "")) from error
    endpoint = Endpoint(application.base, timeout=TIMEOUT, limits=limits)
    try:
        with endpoint.budget(), strange_answers():
            return _read(endpoint, application, progress)
    except LimitError as error:
        raise EngineError(
            f"{error}. An event log of the application has no such limit: penstock profile LOG"
        ) from error
    except NotSparkError as error:
        raise MissingError(f"{url}: the application is gone: {error}") from error


def _read(endpoint: Endpoint, application: Application, progress: Progress) -> RecordedApplication:
    base = f"/api/v1/applications/{application.path}"
    rest = Rest(endpoint, application.path)
    remarks: list[str] = []
    executors = tuple(rest.executors())
    settings = _settings(endpoint, base)
    if application.spark:
        settings["spark.version"] = application.spark
    if not executors:
        executors = _local(rest)
        remarks.append("on local[n] each core counts as an executor of one core")
    stages = _stages(endpoint.get(f"{base}/stages?details=false"))
    executions = _executions(endpoint, base, remarks, progress)
    # Of the oldest batch a part may be forgotten.
    ignored = {e.key for e in executions[:1] if e.id > 0 and e.key is not None}
    made = Batches(kept=MOST_EXECUTIONS, ignored=ignored)
    now = endpoint.now()
    running = {e.key for e in executions if e.running and e.key is not None}
    made.add((e for e in executions if not e.running), running=running, now=now)
    queries = _queries(made, stages, endpoint, rest, remarks)
    if not queries:
        raise InputError(
            f"{application.base}: {application.name} ({application.id}) has no finished batch "
            "of a streaming query that Spark still knows; let it run for longer, or give its "
            "event log"
        )
    return RecordedApplication(
        source=application.base,
        id=application.id,
        name=application.name,
        executors=executors,
        queries=queries,
        remarks=tuple(remarks),
        kind=KIND,
        settings=settings,
    )


def _settings(endpoint: Endpoint, base: str) -> dict[str, str]:
    """The few settings that we want; not every proxy passes on this page."""
    try:
        properties = dict(endpoint.get(f"{base}/environment")["sparkProperties"])
    except NotSparkError:
        return {}
    return {name: str(properties[name]) for name in _SETTINGS if name in properties}


def _local(rest: Rest) -> tuple[Executor, ...]:
    """The cores of an application on ``local[n]``, each as an executor that was always there."""
    return tuple(
        Executor(
            id=str(number),
            host="",
            cores=1,
            alive=True,
            added=0.0,
            removed=None,
            task_seconds=0.0,
            completed_tasks=0,
            active_tasks=0,
        )
        for number in range(max(1, rest.driver_cores()))
    )


def _stages(documents: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], list[Stage]]:
    """The ended stages of each batch."""
    attempts: dict[int, list[dict[str, Any]]] = {}
    for document in documents:
        attempts.setdefault(int(document["stageId"]), []).append(dict(document))
    found: dict[tuple[str, int], list[Stage]] = {}
    for id in sorted(attempts):
        stage = stage_of(attempts[id])
        if stage.run_id is not None and stage.batch is not None and stage.done and stage.tasks:
            found.setdefault((stage.run_id, stage.batch), []).append(stage)
    return found


def _executions(
    endpoint: Endpoint, base: str, remarks: list[str], progress: Progress
) -> list[Execution]:
    """The newest executions with their plans, page by page; each once."""
    listed = endpoint.get(f"{base}/sql?details=false&planDescription=false&offset=0&length=1000000")
    total = len(listed)
    begin = max(0, total - MOST_EXECUTIONS)
    if begin:
        remarks.append(f"of {total:,} executions the last {MOST_EXECUTIONS:,} were read")
    wanted = {int(e["id"]): e for e in listed[begin:]}
    found: dict[int, Execution] = {}
    for offset in range(begin, total, PAGE):
        page = endpoint.get(
            f"{base}/sql?details=true&planDescription=false&offset={offset}&length={PAGE}"
        )
        found |= {e.id: e for e in map(execution_of, page) if e.id in wanted}
        progress(min(total, offset + PAGE) - begin, total - begin)
    return [found[id] for id in sorted(found)]


def _queries(
    made: Batches,
    stages: Mapping[tuple[str, int], Sequence[Stage]],
    endpoint: Endpoint,
    rest: Rest,
    remarks: list[str],
) -> tuple[RecordedQuery, ...]:
    unsized = made.unsized()
    queries = []
    for run_id, batches in made.runs().items():
        if run_id in unsized:
            remarks.append(
                f"{batches[-1].query}: its plan does not tell how many rows a batch took; what "
                "its first stage read counts instead"
            )
            batches = [_sized(b, stages.get((run_id, b.id), ())) for b in batches]
        mine = {b.id: stages[run_id, b.id] for b in batches if (run_id, b.id) in stages}
        if lacking := sum(b.rows > 0 and b.id not in mine for b in batches):
            remarks.append(
                f"{batches[-1].query}: of {len(batches):,} batches {lacking:,} have no stages any "
                "more (spark.ui.retainedStages): they say nothing of costs"
            )
        queries.append(
            RecordedQuery(
                name=batches[-1].query,
                run_id=run_id,
                batches=tuple(batches),
                stages=_whole(mine),
                tasks=_tasks(mine, endpoint, rest),
            )
        )
    return tuple(queries)


def _sized(batch: Batch, stages: Sequence[Stage]) -> Batch:
    rows = max((s.input_records for s in stages), default=0)
    return batch if batch.rows else replace(batch, rows=rows, sources=())


def _whole(stages: Mapping[int, Sequence[Stage]]) -> dict[int, Sequence[Stage]]:
    """Without the oldest batch that has fewer stages than most: Spark forgot some of it."""
    if not stages:
        return {}
    usual = Counter(len(some) for some in stages.values()).most_common(1)[0][0]
    oldest = min(stages)
    return {id: s for id, s in stages.items() if id != oldest or len(s) >= usual}


def _tasks(
    stages: Mapping[int, Sequence[Stage]], endpoint: Endpoint, rest: Rest
) -> dict[int, Sequence[Task]]:
    """The tasks of some of the stages, evenly spread over the batches, while there is budget."""
    small = [id for id, some in stages.items() if all(s.tasks <= MOST_TASKS for s in some)]
    usual = max((len(some) for some in stages.values()), default=1)
    every = max(1, len(small) * usual // TASK_LISTS)
    found: dict[int, Sequence[Task]] = {}
    for id in sorted(small)[::every]:
        for stage in stages[id]:
            if endpoint.left < 0.2:
                return found
            found[stage.id] = rest.tasks(stage)
    return found
