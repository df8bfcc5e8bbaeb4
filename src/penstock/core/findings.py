"""What an engine found out about how its queries run: values first, sentences from them.

A finding never sizes anything. It tells a person what the figures mean where more or fewer slots
are not the answer; what must be prevented is a guard's. Each is said once, when it is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

FindingKind = Literal[
    "no-query",
    "first-batch",
    "restarted",
    "backfill",
    "real-time",
    "continuous",
    "driver",
    "slow-sink",
    "hot-partition",
]
TriggerKind = Literal["interval", "asap", "available-now", "once", "real-time", "continuous"]
"""When batches come: at an interval, one after the other, until a backlog is worked off (in
several batches, or in one), or never in this sense, because tasks live as long as the query."""

ENDING: tuple[TriggerKind, ...] = ("available-now", "once")
LONG_LIVED: tuple[TriggerKind, ...] = ("real-time", "continuous")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One of them; what does not belong to its kind is left out.

    query: its name; empty if it is about the session
    batch: which one runs
    seconds: since when there is no query, how long the batch has run, what passes without tasks in
        a batch, what the longest task takes
    whole: seconds of a whole batch, or of a task in the mean
    tasks, tasks_ended: of the batch, or of the stage
    stage, partition: which is hot
    share: of the stage's records that the partition has, or of a core that tasks use
    place: what takes the time: a phase of Spark's progress, ``foreachBatch``, or the sink
    slots: without which it cannot run
    """

    kind: FindingKind
    query: str = ""
    batch: int | None = None
    seconds: float | None = None
    whole: float | None = None
    tasks: int | None = None
    tasks_ended: int | None = None
    stage: str = ""
    partition: int | None = None
    share: float | None = None
    place: str = ""
    slots: float | None = None

    @property
    def gist(self) -> tuple[FindingKind, str, float | None]:
        """What of it is news: the kind, the query, the slots; other figures move all the time."""
        return self.kind, self.query, self.slots


def sentence_of(finding: Finding) -> str:
    """What a person reads.

    >>> sentence_of(
    ...     Finding(kind="first-batch", query="q", batch=0, seconds=60, tasks_ended=34, tasks=200)
    ... )
    'q: no finished batch yet; batch 0 runs since 60 s, 34 of 200 tasks done'
    """
    words = _session if finding.kind == "no-query" else _of_query
    return words(finding)


def _session(f: Finding) -> str:
    return (
        f"no streaming query has run in this session for {_seconds(f.seconds)}: nothing is decided "
        "until one starts"
    )


def _of_query(f: Finding) -> str:
    return f"{f.query}: {_words(f)}"


def _words(f: Finding) -> str:
    match f.kind:
        case "first-batch":
            far = f"{f.tasks_ended or 0} of {f.tasks or 0} tasks done"
            return f"no finished batch yet; batch {f.batch} runs since {_seconds(f.seconds)}, {far}"
        case "restarted":
            return (
                "it was started again; what was measured before no longer counts, and executors "
                "are kept until its first batch tells"
            )
        case "backfill":
            return "it works off what is there and then ends: executors are kept until it has ended"
        case "continuous":
            return (
                "it runs in continuous mode, in which Spark tells nothing of its work: it is not "
                "sized, and no executor is taken away beside it"
            )
        case "real-time":
            return _real_time(f)
        case "driver":
            return f"{_without_tasks(f)}: that is the driver, and more executors do not help"
        case "slow-sink":
            return _slow_sink(f)
        case _:
            return _hot_partition(f)


def _real_time(f: Finding) -> str:
    if f.slots is None:
        return (
            "it runs in real-time mode, in which every task holds a core; how many there are is "
            "not known yet, so nothing is done"
        )
    return (
        "it runs in real-time mode, in which every task holds a core: it fails with fewer than "
        f"{ceil(f.slots)} executors, so that many are kept"
    )


def _without_tasks(f: Finding) -> str:
    part = f"{f.seconds:.1f} of {f.whole:.1f} s" if f.seconds and f.whole else "most"
    return f"{part} of a batch pass in {f.place} while no task runs"


def _slow_sink(f: Finding) -> str:
    if f.share is None:
        return f"{_without_tasks(f)}: the sink is slow, and more executors do not help"
    used = f"{100 * f.share:.0f} % of a core"
    return (
        f"the tasks that write to {f.place} use {used}: they wait for the sink, or for something "
        "else outside Spark; more executors help only if that takes more at once"
    )


def _hot_partition(f: Finding) -> str:
    took = f"{_seconds(f.seconds)}, a task in the mean {_seconds(f.whole)}"
    records = "" if f.share is None else f", with {100 * f.share:.0f} % of the records"
    return (
        f"partition {f.partition} of {f.tasks} in {f.stage} is hot: it takes {took}{records}; "
        "more executors do not help, another key or a finer one does"
    )


def _seconds(value: float | None) -> str:
    if value is None:
        return "a while"
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"
