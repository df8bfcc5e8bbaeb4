"""The findings, on results whose verdicts are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from penstock.comparison.results import Results
from penstock.papers.judging import Finding, Rule, together
from penstock.papers.judging import finding as finding_of
from penstock.papers.thesis import cells, findings, mechanisms, published
from tests.fakes.thesis_results import made

RULES = {rule.id: rule for rule in findings.RULES}
Figures = dict[str, dict[str, float]]
# By seed, as the noise of the other cells (50 s, ± 2 %) but for the order: no difference on
# average that an interval would not hold.
LIKE_OTHERS = (50.6, 49.4, 50.5, 49.9, 49.6)


def judged(rule: Rule, results: Results) -> Finding:
    return finding_of(rule, results, mechanisms.why)


def swept(query: str, policy: str, value: float) -> str:
    return cells.cell(query, "cosine", policy, value, strict=True).key


def chosen(query: str, workload: str, policy: str) -> str:
    return cells.chosen(query, workload, policy).key


def ds2_cut(q1: float, q11: float, median: float = 200.0) -> Figures:
    return {
        swept("q1", "ds2", 1.0): {"latency_mean": q1 * 20.0, "latency_p50": median},
        swept("q1", "ds2", 1.4): {"latency_mean": 20.0},
        swept("q11", "ds2", 1.0): {"latency_mean": q11 * 50.0, "latency_p50": 300.0},
        swept("q11", "ds2", 1.4): {"latency_mean": 50.0},
    }


def policy_everywhere(
    policy: str, query: str, workloads: Sequence[str], score: str, value: float
) -> Figures:
    return {chosen(query, w, policy): {score: value} for w in workloads}


def by_target(q1: Sequence[float], q11: Sequence[float], actions: float = 3.0) -> Figures:
    figures: Figures = {}
    for query, values in (("q1", q1), ("q11", q11)):
        for target, value in zip((0.6, 0.7, 0.8, 0.9, 1.0), values, strict=True):
            figures[swept(query, "hpa-cpu", target)] = {"latency_mean": value}
        figures[swept(query, "hpa-cpu", 1.0)]["actions"] = actions
    return figures


def q5(strict: float, repaired: float, most: float = 60.0) -> Figures:
    return {
        chosen("q5", "cosine", "ds2"): {"slots_mean": strict, "slots_max": most},
        cells.cell("q5", "cosine", "ds2").key: {"slots_mean": repaired, "slots_max": 30.0},
    }


def varga(random_latency: float, random_slots: float) -> Figures:
    """HPA-Varga on Q1: slower and smaller than the others, but for random."""
    figures: Figures = {
        chosen("q1", w, "hpa-varga"): {"latency_mean": 70.0, "slots_mean": 9.0}
        for w in cells.WORKLOADS
    }
    own = {"latency_mean": random_latency, "slots_mean": random_slots}
    return {**figures, chosen("q1", "random", "hpa-varga"): own}


@dataclass(frozen=True)
class Case:
    """Results that a finding is judged on, and what must come out."""

    id: str
    verdict: str
    figures: Mapping[str, Mapping[str, float]]
    by_seed: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict)


ALL = cells.WORKLOADS
CASES = [
    Case("a", "held", ds2_cut(10.0, 3.0)),
    Case("a", "not held", ds2_cut(3.0, 3.0)),
    Case("a", "not held", ds2_cut(10.0, 1.2)),
    Case("a", "not held", ds2_cut(10.0, 3.0, median=30.0)),  # it drains
    Case(
        "a",
        "tie",
        ds2_cut(10.0, 3.0),
        {(swept("q11", "ds2", 1.0), "latency_mean"): (101.0, 98.0, 104.0, 97.0, 100.5)},
    ),
    Case(
        "b",
        "held",
        policy_everywhere("ds2", "q1", ["cosine"], "slots_mean", 8.0)
        | policy_everywhere("ds2", "q2", ["cosine"], "slots_mean", 8.0),
    ),
    Case(
        "b",
        "tie",
        policy_everywhere("ds2", "q1", ["cosine"], "slots_mean", 8.0),
        {(chosen("q2", "cosine", "ds2"), "slots_mean"): (10.1, 9.9, 10.05, 10.0, 9.95)},
    ),
    Case("b", "not held", policy_everywhere("ds2", "q2", ["cosine"], "slots_mean", 11.0)),
    Case("c", "held", policy_everywhere("hpa-cpu", "q1", ALL, "latency_mean", 5.0)),
    Case(
        "c",
        "not held",
        policy_everywhere("hpa-cpu", "q1", ALL, "latency_mean", 5.0)
        | {chosen("q1", "random", "hpa-varga"): {"latency_mean": 3.0}},
    ),
    Case(
        "c",
        "tie",
        policy_everywhere("hpa-cpu", "q1", ALL[:3], "latency_mean", 5.0),
        {(chosen("q1", "decreasing", "hpa-cpu"), "latency_mean"): LIKE_OTHERS},
    ),
    Case("d", "held", policy_everywhere("dhalion", "q1", ALL, "slots_mean", 15.0)),
    Case(  # increasing may fail
        "d",
        "held",
        policy_everywhere("dhalion", "q1", ALL, "slots_mean", 15.0)
        | {chosen("q1", "increasing", "dhalion"): {"slots_mean": 5.0}},
    ),
    Case(
        "d",
        "not held",
        policy_everywhere("dhalion", "q1", ALL, "slots_mean", 15.0)
        | {chosen("q1", "random", "hpa-cpu"): {"slots_mean": 16.0}},
    ),
    Case("e", "held", policy_everywhere("dhalion", "q11", ALL, "latency_mean", 30.0)),
    Case(  # the thesis could not run HPA-Varga there
        "e",
        "held",
        policy_everywhere("dhalion", "q11", ALL, "latency_mean", 30.0)
        | {chosen("q11", "random", "hpa-varga"): {"latency_mean": 1.0}},
    ),
    Case(
        "e",
        "not held",
        policy_everywhere("dhalion", "q11", ALL, "latency_mean", 30.0)
        | {chosen("q11", "cosine", "hpa-varga"): {"latency_mean": 1.0}},
    ),
    Case("f", "held", by_target((4, 6, 36, 102, 328), (108, 178, 255, 296, 339))),
    Case("f", "not held", by_target((4, 6, 36, 30, 328), (108, 178, 255, 296, 339))),
    Case("f", "not held", by_target((4, 6, 36, 102, 328), (108, 178, 255, 296, 339), actions=9)),
    Case("g", "held", varga(70.0, 9.0)),
    Case("g", "held", varga(70.0, 10.0)),  # as many slots are no more
    Case("g", "not held", varga(70.0, 12.0)),
    Case("g", "not held", varga(40.0, 9.0)),
    Case("g", "tie", varga(50.0, 9.0)),
    Case("h", "held", {}),
    Case(  # three of five seeds came to rest in stage 1
        "h",
        "not held",
        {},
        {(chosen("q1", "convergence", "hpa-varga"), "stage1_converged"): (1, 1, 0, 1, 0)},
    ),
    Case(
        "h",
        "held",
        {},
        {(chosen("q1", "convergence", "ds2"), "stage2_converged"): (1, 1, 0, 1, 0)},
    ),
    Case(
        "h",
        "not held",
        {},
        {(chosen("q1", "convergence", "ds2"), "stage2_converged"): (1, 0, 0, 1, 0)},
    ),
    Case("i", "held", q5(25.0, 5.0)),
    Case("i", "not held", q5(8.0, 5.0)),
    Case("i", "tie", q5(25.0, 5.0, most=30.0)),
    Case(
        "j",
        "held",
        {swept(q, "dhalion", 1.3): {"latency_mean": 90.0} for q in ("q1", "q11")},
    ),
    Case("j", "not held", {swept("q1", "dhalion", 1.3): {"latency_mean": 30.0}}),
    Case(
        "j",
        "tie",
        {swept("q1", "dhalion", 1.3): {"latency_mean": 90.0}},
        {(swept("q11", "dhalion", 1.3), "latency_mean"): LIKE_OTHERS},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.id}-{c.verdict}")
def test_verdict(case: Case) -> None:
    rule = RULES[case.id]
    found = judged(rule, made(rule.needs(), case.figures, by_seed=case.by_seed))
    assert found.verdict == case.verdict, found.ours
    assert found.holds == (case.verdict != "not held")
    if case.verdict != "held":
        assert f"[{case.verdict}]" in found.ours  # the part that decided it


def test_every_finding_has_cases_that_hold_and_that_fail() -> None:
    judged = {(case.id, case.verdict) for case in CASES}
    for id in RULES:
        assert {(id, "held"), (id, "not held")} <= judged


def test_the_figures_are_told_with_their_intervals() -> None:
    rule = RULES["j"]
    figures = {swept("q1", "dhalion", 1.3): {"latency_mean": 100.0}}
    ours = judged(rule, made(rule.needs(), figures)).ours
    # 100 s with ± 2 % by seed: s = 1.58, t(4) = 2.776, half-width 1.96
    assert "100 ±2 s at 1.3, 50.0 ±1.0 s at 1.1" in ours


def test_one_seed_decides_nothing_that_is_compared() -> None:
    rule = RULES["c"]
    figures = policy_everywhere("hpa-cpu", "q1", ALL, "latency_mean", 5.0)
    assert judged(rule, made(rule.needs(), figures, seeds=(100,))).verdict == "tie"


def test_findings_without_their_cells_are_left_out() -> None:
    results = made(cells.of_table("7.1") + cells.of_table("7.2"))
    assert [f.id for f in findings.judge(results)] == ["j"]


def test_all_findings_together() -> None:
    everything = [c for id in published.IDS for c in cells.of_table(id)] + cells.of_improved()
    found = findings.judge(made(everything))
    assert [f.id for f in found] == list("abcdefghij")
    for one in found:
        document = one.document()
        assert {"id", "claim", "paper", "ours", "holds"} <= document.keys()
        assert document["holds"] is one.holds
        assert one.why


def test_a_failure_is_explained_if_its_mechanism_is_known() -> None:
    most = policy_everywhere("dhalion", "q1", ALL, "slots_mean", 15.0)
    rule = RULES["d"]
    known = {**most, chosen("q1", "decreasing", "hpa-cpu"): {"slots_mean": 16.0}}
    unknown = {**most, chosen("q1", "random", "ds2"): {"slots_mean": 16.0}}
    assert "base load" in judged(rule, made(rule.needs(), known)).why
    why = judged(rule, made(rule.needs(), unknown)).why
    assert "not known: Q1 random 15.0 ±0.3 against DS2 16.0" in why
    assert "not known" not in judged(rule, made(rule.needs(), most)).why


def test_together() -> None:
    assert together(["held", "held"]) == "held"
    assert together(["held", "tie"]) == "tie"
    assert together(["tie", "not held", "held"]) == "not held"


def test_a_tie_holds() -> None:
    common = {"id": "x", "claim": "c", "paper": "p", "ours": "o", "why": "w"}
    assert Finding(**common, verdict="tie").holds
    assert not Finding(**common, verdict="not held").holds
