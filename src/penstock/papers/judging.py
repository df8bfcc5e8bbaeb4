"""How a finding is judged: parts with verdicts, and one verdict for them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.comparison.cell import Cell
from penstock.comparison.results import Results
from penstock.report.statistics import Difference, estimate

Verdict = Literal["held", "tie", "not held"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One comparison: what we measured, and whether it is as claimed.

    ``items`` are comparisons that share the beginning ``text`` and are judged together.
    """

    text: str
    verdict: Verdict
    items: tuple[Part, ...] = ()

    @classmethod
    def of(cls, text: str, items: Iterable[Part]) -> Part:
        """Several comparisons as one."""
        items = tuple(items)
        return cls(text=text, verdict=together(item.verdict for item in items), items=items)

    @property
    def failures(self) -> list[str]:
        """The comparisons that did not come out as claimed, each with its beginning."""
        if not self.items:
            return [self.text] if self.verdict == "not held" else []
        return [f"{self.text} {text}" for item in self.items for text in item.failures]

    def __str__(self) -> str:
        if self.items:
            return f"{self.text} " + ", ".join(str(item) for item in self.items)
        return self.text if self.verdict == "held" else f"{self.text} [{self.verdict}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A claim of a paper, its figures, ours, and whether it held here.

    ``why`` the mechanism, as far as the simulator has it.
    """

    id: str
    claim: str
    paper: str
    ours: str
    verdict: Verdict
    why: str

    @property
    def holds(self) -> bool:
        """A tie does not contradict the claim."""
        return self.verdict != "not held"

    def document(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "id": self.id,
            "claim": self.claim,
            "paper": self.paper,
            "ours": self.ours,
            "holds": self.holds,
            "verdict": self.verdict,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a finding is judged: the cells it needs, and the parts it has.

    ``aside`` are comparisons that are told but do not decide.
    """

    id: str
    claim: str
    paper: str
    needs: Callable[[], list[Cell]]
    parts: Callable[[Results], Iterable[Part]]
    aside: Callable[[Results], Iterable[Part]] = lambda results: ()


Why = Callable[[str, Sequence[str]], str]
"""The mechanism behind a finding, given its letter and the parts of it that do not hold."""


def judge(results: Results, rules: Sequence[Rule], why: Why) -> list[Finding]:
    """All findings whose cells were run."""
    known = {cell.key for cell in results.cells}
    return [
        finding(rule, results, why)
        for rule in rules
        if {cell.key for cell in rule.needs()} <= known
    ]


def finding(rule: Rule, results: Results, why: Why) -> Finding:
    """The finding of one rule."""
    parts = list(rule.parts(results))
    verdict = together(part.verdict for part in parts)
    ours = "; ".join(map(str, parts))
    aside = "; ".join(map(str, rule.aside(results)))
    return Finding(
        id=rule.id,
        claim=rule.claim,
        paper=rule.paper,
        ours=f"{ours}. Beside it: {aside}" if aside else ours,
        verdict=verdict,
        why=why(rule.id, [text for part in parts for text in part.failures]),
    )


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for several parts."""
    found = set(verdicts)
    if "not held" in found:
        return "not held"
    return "tie" if "tie" in found else "held"


def below(difference: Difference) -> Verdict:
    """Whether a difference is below 0, by its interval."""
    verdict = difference.verdict
    return "tie" if verdict == "tie" else ("held" if verdict == "lower" else "not held")


def lower(results: Results, a: str, b: str, score: str) -> Verdict:
    """Whether a's figure is below b's."""
    return below(results.paired(a, b, score))


def at_least(results: Results, a: str, b: str, score: str, factor: float) -> Verdict:
    """Whether a's figure is at least ``factor`` times b's, by the interval of a − factor · b."""
    gap = estimate((results.values(a, score) - factor * results.values(b, score)).tolist())
    if gap.half_width is None or gap.low <= 0.0 <= gap.high:
        return "tie"
    return "held" if gap.mean > 0.0 else "not held"


def bound(good: bool) -> Verdict:
    """A verdict without an interval."""
    return "held" if good else "not held"


def judged(
    id: str, *, claim: str, paper: str, ours: str, good: bool | Verdict, why: str = ""
) -> Finding:
    """A finding with its verdict; ``good`` whether it holds, or the verdict."""
    verdict = bound(good) if isinstance(good, bool) else good
    return Finding(id=id, claim=claim, paper=paper, ours=ours, verdict=verdict, why=why)


def counted(sizes: Iterable[int]) -> str:
    """Sizes and how many runs have each.

    >>> counted([8, 7, 8])
    '7 (1 run), 8 (2 runs)'
    """
    return ", ".join(f"{n} ({k} run{'s' * (k > 1)})" for n, k in sorted(Counter(sizes).items()))
