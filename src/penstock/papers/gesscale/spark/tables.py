"""Table III on Spark, and what executors at the sites carry, as grids."""

from __future__ import annotations

from penstock.papers.geo.spark.levels import Climb
from penstock.papers.gesscale.simulated.published import METRICS, NAMES, TABLE_3
from penstock.papers.gesscale.spark.taxi import TaxiOutcomes
from penstock.report.table import NONE, Table, interval, number, percent, printed


def all_tables(outcomes: TaxiOutcomes, levels: Climb) -> list[Table]:
    """Table III, what the policies did, and what it rests on."""
    return [table_3(outcomes), deeds(outcomes), carried(levels)]


def table_3(outcomes: TaxiOutcomes) -> Table:
    """Every metric, the paper's figure above ours."""
    rows = []
    for metric, name in METRICS.items():
        theirs = [printed(TABLE_3[policy][metric]) for policy in NAMES]
        ours = [interval(outcomes.estimate(policy, metric)) for policy in NAMES]
        rows += [(name, "paper", *theirs), ("", "ours", *ours)]
    for field, name in (("lag", "lag s"), ("missing", "records missing")):
        rows.append((name, "ours", *(interval(outcomes.estimate(p, field)) for p in NAMES)))
    errors = [outcomes.estimate(policy, "model_error") for policy in NAMES]
    rows.append(("model error", "ours", *(NONE if e is None else percent(e.mean) for e in errors)))
    return Table(
        title="Table III: the four auto-scalers",
        header=("metric", "", *NAMES.values()),
        rows=tuple(rows),
        notes=("the paper ran each once, for 288 minutes on single-board computers",),
        words=2,
    )


def deeds(outcomes: TaxiOutcomes) -> Table:
    """Executors that came and went, and what was left to do."""
    fields = ("executors", "most", "ups", "catch_up", "downs", "behind")
    rows = [
        (name, *(interval(outcomes.estimate(policy, field)) for field in fields))
        for policy, name in NAMES.items()
    ]
    return Table(
        title="What they did",
        header=("policy", "mean", "most", "came", "catch-up", "went", "behind s"),
        rows=tuple(rows),
        notes=(
            f"executors while the load lasted; the ideal auto-scaler has {_ideal(outcomes)}",
            "catch-up: came while those in use carried the load; only a backlog waited",
            "behind: seconds of mean input that waited when the load ended",
        ),
    )


def _ideal(outcomes: TaxiOutcomes) -> str:
    return number(outcomes.runs[0].ideal) if outcomes.runs else NONE


def carried(climb: Climb) -> Table:
    """What executors on the nearest sites take, and what was foretold of them."""
    rows = []
    for level in climb.levels:
        foretold = [
            NONE if value is None else percent(value / level.rate - 1.0, sign=True)
            for value in (level.gesscale, level.plus)
        ]
        rows.append(
            (
                str(level.slots),
                level.site,
                f"{1e3 * level.delay:.0f}",
                f"{level.rate:,.0f} ({level.least:,.0f} to {level.most:,.0f})",
                *foretold,
            )
        )
    return Table(
        title="What executors on the nearest sites carry",
        header=("n", "the last on", "RTT ms", "records/s", "gesscale", "gesscale+"),
        rows=tuple(rows),
        notes=(
            "RTT: greatest between two of them; records/s: mean (slowest to fastest batch)",
            "gesscale, gesscale+: what they said of it before, against what was measured",
        ),
    )
