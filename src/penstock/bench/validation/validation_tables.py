"""A validation for a terminal of 80 columns, and as a plain document."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any

from penstock.bench.validation import agreement
from penstock.bench.validation.comparison import (
    COMPARED,
    Compared,
    PolicyCompared,
    Scene,
    Validation,
)
from penstock.bench.validation.verdicts import Verdict, percent, verdicts
from penstock.report import units
from penstock.report.bench_tables import figure_text
from penstock.report.statistics import Estimate
from penstock.report.table import Column, Styled, Table
from penstock.simulator.microbatch import Profile

WIDE = 80


def scene_table(scene: Scene) -> Table:
    """Every figure of every policy: Spark, twin, error, and the bound where there is one."""
    seeds = sorted({p.seeds for p in scene.policies})
    several = "s" if seeds[-1] > 1 else ""
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    names = ("Spark", "twin", "error", "allowed")
    return Table(
        title=scene.title,
        note=f"{count} seed{several}, mean ± 95 % interval; thesis seconds",
        header=(
            Column(name="policy", width=20),
            Column(name="figure"),
            *(Column(name=name, right=True) for name in names),
            Column(name=""),
        ),
        rows=tuple(
            (policy.label if not number else "", *_cells(compared))
            for policy in scene.policies
            for number, compared in enumerate(policy.figures.values())
        ),
    )


def over_table(scene: Scene) -> Table:
    """The error over time of the first seed."""
    names = ("executors", "of Spark's mean", "lag s")
    return Table(
        title="over time",
        note="first seed, mean |twin − Spark|",
        header=(
            Column(name="policy", width=30),
            *(Column(name=name, right=True) for name in names),
        ),
        rows=tuple((policy.label, *_over(policy)) for policy in scene.policies),
    )


def _over(policy: PolicyCompared) -> tuple[str, str, str]:
    over, mean = policy.over, policy.figures.get("slots_mean")
    if over is None:
        return (units.UNKNOWN,) * 3
    share = None if mean is None or not mean.spark.mean else over.executors / mean.spark.mean
    return f"{over.executors:.2f}", units.share(share), figure_text(over.lag)


def verdict_lines(found: Sequence[Verdict]) -> list[str]:
    """Bounds with held or not held, and what breaks them."""
    lines = []
    for verdict in found:
        head = f"{verdict.word:<10}  "
        lines += _wrapped(f"{head}{verdict.bound}: {verdict.count}", len(head))
        for broken in verdict.broken:
            lines += _wrapped(f"{' ' * len(head)}  {broken}", len(head) + 4)
    return lines


def provenance_lines(validation: Validation) -> list[str]:
    """What the profiles were made from, and what they are compared with."""
    lines = _wrapped("The twin's profiles were calibrated on:", 2)
    for query, profile in validation.profiles.items():
        lines += _wrapped(f"  {query}: {_provenance(profile)}", 6)
    lines += _wrapped(f"and are compared here with the runs of {validation.folder}.", 2)
    lines += _wrapped("If these are the same runs, this is no validation but how well it fits.", 2)
    return lines


def _provenance(profile: Profile) -> str:
    facts = ", ".join(f"{key} {value}" for key, value in profile.provenance.items())
    return "; ".join(part for part in (profile.measured, facts) if part) or "it does not say"


def document(validation: Validation) -> dict[str, Any]:
    """All of it as plain values."""
    return {
        "name": validation.name,
        "run": str(validation.folder),
        "complete": validation.complete,
        "profiles": {
            query: {"measured": profile.measured, "provenance": dict(profile.provenance)}
            for query, profile in validation.profiles.items()
        },
        "bounds": {
            "executors": agreement.EXECUTORS,
            "lag": agreement.LAG,
            "spreads": agreement.SPREADS,
            "order": agreement.ORDER,
        },
        "scenes": [_scene(scene) for scene in validation.scenes],
        "verdicts": [_verdict(v) for v in verdicts(validation.scenes)],
    }


def _scene(scene: Scene) -> dict[str, Any]:
    return {
        "title": scene.title,
        "query": scene.query,
        "workload": scene.workload,
        "policies": [
            {
                "key": p.key,
                "label": p.label,
                "seeds": p.seeds,
                "scores": {
                    score: {**dataclasses.asdict(c), "held": c.held}
                    for score, c in p.figures.items()
                },
                "over_time": None if p.over is None else dataclasses.asdict(p.over),
            }
            for p in scene.policies
        ],
        "pairs": {
            score: [{**dataclasses.asdict(order), "verdict": order.verdict} for order in found]
            for score, found in scene.orders.items()
        },
        "verdicts": [_verdict(v) for v in verdicts([scene])],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {**dataclasses.asdict(verdict), "broken": list(verdict.broken)}


def _cells(c: Compared) -> tuple[str, ...]:
    word = {True: "held", False: "not held", None: ""}[c.held]
    allowed = "" if c.allowed is None else units.share(c.allowed)
    style = "bold red" if c.held is False else ""
    return (
        COMPARED[c.score],
        _estimate(c.spark),
        _estimate(c.twin),
        Styled((percent(c.error), style)),
        Styled((allowed, "dim")),
        Styled((word, style or "dim")),
    )


def _estimate(value: Estimate) -> str:
    return figure_text(value.mean, value.half_width)


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text,
        WIDE,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
