"""What ``gesscale+`` is meant to repair, judged on the same runs."""

from __future__ import annotations

from penstock.papers.geo.simulated import cells, paper
from penstock.papers.geo.simulated.runner import Outcomes, mean
from penstock.papers.judged import Judged, counted, judged, of
from penstock.report.grid import percent

AS_GOOD = 0.9  # of the best level's throughput


def errors(outcomes: Outcomes) -> Judged:
    """Of predictions of levels not seen before."""
    words, good = [], True
    for job, most in paper.TARGETS.items():
        found = [
            abs(error)
            for case in ("none", "fixed", "jitter")
            for error in outcomes.all_errors(of(job, case), "gesscale+")
        ]
        good &= mean(found) <= most
        words.append(f"{paper.JOBS[job]} {percent(mean(found))} (aim {percent(most)})")
    return judged(
        claim="gesscale+ predicts levels that it has not seen: mean errors of at most 5 % (Map), "
        "10 % (Id-Id) and 15 % (Id-Value)",
        paper="not in the study",
        ours="; ".join(words),
        good=good,
        why="It sees who is busy, which key groups make the work, and how long slots wait.",
    )


def ends(outcomes: Outcomes) -> Judged:
    """Where it comes to in the conditions of Figure 10, and what it says."""
    words, good = [], True
    for condition in cells.mostly_delayed():
        full, best = outcomes.full(condition), outcomes.best(condition)
        runs = outcomes.of(condition, "gesscale+")
        says = sum("no set of" in run.reason for run in runs)
        if full is None:
            good &= says == len(runs)
        else:
            good &= all(abs(run.final - full) <= 1 for run in runs)
        words.append(
            f"{1e3 * condition.delay:.0f} ms: {says} of {len(runs)} runs say that no set is "
            f"enough, and stay at {counted([run.final for run in runs])} (best {best})"
        )
    return judged(
        claim="With 70 % delayed gesscale+ ends within one node of the smallest set that takes in "
        "the load, or says that none does",
        paper="not in the study",
        ours="; ".join(words),
        good=good,
        why="",
    )


def holds(outcomes: Outcomes) -> Judged:
    """What it holds where no set is enough."""
    words, good = [], True
    for condition in [of("id-id", "fixed"), of("id-id", "jitter"), *cells.mostly_delayed()]:
        best = outcomes.rate(condition, outcomes.best(condition))
        plus = mean([run.rate for run in outcomes.of(condition, "gesscale+")])
        simple = mean([run.rate for run in outcomes.of(condition, "gesscale")])
        good &= plus >= AS_GOOD * best
        words.append(
            f"{condition.words} {plus / 1e3:.0f}k (Gesscale {simple / 1e3:.0f}k, best level "
            f"{best / 1e3:.0f}k)"
        )
    return judged(
        claim="Where no set is enough gesscale+ holds one that does at least 90 % of the best",
        paper="not in the study",
        ours="; ".join(words),
        good=good,
        why="",
    )
