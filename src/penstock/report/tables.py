"""Tables for a terminal of 80 columns. All text is literal: no markup is read from it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from penstock.history.journal import Entry
from penstock.report import units
from penstock.report.series import Tick, guards_of, sizes, ticks_of
from penstock.report.style import plain_table
from penstock.report.summary import Spread, Summary

REASON = 120  # characters of a reason that a terminal shows; the journal has it all


def summary_table(s: Summary) -> Table:
    """The figures of a run."""
    table = plain_table(f"{s.policy} · {s.mode} · {units.seconds(s.duration)}")
    table.add_column("figure", style="dim", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("", style="dim")
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
    for name, value, note in rows:
        table.add_row(Text(name), Text(value), Text(note))
    return table


def decisions_table(entries: Sequence[Entry], *, limit: int = 12, changes: bool = True) -> Table:
    """The last decisions of a run; by default only those that changed or advised something new."""
    chosen = [t for t in ticks_of(entries) if t.news or not changes]
    what = "changes" if changes else "decisions"
    shown = chosen[-limit:] if limit else []
    first = f"the last {len(shown)} of {len(chosen)} {what}"
    table = plain_table(first if len(shown) < len(chosen) else f"{len(chosen)} {what}")
    table.add_column("time", no_wrap=True, justify="right")
    table.add_column("slots", max_width=24)
    table.add_column("why", ratio=1)
    for tick in shown:
        table.add_row(Text(units.clock(tick.time)), _sizes(tick), _why(tick))
    return table


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


def _sizes(tick: Tick) -> Text:
    text = Text()
    for number, part in enumerate(sizes(tick).split(", ")):
        style = "bold" if "→" in part else "dim"
        text.append("\n" if number else "").append(part, style=style)
    return text


def _why(tick: Tick) -> Text:
    decision = tick.decision
    text = Text(_cut(decision.proposal.reason))
    for sentence in guards_of(decision):
        text.append(f"; {_cut(sentence)}", style="dim")
    return text


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= REASON else flat[: REASON - 1].rstrip() + "…"
