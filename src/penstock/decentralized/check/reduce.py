"""The end states of a scenario by few of its interleavings: persistent sets. [godefroid96, §4]

**What is left out, and why that is sound.** A transition belongs to one instance: it begins an
action, or it takes the first message of one of its incoming channels. It reads and changes only
what that instance knows, the heads of its incoming channels and the tails of its outgoing ones; a
message put at the tail of a channel that is not empty leaves its head alone. So two transitions of
different instances commute wherever both are enabled, and neither can disable the other.

From a state let S be a set of instances such that no instance outside S can put a message into an
*empty* channel towards a member of S as long as no member of S moves. Then, whatever instances
outside S do, the members of S have the same transitions as now, and those commute with everything
that was done. So the enabled transitions of S are a persistent set: every run to an end takes one
of them at some time, as nobody else can disable them, and it may as well take it first. Following
only them, in every state, reaches every state in which nothing is enabled. Which states lie between
is not preserved; therefore everything that must hold is noted in the state and stays there
(``model.Local``), and is judged at the end.

An instance q outside S can send to p only because it is going to begin an action, because it will
start p, or because it has to acknowledge what p said, which is still in the channel from p to q.
The first two depend on q alone and can only vanish, and the third vanishes unless p moves. So the
three can be read off the state, and S is the closure of an instance under "can still send to it
through an empty channel". An instance that does not exist yet counts if it is going to act. Runs
are finite (every transition lowers a rank, see ``model``), so nothing is put off for ever.
"""

from __future__ import annotations

from penstock.decentralized.check.explore import Exploration, Transition
from penstock.decentralized.check.model import Model, State
from penstock.decentralized.check.properties import broken_at_the_end
from penstock.decentralized.check.scenarios import Scenario
from penstock.decentralized.messages import Deletion, Duplication
from penstock.decentralized.protocol import ScalingProtocol


def explore_reduced(scenario: Scenario, protocol: ScalingProtocol) -> Exploration:
    """All end states of a scenario, and whether one of them is as it must not be."""
    model = Model(scenario, protocol)
    chooser = _Chooser(model)
    seen = {model.start}
    todo = [model.start]
    ends = set()
    broken = None
    while todo:
        state = todo.pop()
        transitions = chooser.persistent(state)
        if not transitions:
            ends.add(state)
            broken = broken or broken_at_the_end(model, state)
        for number, move in transitions:
            new = model.after(state, number, move)
            if new not in seen:
                seen.add(new)
                todo.append(new)
    return Exploration(model=model, states=len(seen), ends=frozenset(ends), broken=broken)


class _Chooser:
    """Finds a small persistent set of a state."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._links = [
            (channel, model.senders[channel], model.receivers[channel], model.reverse(channel))
            for channel in range(model.width, len(model.start))
        ]
        self._unborn = [model.will_tell_unborn(place) for place in range(model.width)]
        self._asking: dict[int, bool] = {}

    def persistent(self, state: State) -> list[Transition]:
        """Transitions to follow; none if nothing is enabled."""
        model, width = self._model, self._model.width
        tells = [
            model.will_tell(local) if local else self._unborn[place]
            for place, local in enumerate(state[:width])
        ]
        numbers: list[list[int]] = [[] for _ in range(width)]  # what each place can do
        blockers = [0] * width  # who can still send to it through an empty channel
        for place in range(width):
            if state[place] and model.begin(state[place]) is not None:
                numbers[place].append(place)
        for channel, sender, receiver, back in self._links:
            if state[channel]:
                numbers[receiver].append(channel)
            elif tells[sender] >> receiver & 1 or (back and self._asks(state[back])):
                blockers[receiver] |= 1 << sender
        best: list[int] | None = None
        for place in range(width):
            if not numbers[place]:
                continue
            found = self._closure(place, numbers, blockers)
            if best is None or len(found) < len(best):
                best = found
                if len(best) == 1:
                    break
        return [(number, model.move(state, number)) for number in best or ()]

    @staticmethod
    def _closure(place: int, numbers: list[list[int]], blockers: list[int]) -> list[int]:
        members, todo, found = 1 << place, [place], []
        while todo:
            member = todo.pop()
            found += numbers[member]
            new = blockers[member] & ~members
            members |= new
            while new:
                low = new & -new
                todo.append(low.bit_length() - 1)
                new ^= low
        return found

    def _asks(self, content: int) -> bool:
        """Whether a channel holds a message that its receiver has to acknowledge."""
        asks = self._asking.get(content)
        if asks is None:
            model = self._model
            said = (model.messages[number][0] for number in model.contents[content])
            asks = any(isinstance(message, Duplication | Deletion) for message in said)
            self._asking[content] = asks
        return asks
