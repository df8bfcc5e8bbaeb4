"""The checker: it finds what is broken, by a shortest way, and its short cuts change no verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pytest

from penstock.decentralized import check as checker
from penstock.decentralized.check import Report, faults, refute, sweep
from penstock.decentralized.check.__main__ import lines, main, told
from penstock.decentralized.check.decisions import deviations
from penstock.decentralized.check.explore import Exploration, explore
from penstock.decentralized.check.faults import PRINTED, PrintedPolicy
from penstock.decentralized.check.model import Local
from penstock.decentralized.check.properties import ENDS, HEARD, KEEPS, RECORDS, VIEWS
from penstock.decentralized.check.reduce import explore_reduced
from penstock.decentralized.check.scenarios import (
    DIAMOND,
    Duplicate,
    Leave,
    Program,
    Scenario,
    scenarios,
)
from penstock.decentralized.instance import Instance, wired
from penstock.decentralized.messages import Address, DuplicationAck, Message, Sends
from penstock.decentralized.policy import Probabilistic
from penstock.decentralized.protocol import ScalingProtocol, Step

PROTOCOL = ScalingProtocol()
PLACES = {f"{fault.where}": fault for fault in faults.PROTOCOL}
each_place = pytest.mark.parametrize("fault", PLACES.values(), ids=PLACES)


# ---- the protocol passes --------------------------------------------------------------------


def test_every_interleaving_of_two_actions_keeps_every_promise() -> None:
    found = sweep("", scenarios((2, 2, 2), 2), explore, PROTOCOL)
    assert found.broken is None
    assert found.scenarios == 54 and found.states > 50_000


def test_two_actions_in_a_diamond_keep_every_promise() -> None:
    found = sweep("", scenarios((1, 2, 1, 1), 2, edges=DIAMOND), explore, PROTOCOL)
    assert found.broken is None and found.states > 5_000


def test_three_actions_keep_every_promise() -> None:
    found = sweep("", scenarios((1, 2, 1), 3), explore_reduced, PROTOCOL)
    assert found.broken is None and found.scenarios == 94


def test_decisions_add_up_to_what_is_missing() -> None:
    assert list(deviations(Probabilistic(), Probabilistic())) == []
    assert list(deviations(faults.CLEAN, Probabilistic())) == []


# ---- the pseudo-code does not ---------------------------------------------------------------

BREAKS = {
    "Algorithm 5, lines 2 and 8": (VIEWS, 10),
    "Algorithm 9, lines 2 and 8": (RECORDS, 11),
    "Algorithms 4 and 8, nbAck ← 0": (RECORDS, 6),
    "Algorithm 10, line 4": (RECORDS, 5),
    "Algorithms 4 and 8, nbAckExpected": (ENDS, 1),
}


@pytest.mark.parametrize("where", BREAKS)
def test_every_place_of_the_pseudo_code_is_refuted_by_a_shortest_trace(where: str) -> None:
    found = refute(PLACES[where]).shortest
    assert found is not None and found.broken is not None
    assert (found.broken[0], len(found.path) - 1) == BREAKS[where]
    assert len(told(found)) == len(found.path) - 1


def test_a_new_instance_that_leaves_at_once_needs_what_its_creator_forgot() -> None:
    """Three actions: of many scenarios only the one of the shortest trace."""
    protocol = PLACES["Algorithm 6, line 5"].protocol
    found = [explore(scenario, protocol) for scenario in scenarios((1, 2), 3)]
    broken = min((f for f in found if f.broken), key=lambda f: len(f.path))
    assert broken.broken is not None and broken.broken[0] == HEARD
    assert str(broken.model.scenario) == "A×1 B×2: A0 creates A1 (leaves), B1 leaves"
    assert told(broken)[-2:] == [
        "A1 has the acknowledgement of B0 and terminates",
        "A1 has terminated and misses the deletion of B1",
    ]


def test_all_places_together_break_nearly_everything() -> None:
    names = {f.broken[0] for f in all_of((2, 2), 2, PRINTED) if f.broken is not None}
    assert names >= {RECORDS, ENDS, VIEWS}


def test_a_keeper_that_leaves_can_be_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Address, "keeper", property(lambda self: False))
    found = [f.broken for f in all_of((1, 1), 1, replace(PROTOCOL, targets=lambda me: me.succs))]
    assert (KEEPS, "no instance of B is left") in found


@pytest.mark.parametrize("fault", faults.DECISION, ids=lambda fault: fault.where)
def test_every_place_of_the_decision_is_refuted(fault: faults.DecisionFault) -> None:
    assert next(deviations(fault.policy, Probabilistic()), None) is not None


def test_the_printed_decision_never_shrinks_and_never_adds_one() -> None:
    printed = PrintedPolicy()
    grid = [(load, n, draw) for load in range(5, 1500, 45) for n in (1, 2, 7) for draw in (0, 0.9)]
    said = {printed.decide(float(load), 500.0, n, draw) for load, n, draw in grid}
    assert min(said) == 0 and 1 not in said and max(said) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Polite(ScalingProtocol):
    """Acknowledges acknowledgements."""

    def receive(self, me: Instance, sender: Address, message: Message) -> Step:
        me, sends = ScalingProtocol.receive(self, me, sender, message)
        if isinstance(message, DuplicationAck):
            sends = (*sends, (sender, message))
        return me, sends


def test_a_protocol_that_might_never_end_is_refused() -> None:
    with pytest.raises(AssertionError, match="may go on for ever"):
        all_of((1, 1), 1, Polite())


# ---- the reduction --------------------------------------------------------------------------


def all_of(sizes: tuple[int, ...], actions: int, protocol: ScalingProtocol) -> list[Exploration]:
    return [explore(scenario, protocol) for scenario in scenarios(sizes, actions)]


def ends(found: Exploration) -> set[tuple[Local | None, ...]]:
    """End states as values; the numbers of a model depend on the order of its discoveries."""
    model = found.model
    return {tuple(model.locals[n] for n in state[: model.width]) for state in found.ends}


@pytest.mark.parametrize(
    ("sizes", "actions"), [((2, 2, 2), 1), ((1, 2, 1), 2), ((2, 2, 1), 2), ((1, 2), 3), ((2, 2), 3)]
)
def test_reduced_and_full_exploration_reach_the_same_ends(
    sizes: tuple[int, ...], actions: int
) -> None:
    fewer = 0
    for scenario in islice(scenarios(sizes, actions), 0, None, 3 if sizes == (2, 2) else 1):
        full, reduced = explore(scenario, PROTOCOL), explore_reduced(scenario, PROTOCOL)
        assert ends(full) == ends(reduced), str(scenario)
        assert full.broken is None and reduced.broken is None
        fewer += full.states - reduced.states
    assert fewer > 0


@each_place
@pytest.mark.parametrize("sizes", [(1,), (1, 2), (2, 2)], ids=str)
def test_reduced_and_full_exploration_agree_on_what_is_broken(
    fault: faults.ProtocolFault, sizes: tuple[int, ...]
) -> None:
    """Of all scenarios of so many actions and fewer: the reduction judges ends only."""
    verdicts = {}
    for by in (explore, explore_reduced):
        cases = (s for n in range(1, fault.actions + 1) for s in scenarios(sizes, n))
        verdicts[by] = sweep("", cases, by, fault.protocol).broken is None
    assert len(set(verdicts.values())) == 1


# ---- an independent oracle: plain values, and a record that is really sent ------------------

Plain = tuple[frozenset[Any], frozenset[Any], bool]


def plain_verdict(scenario: Scenario, protocol: ScalingProtocol) -> set[str]:
    """All that is broken anywhere, by brute force over every interleaving and every record.

    A state: instances with their programs, channels with their messages, and whether a record may
    still be sent. One record, from anyone to any target at any time, is enough: records do not
    change what instances do, so if one of many can be lost it is lost alone, too.
    """
    found: set[str] = set()
    begun = {
        (a, i, scenario.programs.get(a, ()))
        for a, i in wired(scenario.sizes, scenario.edges).items()
    }
    start: Plain = (frozenset(begun), frozenset(), True)
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        for new in plain_steps(state, protocol, found):
            if new not in seen:
                seen.add(new)
                todo.append(new)
    return found


def plain_steps(state: Plain, protocol: ScalingProtocol, found: set[str]) -> Iterator[Plain]:
    held, flying, may_send = state
    instances = {a: (i, program) for a, i, program in held}
    channels = dict(flying)
    if not channels and any(i.phase not in ("active", "terminated") for i, _ in instances.values()):
        found.add(ENDS)

    def put(
        changed: dict[Address, tuple[Instance, Program]],
        sender: Address,
        sends: Sends | tuple[tuple[Address, str], ...],
        queues: dict[Any, tuple[Any, ...]],
        open_: bool,
    ) -> Plain:
        for to, said in sends:
            queues[sender, to] = (*queues.get((sender, to), ()), said)
        now = {**instances, **changed}
        return (
            frozenset((a, i, p) for a, (i, p) in now.items()),
            frozenset((pair, queue) for pair, queue in queues.items() if queue),
            open_,
        )

    for who, (me, program) in instances.items():
        if program and protocol.free(me):
            action, rest = program[0], program[1:]
            changed = {}
            if isinstance(action, Leave):
                after, sends = protocol.leave(me)
            else:
                after, sends = protocol.duplicate(me, [a for a, _ in action.new])
                for a, p in action.new:
                    changed[a] = (Instance(address=a, phase="inactive"), p)
            changed[who] = (after, rest)
            yield put(changed, who, sends, dict(channels), may_send)
        if may_send:
            for to in protocol.targets(me):
                yield put({}, who, ((to, "record"),), dict(channels), False)
    for (sender, who), queue in channels.items():
        (me, program), said = instances[who], queue[0]
        queues = {**channels, (sender, who): queue[1:]}
        if me.phase == "terminated":
            found.add(RECORDS if said == "record" else HEARD)
        if said == "record":
            yield put({}, who, (), queues, may_send)
            continue
        after, sends = protocol.receive(me, sender, said)
        yield put({who: (after, program)}, who, sends, queues, may_send)


@pytest.mark.parametrize(
    "protocol",
    [PROTOCOL, *(fault.protocol for fault in faults.PROTOCOL)],
    ids=["repaired", *PLACES],
)
def test_the_model_finds_what_brute_force_with_real_records_finds(
    protocol: ScalingProtocol,
) -> None:
    """A lost record, a lost message and an endless action are found in the same scenarios."""
    sound = {RECORDS, HEARD, ENDS}
    for sizes, actions in (((1,), 1), ((1, 2), 2), ((2, 1), 2)):
        for scenario in scenarios(sizes, actions):
            plain = plain_verdict(scenario, protocol) & sound
            model = explore(scenario, protocol)
            reduced = explore_reduced(scenario, protocol)
            if plain:
                assert model.broken is not None, str(scenario)
            if model.broken is not None and model.broken[0] in sound:
                assert plain, str(scenario)
            assert (reduced.broken is None) <= (not plain), str(scenario)


def test_brute_force_and_model_agree_on_two_that_leave() -> None:
    """Two deletions next to each other: the shortest way to lose a record."""
    program: Program = (Leave(),)
    scenario = Scenario(
        sizes={"A": 2, "B": 2},
        edges=(("A", "B"),),
        programs={Address("A", 1): program, Address("B", 1): program},
    )
    assert plain_verdict(scenario, PROTOCOL) == set()
    printed = PLACES["Algorithm 10, line 4"].protocol
    assert plain_verdict(scenario, printed) == {RECORDS}


# ---- scenarios and the report ---------------------------------------------------------------


def test_scenarios_are_all_different_and_give_no_keeper_a_deletion() -> None:
    found = [str(s) for s in scenarios((2, 2), 2, most_new=2)]
    assert len(found) == len(set(found))
    assert "A×2 B×2: A0 creates A2 A3 (leaves), then creates A4" not in found
    assert "A×2 B×2: A0 creates A2 (leaves) and A3" in found
    assert not any("A0 leaves" in text or "B0 leaves" in text for text in found)
    twins = Duplicate(((Address("A", 1), ()), (Address("A", 2), ())))
    assert any(s.programs == {Address("A", 0): (twins,)} for s in scenarios((1,), 1, most_new=2))


@pytest.mark.parametrize(("sizes", "actions"), [((1, 2, 1), 3), ((2, 2, 2), 2), ((2, 2, 2), 3)])
def test_there_are_as_many_scenarios_as_there_must_be(sizes: tuple[int, ...], actions: int) -> None:
    """By generating functions: what one instance and all it creates can do with m actions."""
    other, keeper = [1], [1]
    for m in range(1, actions + 1):
        other.append((m == 1) + sum(other[k] * other[m - 1 - k] for k in range(m)))
        keeper.append(sum(other[k] * keeper[m - 1 - k] for k in range(m)))
    total = [1] + [0] * actions
    for one in [keeper] * len(sizes) + [other] * (sum(sizes) - len(sizes)):
        total = [sum(total[k] * one[m - k] for k in range(m + 1)) for m in range(actions + 1)]
    assert len(list(scenarios(sizes, actions))) == total[actions]


def small_report(protocol: ScalingProtocol) -> Report:
    return Report(
        sweeps=(sweep("two actions", scenarios((2, 2), 2), explore, protocol),),
        deviation=None,
        refutations=(refute(PLACES["Algorithm 10, line 4"]),),
        wrong_decisions=tuple(
            (fault, next(deviations(fault.policy, Probabilistic()))) for fault in faults.DECISION
        ),
    )


def test_the_report_is_readable_and_the_exit_code_says_it_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = small_report(PROTOCOL), small_report(PRINTED)
    text = "\n".join(lines(good))
    assert "1  A1 decides to leave and tells B0 B1" in text
    assert "⇒  broken: no record is sent to a terminated instance: A1 still sends" in text
    assert "ends: all hold" in text
    assert "passed" in text and "FAILED" in "\n".join(lines(bad))
    tame = replace(good, refutations=(replace(good.refutations[0], shortest=None),))
    assert not tame.holds and "NOT REFUTED" in "\n".join(lines(tame))
    for report, code in ((good, 0), (bad, 1), (tame, 1)):
        monkeypatch.setattr("penstock.decentralized.check.__main__.check", lambda r=report: r)
        assert main() == code
    assert "s of CPU" in capsys.readouterr().out


@pytest.mark.long
def test_the_whole_report() -> None:
    report = checker.check()
    assert report.holds
    assert [len(r.shortest.path) - 1 for r in report.refutations if r.shortest] == [
        10, 11, 6, 5, 12, 1
    ]  # fmt: skip
