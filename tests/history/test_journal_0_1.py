"""A journal of version 0.1 reads as if this version had written it.

``tests/reference/journal_0_1.jsonl`` was written by 0.1 from the same story.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.core.errors import EngineError, FrozenError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Loop, Mode, State
from penstock.core.model import Change, Need, OperatorSeen, Proposal, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.history.journal import Entry, Header, Journal, read, replay
from penstock.history.resumption import resume

FILE = Path(__file__).parents[1] / "reference" / "journal_0_1.jsonl"
POOL = "executors"
PIPELINE = Pipeline(
    operators={"source": Operator(pool=POOL), "frozen": Operator(pool=POOL)},
    edges=[("source", "frozen")],
)
GUARDS = Guards(maximum=20, cool_down=30.0)
HEADER = Header(policy="fixed", guards=GUARDS, mode="act", period=15.0)


@dataclass(frozen=True, kw_only=True)
class Tick:
    """One look at a pool: what the policy wants of it and how it goes."""

    wants: int | Exception | None = 4
    size: int = 4
    mode: Mode = "act"
    frozen: str | None = None
    refusal: EngineError | None = None
    guards: Guards = GUARDS
    wait: float = 60.0
    lag: float = 0.0

    def start(self, seed: int) -> None:
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        if isinstance(self.wants, Exception):
            raise self.wants
        if self.wants is None:
            return None, memory  # type: ignore[return-value]
        needs = {POOL: Need(slots=float(self.wants))}
        return Proposal(pool_needs=needs, reason=f"{self.wants} are enough"), memory

    def apply(self, changes: Mapping[str, Change]) -> None:
        if self.refusal is not None:
            raise self.refusal


BUG = RuntimeError("out of ideas")
# What happens, and what becomes of it: outcome, what bound, faults, why.
STORY: list[tuple[Tick, tuple[str, str, tuple[str, ...], str]]] = [
    (Tick(wants=6), ("acted", "", (), "")),
    (Tick(wants=9, size=6, wait=15.0), ("held", "cool-down", (), "")),
    (Tick(wants=9, size=6, frozen="the sale"), ("frozen", "kill-switch", (), "the sale")),
    (Tick(wants=9, size=6, mode="advise"), ("advised", "", (), "")),
    (
        Tick(wants=9, size=6, mode="advise", guards=replace(GUARDS, step_up=2)),
        ("advised", "step-limit", (), ""),
    ),
    (
        Tick(wants=9, size=6, refusal=EngineError("no room")),
        ("refused", "engine", ("engine-refused",), "no room"),
    ),
    (
        Tick(wants=9, size=6, refusal=FrozenError("just now")),
        ("frozen", "kill-switch", ("engine-refused",), "just now"),
    ),
    (Tick(wants=BUG), ("failed", "policy", ("policy-raised",), "")),
    (Tick(wants=None), ("failed", "policy", ("proposal-unusable",), "")),
    (Tick(wants=BUG, frozen=""), ("frozen", "kill-switch", ("policy-raised",), "")),
    (Tick(wants=BUG, size=22), ("acted", "bounds", ("policy-raised",), "")),
    (
        Tick(wants=9, wait=15.0, guards=replace(GUARDS, sleep=True)),
        ("held", "sleep", (), ""),
    ),
    (Tick(wants=9, wait=0.0), ("unusable", "sanity", (), "")),
    (Tick(wants=9, size=0), ("unusable", "sanity", (), "")),
    (Tick(lag=-1.0), ("held", "", (), "")),
    (Tick(), ("held", "", (), "")),
]


class Engine:
    """Shows what a tick says."""

    def __init__(self, tick: Tick, time: float) -> None:
        self._tick, self._time, self.apply = tick, time, tick.apply

    def observe(self) -> Snapshot:
        operators = {
            "source": OperatorSeen(parallelism=1.0),
            "frozen": OperatorSeen(parallelism=1.0, lag=self._tick.lag),
        }
        slots = tuple(Slot(id=str(i)) for i in range(self._tick.size))
        return Snapshot(
            time=self._time,
            window=15.0,
            pipeline=PIPELINE,
            operators=operators,
            pools={POOL: slots},
        )

    def advance(self, seconds: float) -> bool:
        return True


def told() -> Iterator[tuple[Decision, State]]:
    """The story, as the loop of this version decides it."""
    state, time = State(), 1000.0
    for tick, _ in STORY:
        time += tick.wait
        loop = Loop(
            Engine(tick, time),
            tick,
            tick.guards,
            mode=tick.mode,
            state=state,
            frozen=lambda tick=tick: tick.frozen,  # type: ignore[misc]
        )
        decision = loop.tick()
        state = loop.state
        yield decision, state


def write(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        for decision, state in told():
            journal.record(decision, state)


def became(decision: Decision) -> tuple[str, str, tuple[str, ...], str]:
    return decision.outcome, decision.bound, decision.faults, decision.why


def without_term(decision: Decision) -> Decision:
    return replace(decision, proposal=replace(decision.proposal, term=""))


def test_what_becomes_of_a_decision_is_data() -> None:
    assert [became(decision) for decision, _ in told()] == [expected for _, expected in STORY]
    assert all(d.applied is (d.outcome == "acted") for d, _ in told())


def test_a_journal_of_0_1_tells_the_same(tmp_path: Path) -> None:
    header, entries = read(FILE)
    assert header == HEADER
    assert [became(e.decision) for e in entries] == [expected for _, expected in STORY]
    now = [Entry(decision=without_term(d), state=s) for d, s in told()]
    assert entries == now
    assert [e.decision.explain() for e in entries] == [d.explain() for d, _ in told()]


def test_this_version_adds_fields_and_changes_none(tmp_path: Path) -> None:
    write(tmp_path / "j")
    documents = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in (FILE, tmp_path / "j")
    ]
    for old, new in zip(*documents, strict=True):
        if "decision" in new:
            assert "outcome" in new["decision"] and "outcome" not in old["decision"]
        for added in ("outcome", "bound", "faults", "why"):
            new.get("decision", {}).pop(added, None)
        new.get("decision", {}).get("proposal", {}).pop("term", None)
        assert old == new
    assert [e.decision for e in read(tmp_path / "j")[1]] == [d for d, _ in told()]


def test_it_is_gone_on_from_and_replayed(tmp_path: Path) -> None:
    header, entries = read(FILE)
    path = tmp_path / "j"
    path.write_bytes(FILE.read_bytes())
    resumed = resume(path, HEADER, now=1e9)
    resumed.journal.close()
    assert resumed.state == entries[-1].state
    policy: Any = Tick(wants=9)
    outcomes = {d.outcome for d in replay(entries, policy, header.guards, header.seed)}
    assert outcomes == {"advised", "held", "unusable"}
