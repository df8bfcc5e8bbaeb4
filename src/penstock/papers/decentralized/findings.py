"""The paper's findings, judged on all seeds. [belkhiria19, §5]"""

from __future__ import annotations

import numpy as np

from penstock.papers.decentralized import published
from penstock.papers.decentralized.evidence import Evidence
from penstock.papers.decentralized.experiment import mean
from penstock.papers.decentralized.tables import fine
from penstock.papers.judging import Finding, judged
from penstock.report.statistics import estimate
from penstock.report.table import percent

NEAR = 0.1  # of 1: an accuracy that is as good as ideal
MOST_DELAY = 8.0  # steps
EXPONENT, OFF = 2.0, 0.1
LEAST_THROUGHPUT = 0.95


def judge(found: Evidence) -> tuple[Finding, ...]:
    """Judge the eight findings of the paper."""
    return (
        _accuracy(found),
        _throughput(found),
        _delay(found),
        _follows(found),
        _timing(found),
        _formulas(found),
        _quadratic(found),
        _never_empty(found),
    )


def _accuracy(found: Evidence) -> Finding:
    runs = [run.accuracy for run in found.runs]
    inside = sum(abs(a - 1.0) <= NEAR for a in runs)
    average = mean(found.runs, "accuracy")
    local = mean(found.runs, "local")
    every_step = next(mean(r, "local").mean for cell, r in found.others if cell.setup.period == 1)
    return judged(
        "a",
        claim="Decisions taken alone add up to the ideal number of instances, within 10 %",
        paper="close to 1, one operator between 0.33 and 2.5",
        ours=f"{fine(average, 3)} over time, {inside} of {len(runs)} seeds within 10 %; "
        f"{local.mean:.2f} operator by operator",
        good=abs(average.mean - 1.0) <= NEAR and inside == len(runs),
        why="Sizes come late, and a late size is further above the ideal after a fall than below "
        f"it after a rise; with a trial at every step it is {every_step:.2f} by operator.",
    )


def _throughput(found: Evidence) -> Finding:
    share, worst = mean(found.runs, "throughput"), mean(found.runs, "lowest_throughput")
    return judged(
        "b",
        claim="Nearly all records can be processed, with dips when the load jumps",
        paper=f"dips to {percent(published.LOWEST_THROUGHPUT)} of one operator",
        ours=f"{100.0 * share.mean:.1f} % of all records; worst step of the middle operator "
        f"{fine(worst, 2)} of its load",
        good=share.mean >= LEAST_THROUGHPUT,
        why="An instance at 70 % has room for 43 % more until new ones have started.",
    )


def _delay(found: Evidence) -> Finding:
    everything = np.concatenate([d.steps for d in found.delays])
    slow = [f"{d.median:g} at × {d.factor:g}" for d in found.delays if d.median > MOST_DELAY]
    median = float(np.median(everything))
    return judged(
        "c",
        claim=f"After a change of the load the size is right in {MOST_DELAY:g} steps (median)",
        paper="a very small time",
        ours=f"median {median:g} steps, "
        f"{percent(float((everything <= MOST_DELAY).mean()))} within {MOST_DELAY:g}"
        + (f"; slower: median {', '.join(slow)}" if slow else ""),
        good=median <= MOST_DELAY,
        why="A trial comes every 5 steps, and growing takes 3. Small operators shrink by chance: "
        "where one size alone is right, it often takes a second trial.",
    )


def _follows(found: Evidence) -> Finding:
    lags = [run.lag for run in found.runs]
    theirs = published.NODES_PEAK_AT - published.LOAD_PEAKS_AT
    median = float(np.median(lags))
    return judged(
        "d",
        claim="The number of nodes follows the load within a trial period",
        paper=f"{theirs} steps from the peak of the load to that of the nodes",
        ours=f"median {median:g} steps, by cross-correlation",
        good=median <= 5.0,
    )


def _timing(found: Evidence) -> Finding:
    return judged(
        "e",
        claim="Growing takes three steps, leaving two",
        paper="by construction",
        ours=f"{found.mistimed} of {found.compared:,} counts of instances differ from that",
        good=found.mistimed == 0,
    )


def _formulas(found: Evidence) -> Finding:
    return judged(
        "f",
        claim="k new ones cost 2·min(k, n)·(|succs| + |preds|) + k messages, one that leaves "
        "2·(|succs| + |preds|)",
        paper=f"{published.FIRST_MESSAGES}; {published.MOST_MESSAGES}",
        ours=f"{found.compared:,} counts of messages, {found.differ} differ from the formulas",
        good=found.differ == 0,
    )


def _quadratic(found: Evidence) -> Finding:
    """Judged on the widest range of sizes: where the load rises fastest."""
    periods = {
        rate: estimate([run.per_period for run in runs])
        for rate, runs in found.in_proportion.items()
    }
    fastest = max(periods)
    said = ", ".join(f"{fine(e, 2)} at {percent(rate)}" for rate, e in periods.items())
    same = estimate([run.per_period for run in found.by_the_same_amount])
    in_all = estimate([run.in_all for run in found.by_the_same_amount if run.in_all is not None])
    return judged(
        "g",
        claim="Under a rising load the traffic is quadratic in the number of nodes",
        paper="quadratic (Figure 6)",
        ours=f"exponent of a trial period's traffic {said} more load a step; under a load that "
        f"rises by the same amount {same.mean:.2f}, and {in_all.mean:.2f} of all traffic",
        good=abs(periods[fastest].mean - EXPONENT) <= OFF,
        why="Every new instance costs as many messages as there are neighbours; how many come in "
        "a period depends on the load. At 1 % the pipeline stays small, and whole instances blur "
        "the exponent.",
    )


def _never_empty(found: Evidence) -> Finding:
    every = [*found.runs, *(run for _, runs in found.others for run in runs)]
    fewest = min(run.fewest for run in every)
    return judged(
        "h",
        claim="No operator is ever without an instance",
        paper="by the keeper",
        ours=f"at least {fewest}, in {len(every):,} runs",
        good=fewest >= 1,
    )
