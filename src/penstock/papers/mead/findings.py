"""The paper's findings, judged on our means over all seeds. [russo21, §II and §VII]

A target is met if the mean over the seeds is at most the target; its interval stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.papers.judging import Finding, judged
from penstock.papers.mead import cells, models, published
from penstock.papers.mead.cells import FULL, MEAD, MeadCell
from penstock.papers.mead.experiment import MeadOutcomes
from penstock.papers.mead.models import Comparison
from penstock.papers.mead.tables import met
from penstock.report.statistics import Estimate, estimate
from penstock.report.table import interval, number

LEAST_SAVED = 35.0  # percent of the CPU
CLOSE = 0.1  # of what was measured: models agree with it
HIGHEST_LOAD = 0.8  # up to which half an hour is enough to measure a mean within that
NEAR = 10.0  # points of CPU: about as much
SUDDEN = 0.5  # of all delay in the worst twentieth of the minutes: it came at once


def judge(outcomes: MeadOutcomes, comparisons: Sequence[Comparison]) -> tuple[Finding, ...]:
    """All of them; those whose runs are missing are left out."""
    rules = (
        _mean_met,
        _p95_met,
        _mg1_misses,
        _kingman_misses,
        _saving,
        _one_window,
        _threshold,
        _other_path,
    )
    found = [rule(outcomes) for rule in rules] + [_uncorrelated(comparisons)]
    return tuple(finding for finding in found if finding is not None)


def _mean_met(outcomes: MeadOutcomes) -> Finding | None:
    chosen = [c for c in cells.table_1() if c.policy == MEAD]
    claim = "MAP meets all nine targets of the mean"
    return _counted(outcomes, chosen, id="a", claim=claim, least=9, most=9)


def _p95_met(outcomes: MeadOutcomes) -> Finding | None:
    chosen = [c for c in cells.table_2() if c.policy == MEAD]
    claim = "MAP meets all six targets of the 95th percentile"
    return _counted(outcomes, chosen, id="b", claim=claim, least=6, most=6)


def _mg1_misses(outcomes: MeadOutcomes) -> Finding | None:
    chosen = [c for c in [*cells.table_1(), *cells.table_2()] if c.policy == "mead-mg1"]
    why = "To M/G/1 arrivals are independent: it sees no queue where there is one."
    claim = "M/G/1 misses all fifteen targets"
    return _counted(outcomes, chosen, id="c", claim=claim, least=0, most=0, why=why)


def _kingman_misses(outcomes: MeadOutcomes) -> Finding | None:
    chosen = [c for c in cells.table_1() if c.policy == "mead-kingman"]
    why = "It knows how variable the times are, not that short ones follow short ones."
    claim = "Kingman's formula misses at least eight of nine"
    return _counted(outcomes, chosen, id="d", claim=claim, least=0, most=1, why=why)


def _saving(outcomes: MeadOutcomes) -> Finding | None:
    chosen = [c for c in [*cells.table_1(), *cells.table_2()] if c.policy == MEAD]
    used = [found for c in chosen if (found := outcomes.estimate(c.key, "cpu")) is not None]
    if len(used) < len(chosen):
        return None
    most, least = max(used, key=lambda e: e.mean), min(used, key=lambda e: e.mean)
    return judged(
        "e",
        claim="MAP saves 35 to 52 % of the CPU of full allocation",
        paper="39 to 52 %",
        ours=f"{_saved(most)} to {_saved(least)} %",
        good=100.0 - most.mean >= LEAST_SAVED,
        why="Bursts need head-room at the matcher only.",
    )


def _saved(used: Estimate) -> str:
    return interval(Estimate(mean=100.0 - used.mean, half_width=used.half_width, count=used.count))


def _one_window(outcomes: MeadOutcomes) -> Finding | None:
    chosen = [c for c in cells.table_3() if c.window == 100_000 and c.trace != "lm"]
    claim = "A single window of 100,000 misses the targets on SYNT and BC"
    return _counted(
        outcomes, chosen, id="f", claim=claim, least=0, most=0, why=_by_window(outcomes)
    )


def _by_window(outcomes: MeadOutcomes) -> str:
    """The response times with windows of each length, beside the paper's."""
    words = []
    for (trace, _), theirs in published.TABLE_3.items():
        same = [c for c in cells.table_3() if c.trace == trace]
        means = ", ".join(number(e.mean) for c in same if (e := outcomes.estimate(c.key, "mean")))
        theirs_said = ", ".join(f"{seconds:g}" for seconds, _ in theirs.values())
        words.append(f"{trace.upper()} {means} s (paper {theirs_said})")
    lengths = ", ".join(f"{length:,}" for length in next(iter(published.TABLE_3.values())))
    return f"With windows of {lengths}: {'; '.join(words)}."


def _threshold(outcomes: MeadOutcomes) -> Finding | None:
    """Faster than the simple models at about the CPU that it had in the paper."""
    words, good = [], True
    for trace, (theirs, cpu) in published.THRESHOLD.items():
        cell = MeadCell(trace=trace, policy="cpu-threshold")
        simple = [c for c in cells.table_1() if c.trace == trace and c.policy != MEAD]
        response, used = outcomes.estimate(cell.key, "mean"), outcomes.estimate(cell.key, "cpu")
        others = [found.mean for c in simple if (found := outcomes.estimate(c.key, "mean"))]
        if response is None or used is None or len(others) < len(simple):
            return None
        good &= response.mean < min(others) and abs(used.mean - cpu) <= NEAR
        words.append(
            f"{trace.upper()} {interval(response)} s at {interval(used)} % "
            f"(paper {theirs:g} s at {cpu:g} %; simple models from {number(min(others))} s)"
        )
    return judged(
        "g",
        claim="The threshold policy is faster than the simple models, at about half of the CPU",
        paper="0.122, 0.31 and 2.4 s at 49, 49 and 48 %",
        ours="; ".join(words),
        good=good,
        why="It is asked six times as often and sees a queue as a busy CPU; it knows no target.",
    )


def _other_path(outcomes: MeadOutcomes) -> Finding | None:
    chosen = [c for c in cells.table_1() if c.policy == MEAD]
    shares = [
        found.mean / c.target
        for c in chosen
        if c.target is not None and (found := outcomes.estimate(c.key, "other")) is not None
    ]
    if len(shares) < len(chosen):
        return None
    return judged(
        "h",
        claim="The path to the counter keeps the nine targets of the mean too",
        paper="always",
        ours=f"at most {100 * max(shares):.0f} % of the target",
        good=max(shares) <= 1.0,
        why="The matcher has five times the counter's work.",
    )


def _uncorrelated(comparisons: Sequence[Comparison]) -> Finding | None:
    runs = [c for c in comparisons if c.trace == "taxi"]
    if not runs:
        return None
    words, good = [], True
    for model, name in models.NAMES.items():
        means = {
            load: estimate([run.ratios(model)[place] for run in runs])
            for place, load in enumerate(models.LOADS)
            if load <= HIGHEST_LOAD
        }
        load, worst = max(means.items(), key=lambda item: abs(item[1].mean - 1.0))
        good &= abs(worst.mean - 1.0) <= CLOSE
        words.append(f"{name} {interval(worst)} of the measured mean at {load:g}")
    return judged(
        "i",
        claim=f"On taxi rides, which are uncorrelated, all models agree up to {HIGHEST_LOAD:g}",
        paper="Figure 3a",
        ours="furthest off: " + ", ".join(words),
        good=good,
        why="Independent arrivals are what the simple models assume.",
    )


def _counted(
    outcomes: MeadOutcomes,
    chosen: Iterable[MeadCell],
    *,
    id: str,
    claim: str,
    least: int,
    most: int,
    why: str = "",
) -> Finding | None:
    """From ``least`` to ``most`` of the cells meet their target; else those that should not."""
    verdicts = {cell: met(outcomes, cell) for cell in chosen}
    if any(verdict is None for verdict in verdicts.values()):
        return None
    count = sum(map(bool, verdicts.values()))
    holds = least <= count <= most
    odd = [cell for cell, verdict in verdicts.items() if verdict == (count > most)]
    words = "; ".join(_said(outcomes, cell) for cell in odd)
    paper_says = str(least) if least == most else f"{least} or {most}"
    return judged(
        id,
        claim=claim,
        paper=f"{paper_says} of {len(verdicts)} met",
        ours=f"{count} of {len(verdicts)} met" + ("" if holds else f": {words}"),
        good=holds,
        why=why if holds or count > most else _cause(outcomes, odd),
    )


def _cause(outcomes: MeadOutcomes, missed: Sequence[MeadCell]) -> str:
    """Why targets were missed, as far as the runs tell: little CPU when much came at once."""
    words = []
    for trace in dict.fromkeys(cell.trace for cell in missed):
        here = [cell for cell in missed if cell.trace == trace]
        shares = [found.mean for c in here if (found := outcomes.estimate(c.key, "worst"))]
        full = outcomes.estimate(MeadCell(trace=trace, policy=FULL).key, here[0].figure)
        if full is None or full.mean > min(c.target or 0.0 for c in here):
            continue
        if min(shares) >= SUDDEN:
            words.append(
                f"On {trace.upper()} at least {100 * min(shares):.0f} % of the delay came in the "
                "worst twentieth of the minutes; full CPU would have been enough "
                f"({number(full.mean)} s)."
            )
    return " ".join(words)


def _said(outcomes: MeadOutcomes, cell: MeadCell) -> str:
    found = outcomes.estimate(cell.key, cell.figure)
    return f"{cell.trace.upper()} {cell.figure} {interval(found)} s of {number(cell.target)} s"
