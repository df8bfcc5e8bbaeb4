"""What of a decision is news, and what is said once: told by its data, not by its sentences."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from penstock.core.errors import NotReady
from penstock.core.findings import Finding, sentence_of
from penstock.core.guards import Guards
from penstock.core.model import Proposal, Snapshot
from penstock.policies import Static
from penstock.spark.freeze import KillSwitch
from tests.fakes.spark import looks, played


class Held:
    """Never wants anything; gives a reason and a term at each tick."""

    def __init__(self, *said: tuple[str, str]) -> None:
        self.said = said

    def start(self, seed: int) -> int:
        return 0

    def decide(self, seen: Snapshot, memory: int) -> tuple[Proposal, int]:
        words, term = self.said[memory]
        return Proposal(reason=f"no change: {words}", term=term), memory + 1


class Late(KillSwitch):
    """Is put on when it is asked for the last time of each tick, right before acting."""

    def __init__(self, *reasons: str) -> None:
        super().__init__()
        self._answers = iter([answer for why in reasons for answer in (None, None, why)])

    @property
    def reason(self) -> str | None:
        return next(self._answers, None)


def test_another_term_is_news_and_other_figures_are_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "penstock")
    policy = Held(("5 s", "warm-up"), ("6 s", "warm-up"), ("7 s", "idle"), ("8 s", "idle"))
    _, made = played(looks(1000.0, 1000.0, 1000.0, 1000.0), policy, guards=Guards(maximum=9))
    assert {d.outcome for d in made} == {"held"}
    assert [d.bound for d in made] == ["warm-up", "warm-up", "idle", "idle"]
    said = [r.levelname for r in caplog.records if "no change: " in r.getMessage()]
    assert said == ["INFO", "DEBUG", "INFO", "DEBUG"]


def test_a_refusal_is_news_once_and_again_with_other_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "penstock")
    switch = Late("first", "first", "second")
    session, made = played(looks(1000.0, 1000.0, 1000.0), Static(slots=6), switch=switch)
    assert session.requests == []
    assert [(d.outcome, d.why) for d in made] == [
        ("frozen", "first"),
        ("frozen", "first"),
        ("frozen", "second"),
    ]
    would = [r.levelname for r in caplog.records if r.getMessage().startswith("would do: ")]
    assert would == ["INFO", "DEBUG", "INFO"]
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warned == ["not done: frozen: first"]  # a complaint of each kind once


HOT = Finding(kind="hot-partition", query="q", stage="join", partition=3, tasks=8, seconds=20.0)
LIVE = Finding(kind="real-time", query="q")


def test_what_is_found_is_said_once_and_again_when_it_comes_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A heartbeat of 30 s: two looks. The finding is there, moves, is gone twice, comes back."""
    caplog.set_level(logging.INFO, "penstock")
    there = [(HOT,), (replace(HOT, seconds=25.0),), (), (HOT,), (), (), (), (HOT,)]
    story = [
        replace(look, findings=found)
        for look, found in zip(looks(*[1000.0] * len(there)), there, strict=True)
    ]
    played(story, Static(slots=4), config={"heartbeat": "30s"})
    said = [r.getMessage() for r in caplog.records if " is hot" in r.getMessage()]
    assert said == [sentence_of(HOT)] * 2


def test_a_number_of_slots_is_news_and_so_is_what_is_found_before_the_first_decision(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "penstock")
    known = replace(LIVE, slots=3.0)
    empty = Finding(kind="no-query", seconds=60.0)
    first, second = looks(1000.0, 1000.0)
    story: list[Any] = [NotReady("none", [empty]), NotReady("none", [empty])]
    story += [replace(first, findings=(LIVE,)), replace(second, findings=(known,))]
    played(story, Static(slots=4))
    sentences = [sentence_of(f) for f in (empty, LIVE, known)]
    assert [r.getMessage() for r in caplog.records if r.getMessage() in sentences] == sentences
