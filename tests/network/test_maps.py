"""Latency maps: what they are made of, what a file may hold, and how a map changes with time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.network.maps import Fluctuating, fog, from_inbound, random_pairs, read_csv


def test_round_trips_add_the_inbound_delays_of_both_ends() -> None:
    """The example of the geo study: 25 ms injected on two nodes are 50 ms between them."""
    rtt = from_inbound({"far": 0.025, "also-far": 0.025, "near": 0.0})
    assert rtt.between("far", "also-far") == 0.05
    assert rtt.between("far", "near") == 0.025
    assert rtt.worst(rtt.nodes) == 0.05


@given(st.integers(1, 12), st.integers(0, 2**32), st.floats(0.0, 0.2), st.floats(0.0, 0.3))
def test_random_pairs_keep_their_bounds_and_their_seed(
    nodes: int, seed: int, low: float, more: float
) -> None:
    names = [f"n{i}" for i in range(nodes)]
    rtt = random_pairs(names, low, low + more, seed)
    pairs = rtt.rtt[np.triu_indices(nodes, 1)]
    assert ((pairs >= low) & (pairs <= low + more)).all()
    assert rtt == random_pairs(names, low, low + more, seed)


def test_the_fog_has_eight_nodes_up_to_300_ms_apart() -> None:
    pairs = np.concatenate([fog(seed).rtt[np.triu_indices(8, 1)] for seed in range(50)])
    assert 0.0 <= pairs.min() < 0.005 and 0.295 < pairs.max() <= 0.3
    assert pairs.mean() == pytest.approx(0.15, abs=0.01)
    assert fog(1).nodes == tuple(f"fog-{i}" for i in range(1, 9))
    assert fog(1) != fog(2)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: from_inbound({"a": -0.1}), "inbound delay of a: -0.1 s"),
        (lambda: from_inbound({"a": float("nan")}), "must be a finite number"),
        (lambda: random_pairs(["a"], 0.2, 0.1, 1), "0 ≤ low ≤ high"),
        (lambda: random_pairs(["a", "a"], 0.1, 0.2, 1), "stands twice"),
        (lambda: fog(1, nodes=0), "at least 1"),
    ],
)
def test_maps_that_cannot_be_are_refused(make: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()  # type: ignore[operator]


# --- files ---


def written(path: Path, text: str) -> Path:
    file = path / "rtt.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_has_milliseconds_and_every_pair_once(tmp_path: Path) -> None:
    text = "node,node,milliseconds\n# measured by ping\na, b, 12.5\n\nc,a,100\nb,c,0\na,a,0\n"
    rtt = read_csv(written(tmp_path, text))
    assert rtt.nodes == ("a", "b", "c")
    assert (rtt.between("a", "b"), rtt.between("a", "c"), rtt.between("b", "c")) == (0.0125, 0.1, 0)
    assert read_csv(written(tmp_path, "a,b,1\n")).between("b", "a") == 0.001  # without headings


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no line of node,node,milliseconds"),
        ("node,node,ms\n", "no line of"),
        ("a,b\n", "line 1: 2 columns instead of node,node,milliseconds"),
        ("a,b,5\na,c,fast\n", "line 2: 'fast' is not a number"),
        ("a,b,fast\n", "line 1: 'fast' is not a number"),
        ("a,b,5\na,,7\n", "line 2: a node has no name"),
        ("a,b,-5\n", "-5 ms must be a finite number ≥ 0"),
        ("a,b,nan\n", "must be a finite number"),
        ("a,b,5\nb,a,5\n", "line 2: b and a stand on line 1 already"),
        ("a,a,5\n", "line 1: a is 5 ms from itself"),
        ("a,b,5\nc,d,5\n", "no round trip between a and c, and 3 other"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        read_csv(written(tmp_path, text))
    assert "rtt.csv" in str(raised.value)


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such latency file"):
        read_csv(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_csv(tmp_path)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        read_csv(tmp_path / "binary.csv")


# --- fluctuation ---

INBOUND = {"a": 0.025, "b": 0.025, "c": 0.0}
JITTER = Fluctuating(base=from_inbound(INBOUND), swing={"a": 0.01, "b": 0.01}, seed=4)


@given(st.floats(-1e9, 1e9))
def test_a_fluctuating_map_is_a_function_of_time_within_its_bounds(time: float) -> None:
    rtt = JITTER.at(time)
    assert rtt == Fluctuating(base=JITTER.base, swing=dict(JITTER.swing), seed=4).at(time)
    assert 0.03 - 1e-12 <= rtt.between("a", "b") <= 0.07 + 1e-12
    assert 0.015 - 1e-12 <= rtt.between("a", "c") <= 0.035 + 1e-12


def test_it_uses_its_whole_range_and_moves_without_jumps() -> None:
    times = np.arange(0.0, 2000.0, 0.25)
    course = np.array([JITTER.at(t).between("a", "c") for t in times.tolist()])
    assert course.min() < 0.017 and course.max() > 0.033
    assert course.mean() == pytest.approx(0.025, abs=0.002)
    steps = np.abs(np.diff(course))
    # From one end to the other takes a period of 10 s; the slope of a smooth step is at most 1.5.
    assert steps.max() <= 0.02 / 10.0 * 1.5 * 0.25 * 1.001
    assert np.abs(np.diff(course, 2)).max() < 0.1 * steps.max()
    near = np.corrcoef(course[:-4], course[4:])[0, 1]  # a second later
    far = np.corrcoef(course[:-200], course[200:])[0, 1]  # five periods later
    assert near > 0.95 and abs(far) < 0.3


def test_nodes_fluctuate_each_on_its_own_and_seeds_differ() -> None:
    times = np.arange(0.0, 3000.0, 5.0).tolist()
    a = [JITTER.at(t).between("a", "c") for t in times]
    b = [JITTER.at(t).between("b", "c") for t in times]
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.2
    other = Fluctuating(base=JITTER.base, swing=JITTER.swing, seed=5)
    assert other.at(33.0) != JITTER.at(33.0)
    still = Fluctuating(base=JITTER.base, swing={}, seed=5)
    assert still.at(33.0) == JITTER.base


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"swing": {"z": 0.1}}, "unknown node 'z'"),
        ({"swing": {"a": -0.1}}, "swing of a: -0.1 s"),
        ({"swing": {"a": 0.03}}, "a and c are 0.025 s apart and swing by 0.03 s"),
        ({"swing": {}, "period": 0.0}, "period 0.0 s"),
    ],
)
def test_a_fluctuation_that_cannot_be_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Fluctuating(base=JITTER.base, **fields)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the time must be"):
        JITTER.at(float("inf"))
