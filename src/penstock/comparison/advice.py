"""What to try after a replay: the policy that costs least, its limits, how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.batches.snapshot import POOL
from penstock.comparison.profiled import ProfileCell
from penstock.comparison.recorded_run import RecordedRun
from penstock.comparison.results import Results
from penstock.comparison.scores import TOTAL_COST
from penstock.comparison.summary import Comparison
from penstock.history.learning.learn import Learned
from penstock.policies import spark_dra
from penstock.report import units
from penstock.report.bench_tables import Row, figure_text
from penstock.report.replay_tables import Advice

SPARE = 1.25  # of the advised maximum over what covers the highest rate
RAN = "recorded-policy"  # the key of the policy that really acted, which is not advised by itself


def advised(
    learned: Learned, recorded: RecordedRun, comparison: Comparison, cell: ProfileCell
) -> Advice:
    """The policy that costs least, of those that can be attached; or a fixed size."""
    results = comparison.results
    cells = {c.key: c for c in results.cells if isinstance(c, ProfileCell)}
    known = [
        (row, cells[row.key])
        for group in comparison.groups
        for row in group.rows
        if cells[row.key].policy not in ("scheduled", spark_dra.NAME)
        and row.key != RAN
        and TOTAL_COST in row.figures
    ]
    row, best = _cheapest(results, known)
    slots, late = row.figures["slots_mean"].mean, row.figures["slo_seconds"].mean / cell.seconds
    peak = int(cell.peak_sizes(0)[POOL])
    parameters = {k: v for k, v in best.policy_parameters.items() if k != "pools"}
    minimum, maximum = cell.guards.minimum, cell.guards.maximum
    if best.fixed:
        size = best.fixed[POOL]
        minimum = maximum = size
        parameters = {"slots": size}
    else:
        maximum = min(maximum, max(minimum + 1, math.ceil(SPARE * peak)))
    return Advice(
        label=row.label if not best.fixed else f"a fixed size of {best.fixed[POOL]}",
        policy=best.policy,
        parameters=parameters,
        minimum=minimum,
        maximum=maximum,
        why=(
            f"{figure_text(slots)} executors in the mean, {units.share(late)} of the time late; "
            f"recorded {figure_text(recorded.scores['slots_mean'] or 0.0)}, "
            f"{units.share((recorded.scores['slo_seconds'] or 0.0) / cell.seconds)}"
            f"{_saved(recorded, slots, cell)}"
        ),
        sure=_sure(results, row.key, [r.key for r, _ in known]),
        first=_first(learned, cell, size=minimum if best.fixed else None),
    )


def _cheapest(
    results: Results, known: Sequence[tuple[Row, ProfileCell]]
) -> tuple[Row, ProfileCell]:
    """What costs least; a fixed size where nothing is clearly cheaper than that."""
    found = min(known, key=lambda pair: pair[0].figures[TOTAL_COST].mean)
    if found[1].fixed or len(results.seeds) < 2:
        return found
    for row, cell in known:
        if cell.fixed and results.paired(row.key, found[0].key, TOTAL_COST).verdict == "tie":
            return row, cell
    return found


def _saved(recorded: RecordedRun, slots: float, cell: ProfileCell) -> str:
    """What the present setting pays for more, per day."""
    more = (recorded.scores["slots_mean"] or 0.0) - slots
    if more <= 0:
        return ""
    hours = 24.0 * more
    money = "" if cell.price is None else f", {cell.price * hours:.2f} in money"
    return f"; the present setting pays {figure_text(hours)} executor-hours a day more{money}"


def _sure(results: Results, best: str, keys: Sequence[str]) -> str:
    seeds = results.seeds
    if len(seeds) < 2:
        return "one run of each, no interval: give more seeds"
    won = sum(
        min(keys, key=lambda key: float(results.values(key, TOTAL_COST)[place])) == best
        for place in range(len(seeds))
    )
    others = [results.paired(best, key, TOTAL_COST) for key in keys if key != best]
    ties = sum(d.verdict == "tie" for d in others)
    text = f"in {won} of {len(seeds)} draws of what the profile does not know well it costs least"
    return f"{text}; {ties} others cannot be told from it" if ties else text


def _first(learned: Learned, cell: ProfileCell, *, size: int | None) -> tuple[str, ...]:
    """What to do first."""
    found = []
    if len(cell.remarks()) > 1:
        found.append(f"{cell.remarks()[1]}: look at partitions and limits before executors")
    if learned.linear:
        found.append(
            "all batches ran on one number of executors, so that other sizes are inferred: run it "
            "on another size for ten minutes and replay that"
        )
    if size is not None:
        found.append(f"set the size to {size} and watch the delay; attach in mode advise meanwhile")
    else:
        found.append("attach it in mode advise for a day, then compare its journal by a replay")
        found.append("then let it act, with these limits, and freeze it by its file if in doubt")
    return tuple(found)
