from __future__ import annotations

import pytest

from penstock.core.errors import InputError
from penstock.core.pipeline import Operator, Pipeline


def ops(*names: str, **kw: int) -> dict[str, Operator]:
    return {n: Operator(pool="p", partitions=kw.get(n)) for n in names}


def test_a_cycle_is_refused_and_named() -> None:
    with pytest.raises(InputError, match=r"cycle: .*a.*b"):
        Pipeline(operators=ops("a", "b"), edges=[("a", "b"), ("b", "a")])


def test_an_edge_to_nowhere_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'sink'"):
        Pipeline(operators=ops("source", "sink"), edges=[("source", "sinc")])


@pytest.mark.parametrize("selectivity", [-1.0, float("nan"), float("inf")])
def test_bad_selectivity_is_refused(selectivity: float) -> None:
    with pytest.raises(InputError, match="selectivity"):
        Operator(pool="p", selectivity=selectivity)


def test_a_chain_is_worth_its_widest_operator_and_chains_add_up() -> None:
    chain = Pipeline(operators=ops("a", "b", a=4, b=8), edges=[("a", "b")])
    assert chain.useful_slots("p") == 8
    two = Pipeline(operators=ops("a", "b", "c", a=4, b=8, c=3), edges=[("a", "b")])
    assert two.useful_slots("p") == 11
    unknown = Pipeline(operators=ops("a", "b", a=4), edges=[("a", "b")])
    assert unknown.useful_slots("p") is None


def test_order_is_topological_for_a_join() -> None:
    p = Pipeline(
        operators=ops("join", "left", "right"), edges=[("left", "join"), ("right", "join")]
    )
    assert p.order[-1] == "join"
    assert set(p.sources) == {"left", "right"}


@pytest.mark.parametrize(
    ("cores", "useful"), [(1, 11), (2, 6), (4, 3), (8, 2), (16, 1), (2.5, 5), (11.0, 1)]
)
def test_slots_of_several_cores_work_on_as_many_partitions(cores: float, useful: int) -> None:
    two = Pipeline(
        operators=ops("a", "b", "c", a=4, b=8, c=3), edges=[("a", "b")], slot_tasks={"p": cores}
    )
    assert two.useful_slots("p") == useful


@pytest.mark.parametrize("cores", [0, -4, 0.5, float("nan"), float("inf")])
def test_slots_of_less_than_one_task_are_refused(cores: float) -> None:
    with pytest.raises(InputError, match="slot_tasks"):
        Pipeline(operators=ops("a"), slot_tasks={"p": cores})
