"""All interleavings of a scenario, nearest states first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.decentralized.check.model import Model, Move, State
from penstock.decentralized.check.properties import Broken, broken_now, broken_when_quiet
from penstock.decentralized.check.scenarios import Scenario
from penstock.decentralized.protocol import ScalingProtocol

Transition = tuple[int, Move]
"""A place that begins an action, or a channel whose first message is received; and what it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """How many states were found, those in which nothing can happen any more, and what is broken.

    ``path`` leads from the beginning to the state that is broken, by a shortest way.
    """

    model: Model
    states: int
    ends: frozenset[State] = frozenset()
    broken: Broken | None = None
    path: tuple[State, ...] = ()


def enabled(model: Model, state: State) -> Iterator[Transition]:
    """Everything that can happen next."""
    for place in range(model.width):
        if (local := state[place]) and (move := model.begin(local)) is not None:
            yield place, move
    for channel in range(model.width, len(state)):
        if state[channel]:
            yield channel, model.move(state, channel)


def explore(
    scenario: Scenario, protocol: ScalingProtocol, *, longest: int | None = None
) -> Exploration:
    """Breadth-first until the first violation, so that its path is a shortest one, or to the end.

    ``longest`` gives up on violations that need more steps than that.
    """
    model = Model(scenario, protocol)
    parents: dict[State, State | None] = {model.start: None}
    layer, depth = [model.start], 0
    ends = set()
    while layer and (longest is None or depth <= longest):
        following = []
        for state in layer:
            broken = broken_now(model, state)
            if broken is None and not any(state[model.width :]):
                broken = broken_when_quiet(model, state)
            if broken is not None:
                path = _path(parents, state)
                return Exploration(model=model, states=len(parents), broken=broken, path=path)
            dead_end = True
            for number, move in enabled(model, state):
                dead_end = False
                new = model.after(state, number, move)
                if new not in parents:
                    parents[new] = state
                    following.append(new)
            if dead_end:
                ends.add(state)
        layer, depth = following, depth + 1
    return Exploration(model=model, states=len(parents), ends=frozenset(ends))


def _path(parents: dict[State, State | None], state: State) -> tuple[State, ...]:
    path = [state]
    while (parent := parents[path[-1]]) is not None:
        path.append(parent)
    return tuple(reversed(path))
