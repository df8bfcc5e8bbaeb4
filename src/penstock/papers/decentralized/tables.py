"""Ours beside the paper's, and what it did not vary, as grids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.papers.decentralized import published
from penstock.papers.decentralized.evidence import Evidence
from penstock.papers.decentralized.experiment import PAPER, Scores, mean
from penstock.report.statistics import Estimate, estimate
from penstock.report.table import NONE, Table, percent


def all_tables(found: Evidence) -> list[Table]:
    """All tables, in the order of the paper."""
    return [experiment(found), sensitivity(found), delays(found), traffic(found), large(found)]


def experiment(found: Evidence) -> Table:
    """The paper's one run beside ours."""

    def row(what: str, figure: str, theirs: str = NONE, decimals: int = 1) -> tuple[str, ...]:
        values = [float(getattr(run, figure)) for run in found.runs]
        least, most = (f"{value:.{decimals}f}" for value in (min(values), max(values)))
        return what, theirs, fine(mean(found.runs, figure), decimals), least, most

    lag = published.NODES_PEAK_AT - published.LOAD_PEAKS_AT
    return Table(
        title="The experiment: five operators, seven instances each at first",
        header=("", "paper", "ours", "least", "most"),
        rows=(
            row("instances / ideal, mean of all steps", "accuracy", decimals=3),
            row("the same of each operator", "local", decimals=3),
            row("highest of the middle operator", "highest", f"{published.HIGHEST_ACCURACY:g}", 2),
            row("lowest of it", "lowest", f"{published.LOWEST_ACCURACY:g}", 2),
            row("share of records that can be processed", "throughput", decimals=3),
            row("lowest of the middle operator", "lowest_throughput",
                f"{published.LOWEST_THROUGHPUT:g}", 2),
            row("steps by which nodes follow the load", "lag", f"{lag}"),
            row("most nodes", "peak", f"{published.PEAK_NODES}", 0),
            row("messages a step", "messages"),
            row("instances announced or leaving a step", "actions", decimals=2),
        ),
        notes=("paper: one run; least and most of ours are single runs",),
    )  # fmt: skip


def sensitivity(found: Evidence) -> Table:
    """Other thresholds, trial periods and loads."""
    rows = [(PAPER.label, found.runs), *((cell.label, runs) for cell, runs in found.others)]
    return Table(
        title="Sensitivity to thresholds, trials and load",
        header=(
            "setting", "all / ideal", "by operator", "throughput", "messages", "actions"
        ),
        rows=tuple((label, *_figures(runs)) for label, runs in rows),
        notes=(
            "the paper's: up 0.8, down 0.6, a trial every 5 steps, load deviation "
            f"{PAPER.deviation:g}; messages and actions a step",
        ),
    )  # fmt: skip


def _figures(runs: Sequence[Scores]) -> tuple[str, ...]:
    return (
        fine(mean(runs, "accuracy"), 3),
        f"{mean(runs, 'local').mean:.3f}",
        f"{mean(runs, 'throughput').mean:.3f}",
        fine(mean(runs, "messages"), 1),
        f"{mean(runs, 'actions').mean:.2f}",
    )


def fine(found: Estimate, decimals: int) -> str:
    """Mean and half-width with so many decimals.

    >>> fine(Estimate(mean=0.9921, half_width=0.0033, count=100), 3)
    '0.992 ±0.003'
    """
    if found.half_width is None:
        return f"{found.mean:.{decimals}f}"
    return f"{found.mean:.{decimals}f} ±{found.half_width:.{decimals}f}"


def delays(found: Evidence) -> Table:
    """A table of the steps from a change of the load to the right size."""
    rows = []
    for d in found.delays:
        steps = np.array(d.steps)
        rows.append(
            (
                f"× {d.factor:g}",
                f"{d.median:g}",
                f"{d.p90:.0f}",
                percent(float((steps <= 8).mean())),
            )
        )
    everything = np.concatenate([d.steps for d in found.delays])
    all_p90 = f"{np.quantile(everything, 0.9):.0f}"
    within = percent(float((everything <= 8).mean()))
    rows.append(("all", f"{np.median(everything):g}", all_p90, within))
    return Table(
        title="Steps from a change of the load to the right size",
        header=("load", "median", "p90", "within 8"),
        rows=tuple(rows),
        notes=(
            "right: nobody would act any more; from 7, only 4 is right at half the load,",
            "and only 2 at a quarter",
        ),
    )


def traffic(found: Evidence) -> Table:
    """Exponents of the traffic in the number of nodes."""
    kinds = {f"by {percent(rate)} a step": runs for rate, runs in found.in_proportion.items()}
    kinds["by the same amount"] = found.by_the_same_amount
    rows = []
    for label, runs in kinds.items():
        nodes = estimate([float(run.nodes[-1]) for run in runs])
        period = fine(estimate([run.per_period for run in runs]), 2)
        so_far = [run.in_all for run in runs if run.in_all is not None]
        in_all = fine(estimate(so_far), 2) if len(so_far) == len(runs) else NONE
        rows.append((label, f"{nodes.mean:,.0f}", period, in_all))
    return Table(
        title="Traffic under a rising load: exponent in the number of nodes",
        header=("load rises", "nodes at the end", "of a trial period", "of all so far"),
        rows=tuple(rows),
        notes=("paper: quadratic, at iterations with duplications",),
    )


def large(found: Evidence) -> Table:
    """A table of large pipelines: how they ended, and how long they took."""
    rows = [
        (f"{run.instances:,}", run.engine, f"{run.accuracy:.3f}", f"{run.messages:,}",
         f"{run.seconds:.1f}")
        for run in found.large
    ]  # fmt: skip
    return Table(
        title="Large pipelines, 200 steps",
        header=("instances", "messages", "instances / ideal", "how many", "CPU s"),
        rows=tuple(rows),
        words=2,
    )
