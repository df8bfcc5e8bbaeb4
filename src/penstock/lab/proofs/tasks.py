"""When executors were given their first tasks, from the task lists of the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.spark.read.rest import Rest, epoch

TASKS = 10_000  # of one stage; there are as many as partitions


class TaskRest(Rest):
    """Also reads the tasks of stages."""

    def first_launch(self, executors: Iterable[str], since: float) -> float | None:
        """When the first task of any of these executors was launched (epoch seconds).

        Looks at the stages that were submitted or still ran at ``since`` or later.
        """
        wanted = set(executors)
        stages = sorted(
            (
                (epoch(stage["submissionTime"]), int(stage["stageId"]), int(stage["attemptId"]))
                for stage in self._get("/stages")
                if "submissionTime" in stage and _ran_at(stage, since)
            ),
        )
        first: float | None = None
        for submitted, stage_id, attempt in stages:
            if first is not None and submitted > first:
                break
            tasks = self._get(
                f"/stages/{stage_id}/{attempt}/taskList?length={TASKS}", missing_ok=True
            )
            launches = [
                epoch(task["launchTime"])
                for task in tasks or ()
                if task.get("executorId") in wanted and task.get("launchTime")
            ]
            first = min([*launches, *([] if first is None else [first])], default=None)
        return first


def _ran_at(stage: Mapping[str, Any], moment: float) -> bool:
    return "completionTime" not in stage or epoch(stage["completionTime"]) >= moment
