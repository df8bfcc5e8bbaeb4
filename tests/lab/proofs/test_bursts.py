"""The proof under bursts: its verdicts, its figures, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.core.errors import InputError
from penstock.lab.proofs.bursts import FIRST, P95, BurstsSettings, draw, judge
from penstock.lab.proofs.bursts_run import BurstRun, TracePiece
from penstock.workloads.recorded import bellcore

TARGETS = {0.0: 2.0, P95: 4.0}


def course(name: str, **changed: float) -> BurstRun:
    good = BurstRun(
        name=name, mean=1.5, p95=3.5, share=0.7, used=0.5, changes=3, batches=200, failed=0,
        wrong=0, points=((0.0, 1.0, 1.0), (5.0, 2.0, 0.7)),
    )  # fmt: skip
    return replace(good, **changed)  # type: ignore[arg-type]


def courses() -> dict[str, BurstRun]:
    names = ["full", "mead+ mean", "mead+ p95", "mead-mg1 mean", "mead-mg1 p95"]
    found = {name: course(name) for name in names}
    found["full"] = course("full", mean=1.0, p95=2.0, share=1.0, changes=0)
    return found


def held(changed: dict[str, BurstRun]) -> dict[str, bool]:
    proof = judge(list((courses() | changed).values()), TARGETS, speed=1.0, spec=BurstsSettings())
    return {check.figure: check.held for check in proof.checks}


def test_all_is_held_when_both_targets_are_met_with_a_quarter_less() -> None:
    proof = judge(list(courses().values()), TARGETS, speed=1.0, spec=BurstsSettings())
    assert proof.held
    assert [row["met"] for row in proof.details] == [None, True, True, True, True]


@pytest.mark.parametrize(
    ("name", "changed", "figure"),
    [
        ("mead+ mean", {"mean": 2.1}, "mead+: mean response"),
        ("mead+ p95", {"p95": 4.1}, "mead+: p95 response"),
        ("mead+ mean", {"share": 0.76}, "mead+: CPU saved, mean"),
        ("mead+ p95", {"share": 0.76}, "mead+: CPU saved, p95"),
        ("mead-mg1 p95", {"failed": 1}, "failed tasks and restarted batches"),
        ("full", {"wrong": 2}, "lines lost, repeated or matched wrongly"),
        ("mead+ p95", {"changes": 0}, "changes of a share, fewest"),
    ],
)
def test_each_bound_can_fail_alone(name: str, changed: dict[str, float], figure: str) -> None:
    verdicts = held({name: replace(courses()[name], **changed)})  # type: ignore[arg-type]
    assert [which for which, kept in verdicts.items() if not kept] == [figure]


def test_the_other_policy_may_miss() -> None:
    assert all(held({"mead-mg1 mean": course("mead-mg1 mean", mean=9.0)}).values())


@pytest.mark.parametrize(
    "wrong", [{"seconds": 10.0}, {"slack": 1.0}, {"lines": 0}, {"period": 0.0}]
)
def test_what_would_prove_nothing_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        BurstsSettings(**wrong)  # type: ignore[arg-type]


def test_a_plan_is_a_piece_of_the_trace_as_long_as_it_says() -> None:
    plan = TracePiece(first=FIRST, speed=2.0, lines=3, before=10.0, seconds=60.0, period=10.0)
    logs = plan.logs(1000.0)
    assert logs.seconds == pytest.approx(70.0, abs=1.0)
    assert logs.rows == 3 * logs.packets
    assert FIRST + logs.packets < len(bellcore())


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    path = draw(list(courses().values()), {"mean": 2.0, "p95": 4.0}, tmp_path)
    assert path.read_bytes().startswith(b"\x89PNG")
