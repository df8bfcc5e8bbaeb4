"""Split pipelines without Spark: applications as operators, and the wire between them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.codec import to_json
from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.facts import JoinTime, PoolFacts
from penstock.core.model import (
    Change,
    OperatorSeen,
    QuerySeen,
    Rescale,
    Slot,
    Snapshot,
    lag_seconds,
)
from penstock.core.pipeline import Operator, Pipeline
from penstock.lab.queries.nexmark_queries import QUERIES
from penstock.lab.queries.split.hops import pipeline_of
from penstock.policies import DS2, Dhalion
from penstock.policies.signals.bottleneck import bottlenecks
from penstock.simulator import queries
from penstock.spark.split import wire
from penstock.spark.split.engine import ApplicationSeen, SplitEngine, merged
from penstock.spark.split.wire import Address, Server, ask

CHAIN = Pipeline(
    operators={name: Operator(pool=name) for name in ("source", "map", "sink")},
    edges=(("source", "map"), ("map", "sink")),
)


@pytest.mark.parametrize("name", QUERIES)
def test_the_hops_of_a_query_are_the_operators_that_are_simulated(name: str) -> None:
    split, simulated = pipeline_of(QUERIES[name]), queries.create(name).spec.pipeline
    assert set(split.edges) == set(simulated.edges)
    assert set(split.pools) == set(simulated.operators)


def application(
    *stages: tuple[float, float | None],
    rate: float = 100.0,
    out: float | None = None,
    lag: float = 0.0,
    slots: int = 2,
    busy: float = 0.5,
    most_rows: int | None = 1000,
) -> ApplicationSeen:
    """An application whose stages have these arrival and service rates."""
    executors = tuple(Slot(id=str(n)) for n in range(slots))
    names = [f"stage{n}" for n in range(len(stages))]
    seen = Snapshot(
        time=99.0,
        window=10.0,
        age=2.0,
        pipeline=Pipeline(operators={n: Operator(pool="executors") for n in names}),
        operators={
            name: OperatorSeen(parallelism=1.0, arrival_rate=a, service_rate=mu, busy=busy, cpu=0.4)
            for name, (a, mu) in zip(names, stages, strict=True)
        },
        pools={"executors": executors},
        queries={
            "q": QuerySeen(
                batches=1, rows=1, offered_rate=rate, processed_rate=rate, output_rate=out, lag=lag
            )
        },
        execution="micro-batch",
    )
    return ApplicationSeen(seen=seen, slots=executors, most_rows=most_rows)


def parts(**changed: ApplicationSeen) -> dict[str, ApplicationSeen]:
    plain = {name: application((100.0, 200.0), out=100.0) for name in CHAIN.operators}
    return plain | changed


# ---- applications as operators ---------------------------------------------------------------


def test_each_application_is_one_operator_on_its_own_pool() -> None:
    seen = merged(CHAIN, parts(map=application((100.0, 50.0), slots=3)), now=100.0)
    assert seen.pipeline is CHAIN
    assert {pool: len(slots) for pool, slots in seen.pools.items()} == {
        "source": 2, "map": 3, "sink": 2,
    }  # fmt: skip
    assert {slot.operator for slot in seen.pools["map"]} == {"map"}
    assert seen.operators["map"].parallelism == 3.0
    assert seen.operators["map"].arrival_rate == 100.0
    assert seen.age == 3.0  # the answer is a second old, and its newest batch was two seconds old
    assert set(seen.queries) == {"source", "map", "sink"}


def test_what_is_known_of_each_pool_is_told_under_its_name() -> None:
    """The application of the second operator has executors of four cores."""
    part = application((100.0, 50.0))
    assert part.seen is not None
    wide = replace(part.seen.pipeline, slot_tasks={"executors": 4.0})
    facts = PoolFacts(cores=4.0, join=JoinTime(seconds=3.0, origin="measured"))
    told = replace(part.seen, pipeline=wide, facts={"executors": facts})
    seen = merged(CHAIN, parts(map=replace(part, seen=told)), now=100.0)
    assert seen.facts == {"map": facts}
    assert seen.pipeline == replace(CHAIN, slot_tasks={"map": 4.0})


def test_only_the_first_operators_are_offered_a_load() -> None:
    seen = merged(CHAIN, parts(), now=100.0)
    assert [seen.operators[n].offered_rate for n in CHAIN.order] == [100.0, None, None]


@given(
    st.lists(st.tuples(st.floats(1.0, 1e6), st.floats(1.0, 1e6)), min_size=1, max_size=5),
    st.floats(1.0, 1e6),
)
def test_the_stages_of_an_application_need_as_many_slots_as_the_operator(
    stages: list[tuple[float, float]], rate: float
) -> None:
    """DS2 sizes the operator as it would size the application's stages together."""
    part = application(*stages, rate=rate)
    seen = merged(CHAIN, parts(source=part), now=100.0)
    proposal, _ = DS2(over_provisioning=1.0).decide(seen, None)
    needed = sum(arrival / service for arrival, service in stages)
    assert proposal.needs["source"].slots == pytest.approx(needed)


def test_a_stage_whose_speed_is_not_known_leaves_the_operators_unknown() -> None:
    seen = merged(CHAIN, parts(map=application((100.0, 200.0), (10.0, None))), now=100.0)
    assert seen.operators["map"].service_rate is None


def test_what_waits_in_a_topic_is_the_buffer_of_the_operator_below() -> None:
    waiting = application((100.0, 200.0), lag=500.0, busy=1.0)
    seen = merged(CHAIN, parts(map=waiting), now=100.0)
    assert seen.operators["map"].buffer == 0.5
    assert seen.operators["source"].buffer is None  # it has a lag instead
    above = seen.operators["source"]
    assert (above.busy, above.backpressured, above.idle) == (0.5, 0.25, 0.25)
    assert seen.operators["sink"].backpressured == 0.0


def test_an_operator_below_a_full_topic_is_the_bottleneck() -> None:
    overloaded = application((100.0, 60.0), lag=5_000.0, busy=1.0, out=60.0)
    seen = merged(CHAIN, parts(map=overloaded), now=100.0)
    assert bottlenecks(seen) == ("map",)
    policy = Dhalion()
    proposal, _ = policy.decide(seen, policy.start(0))
    assert list(proposal.needs) == ["map"]
    assert proposal.needs["map"].slots > 2


def test_records_that_wait_between_applications_count_as_lag() -> None:
    seen = merged(CHAIN, parts(sink=application((100.0, 200.0), lag=700.0)), now=100.0)
    assert lag_seconds(seen) == 7.0


def test_an_application_without_a_batch_is_not_measured_but_has_slots() -> None:
    silent = ApplicationSeen(seen=None, slots=(Slot(id="0"),))
    seen = merged(CHAIN, parts(sink=silent), now=100.0)
    assert "sink" not in seen.operators
    assert len(seen.pools["sink"]) == 1
    assert seen.operators["map"].backpressured is None  # what waits below is not known
    with pytest.raises(NotReady):
        merged(CHAIN, dict.fromkeys(CHAIN.operators, silent), now=100.0)


def test_costs_of_actions_are_told_of_their_pool() -> None:
    cost = Rescale(time=90.0, pool="executors", before=1, after=2, registered=3.0)
    part = application((100.0, 200.0))
    assert part.seen is not None
    acting = replace(part, seen=replace(part.seen, rescales=(cost,), acting=True))
    seen = merged(CHAIN, parts(map=acting), now=100.0)
    assert seen.acting
    assert seen.rescales == (replace(cost, pool="map"),)


# ---- the wire --------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Address:
    return Address.parse(tmp_path / "m.sock")


@pytest.fixture
def echo(place: Address) -> Iterator[Server]:
    server = Server(place, lambda question: {"heard": question})
    yield server
    server.close()


def test_questions_are_answered_one_after_the_other(place: Address, echo: Server) -> None:
    answers = [ask(place, {"n": n}) for n in range(3)]
    assert answers == [{"heard": {"n": n}} for n in range(3)]


@pytest.mark.parametrize("kind", [EngineError, InputError, NotReady])
def test_what_is_raised_there_is_raised_here(place: Address, kind: type[Exception]) -> None:
    def refuse(question: Any) -> Any:
        raise kind("not now")

    server = Server(place, refuse)
    try:
        with pytest.raises(kind, match="not now"):
            ask(place, {})
    finally:
        server.close()


def test_anything_else_that_is_raised_there_is_an_error_of_the_engine(place: Address) -> None:
    server = Server(place, lambda question: {"x": 1 / 0})
    try:
        with pytest.raises(EngineError, match="division"):
            ask(place, {})
    finally:
        server.close()


def test_nobody_there(place: Address) -> None:
    with pytest.raises(EngineError, match=r"m\.sock cannot be reached"):
        ask(place, {})


def test_one_who_never_answers_is_given_up(place: Address) -> None:
    go_on = threading.Event()

    def dawdle(question: Any) -> Any:
        go_on.wait(10.0)
        return {}

    server = Server(place, dawdle)
    try:
        with pytest.raises(EngineError, match=r"no answer within 0\.2 s"):
            ask(place, {}, within=0.2)
    finally:
        go_on.set()
        server.close()


@pytest.mark.parametrize("nonsense", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x03{]}"])
def test_nonsense_does_not_end_the_server(place: Address, echo: Server, nonsense: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(place.place))
        stranger.sendall(nonsense)
    assert ask(place, {"n": 1}) == {"heard": {"n": 1}}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_port_needs_the_same_key_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(wire.KEY_VARIABLE, raising=False)
    address = Address.parse(f"127.0.0.1:{_free_port()}")
    with pytest.raises(InputError, match="PENSTOCK_KEY"):
        Server(address, lambda question: {})
    server = Server(address, lambda question: {"yes": True}, key="right")
    try:
        assert ask(address, {}, key="right") == {"yes": True}
        with pytest.raises(InputError, match="another key"):
            ask(address, {}, key="wrong")
        assert ask(address, {}, key="right") == {"yes": True}
    finally:
        server.close()


def test_a_closed_server_is_gone_and_its_place_free(place: Address, echo: Server) -> None:
    echo.close()
    assert not Path(str(place.place)).exists()
    again = Server(place, lambda question: {})
    again.close()


@pytest.mark.parametrize("text", ["host:", ":1", "host:99999", "host:port"])
def test_bad_addresses(text: str) -> None:
    with pytest.raises(InputError, match="host:port"):
        Address.parse(text)


# ---- one engine ------------------------------------------------------------------------------


class FakeMember:
    """Answers as an application would, and remembers what it was told."""

    def __init__(self, place: Path, part: ApplicationSeen, *, refuses: bool = False) -> None:
        self.part, self.refuses, self.told = part, refuses, list[Any]()
        self.address = Address.parse(place)
        self.server = Server(self.address, self.answer)

    def answer(self, question: Any) -> Any:
        if question["ask"] == "observe":
            seen = None if self.part.seen is None else to_json(self.part.seen)
            return {"seen": seen, "slots": to_json(self.part.slots), "most_rows": 1000,
                    "application": "a"}  # fmt: skip
        if self.refuses:
            raise EngineError("an action is still in flight")
        self.told.append(question["change"])
        return {}


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, FakeMember]]:
    all_of_them = {
        name: FakeMember(tmp_path / name, part, refuses=name == "sink")
        for name, part in parts().items()
    }
    yield all_of_them
    for member in all_of_them.values():
        member.server.close()


def engine_of(members: dict[str, FakeMember]) -> SplitEngine:
    return SplitEngine(CHAIN, {name: member.address for name, member in members.items()})


def test_an_engine_observes_all_and_tells_each_its_own(members: dict[str, FakeMember]) -> None:
    engine = engine_of(members)
    direct = merged(CHAIN, {name: m.part for name, m in members.items()}, now=engine.observe().time)
    assert json.dumps(to_json(engine.observe().operators)) == json.dumps(to_json(direct.operators))
    engine.apply({"map": Change(before=2, slots=5, raw=4.5)})
    assert members["map"].told == [to_json(Change(before=2, slots=5, raw=4.5))]
    assert members["source"].told == []


def test_one_that_refuses_does_not_keep_the_others_from_acting(
    members: dict[str, FakeMember], caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_of(members)
    change = Change(before=2, slots=3, raw=3.0)
    engine.apply({"map": change, "sink": change})
    assert len(members["map"].told) == 1
    assert "sink: an action is still in flight" in caplog.text
    with pytest.raises(EngineError, match="sink: an action is still in flight"):
        engine.apply({"sink": change})


def test_nobody_decides_on_half_a_pipeline(members: dict[str, FakeMember]) -> None:
    engine = engine_of(members)
    members["map"].server.close()
    with pytest.raises(EngineError, match="cannot be reached"):
        engine.observe()


def test_an_engine_needs_an_address_and_a_pool_for_each_operator(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="source, map, sink"):
        SplitEngine(CHAIN, {"map": Address.parse(tmp_path / "m")})
    shared = Pipeline(operators={"a": Operator(pool="p"), "b": Operator(pool="p")})
    with pytest.raises(InputError, match="share the pool 'p'"):
        SplitEngine(shared, {n: Address.parse(tmp_path / n) for n in "ab"})
