"""Tables and findings of ``penstock reproduce mead``, from outcomes that are made up."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from penstock.papers.harness import Report, Reproduction
from penstock.papers.judging import Finding
from penstock.papers.mead import cells, models, published, tables
from penstock.papers.mead.cells import MeadCell
from penstock.papers.mead.experiment import MeadOutcome, MeadOutcomes
from penstock.papers.mead.findings import judge
from penstock.papers.mead.models import Comparison
from penstock.papers.mead.paper import PAPER, MeadMeasured

Figures = Callable[[MeadCell, int], tuple[float, float]]  # response time, CPU


def as_in_the_paper(cell: MeadCell, seed: int) -> tuple[float, float]:
    """What the paper has; for ``mead+`` half of the target."""
    if cell.policy == "full":
        return 0.01, 100.0
    if cell.policy == "cpu-threshold":
        return published.THRESHOLD[cell.trace]
    target = float(cell.target or 0.0)
    if cell.policy == "mead+":
        return target / 2.0, 47.0
    if cell.window is not None:
        return published.TABLE_3[cell.trace, target][cell.window]
    return (published.TABLE_2 if cell.p95 else published.TABLE_1)[cell.trace, target][cell.policy]


def outcomes(
    figures: Figures = as_in_the_paper,
    seeds: Sequence[int] = (0, 1, 2),
    *,
    worst: float = 0.2,
    without: str = "none",
) -> MeadOutcomes:
    found = []
    for cell in cells.all_cells(extended=True):
        for seed in seeds if cell.policy != without else ():
            response, cpu = figures(cell, seed)
            decisions = 60 if cell.policy != "full" else 0
            found.append(
                MeadOutcome(
                    key=cell.key, seed=seed, mean=response, p95=response, cpu=cpu, worst=worst,
                    other=response / 5.0, decisions=decisions, decision_seconds=0.05,
                )
            )  # fmt: skip
    return MeadOutcomes(runs=tuple(found))


def comparisons(off: float = 1.0, seeds: int = 3) -> list[Comparison]:
    """Models that are right, but for Kingman's at a utilisation of 0.5."""
    said = tuple(0.01 * load for load in models.LOADS)
    wrong = tuple(
        s * (off if load == 0.5 else 1.0) for s, load in zip(said, models.LOADS, strict=True)
    )
    return [
        Comparison(
            trace=trace, loads=models.LOADS, measured=said, mg1=said, kingman=wrong, by_map=said
        )
        for trace in models.TRACES
        for _ in range(seeds)
    ]


def findings(found: MeadOutcomes, off: float = 1.0) -> dict[str, Finding]:
    return {finding.id: finding for finding in judge(found, comparisons(off))}


def changed(policy: str, trace: str, factor: float) -> Figures:
    def figures(cell: MeadCell, seed: int) -> tuple[float, float]:
        response, cpu = as_in_the_paper(cell, seed)
        return (
            response * factor if (cell.policy, cell.trace) == (policy, trace) else response
        ), cpu

    return figures


def test_the_papers_own_figures_hold() -> None:
    found = findings(outcomes())
    assert list(found) == list("abcdefghi")
    assert {finding.verdict for finding in found.values()} == {"held"}
    assert found["a"].ours == "9 of 9 met" and found["b"].ours == "6 of 6 met"
    assert found["c"].ours == "0 of 15 met" and found["d"].ours == "1 of 9 met"
    assert found["e"].ours == "38.8 ±0.0 to 51.9 ±0.0 %"


@pytest.mark.parametrize(
    ("policy", "trace", "factor", "broken", "words"),
    [
        ("mead", "bc", 9.0, "ab", "6 of 9 met: BC mean 0.32 ±0.00 s of 0.3 s; BC mean 1.4"),
        ("mead-mg1", "lm", 0.01, "cg", "5 met: LM mean 0.075 ±0.000 s of 1.5 s"),
        ("mead-kingman", "synt", 0.3, "dg", "3 of 9 met: SYNT mean 0.053 ±0.000 s of 0.1 s"),
        ("cpu-threshold", "lm", 3.0, "g", "LM 7.2 ±0.0 s at 48.0 ±0.0 % (paper 2.4 s"),
    ],
)
def test_a_finding_that_does_not_hold_says_where(
    policy: str, trace: str, factor: float, broken: str, words: str
) -> None:
    found = findings(outcomes(changed(policy, trace, factor)))
    assert "".join(f.id for f in found.values() if f.verdict == "not held") == broken
    assert words in found[broken[0]].ours


def test_a_window_that_is_long_enough() -> None:
    def figures(cell: MeadCell, seed: int) -> tuple[float, float]:
        return (0.1, 50.0) if cell.window == 100_000 else as_in_the_paper(cell, seed)

    found = findings(outcomes(figures))["f"]
    assert found.verdict == "not held"
    assert found.ours == "2 of 2 met: SYNT mean 0.1 ±0.0 s of 0.2 s; BC mean 0.1 ±0.0 s of 0.5 s"
    assert "SYNT 0.13, 0.14, 0.1 s (paper 0.126, 0.141, 0.468)" in found.why


def test_too_little_saved() -> None:
    found = findings(outcomes(lambda cell, seed: (as_in_the_paper(cell, seed)[0], 66.0)))
    assert found["e"].verdict == "not held" and "34.0" in found["e"].ours


def test_models_that_disagree_without_correlation() -> None:
    assert findings(outcomes(), off=1.09)["i"].verdict == "held"
    found = findings(outcomes(), off=1.2)["i"]
    assert found.verdict == "not held"
    assert "Kingman 1.2 ±0.0 of the measured mean at 0.5" in found.ours


def test_the_mean_over_seeds_counts() -> None:
    def figures(cell: MeadCell, seed: int) -> tuple[float, float]:
        if cell == MeadCell(trace="bc", policy="mead", target=0.3):
            return (0.45, 50.0) if seed == 1 else (0.15, 50.0)
        return as_in_the_paper(cell, seed)

    found = outcomes(figures)
    assert findings(found)["a"].verdict == "held"
    assert "0.25 ±0.43" in tables.table_1(found).markdown()
    assert findings(outcomes(figures, seeds=(1,)))["a"].ours.endswith("BC mean 0.45 s of 0.3 s")


def test_the_cause_is_told_only_where_the_runs_show_it() -> None:
    slow = changed("mead", "bc", 9.0)
    assert findings(outcomes(slow, worst=0.2))["a"].why == ""
    why = findings(outcomes(slow, worst=0.8))["a"].why
    assert why == (
        "On BC at least 80 % of the delay came in the worst twentieth of the minutes; full CPU "
        "would have been enough (0.010 s)."
    )
    assert findings(outcomes(worst=0.8))["a"].why == ""


def test_without_its_runs_a_finding_is_left_out() -> None:
    found = {f.id for f in judge(outcomes(without="mead"), [])}
    assert found == {"c", "d", "g"}
    assert judge(MeadOutcomes(runs=()), []) == ()


def test_mead_plus_stands_beside_mead() -> None:
    table = tables.beyond(outcomes(changed("mead", "bc", 9.0)))
    assert len(table.rows) == 15
    assert table.rows[3] == (
        "BC",
        "mean ≤ 0.3",
        "0.32 ±0.00 !",
        "55.8 ±0.0",
        "0.15 ±0.00",
        "47.0 ±0.0",
    )
    assert table.notes == ("! above the target; met: mead 10, mead+ 15 of 15",)


def test_tables_fit_a_terminal() -> None:
    screen = Console(width=80, file=io.StringIO())
    seen = outcomes(changed("mead", "lm", 33.0))
    for table in tables.all_tables(seen, comparisons(), extended=True):
        screen.print(table.rich())
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text
    for words in ("Table I:", "Table II:", "Table III:", "Beyond the paper", "Cost of a decision"):
        assert words in text


def test_the_document_has_everything() -> None:
    found = outcomes()
    report = Report(
        findings=judge(found, comparisons()),
        tables=tables.all_tables(found, comparisons(), extended=True),
        pictures=(),
    )
    reproduced = Reproduction(
        paper=PAPER,
        asked=PAPER.asked(seeds=3, first_seed=5, extended=True),
        folder=Path("runs"),
        measured=MeadMeasured(outcomes=found, comparisons=tuple(comparisons())),
        report=report,
    )
    text = PAPER.texts(reproduced, "mead-")["mead.md"]
    assert "`penstock reproduce mead --seeds 3 --first-seed 5 --extended`" in text
    assert text.count("**: ") == 9 and text.count("\n### ") == 8
    assert "| SYNT | MAP/G/1 | 0.1 | 0.056 | 0.056 ±0.000 | 53.2 | 53.2 ±0.0 |" in text
    for name in PAPER.shown:
        assert f"(mead-{name})" in text
