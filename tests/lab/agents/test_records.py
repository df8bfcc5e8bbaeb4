"""Records of agents: what becomes of them, which came, and the description of a pipeline."""

from __future__ import annotations

from array import array
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.lab.agents.pipeline.operators import Operator, Pipeline
from penstock.lab.agents.pipeline.records import Seen, audit, emitted, transformed
from penstock.lab.agents.pipeline.run import PipelineRunSettings
from penstock.lab.agents.pipeline.sites import AgentSite
from penstock.lab.agents.transport.frames import ids_of

IDS = st.lists(st.integers(0, 2**40), max_size=60)


def ids(values: list[int]) -> bytes:
    return array("Q", values).tobytes()


def values(data: bytes) -> list[int]:
    return array("Q", data).tolist()


@given(st.lists(IDS, max_size=6))
def test_seen_counts_like_a_set(batches: list[list[int]]) -> None:
    seen, model, again = Seen(), set[int](), 0
    for batch in batches:
        new = len(set(batch) - model)
        assert seen.add(ids(batch)) == new
        again += len(batch) - new
        model |= set(batch)
    assert (seen.distinct, seen.again) == (len(model), again)
    probe = sorted(model | {1, 2, 3})
    assert seen.count(ids(probe)) == len(model)


@given(st.integers(1, 5), st.integers(0, 200))
def test_sources_share_the_ids_out(sources: int, records: int) -> None:
    parts = [
        values(emitted(0, (records + sources - 1 - serial) // sources, serial, sources))
        for serial in range(sources)
    ]
    assert sorted(value for part in parts for value in part) == list(range(records))


@given(IDS, st.floats(0.01, 4.0), st.sampled_from(["A", "counter"]))
def test_what_becomes_of_a_record_depends_on_it_alone_and_stays_different(
    batch: list[int], selectivity: float, name: str
) -> None:
    operator = Operator(name=name, selectivity=selectivity)
    together = values(transformed(ids(batch), operator))
    single = [v for one in batch for v in values(transformed(ids([one]), operator))]
    assert together == single
    low = int(selectivity)
    assert low * len(batch) <= len(together) <= operator.copies * len(batch)
    distinct = values(transformed(ids(sorted(set(batch))), operator))
    assert max(Counter(distinct).values(), default=1) == 1


def test_selectivity_is_met_on_average_and_operators_choose_independently() -> None:
    one = ids_of(range(40_000))
    a = transformed(one, Operator(name="A", selectivity=0.3))
    both = transformed(a, Operator(name="B", selectivity=0.3))
    assert len(a) / len(one) == pytest.approx(0.3, abs=0.01)
    assert len(both) / len(a) == pytest.approx(0.3, abs=0.02)
    more = transformed(one, Operator(name="A", selectivity=2.25))
    assert len(more) / len(one) == pytest.approx(2.25, abs=0.02)


def test_an_audit_finds_what_is_missing_surplus_and_repeated() -> None:
    pipeline = Pipeline(operators=(Operator(name="A", selectivity=2.0),), sources=2)
    seen = Seen()
    for serial in range(2):
        seen.add(transformed(emitted(0, 100, serial, 2), pipeline.operators[0]))
    assert audit(seen, pipeline, {0: 100, 1: 100}) == {
        "expected": 400, "delivered": 400, "lost": 0, "unexpected": 0, "duplicated": 0
    }  # fmt: skip
    seen.add(ids([0, 1, 10**9]))
    assert audit(seen, pipeline, {0: 100, 1: 103}) == {
        "expected": 406, "delivered": 400, "lost": 6, "unexpected": 1, "duplicated": 2
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"operators": ()}, "needs operators of different names"),
        ({"operators": (Operator(name="A"),) * 2}, "different names"),
        ({"low": 5.0, "high": 4.0}, "low 5.0 ≤ high 4.0"),
        ({"seconds": 0.0}, "seconds 0.0"),
        ({"period": 0.0}, "period 0.0"),
        ({"sources": 0}, "sources 0"),
        ({"high": 1e12}, "do not fit"),
        ({"operators": tuple(Operator(name=n, selectivity=100.0) for n in "ABCD")}, "do not fit"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused(values: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        Pipeline(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"name": "sink"}, "not source or sink"),
        ({"name": "A1"}, "letters only"),
        ({"capacity": 0.0}, "capacity 0.0"),
        ({"selectivity": -1.0}, "selectivity -1.0"),
        ({"instances": 0}, "needs its keeper"),
    ],
)
def test_an_operator_that_cannot_be_is_refused(values: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        Operator(**{"name": "A", **values})  # type: ignore[arg-type]


def test_a_plan_needs_room_and_sites() -> None:
    with pytest.raises(InputError, match="12 instances at the start, but room for 5"):
        PipelineRunSettings(most=5)
    with pytest.raises(InputError, match="needs a site"):
        PipelineRunSettings(sites=())
    for text in ("=ip netns exec b", "localhost", "::1"):
        with pytest.raises(InputError, match="must look like ADDRESS"):
            AgentSite.of(text)
