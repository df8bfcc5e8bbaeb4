"""What ``penstock advise`` shows: the lines at its start, the summary, the JSON document."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli import output

if TYPE_CHECKING:
    from penstock.core.loop import Decision
    from penstock.spark.foreign.engine import Watched
    from penstock.spark.foreign.summary import Summary
    from penstock.spark.settings.settings import Settings

WIDTH = 80
_ON = {True: "on", False: "off", None: "unknown"}
_UNSEEN = (
    "REST does not show the backlog: the offered rate is what the batches took; lag, back "
    "pressure and latency are not measured."
)
_ALLOCATED = (
    "Spark's own allocation sizes this application; the advice is what Penstock would do instead."
)


def about(watched: Watched, settings: Settings) -> list[str]:
    """What is watched and with what, the lines before the first decision."""
    a = watched.application
    version = f"Spark {a.spark}" if a.spark else "Spark"
    size = f"{_many(watched.executors, 'executor')} of {_many(watched.cores, 'core')}"
    what = (
        f"watching {a.name} ({a.id}): {version} on {watched.master or 'an unknown master'}, "
        f"{size}, dynamic allocation {_ON[watched.dynamic_allocation]}, "
        f"queries: {', '.join(watched.queries) or 'none yet'}"
    )
    lines = [_filled(what), _filled(settings.line())]
    if watched.dynamic_allocation:
        lines.append(_filled(_ALLOCATED))
    return [*lines, _filled(_UNSEEN)]


def document(
    watched: Watched,
    settings: Settings,
    decisions: Sequence[Decision],
    summary: Summary,
    ended_by: str,
) -> dict[str, Any]:
    """A whole session for ``--json``."""
    return {
        "watched": dataclasses.asdict(watched),
        "policy": {"name": settings.policy, **settings.parameters},
        "decisions": [_decision_document(d) for d in decisions],
        "summary": dataclasses.asdict(summary),
        "ended_by": ended_by,
    }


def _decision_document(decision: Decision) -> dict[str, Any]:
    from penstock.spark.foreign.summary import target_of

    target = target_of(decision)
    return {
        "time": decision.seen.time,
        "executors": sum(len(slots) for slots in decision.seen.pools.values()),
        "target": None if target is None else target.slots,
        "raw": None if target is None else target.raw,
        "would_act": bool(decision.changes),
        "reason": decision.proposal.reason,
        "guards": [dataclasses.asdict(e) for e in decision.effects],
        "notes": list(decision.notes),
    }


def show(summary: Summary) -> None:
    """The summary as a small table."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("executors", no_wrap=True)
    for name in ("least", "mean", "most"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, sizes in (("present", summary.present), ("advised", summary.target)):
        if sizes is not None:
            table.add_row(name, str(sizes.least), f"{sizes.mean:.1f}", str(sizes.most))
    out = output.console()
    out.print()
    if summary.present is not None:
        out.print(table)
    time = f" in {summary.seconds:.0f} s: {_worth(summary)}" if summary.ticks else ""
    out.print(_many(summary.ticks, "decision") + time)


def _worth(summary: Summary) -> str:
    if not summary.sized:
        return "none could say a size"
    words = f"{summary.acted} would have acted"
    if summary.sized < summary.ticks:
        words += f", {summary.ticks - summary.sized} could not say a size"
    if summary.hours is None:
        return words
    if summary.hours == 0:
        return f"{words}; no executor-hours saved or added"
    verb = "added" if summary.hours > 0 else "saved"
    return f"{words}; {abs(summary.hours):.3g} executor-hours {verb}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
