"""The Gesscale paper as one to reproduce in the simulator: its tables, and what was done."""

from __future__ import annotations

from collections.abc import Callable

from penstock.papers.document import means
from penstock.papers.gesscale.simulated import figures, findings, published, setups
from penstock.papers.gesscale.simulated.experiment import GesscaleOutcome, GesscaleOutcomes, run
from penstock.papers.gesscale.simulated.published import GESSCALE, METRICS, NAMES, PLUS, TABLE_3
from penstock.papers.gesscale.simulated.setups import (
    CODE,
    LEAST,
    MAIN,
    NODES,
    SETUPS,
    WARM_UP,
    key,
)
from penstock.papers.harness import Asked, Paper
from penstock.papers.running import CellRun, Outcome, Outcomes, RunFolder
from penstock.report.statistics import Difference
from penstock.report.table import NONE, Table, interval, percent, printed

CAPTIONS = {
    "figure-3.png": "Figure 3. Throughput around a reconfiguration",
    "figure-6.png": "Figure 6. The ideal auto-scaler",
    **{
        f"figure-7{letter}.png": f"Figure 7{letter}. {name}: load and throughput, replicas, and "
        "how many too many"
        for letter, name in zip("abcd", NAMES.values(), strict=True)
    },
}
SHOWN = ("figure-3.png", "figure-6.png", "figure-7a.png", "figure-7d.png")
ABOUT = (
    f"The taxi operator in the geo simulator, on {NODES} nodes whose round trips are drawn between "
    "0 and 300 ms for each seed. The load is New York's taxi drop-offs of 1 and 2 May 2013, three "
    "records per trip, ten times as fast; the paper used the pick-ups of the same days, so single "
    "figures differ. A change stops the job for 120 s. The policies look once a minute, with "
    "no other guard, as the paper's text has it. Its public code does not look for "
    f"{WARM_UP:.0f} s after a restart and keeps at least {LEAST} replicas: that is the set-up "
    "*code* in the table of other set-ups. The speed of a node was calibrated to what "
    "Table III tells of the ideal auto-scaler, on other seeds (docs/geo-simulator.md); what "
    "distance and waiting cost is our choice, and other choices are in the table of other set-ups. "
    "While a job is stopped it has no replica."
)
CAUSES = {
    "ups": "ups",
    "catching_up": "catch-up",
    "downs": "downs",
    "tightness": "down at",
    "lag": "lag s",
    "model_error": "model",
}


def measure(asked: Asked, folder: RunFolder) -> GesscaleOutcomes:
    """Run what the folder does not hold yet, seed by seed."""
    groups = [
        [
            CellRun(
                key=cell.key,
                cell=cell,
                seed=seed,
                detailed=seed == asked.first_seed and cell.setup == MAIN.name,
            )
            for cell in setups.all_cells(extended=asked.extended)
        ]
        for seed in asked.numbers
    ]
    return GesscaleOutcomes(runs=folder.in_processes(groups, run, GesscaleOutcome))


def tables(outcomes: GesscaleOutcomes, asked: Asked) -> list[Table]:
    """All tables in the order of the paper, then what it does not have."""
    found = [
        table_3(outcomes),
        ratios(outcomes),
        causes(outcomes),
        table_3(outcomes, CODE.name),
        other_setups(outcomes),
    ]
    return [*found, beyond(outcomes)] if asked.extended else found


def table_3(outcomes: GesscaleOutcomes, setup: str = MAIN.name) -> Table:
    """Every metric, the paper's figure above ours."""
    return Table(
        title=f"Table III: the four auto-scalers, set-up {setup}",
        header=("metric", "", *NAMES.values()),
        rows=tuple(metric_rows(outcomes, lambda policy: key(policy, setup))),
        notes=("the paper ran each once, on one map of latencies",),
        words=2,
    )


def metric_rows(outcomes: Outcomes[Outcome], key_of: Callable[[str], str]) -> list[tuple[str, ...]]:
    """Two rows for every metric, the paper's and ours; ``key_of`` a policy is that of its cell."""
    rows: list[tuple[str, ...]] = []
    for metric, name in METRICS.items():
        theirs = [printed(TABLE_3[policy][metric]) for policy in NAMES]
        ours = [interval(outcomes.estimate(key_of(policy), metric)) for policy in NAMES]
        rows += [(name, "paper", *theirs), ("", "ours", *ours)]
    return rows


def ratios(outcomes: GesscaleOutcomes) -> Table:
    """What the text says of Gesscale against others, fog by fog."""
    rows = []
    for base, metric in published.RATIOS:
        difference = outcomes.paired(key(GESSCALE), key(base), metric)
        theirs = percent(published.ratio(base, metric), sign=True)
        rows.append((NAMES[base], METRICS[metric], theirs, _relative(difference)))
    return Table(
        title="Gesscale against the threshold policies",
        header=("against", "metric", "paper", "ours"),
        rows=tuple(rows),
        notes=("ours: mean difference, fog by fog, over the other's mean",),
        words=2,
    )


def _relative(difference: Difference) -> str:
    share = difference.relative
    if share is None:
        return NONE
    if difference.half_width is None:
        return percent(share, sign=True)
    return f"{share * 100:+.0f} ±{difference.half_width / difference.base * 100:.0f} %"


def causes(outcomes: GesscaleOutcomes) -> Table:
    """Why they reconfigure as often as they do."""
    rows = [
        (NAMES[policy], *(_cause(outcomes, policy, figure) for figure in CAUSES))
        for policy in NAMES
    ]
    return Table(
        title="What the reconfigurations were",
        header=("policy", *CAUSES.values()),
        rows=tuple(rows),
        notes=(
            "catch-up: ups at which the nodes in use carried the load; only a backlog waited",
            "down at: the load, as a share of what the nodes that were left carry",
            "lag: mean seconds of input that waited; model: error of its predictions",
        ),
    )


def _cause(outcomes: GesscaleOutcomes, policy: str, figure: str) -> str:
    found = outcomes.estimate(key(policy), figure)
    if found is None:
        return NONE
    if figure in ("tightness", "model_error"):
        return f"{found.mean * 100:.{0 if figure == 'tightness' else 1}f} %"
    return interval(found)


def beyond(outcomes: GesscaleOutcomes) -> Table:
    """``gesscale+`` beside Gesscale, fog by fog."""
    shown = {**METRICS, "catching_up": "ups to catch up", "lag": "lag s"}
    rows = [
        (
            name,
            interval(outcomes.estimate(key(GESSCALE), metric)),
            interval(outcomes.estimate(key(PLUS), metric)),
            _relative(outcomes.paired(key(PLUS), key(GESSCALE), metric)),
        )
        for metric, name in shown.items()
    ]
    return Table(
        title="Gesscale and gesscale+",
        header=("metric", "Gesscale", "gesscale+", "difference"),
        rows=tuple(rows),
        notes=("difference: its mean, fog by fog, over Gesscale's mean",),
    )


def other_setups(outcomes: GesscaleOutcomes) -> Table:
    """The other set-ups beside that of the text."""
    shown = ("reconfigurations", "cost", "accuracy_u", "excess_time")
    rows = [
        (
            name if policy == next(iter(NAMES)) else "",
            NAMES[policy],
            *(interval(outcomes.estimate(key(policy, name), metric)) for metric in shown),
        )
        for name in SETUPS
        for policy in NAMES
    ]
    words = [f"{name}: {setup.words}" for name, setup in SETUPS.items()]
    return Table(
        title="Other set-ups",
        header=("set-up", "policy", *(METRICS[metric] for metric in shown)),
        rows=tuple(rows),
        notes=tuple(words),
        words=2,
    )


PAPER = Paper(
    name="gesscale",
    title="The Gesscale paper's evaluation, reproduced",
    about=ABOUT,
    seeds=30,
    first_seed=3000,  # the fog was calibrated on seeds below that
    keeps=("seeds", "first_seed", "extended"),
    has=frozenset({"extended"}),
    captions=CAPTIONS,
    shown=SHOWN,
    amount=lambda asked: (
        f"{len(setups.all_cells(extended=asked.extended))} cells × {asked.seeds} seeds"
    ),
    measure=measure,
    findings=findings.judge,
    tables=tables,
    pictures=lambda found, asked, folder: figures.draw_all(found, asked.first_seed, folder),
    often=lambda asked: f"{means(asked.seeds)}, from seed {asked.first_seed} on.",
)
