"""What of a decision is news, and what is said once: told by its data, not by its sentences."""

from __future__ import annotations

import logging

import pytest

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
