"""Table III beside ours, what it rests on, and the other set-ups, as grids."""

from __future__ import annotations

from penstock.papers.gesscale.simulated import published
from penstock.papers.gesscale.simulated.experiment import GesscaleOutcomes
from penstock.papers.gesscale.simulated.published import GESSCALE, METRICS, NAMES, PLUS, TABLE_3
from penstock.papers.gesscale.simulated.setups import CODE, MAIN, SETUPS, key
from penstock.report.statistics import Difference
from penstock.report.table import NONE, Table, interval, percent, printed

CAUSES = {
    "ups": "ups",
    "catching_up": "catch-up",
    "downs": "downs",
    "tightness": "down at",
    "lag": "lag s",
    "model_error": "model",
}


def all_tables(outcomes: GesscaleOutcomes, *, extended: bool = False) -> list[Table]:
    """All tables in the order of the paper, then what it does not have."""
    found = [
        table_3(outcomes),
        ratios(outcomes),
        causes(outcomes),
        table_3(outcomes, CODE.name),
        setups(outcomes),
    ]
    return [*found, beyond(outcomes)] if extended else found


def table_3(outcomes: GesscaleOutcomes, setup: str = MAIN.name) -> Table:
    """Every metric, the paper's figure above ours."""
    rows = []
    for metric, name in METRICS.items():
        theirs = [printed(TABLE_3[policy][metric]) for policy in NAMES]
        ours = [interval(outcomes.estimate(key(policy, setup), metric)) for policy in NAMES]
        rows += [(name, "paper", *theirs), ("", "ours", *ours)]
    return Table(
        title=f"Table III: the four auto-scalers, set-up {setup}",
        header=("metric", "", *NAMES.values()),
        rows=tuple(rows),
        notes=("the paper ran each once, on one map of latencies",),
        words=2,
    )


def ratios(outcomes: GesscaleOutcomes) -> Table:
    """What the text says of Gesscale against others, fog by fog."""
    rows = []
    for base, metric in published.RATIOS:
        difference = outcomes.paired(key(GESSCALE), key(base), metric)
        theirs = percent(published.ratio(base, metric), sign=True)
        rows.append((NAMES[base], METRICS[metric], theirs, _relative(difference)))
    return Table(
        title="Gesscale against the threshold policies",
        header=("against", "metric", "paper", "ours"),
        rows=tuple(rows),
        notes=("ours: mean difference, fog by fog, over the other's mean",),
        words=2,
    )


def _relative(difference: Difference) -> str:
    share = difference.relative
    if share is None:
        return NONE
    if difference.half_width is None:
        return percent(share, sign=True)
    return f"{share * 100:+.0f} ±{difference.half_width / difference.base * 100:.0f} %"


def causes(outcomes: GesscaleOutcomes) -> Table:
    """Why they reconfigure as often as they do."""
    rows = [
        (NAMES[policy], *(_cause(outcomes, policy, figure) for figure in CAUSES))
        for policy in NAMES
    ]
    return Table(
        title="What the reconfigurations were",
        header=("policy", *CAUSES.values()),
        rows=tuple(rows),
        notes=(
            "catch-up: ups at which the nodes in use carried the load; only a backlog waited",
            "down at: the load, as a share of what the nodes that were left carry",
            "lag: mean seconds of input that waited; model: error of its predictions",
        ),
    )


def _cause(outcomes: GesscaleOutcomes, policy: str, figure: str) -> str:
    found = outcomes.estimate(key(policy), figure)
    if found is None:
        return NONE
    if figure in ("tightness", "model_error"):
        return f"{found.mean * 100:.{0 if figure == 'tightness' else 1}f} %"
    return interval(found)


def beyond(outcomes: GesscaleOutcomes) -> Table:
    """``gesscale+`` beside Gesscale, fog by fog."""
    shown = {**METRICS, "catching_up": "ups to catch up", "lag": "lag s"}
    rows = [
        (
            name,
            interval(outcomes.estimate(key(GESSCALE), metric)),
            interval(outcomes.estimate(key(PLUS), metric)),
            _relative(outcomes.paired(key(PLUS), key(GESSCALE), metric)),
        )
        for metric, name in shown.items()
    ]
    return Table(
        title="Gesscale and gesscale+",
        header=("metric", "Gesscale", "gesscale+", "difference"),
        rows=tuple(rows),
        notes=("difference: its mean, fog by fog, over Gesscale's mean",),
    )


def setups(outcomes: GesscaleOutcomes) -> Table:
    """The other set-ups beside that of the text."""
    shown = ("reconfigurations", "cost", "accuracy_u", "excess_time")
    rows = [
        (
            name if policy == next(iter(NAMES)) else "",
            NAMES[policy],
            *(interval(outcomes.estimate(key(policy, name), metric)) for metric in shown),
        )
        for name in SETUPS
        for policy in NAMES
    ]
    words = [f"{name}: {setup.words}" for name, setup in SETUPS.items()]
    return Table(
        title="Other set-ups",
        header=("set-up", "policy", *(METRICS[metric] for metric in shown)),
        rows=tuple(rows),
        notes=tuple(words),
        words=2,
    )
