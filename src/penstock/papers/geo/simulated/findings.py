"""The study's findings, judged on our runs. [arsalane24, IV]"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from penstock.papers.geo.simulated import cells, published
from penstock.papers.geo.simulated.cells import CASES, Condition, of
from penstock.papers.geo.simulated.experiment import GeoOutcomes, mean
from penstock.papers.judging import Finding, counted, judged
from penstock.report.table import percent
from penstock.simulator.geo.setups import NODES, RATE

POINTS = 0.1  # a gain of 0.8 to 1.0 is "90 %"
FULLY_BUSY, EQUALLY, UNEVEN = 0.97, 0.02, 0.5  # busy shares
MOSTLY = 0.75  # of the levels, of the runs
SMALL = 0.1  # mean error up to which predictions are good
NEAR_PEAK = (6, 7, 8)
FAR_OFF = 0.25  # an error of this size makes an auto-scaler unreliable
AS_GOOD = 0.9  # of the best level's throughput


def judge(outcomes: GeoOutcomes) -> tuple[Finding, ...]:
    """Judge all findings; returns none while runs are missing."""
    if any(not outcomes.of(cell.condition, cell.scaler) for cell in cells.all_cells()):
        return ()
    rules = (
        _busy,
        _gains,
        _full,
        _full_with_jitter,
        _stateful_needs_more,
        _peak,
        _stall,
        _jitter,
        _map_errors,
        _id_id_errors,
        _id_value_errors,
        _back_pressure,
        _errors,
        _ends,
        _holds,
    )
    return tuple(rule(outcomes) for rule in rules)


def _busy(outcomes: GeoOutcomes) -> Finding:
    words, good = [], True
    for job in published.JOBS:
        busiest, least = [], 1.0
        for level in range(2, NODES + 1):
            looks = outcomes.level(of(job, "none"), level)
            busy = [mean(values) for values in zip(*(x.busy for x in looks), strict=True)]
            good &= mean([max(look.busy) for look in looks]) >= FULLY_BUSY
            busiest.append(1 + busy.index(max(busy)))
            least = min(least, *busy)
            if job != "id-value":
                good &= busy[0] >= max(busy) - EQUALLY
        if job == "id-value":
            changes = [a != b for a, b in pairwise(busiest)]
            good &= sum(changes) >= MOSTLY * len(changes) and least <= UNEVEN
        words.append(f"{published.JOBS[job]} {', '.join(map(str, busiest))}")
    return judged(
        "a",
        claim="An instance is always fully busy: the first of Map and Id-Id, which has the source "
        "beside it, and of Id-Value one that changes with every level",
        paper="Figure 6",
        ours=f"busiest instance at levels 2 to {NODES}: " + "; ".join(words),
        good=good,
        why="Key groups are dealt out anew at every level; five of them have most of Id-Value's "
        "work.",
    )


def _gains(outcomes: GeoOutcomes) -> Finding:
    words, good = [], True
    for job, theirs in published.GAINS.items():
        condition = of(job, "none")
        last = outcomes.full(condition) or NODES
        first = outcomes.rate(condition, 1)
        gain = (outcomes.rate(condition, last) - first) / (last - 1) / first
        good &= abs(gain - theirs) <= POINTS
        words.append(f"{published.JOBS[job]} +{percent(gain)} up to {last} instances")
    return judged(
        "b",
        claim="Without delay each further instance of Map brings 90 % of what the first one does, "
        "of Id-Id 70 %",
        paper="90 %, 70 %",
        ours="; ".join(words),
        good=good,
        why="The first node reads all records and deals them out, which costs more for a join.",
    )


def _full(outcomes: GeoOutcomes) -> Finding:
    chosen = {key: n for key, n in published.FULL.items() if key[1] != "jitter"}
    found = {key: outcomes.full(of(key[0], key[1])) for key in chosen}  # type: ignore[arg-type]
    return judged(
        "c",
        claim="Map and Id-Value take in the whole load with 7 instances, with and without 25 ms",
        paper="7",
        ours="; ".join(
            f"{published.JOBS[j]}, {published.CASES[c]}: {n}" for (j, c), n in found.items()
        ),
        good=found == chosen,
    )


def _full_with_jitter(outcomes: GeoOutcomes) -> Finding:
    condition = of("map", "jitter")
    full = outcomes.full(condition)
    others = [outcomes.rate(of("map", case), 6) / 1e3 for case in CASES]
    return judged(
        "d",
        claim="With 25 ± 10 ms Map takes in the whole load with 6 instances already",
        paper="6",
        ours=f"{full}; with 6 it does {others[2]:.0f}k, {RATE / 1e3 - others[2]:.0f}k short",
        good=full == published.FULL["map", "jitter"],
        why=f"Nothing that is modelled makes Map faster with jitter than without: 6 instances do "
        f"{others[0]:.0f}k, {others[1]:.0f}k and {others[2]:.0f}k with no, fixed and fluctuating "
        "delay. The study does not say why its did.",
    )


def _stateful_needs_more(outcomes: GeoOutcomes) -> Finding:
    rate = outcomes.rate(of("id-id", "none"), NODES)
    return judged(
        "e",
        claim=f"Id-Id does not take in the whole load with {NODES} instances, though it grows with "
        "each",
        paper="the experiment ends at 10",
        ours=f"{rate / 1e3:.0f}k with {NODES}",
        good=outcomes.full(of("id-id", "none")) is None
        and outcomes.best(of("id-id", "none")) == NODES,
    )


def _peak(outcomes: GeoOutcomes) -> Finding:
    condition = of("id-id", "fixed")
    best = outcomes.best(condition)
    rates = {n: outcomes.rate(condition, n) for n in range(6, NODES + 1)}
    return judged(
        "f",
        claim="With 25 ms the throughput of Id-Id peaks near 7 instances and falls with more",
        paper="62k with 7, 58k with 8; one run of five 88k with 10",
        ours=f"peak at {best}: "
        + ", ".join(f"{rate / 1e3:.0f}k with {n}" for n, rate in rates.items())
        + f"; best single run {_most(outcomes, condition, NODES) / 1e3:.0f}k with {NODES}",
        good=outcomes.less(condition, NODES, best) if best in NEAR_PEAK else "not held",
        why="A window ends when the slowest instance has stored its state, and each delayed node "
        "is one more that may be slowest.",
    )


def _stall(outcomes: GeoOutcomes) -> Finding:
    condition = of("id-id", "fixed")
    stays = [run.stays for run in outcomes.of(condition)]
    short = all(
        run.looks[run.stays - 1].rate < RATE for run in outcomes.of(condition) if run.stays < NODES
    )
    stalled = sum(level in (7, 8, 9) for level in stays)
    held = [run.looks[run.stays - 1].held for run in outcomes.of(condition) if run.stays < NODES]
    return judged(
        "g",
        claim="There the auto-scaler stops at 8 instances: back pressure falls below 500 ms/s "
        "though the load is not taken in",
        paper=f"{published.STALLED} of {published.RUNS} runs at 8",
        ours=f"stops at {counted(stays)}"
        + (f", held back {1e3 * mean(held):.0f} ms/s in the mean" if held else ""),
        good=short and stalled >= MOSTLY * len(stays),
        why="While the network decides, buffers are not full and the source is not held back.",
    )


def _jitter(outcomes: GeoOutcomes) -> Finding:
    condition = of("id-id", "jitter")
    nine, ten = outcomes.rate(condition, 9), outcomes.rate(condition, 10)
    return judged(
        "h",
        claim="With 25 ± 10 ms 10 instances of Id-Id do less than 9",
        paper="77k, then 67k: −13 %",
        ours=f"{nine / 1e3:.0f}k, then {ten / 1e3:.0f}k: {percent(ten / nine - 1.0, sign=True)}",
        good=outcomes.less(condition, 10, 9),
        why="The study's jitter is faster than its fixed delay of the same mean; ours is not, as "
        "the slowest of several links counts.",
    )


def _map_errors(outcomes: GeoOutcomes) -> Finding:
    found = [_worst(outcomes, of("map", case)) for case in CASES]
    means = [_mean_error(outcomes, of("map", case)) for case in CASES]
    return judged(
        "i",
        claim="Gesscale predicts Map well under all delays",
        paper="small errors",
        ours=f"mean errors {_percents(means)}, greatest of a level {_percents(found)}",
        good=max(means) <= SMALL,
    )


def _id_id_errors(outcomes: GeoOutcomes) -> Finding:
    near = _mean_error(outcomes, of("id-id", "none"))
    far = [_worst(outcomes, of("id-id", case)) for case in ("fixed", "jitter")]
    return judged(
        "j",
        claim="It predicts Id-Id well without delay, and with delays is wrong by up to 34 %",
        paper="small; 34 %, 34 %",
        ours=f"mean error {percent(near)}; greatest of a level {_percents(far)}",
        good=near <= SMALL and min(far) >= SMALL,
        why="NDmax says how far the farthest node is, not how many are far.",
    )


def _id_value_errors(outcomes: GeoOutcomes) -> Finding:
    found = [_worst(outcomes, of("id-value", case)) for case in CASES]
    return judged(
        "k",
        claim="It cannot predict Id-Value: errors of 52 and 62 %",
        paper="52 %, 62 %",
        ours=f"greatest of a level {_percents(found)}",
        good=min(found) >= FAR_OFF,
        why="n^β is smooth; the share of the busiest instance is not.",
    )


def _back_pressure(outcomes: GeoOutcomes) -> Finding:
    words, good = [], True
    for condition in cells.mostly_delayed():
        best = outcomes.best(condition)
        stays = [run.stays for run in outcomes.of(condition)]
        held = {n: mean([x.held for x in outcomes.level(condition, n)]) for n in (3, NODES)}
        good &= held[3] > published.HELD_BACK > held[NODES]
        good &= sum(n < NODES for n in stays) >= MOSTLY * len(stays)
        good &= outcomes.rate(condition, best) < RATE
        words.append(
            f"{1e3 * condition.delay:.0f} ms: peak {outcomes.rate(condition, best) / 1e3:.0f}k "
            f"with {best}, held back {1e3 * held[3]:.0f} ms/s with 3 and {1e3 * held[NODES]:.0f} "
            f"with {NODES}, stops at {counted(stays)}"
        )
    near, far = cells.mostly_delayed()
    good &= outcomes.rate(far, NODES) < outcomes.rate(near, NODES)
    return judged(
        "l",
        claim="With 70 % of the nodes delayed back pressure drops below the threshold while "
        "throughput levels off at 25 ms and falls at 50 ms",
        paper="Figure 10",
        ours="; ".join(words),
        good=good,
    )


def _worst(outcomes: GeoOutcomes, condition: Condition) -> float:
    """The greatest mean error of a level."""
    found = [outcomes.errors(condition, n, "gesscale") for n in range(2, NODES + 1)]
    return max(abs(mean(errors)) for errors in found if errors)


def _mean_error(outcomes: GeoOutcomes, condition: Condition) -> float:
    return mean([abs(error) for error in outcomes.all_errors(condition, "gesscale")])


def _most(outcomes: GeoOutcomes, condition: Condition, level: int) -> float:
    return max(look.rate for look in outcomes.level(condition, level))


def _percents(shares: Sequence[float]) -> str:
    return ", ".join(map(percent, shares))


def _errors(outcomes: GeoOutcomes) -> Finding:
    """Mean errors of predictions of levels not seen before."""
    words, good = [], True
    for job, most in published.TARGETS.items():
        found = [
            abs(error)
            for case in CASES
            for error in outcomes.all_errors(of(job, case), "gesscale+")
        ]
        good &= mean(found) <= most
        words.append(f"{published.JOBS[job]} {percent(mean(found))} (aim {percent(most)})")
    return judged(
        "m",
        claim="gesscale+ predicts levels that it has not seen: mean errors of at most 5 % (Map), "
        "10 % (Id-Id) and 15 % (Id-Value)",
        paper="not in the study",
        ours="; ".join(words),
        good=good,
        why="It sees who is busy, which key groups make the work, and how long slots wait.",
    )


def _ends(outcomes: GeoOutcomes) -> Finding:
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
        "n",
        claim="With 70 % delayed gesscale+ ends within one node of the smallest set that takes in "
        "the load, or says that none does",
        paper="not in the study",
        ours="; ".join(words),
        good=good,
    )


def _holds(outcomes: GeoOutcomes) -> Finding:
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
        "o",
        claim="Where no set is enough gesscale+ holds one that does at least 90 % of the best",
        paper="not in the study",
        ours="; ".join(words),
        good=good,
    )
