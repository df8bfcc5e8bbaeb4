"""Small systems and the actions that happen in them.

A scenario fixes which instances begin which actions, not when: each begins its own at any moment
at which it may, or never. New instances may have actions of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from string import ascii_uppercase

from penstock.decentralized.instance import wired
from penstock.decentralized.messages import Address


@dataclass(frozen=True, slots=True)
class Leave:
    """The instance leaves."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The instance creates new ones, each with what it will do itself."""

    new: tuple[tuple[Address, Program], ...]


Action = Leave | Duplicate
Program = tuple[Action, ...]
"""What an instance does, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Operators with so many instances each, and what some of them do."""

    sizes: Mapping[str, int]
    edges: tuple[tuple[str, str], ...]
    programs: Mapping[Address, Program]

    def __str__(self) -> str:
        sizes = " ".join(f"{name}×{size}" for name, size in self.sizes.items())
        doing = ", ".join(_words(who, p) for who, p in self.programs.items())
        return f"{sizes}: {doing}"


CHAIN = (("A", "B"), ("B", "C"))
DIAMOND = (("A", "B"), ("A", "C"), ("B", "D"), ("C", "D"))


def scenarios(
    sizes: Sequence[int],
    actions: int,
    *,
    edges: Sequence[tuple[str, str]] = CHAIN,
    most_new: int = 1,
) -> Iterator[Scenario]:
    """Every way to give so many actions to the instances of a pipeline and to those they create.

    ``sizes`` of operators A, B, C, … · ``edges`` those of a chain, unless others are given ·
    ``most_new`` a duplication creates 1 to that many instances.

    >>> [str(scenario) for scenario in scenarios([1, 2], 1)]
    ['A×1 B×2: A0 creates A1', 'A×1 B×2: B0 creates B2', 'A×1 B×2: B1 leaves', \
'A×1 B×2: B1 creates B2']
    """
    named = dict(zip(ascii_uppercase, sizes, strict=False))
    here = tuple(edge for edge in edges if set(edge) <= named.keys())
    owners = list(wired(named, here))
    for chosen in combinations_with_replacement(range(len(owners)), actions):
        counts = [(owners[i], chosen.count(i)) for i in sorted(set(chosen))]
        trees = [list(_programs(owner.keeper, count, most_new)) for owner, count in counts]
        for shape in product(*trees):
            serials = dict(named)
            programs = {
                owner: _named(owner, tree, serials)
                for (owner, _), tree in zip(counts, shape, strict=True)
            }
            yield Scenario(sizes=named, edges=here, programs=programs)


Tree = tuple["Tree | None", ...]
"""A program without addresses: ``None`` leaves, a tuple duplicates into those programs."""


def _programs(keeper: bool, actions: int, most_new: int) -> Iterator[Tree]:
    """All programs of one instance and its descendants with so many actions altogether.

    What two new siblings do is told apart only by what, not by which of them does it.
    """
    if actions == 0:
        yield ()
        return
    if not keeper and actions == 1:
        yield (None,)
    for below in range(actions):
        for children in _families(below, most_new):
            for rest in _programs(keeper, actions - 1 - below, most_new):
                yield (children, *rest)


def _families(actions: int, most_new: int) -> Iterator[Tree]:
    """Programs of 1 to ``most_new`` new siblings with so many actions together."""
    for size in range(1, most_new + 1):
        for split in product(range(actions + 1), repeat=size):
            if sum(split) == actions and list(split) == sorted(split, reverse=True):
                yield from product(*(_programs(False, count, most_new) for count in split))


def _named(owner: Address, tree: Tree, serials: dict[str, int]) -> Program:
    """A program with addresses for the new instances."""
    actions: list[Action] = []
    for step in tree:
        if step is None:
            actions.append(Leave())
            continue
        new = []
        for below in step:
            address = Address(owner.operator, serials[owner.operator])
            serials[owner.operator] += 1
            new.append((address, below))
        actions.append(Duplicate(tuple((a, _named(a, below or (), serials)) for a, below in new)))
    return tuple(actions)


def _words(who: Address, program: Program) -> str:
    said = []
    for action in program:
        if isinstance(action, Leave):
            said.append("leaves")
            continue
        names = " and ".join(
            f"{a} ({_words(a, p).partition(' ')[2]})" if p else str(a) for a, p in action.new
        )
        said.append(f"creates {names}")
    return f"{who} {', then '.join(said)}"
