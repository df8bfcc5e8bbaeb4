"""The tables of one run: its figures, and its last decisions."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.history.journal import Entry
from penstock.report import units
from penstock.report.series import Tick, guards_of, sizes, ticks_of
from penstock.report.summary import Spread, Summary
from penstock.report.table import Column, Span, Styled, Table

LAST = 12  # changes that a terminal shows
REASON = 120  # characters of a reason that a terminal shows; the journal has it all


def summary_table(s: Summary) -> Table:
    """The figures of a run."""
    rows = [
        ("kept up", units.share(s.kept_up), "of the time"),
        (
            "records",
            units.count(s.processed),
            f"processed; {units.count(s.offered)} offered",
        ),
        ("lag", *_spread(s.lag_seconds, units.seconds)),
        ("", *_spread(s.lag, lambda v: f"{units.count(v)} records")),
        ("latency", *_spread(s.latency, units.seconds)),
        ("slots", f"{s.slots_mean:.1f}", f"mean; {s.slots_min} to {s.slots_max}"),
        ("paid for", f"{s.slot_hours:.1f}", "slot-hours"),
    ]
    if s.mode == "advise":
        advised = units.UNKNOWN if s.advised_slots is None else f"{s.advised_slots:.1f}"
        rows += [
            ("advised", advised, "slots on average"),
            ("advices", str(s.advices), "changes advised, none applied"),
        ]
    else:
        rows += [
            (
                "saved",
                units.share(s.peak_saving_share),
                f"{s.peak_saving / 3600:.1f} slot-hours against {s.slots_max} slots all the time",
            ),
            (
                "",
                units.share(s.limit_saving_share),
                f"{s.limit_saving / 3600:.1f} slot-hours against the {s.slots_limit} allowed",
            ),
            ("actions", str(s.actions), f"pools grown {s.scale_ups}×, shrunk {s.scale_downs}×"),
        ]
    cost = _rescale_cost(s)
    if cost:
        rows.append(cost)
    for name, figure in s.figures.items():
        rows.append((name.replace("_", " "), f"{figure:.3g}", "by the policy's own account"))
    return Table(
        title=f"{s.policy} · {s.mode} · {units.seconds(s.duration)}",
        header=(
            Column(name="figure", style="dim"),
            Column(name="value", right=True),
            Column(name="", style="dim", wrap=True),
        ),
        rows=tuple(rows),
        loose=True,
    )


def decisions_table(entries: Sequence[Entry]) -> Table:
    """The last decisions of a run that changed or advised something new."""
    changes = [t for t in ticks_of(entries) if t.news]
    shown = changes[-LAST:]
    last = f"the last {len(shown)} of " if len(shown) < len(changes) else ""
    return Table(
        title=f"{last}{len(changes)} changes",
        header=(
            Column(name="time", right=True),
            Column(name="slots", wrap=True, width=24),
            Column(name="why", wrap=True, rest=True),
        ),
        rows=tuple((units.clock(tick.time), _sizes(tick), _why(tick)) for tick in shown),
        loose=True,
    )


def _spread(spread: Spread | None, of: units.Format) -> tuple[str, str]:
    if spread is None:
        return units.UNKNOWN, "not measured"
    return of(spread.mean), f"mean; p95 {of(spread.p95)}, most {of(spread.maximum)}"


def _rescale_cost(s: Summary) -> tuple[str, str, str] | None:
    """Means over the actions whose cost was measured."""
    parts = []
    for field, words in (
        ("registered", "until slots are there"),
        ("first_task", "until they work"),
        ("steady", "until steady"),
        ("downtime", "down"),
    ):
        known = [v for r in s.rescales if (v := getattr(r, field)) is not None]
        if known:
            parts.append((sum(known) / len(known), words))
    if not parts:
        return None
    (first, words), *rest = parts
    more = "".join(f", {units.seconds(v)} {w}" for v, w in rest)
    return "an action", units.seconds(first), f"{words}{more}; mean of {len(s.rescales)}"


def _sizes(tick: Tick) -> str:
    spans: list[Span] = []
    for part in sizes(tick).split(", "):
        spans += [("\n", "")] if spans else []
        spans.append((part, "bold" if "→" in part else "dim"))
    return Styled(*spans)


def _why(tick: Tick) -> str:
    decision = tick.decision
    effects = ((f"; {_cut(sentence)}", "dim") for sentence in guards_of(decision))
    return Styled((_cut(decision.proposal.reason), ""), *effects)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= REASON else flat[: REASON - 1].rstrip() + "…"
