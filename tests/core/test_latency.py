"""Round trips between nodes: what a map refuses, says, and survives."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError
from penstock.core.latency import LatencyMap
from penstock.core.model import Snapshot
from tests.fakes.scenarios import healthy


def even(values: list[float], size: int) -> list[list[float]]:
    rows = np.zeros((size, size))
    rows[np.tril_indices(size, -1)] = values
    full: list[list[float]] = (rows + rows.T).tolist()
    return full


@st.composite
def maps(draw: st.DrawFn) -> LatencyMap:
    size = draw(st.integers(1, 6))
    count = size * (size - 1) // 2
    values = draw(st.lists(st.floats(0.0, 1.0), min_size=count, max_size=count))
    return LatencyMap([f"n{i}" for i in range(size)], even(values, size))


@given(maps())
def test_survives_json(latencies: LatencyMap) -> None:
    snapshot = Snapshot(
        **{name: getattr(healthy(), name) for name in ("time", "window", "pipeline", "operators")},
        pools=healthy().pools,
        rtt=latencies,
        prices={"n0": 2.0},
    )
    again = from_json(Snapshot, json.loads(json.dumps(to_json(snapshot))))
    assert again == snapshot
    assert again.rtt is not None
    assert hash(again.rtt) == hash(latencies)


@given(maps())
def test_the_worst_of_some_is_the_largest_of_their_pairs(latencies: LatencyMap) -> None:
    some = latencies.nodes[::2]
    pairs = [latencies.between(a, b) for a in some for b in some]
    assert latencies.worst([*some, some[0]]) == max(pairs)


def test_nodes_of_no_number_are_together() -> None:
    assert LatencyMap(["a", "b"], even([0.1], 2)).worst([]) == 0.0


@pytest.mark.parametrize(
    ("nodes", "rtt", "problem"),
    [
        (["a", "b"], [[0.0]], "2 nodes"),
        (["a", "a"], [[0.0, 1.0], [1.0, 0.0]], "twice"),
        (["a", "b"], [[0.0, 1.0], [2.0, 0.0]], "either end"),
        (["a", "b"], [[0.1, 1.0], [1.0, 0.0]], "to itself"),
        (["a", "b"], [[0.0, -1.0], [-1.0, 0.0]], "≥ 0"),
        (["a", "b"], [[0.0, np.nan], [np.nan, 0.0]], "finite"),
    ],
)
def test_refuses_what_is_no_map(nodes: list[str], rtt: list[list[float]], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        LatencyMap(nodes, rtt)


def test_an_unknown_node_is_named() -> None:
    with pytest.raises(InputError, match="nowhere"):
        LatencyMap(["a", "b"], even([0.1], 2)).between("a", "nowhere")
