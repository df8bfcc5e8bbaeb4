"""The thesis's findings, judged on our figures over all seeds.

A comparison of two cells is a paired difference over the seeds, on the same loads: it holds if
the 95 % interval lies on the claimed side of 0, is a tie if it holds 0, and fails on the other
side. A bound on one figure (a factor, a share) is judged by the mean over the seeds. A finding of
several parts holds if all hold, fails if one fails, and is a tie otherwise; each ``_a`` to ``_j``
says which parts it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from penstock.comparison.cell import Cell
from penstock.comparison.results import Results
from penstock.papers.judging import Finding, Part, Rule, at_least, bound, lower
from penstock.papers.judging import judge as judge_by
from penstock.papers.thesis import cells, mechanisms, published
from penstock.papers.thesis.convergence import rest
from penstock.report.table import interval, number, percent

DRAINED = 60.0  # seconds; a median above it means that half of the time the queue is a minute long
FEW = 1 / 3  # of the actions at target 0.7 are "all but none"
BLOWN_UP = 2.0  # times the repaired size
LATENCY, SLOTS = "latency_mean", "slots_mean"
_NAMES = published.NAMES


def _keys(query: str, workload: str) -> dict[str, str]:
    return {policy: cells.chosen(query, workload, policy).key for policy in _NAMES}


def _against(
    results: Results, policy: str, scene: str, score: str, others: Sequence[str] = (), *, low: bool
) -> Part:
    """The policy's figure is below (or above) that of each other one, all if none are named."""
    keys = _keys(*scene.split())
    items = []
    for other in others or [name for name in _NAMES if name != policy]:
        pair = (policy, other) if low else (other, policy)
        verdict = lower(results, keys[pair[0]], keys[pair[1]], score)
        items.append(
            Part(text=f"{_NAMES[other]} {_own(results, keys[other], score)}", verdict=verdict)
        )
    own = _own(results, keys[policy], score)
    return Part.of(f"{scene.capitalize()} {own} against", items)


def _own(results: Results, key: str, score: str) -> str:
    return interval(results.estimate(key, score))


def _swept(policy: str, *values: float, queries: Sequence[str] = ("q1", "q11")) -> list[Cell]:
    return [
        cells.cell(query, "cosine", policy, value, strict=True)
        for query in queries
        for value in values
    ]


def _scenes(query: str, *workloads: str) -> list[Cell]:
    return [cells.chosen(query, workload, p) for workload in workloads for p in _NAMES]


def _a(results: Results) -> Iterator[Part]:
    """DS2's mean latency at 1.0 is ≥ 5 (Q1) and ≥ 2 (Q11) times that at 1.4; at 1.0 the median
    latency, mean over the seeds, is above 60 s on both queries: it never drains."""
    for query, factor in (("q1", 5.0), ("q11", 2.0)):
        tight, roomy = (c.key for c in _swept("ds2", 1.0, 1.4, queries=(query,)))
        high, low = (results.estimate(key, LATENCY) for key in (tight, roomy))
        ratio = high.mean / low.mean if low.mean else float("inf")
        yield Part(
            text=f"{query.upper()}: {interval(high)} s at 1.0, {interval(low)} s at 1.4, "
            f"×{ratio:.1f} (claimed ≥ {factor:g})",
            verdict=at_least(results, tight, roomy, LATENCY, factor),
        )
        median = results.estimate(tight, "latency_p50")
        yield Part(
            text=f"{query.upper()} at 1.0: median {interval(median)} s, lag at the end "
            f"{results.estimate(tight, 'lag_end').mean / 1e6:.1f} M records",
            verdict=bound(median.mean > DRAINED),
        )


def _b(results: Results) -> Iterator[Part]:
    """DS2's mean slots are below those of each other auto-scaler under cosine, on Q1 and Q2."""
    for query in ("q1", "q2"):
        yield _against(results, "ds2", f"{query} cosine", SLOTS, low=True)


def _c(results: Results) -> Iterator[Part]:
    """HPA-CPU's mean latency is below that of each other one, Q1, all four workloads."""
    for workload in cells.WORKLOADS:
        yield _against(results, "hpa-cpu", f"q1 {workload}", LATENCY, low=True)


def _d(results: Results) -> Iterator[Part]:
    """Dhalion's mean slots are above those of each other one, Q1; increasing is told only."""
    for workload in ("cosine", "random", "decreasing"):
        yield _against(results, "dhalion", f"q1 {workload}", SLOTS, low=False)


def _d_aside(results: Results) -> Iterator[Part]:
    yield _against(results, "dhalion", "q1 increasing", SLOTS, low=False)


def _e(results: Results) -> Iterator[Part]:
    """Dhalion's mean latency is below that of each one the thesis could run on Q11: HPA-CPU and
    DS2, and HPA-Varga under cosine only."""
    for workload in ("cosine", "random", "increasing"):
        others = ["ds2", "hpa-cpu", *(["hpa-varga"] if workload == "cosine" else [])]
        yield _against(results, "dhalion", f"q11 {workload}", LATENCY, others, low=True)


def _f(results: Results) -> Iterator[Part]:
    """HPA-CPU's mean latency rises with each step of its target from 0.6 to 1.0, on Q1 and Q11;
    at 1.0 it takes at most a third of the actions that it takes at 0.7, mean over the seeds."""
    targets = (0.6, 0.7, 0.8, 0.9, 1.0)
    for query in ("q1", "q11"):
        keys = [c.key for c in _swept("hpa-cpu", *targets, queries=(query,))]
        items = (
            Part(text=f"{_own(results, b, LATENCY)} s", verdict=lower(results, a, b, LATENCY))
            for a, b in pairwise(keys)
        )
        yield Part.of(f"{query.upper()} from {_own(results, keys[0], LATENCY)} s to", items)
        usual, few = (results.estimate(keys[n], "actions").mean for n in (1, -1))
        yield Part(
            text=f"{query.upper()}: {number(few)} actions at 1.0, {number(usual)} at 0.7",
            verdict=bound(few <= FEW * usual),
        )


def _g(results: Results) -> Iterator[Part]:
    """HPA-Varga's mean latency is above HPA-CPU's on Q1 under all four workloads, and its mean
    slots are not above."""
    for workload in cells.WORKLOADS:
        keys = _keys("q1", workload)
        cpu, varga = keys["hpa-cpu"], keys["hpa-varga"]
        latencies = " against ".join(_own(results, key, LATENCY) for key in (varga, cpu))
        sizes = " against ".join(_own(results, key, SLOTS) for key in (varga, cpu))
        more = results.paired(varga, cpu, SLOTS).verdict == "higher"
        yield Part.of(
            f"Q1 {workload}",
            (
                Part(text=f"{latencies} s", verdict=lower(results, cpu, varga, LATENCY)),
                Part(text=f"{sizes} slots", verdict=bound(not more)),
            ),
        )


def _h(results: Results) -> Iterator[Part]:
    """No auto-scaler comes to rest in stage 1 in more than half of the seeds, of those that the
    thesis could run; DS2 and HPA-CPU do in stage 2 of Q1 in more than half of them."""
    ran = [(row.query, row.policy) for row in published.CONVERGENCE if row.stages]
    yield Part.of("stage 1", (_rest(results, q, p, 1, wanted=False) for q, p in ran))
    yield Part.of("stage 2", (_rest(results, "q1", p, 2, wanted=True) for p in ("ds2", "hpa-cpu")))


def _h_aside(results: Results) -> Iterator[Part]:
    told = [("q1", "dhalion"), ("q1", "hpa-varga"), ("q11", "ds2"), ("q11", "hpa-cpu")]
    yield Part.of("stage 2", (_rest(results, q, p, 2, wanted=False) for q, p in told))


def _rest(results: Results, query: str, policy: str, stage: int, *, wanted: bool) -> Part:
    """Whether most seeds came to rest, as wanted."""
    share = rest(cells.chosen(query, "convergence", policy).key, stage, results).share
    text = f"{query.upper()} {_NAMES[policy]} {percent(share)}"
    return Part(text=text, verdict=bound((share > 0.5) == wanted))


def _i(results: Results) -> Iterator[Part]:
    """On Q5 under cosine strict DS2 has at least twice the mean slots of the repaired one, and a
    higher maximum."""
    strict, repaired = (c.key for c in _q5())
    for score, what in ((SLOTS, "slots"), ("slots_max", "slots at most")):
        a, b = (interval(results.estimate(key, score)) for key in (strict, repaired))
        good = (
            at_least(results, strict, repaired, score, BLOWN_UP)
            if score == SLOTS
            else lower(results, repaired, strict, score)
        )
        yield Part(text=f"{a} {what}, repaired {b}", verdict=good)


def _i_aside(results: Results) -> Iterator[Part]:
    if results.folder is None:
        return
    strict, repaired = (c.key for c in _q5())
    a, b = (float(results.trace(key).pools["sink"].max()) for key in (strict, repaired))
    after = results.trace(repaired)
    settled = float(after.pools["sink"][len(after.time) // 2 :].max())
    yield Part(
        text=f"largest sink of the first seed {a:.0f}, repaired {b:.0f} (the start), "
        f"{settled:.0f} in the second half",
        verdict="held",
    )


def _q5() -> list[Cell]:
    return [cells.chosen("q5", "cosine", "ds2"), cells.cell("q5", "cosine", "ds2")]


def _j(results: Results) -> Iterator[Part]:
    """Dhalion's mean latency at 1.3 is above that at 1.1, on Q1 and Q11."""
    for query in ("q1", "q11"):
        small, large = (c.key for c in _swept("dhalion", 1.1, 1.3, queries=(query,)))
        a, b = (interval(results.estimate(key, LATENCY)) for key in (large, small))
        yield Part(
            text=f"{query.upper()}: {a} s at 1.3, {b} s at 1.1",
            verdict=lower(results, small, large, LATENCY),
        )


def _convergence() -> list[Cell]:
    return [cells.of_convergence(row) for row in published.CONVERGENCE]


RULES: Sequence[Rule] = (
    Rule(
        id="a",
        claim="DS2 1.0 → 1.4 cuts mean latency at least 5× on Q1 and 2× on Q11; 1.0 never drains",
        paper="Q1 311.8 → 11.7 s (×27), Q11 388.5 → 160 s (×2.4); medians at 1.0 318 and 389 s",
        needs=lambda: _swept("ds2", 1.0, 1.4),
        parts=_a,
    ),
    Rule(
        id="b",
        claim="Under cosine DS2 uses the fewest slots on Q1 and Q2",
        paper="Q1 9.4 (next: HPA-Varga 10.2), Q2 8.9 (HPA-Varga 8.9)",
        needs=lambda: [*_scenes("q1", "cosine"), *_scenes("q2", "cosine")],
        parts=_b,
    ),
    Rule(
        id="c",
        claim="HPA-CPU has the lowest mean latency on Q1 under all four workloads",
        paper="6.4, 20.1, 4.8, 6.4 s; next: 34.8, 51.4, 10.9, 24.2 s (HPA-Varga)",
        needs=lambda: _scenes("q1", *cells.WORKLOADS),
        parts=_c,
    ),
    Rule(
        id="d",
        claim="Dhalion uses the most slots on Q1 (cosine, random, decreasing; increasing may fail)",
        paper="13.2, 14.9, 16.7 (increasing 15.3); next: 11.4, 11.1, 13.7 (10.7; HPA-CPU)",
        needs=lambda: _scenes("q1", *cells.WORKLOADS),
        parts=_d,
        aside=_d_aside,
    ),
    Rule(
        id="e",
        claim="Dhalion has the lowest mean latency on Q11 under cosine, random and increasing",
        paper="130.7, 84.7, 98.4 s; next: 178, 273.8, 125.5 s (HPA-CPU)",
        needs=lambda: _scenes("q11", "cosine", "random", "increasing"),
        parts=_e,
    ),
    Rule(
        id="f",
        claim="HPA-CPU's latency grows with its target from 0.6; at 1.0 it all but stops scaling",
        paper="Q1 3.9, 6.4, 36, 102, 327.7 s, 3 actions; Q11 107.8 to 339.1 s, 7 actions",
        needs=lambda: _swept("hpa-cpu", 0.6, 0.7, 0.8, 0.9, 1.0),
        parts=_f,
    ),
    Rule(
        id="g",
        claim="HPA-Varga has higher mean latency than HPA-CPU on Q1 and no more slots",
        paper="cosine 34.8 against 6.4 s, 10.2 against 11.4 slots; so under the other three",
        needs=lambda: _scenes("q1", *cells.WORKLOADS),
        parts=_g,
    ),
    Rule(
        id="h",
        claim="Nobody comes to rest in stage 1; DS2 and HPA-CPU do in stage 2 of Q1 in most seeds",
        paper="stage 1: 40+ minutes for all; stage 2 of Q1: DS2 11 min, HPA-CPU 9 min, others 40+",
        needs=_convergence,
        parts=_h,
        aside=_h_aside,
    ),
    Rule(
        id="i",
        claim="DS2 that divides by a busy time of 0 blows up the sink of Q5; the repair does not",
        paper="23.2 slots on average, 68 at most, the sink once at 62; the repair was not run",
        needs=_q5,
        parts=_i,
        aside=_i_aside,
    ),
    Rule(
        id="j",
        claim="Dhalion with a scale-down factor of 1.3 has higher mean latency than with 1.1",
        paper="Q1 106.9 against 14.8 s, Q11 145.3 against 84.7 s",
        needs=lambda: _swept("dhalion", 1.1, 1.3),
        parts=_j,
    ),
)


def judge(results: Results) -> list[Finding]:
    """All findings whose cells were run."""
    return judge_by(results, RULES, mechanisms.why)
