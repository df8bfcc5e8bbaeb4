"""The paper's findings for Gesscale, judged on Spark. [arkian21, V-B]"""

from __future__ import annotations

from penstock.papers.gesscale.simulated.published import GESSCALE, METRICS, NAMES, TABLE_3
from penstock.papers.gesscale.spark.taxi import TaxiOutcomes
from penstock.papers.judging import Finding, Verdict, judged
from penstock.report.table import interval, number, printed

OTHERS = tuple(policy for policy in NAMES if policy != GESSCALE)
BEST = {
    "reconfigurations": "Gesscale reconfigures least often",
    "cost": "Gesscale costs least",
    "accuracy_o": "Gesscale has the fewest executors too many",
    "accuracy_u": "Gesscale has the fewest executors too few",
    "timeshare_u": "Gesscale is too small for the least time",
    "excess_time": "Gesscale works off its backlog soonest",
}


def judge(outcomes: TaxiOutcomes) -> tuple[Finding, ...]:
    """Judge all findings; returns none while runs are missing."""
    if any(not outcomes.of(policy) for policy in NAMES):
        return ()
    letters = zip("abcdef", BEST.items(), strict=True)
    found = [_best(outcomes, letter, *rule) for letter, rule in letters]
    return (*found, _nothing_lost(outcomes))


def _best(outcomes: TaxiOutcomes, letter: str, metric: str, claim: str) -> Finding:
    verdicts = [outcomes.paired(GESSCALE, other, metric).verdict for other in OTHERS]
    means = {
        policy: sum(values) / len(values)
        for policy in NAMES
        if (values := outcomes.values(policy, metric))
    }
    verdict: Verdict = "tie"
    if all(v == "lower" for v in verdicts):
        verdict = "held"
    elif any(v == "higher" for v in verdicts):
        verdict = "not held"
    theirs = ", ".join(f"{NAMES[p]} {printed(TABLE_3[p][metric])}" for p in NAMES)
    ours = ", ".join(f"{NAMES[p]} {number(value)}" for p, value in means.items())
    return judged(
        letter,
        claim=f"{claim} ({METRICS[metric]})",
        paper=theirs,
        ours=ours,
        good=verdict,
        why="" if verdict == "held" else _why(outcomes, metric, verdict),
    )


def _why(outcomes: TaxiOutcomes, metric: str, verdict: Verdict) -> str:
    if len(outcomes.of(GESSCALE)) == 1:
        return "One run of each tells no difference: a tie."
    if verdict == "tie":
        return "The intervals of some differences, run by run, hold 0."
    late = (
        "Executors that came while those in use carried the load, to work off a backlog: "
        f"{_each(outcomes, 'catch_up')}."
    )
    if metric == "reconfigurations":
        went = _each(outcomes, "downs")
        return f"Executors that came: {_each(outcomes, 'ups')}; that went: {went}. {late}"
    ideal = number(outcomes.of(GESSCALE)[0].ideal)
    return f"The load needs {ideal} executors in the mean: {_each(outcomes, 'executors')}. {late}"


def _each(outcomes: TaxiOutcomes, field: str) -> str:
    return ", ".join(f"{NAMES[p]} {interval(outcomes.estimate(p, field))}" for p in NAMES)


def _nothing_lost(outcomes: TaxiOutcomes) -> Finding:
    missing = sum(run.missing for policy in NAMES for run in outcomes.of(policy))
    records = sum(run.records for policy in NAMES for run in outcomes.of(policy))
    return judged(
        "g",
        claim="Every record is read, whoever scales",
        paper="not in the paper",
        ours=f"{missing:,} of {records:,} missing",
        good=missing == 0,
    )
