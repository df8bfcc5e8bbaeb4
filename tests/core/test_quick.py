"""Values from a maker are the values of the class itself."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from penstock.core.guards import Effect
from penstock.core.loop import Decision, State
from penstock.core.model import Change, Need, OperatorSeen, Proposal, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.core.quick import maker

SEEN = Snapshot(
    time=1.0,
    window=1.0,
    pipeline=Pipeline(operators={"map": Operator(pool="map")}, edges=[]),
    operators={"map": OperatorSeen(parallelism=1.0)},
    pools={"map": (Slot(id="0"),)},
)
PROPOSAL = Proposal(reason="as it is")
EXAMPLES: list[tuple[Any, dict[str, Any]]] = [
    (Need, {"slots": 1.5}),
    (Need, {"slots": 1.5, "cpu_share": 0.5}),
    (OperatorSeen, {"parallelism": 2.0, "lag": 7.0}),
    (Proposal, {"reason": "because", "needs": {"map": Need(slots=1.0)}}),
    (Change, {"before": 1, "slots": 2, "raw": 1.7}),
    (Effect, {"guard": "cap", "pool": "p", "before": 3, "after": 2, "why": "full"}),
    (State, {"memory": [1, 2]}),
    (Decision, {"seen": SEEN, "proposal": PROPOSAL}),
    (Snapshot, {f.name: getattr(SEEN, f.name) for f in dataclasses.fields(SEEN)}),
]


@pytest.mark.parametrize(("kind", "fields"), EXAMPLES)
def test_a_maker_makes_the_same_value_as_the_class(kind: Any, fields: dict[str, Any]) -> None:
    made = maker(kind)(**fields)
    assert type(made) is kind
    assert made == kind(**fields)
    assert repr(made) == repr(kind(**fields))
    assert dataclasses.replace(made) == made
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(("kind", "fields"), EXAMPLES)
def test_a_value_from_a_maker_cannot_be_assigned_to(kind: Any, fields: dict[str, Any]) -> None:
    made = maker(kind)(**fields)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, next(iter(fields)), None)


def test_defaults_are_not_shared_between_values() -> None:
    make = maker(Proposal)
    assert make(reason="one").needs is not make(reason="two").needs


@pytest.mark.parametrize("fields", [{}, {"slots": 1.0, "slot": 2.0}])
def test_a_maker_refuses_what_the_class_refuses(fields: dict[str, float]) -> None:
    with pytest.raises(TypeError):
        maker(Need)(**fields)
