"""A scenario as a graph of states, with everything that repeats replaced by small numbers.

A state is one tuple: a number for what each instance is in, then a number for what waits in each
channel. What an instance does with a message depends on those two only, so it is computed once by
the protocol itself and looked up from then on; following an arrow of the graph is a few indexed
reads. A channel leads from every instance to every other it can ever talk to.

Records are not sent in the model. They do not change what an instance knows, so it is enough to
note who could send them, and two things are noted of each instance for that: whom it could ever
send a record (``ever``), and who of those has told it that none comes any more (``told``), by the
first message sent after that became so. Channels keep the order, so all records of a sender have
arrived when that message has. An instance that terminates before one that could ever send it a
record has told it so may lose one; otherwise it cannot.

No run is endless: every step lowers a rank, which is never below 0. An action not yet begun weighs
more than all that it can cause, an announcement more than its acknowledgement, a newborn that waits
more than its start. A protocol with a step that does not lower the rank is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from penstock.decentralized.check.scenarios import Duplicate, Program, Scenario
from penstock.decentralized.instance import Instance, wired
from penstock.decentralized.messages import (
    NOBODY,
    Address,
    Addresses,
    Deletion,
    Duplication,
    Message,
    Sends,
)
from penstock.decentralized.protocol import ScalingProtocol

State = tuple[int, ...]
ACTION_RANK = 10_000  # above all messages that one action of a small system can cause


class Local(NamedTuple):
    """One instance with what it is still going to begin, and what is noted of it.

    ``missed`` whether a message came when it had terminated already.
    """

    instance: Instance
    program: Program
    ever: Addresses
    told: Addresses
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """What one instance does: its new number, messages by channel, instances born by place."""

    local: int
    sends: tuple[tuple[int, int], ...]
    births: tuple[tuple[int, int], ...] = ()


class Model:
    """The states of one scenario under one protocol."""

    def __init__(self, scenario: Scenario, protocol: ScalingProtocol) -> None:
        self.scenario = scenario
        self.protocol = protocol
        instances = wired(scenario.sizes, scenario.edges)
        self.places: list[Address] = list(instances)
        self._programs = _all_programs(scenario)
        self.places += [address for address in self._programs if address not in instances]
        self.width = len(self.places)
        self._place = {address: i for i, address in enumerate(self.places)}
        self.channels = _channels(self.places, scenario, self._programs)
        self._channel = {pair: self.width + i for i, pair in enumerate(self.channels)}
        self.senders = [0] * self.width + [self._place[a] for a, _ in self.channels]
        self.receivers = [0] * self.width + [self._place[b] for _, b in self.channels]
        self._locals: dict[Local, int] = {}
        self.locals: list[Local | None] = [None]  # 0: does not exist yet
        self._messages: dict[tuple[Message, bool], int] = {}
        self.messages: list[tuple[Message, bool]] = []  # and whether it is the sender's last word
        self._contents: dict[tuple[int, ...], int] = {(): 0}
        self.contents: list[tuple[int, ...]] = [()]
        self._pushed: dict[tuple[int, int], int] = {}
        self._popped: list[int] = [0]
        self._delivered: dict[tuple[int, int, int], Move] = {}
        self._begun: dict[int, Move | None] = {}
        self._tells: dict[int, int] = {}
        starts = [
            self._local(Local(i, scenario.programs.get(a, ()), protocol.targets(i), NOBODY))
            for a, i in instances.items()
        ]
        missing = self.width - len(starts) + len(self.channels)
        self.start: State = (*starts, *[0] * missing)

    def seen(self, state: State) -> list[Local]:
        """The instances that exist, terminated ones among them, with what is noted of them."""
        return [local for n in state[: self.width] if (local := self.locals[n]) is not None]

    def move(self, state: State, number: int) -> Move:
        """What happens when the instance at a place begins, or a channel's first message comes."""
        if number < self.width:
            move = self.begin(state[number])
            if move is None:
                raise AssertionError(f"{self.places[number]} may not begin now")
            return move
        message = self.contents[state[number]][0]
        return self.deliver(number, message, state[self.receivers[number]])

    def begin(self, local: int) -> Move | None:
        """What an instance in that state does when it begins; ``None`` while it may not."""
        if local not in self._begun:
            self._begun[local] = self._begin(local)
        return self._begun[local]

    def deliver(self, channel: int, message: int, local: int) -> Move:
        """What the receiver at the end of a channel does with a message."""
        key = (channel, message, local)
        move = self._delivered.get(key)
        if move is None:
            move = self._delivered[key] = self._deliver(channel, message, local)
        return move

    def after(self, state: State, number: int, move: Move) -> State:
        """The state after the instance at a place began, or a channel's first message arrived."""
        after = list(state)
        if number < self.width:
            after[number] = move.local
            for born, local in move.births:
                after[born] = local
        else:
            after[number] = self._popped[after[number]]
            after[self.receivers[number]] = move.local
        for channel, message in move.sends:
            after[channel] = self.push(after[channel], message)
        return tuple(after)

    def push(self, content: int, message: int) -> int:
        """The content of a channel with one more message at its end."""
        key = (content, message)
        number = self._pushed.get(key)
        if number is None:
            number = self._pushed[key] = self._content((*self.contents[content], message))
        return number

    def reverse(self, channel: int) -> int:
        """The channel the other way; 0 if there is none."""
        sender, receiver = self.channels[channel - self.width]
        return self._channel.get((receiver, sender), 0)

    def will_tell(self, local: int) -> int:
        """Whom an instance may send to without being asked, as bits of places."""
        tells = self._tells.get(local)
        if tells is None:
            found = self.locals[local]
            tells = 0
            if found is not None and found.instance.phase != "terminated":
                tells = self._bits(found.instance.address, found.program)
                for address in found.instance.newborn:
                    tells |= 1 << self._place[address]
            self._tells[local] = tells
        return tells

    def will_tell_unborn(self, place: int) -> int:
        """The same of an instance that does not exist yet."""
        return self._bits(self.places[place], self._programs.get(self.places[place], ()))

    def _bits(self, address: Address, program: Program) -> int:
        if not program:
            return 0
        return sum(1 << self._place[b] for a, b in self.channels if a == address)

    # ---- what is computed once -------------------------------------------------------------

    def _begin(self, number: int) -> Move | None:
        local = self.locals[number]
        if local is None or not local.program or not self.protocol.free(local.instance):
            return None
        action, *rest = local.program
        births: tuple[tuple[int, int], ...] = ()
        if isinstance(action, Duplicate):
            new = [address for address, _ in action.new]
            instance, sends = self.protocol.duplicate(local.instance, new)
            births = tuple((self._place[a], self._newborn(a, p)) for a, p in action.new)
        else:
            instance, sends = self.protocol.leave(local.instance)
        return self._move(local, instance, tuple(rest), sends, local.told, births)

    def _deliver(self, channel: int, message: int, number: int) -> Move:
        local, (said, last) = self.locals[number], self.messages[message]
        if local is None:
            raise AssertionError("a message for an instance that was never created")
        sender = self.channels[channel - self.width][0]
        instance, sends = self.protocol.receive(local.instance, sender, said)
        told = local.told | {sender} if last else local.told
        return self._move(local, instance, local.program, sends, told, freed=_weight(said))

    def _move(
        self,
        before: Local,
        instance: Instance,
        program: Program,
        sends: Sends,
        told: Addresses,
        births: tuple[tuple[int, int], ...] = (),
        freed: int = 0,
    ) -> Move:
        targets = self.protocol.targets(instance)
        ever = before.ever | targets
        missed = before.instance.phase == "terminated"
        after = Local(instance, program, ever, told, missed)
        me = instance.address
        stopped = ever - targets
        numbered = tuple(
            (self._channel[me, to], self._message(said, to in stopped)) for to, said in sends
        )
        gained = sum(_weight(said) for _, said in sends) + sum(
            _rank(self.locals[local]) for _, local in births
        )
        if _rank(after) + gained >= _rank(before) + freed:
            raise AssertionError(f"{me} may go on for ever: a step does not lower the rank")
        return Move(self._local(after), numbered, births)

    def _newborn(self, address: Address, program: Program) -> int:
        return self._local(
            Local(Instance(address=address, phase="inactive"), program, NOBODY, NOBODY)
        )

    def _local(self, local: Local) -> int:
        number = self._locals.setdefault(local, len(self.locals))
        if number == len(self.locals):
            self.locals.append(local)
        return number

    def _message(self, message: Message, last: bool) -> int:
        number = self._messages.setdefault((message, last), len(self.messages))
        if number == len(self.messages):
            self.messages.append((message, last))
        return number

    def _content(self, content: tuple[int, ...]) -> int:
        number = self._contents.get(content)
        if number is None:
            rest = self._content(content[1:])
            number = self._contents[content] = len(self.contents)
            self.contents.append(content)
            self._popped.append(rest)
        return number


def _rank(local: Local | None) -> int:
    """What the state of one instance adds to the rank."""
    if local is None:
        return 0
    waiting = 2 * len(local.instance.newborn)
    return ACTION_RANK * _actions(local.program) + waiting


def _weight(message: Message) -> int:
    return {Duplication: 2, Deletion: 2}.get(type(message), 1)


def _actions(program: Program) -> int:
    """How many actions an instance and all that it creates begin."""
    below = (p for action in program if isinstance(action, Duplicate) for _, p in action.new)
    return len(program) + sum(map(_actions, below))


def _all_programs(scenario: Scenario) -> dict[Address, Program]:
    """The programs of all that act and all that are ever created."""
    found: dict[Address, Program] = {}
    todo = list(scenario.programs.items())
    while todo:
        address, program = todo.pop(0)
        found[address] = program
        todo += (new for action in program if isinstance(action, Duplicate) for new in action.new)
    return found


def _channels(
    places: list[Address], scenario: Scenario, programs: dict[Address, Program]
) -> list[tuple[Address, Address]]:
    """Between instances of neighbouring operators both ways, and from a creator to its new ones."""
    near = {*scenario.edges, *((b, a) for a, b in scenario.edges)}
    pairs = [(a, b) for a in places for b in places if (a.operator, b.operator) in near]
    for owner, program in programs.items():
        for action in program:
            if isinstance(action, Duplicate):
                pairs += [(owner, address) for address, _ in action.new]
    return pairs
