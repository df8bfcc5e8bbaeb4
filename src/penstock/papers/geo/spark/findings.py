"""What was to be shown on Spark, and what the study found, judged on what was measured."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.papers.geo.simulated import published
from penstock.papers.geo.simulated.experiment import mean
from penstock.papers.geo.simulated.findings import POINTS
from penstock.papers.geo.spark.conditions import CONDITIONS, DELAY, MOST, SparkCondition
from penstock.papers.geo.spark.levels import SCALERS, ClimbOutcomes
from penstock.papers.judging import Finding, judged
from penstock.report.table import percent


def judge(outcomes: ClimbOutcomes) -> tuple[Finding, ...]:
    """Judge all findings; returns none while runs are missing."""
    if any(not outcomes.of(condition) for condition in CONDITIONS):
        return ()
    rules = (_round_trips, _gains, _delay, _errors, _better)
    return tuple(rule(outcomes) for rule in rules)


def _round_trips(outcomes: ClimbOutcomes) -> Finding:
    worst = max(climb.off for c in CONDITIONS for climb in outcomes.of(c))
    return judged(
        "a",
        claim="Every round trip is within 2 ms or 5 % of what is configured (and the jitter)",
        paper="not in the study",
        ours=f"at the worst pair {percent(worst)} of what is allowed",
        good=worst <= 1.0,
    )


def _gains(outcomes: ClimbOutcomes) -> Finding:
    found = {job: outcomes.gain(SparkCondition(job=job)) for job in published.GAINS}
    return judged(
        "b",
        claim="Without delay each instance adds 90 % (Map) and 70 % (Id-Id) of what the first does",
        paper="Map 90 %, Id-Id 70 %",
        ours=_by_job(found),
        good=all(abs(found[job] - gain) <= POINTS for job, gain in published.GAINS.items()),
        why="Executors take tasks in waves: five of them take as long as four for twelve tasks.",
    )


def _delay(outcomes: ClimbOutcomes) -> Finding:
    losses, longer = {}, []
    for job in ("map", "id-id"):
        near, far = SparkCondition(job=job), SparkCondition(job=job, delay=DELAY)
        rates = [outcomes.rate(condition, MOST) for condition in (near, far)]
        losses[job] = 1.0 - rates[1] / rates[0]
        before, after = (near.rows / rate for rate in rates)
        longer.append(f"{published.JOBS[job]} {before:.1f} s without delay, {after:.1f} s with it")
    words = [f"{published.JOBS[job]} {percent(-loss, sign=True)}" for job, loss in losses.items()]
    return judged(
        "c",
        claim="Delay costs the stateful join more than the map",
        paper="Map scales as without delay; Id-Id peaks at 62k and falls",
        ours=f"with {MOST} executors: {', '.join(words)}",
        good=losses["id-id"] > losses["map"],
        why=f"A batch takes: {'; '.join(longer)}. Spark sends tasks out and gathers their results "
        "over the far links in every batch, whatever it holds; shuffled data is fetched at once, "
        "not record by record.",
    )


def _errors(outcomes: ClimbOutcomes) -> Finding:
    found = {
        job: mean([outcomes.error(c, "gesscale+") for c in CONDITIONS if c.job == job])
        for job in published.TARGETS
    }
    return judged(
        "d",
        claim="gesscale+ predicts levels that it has not seen with mean errors of at most 5 % "
        "(Map), 10 % (Id-Id) and 15 % (Id-Value)",
        paper="not in the study",
        ours=_by_job(found),
        good=all(found[job] <= most for job, most in published.TARGETS.items()),
        why="The bounds are those of the simulator; nothing of it was fitted to Spark.",
    )


def _better(outcomes: ClimbOutcomes) -> Finding:
    words, good = [], True
    for condition in CONDITIONS:
        simple, plus = (outcomes.error(condition, scaler) for scaler in SCALERS)
        good &= plus <= simple
        name = f"{published.JOBS[condition.job]} {condition.words}"
        words.append(f"{name}: {percent(plus)} against {percent(simple)}")
    return judged(
        "e",
        claim="gesscale+ predicts better than Gesscale under every condition",
        paper="not in the study",
        ours="; ".join(words),
        good=good,
        why="It knows of waves of tasks; Gesscale's power law does not.",
    )


def _by_job(shares: Mapping[str, float]) -> str:
    return "; ".join(f"{published.JOBS[job]} {percent(share)}" for job, share in shares.items())
