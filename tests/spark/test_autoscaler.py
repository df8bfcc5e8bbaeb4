"""The Autoscaler on a fake session: limits, every policy, faults, log lines; no Spark."""

from __future__ import annotations

import logging
import math
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.batches.actions import GIVE_UP
from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.guards import Blackout, Guards
from penstock.core.loop import Loop
from penstock.core.model import Change, Need, Placement, Proposal, Snapshot
from penstock.history.journal import read
from penstock.policies import DECIDING, DS2, create, parameters_of
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.freeze import KillSwitch
from penstock.spark.ports import ApplicationEngine
from tests.fakes.spark import (
    POOL,
    FakeEngine,
    FakeSession,
    FakeSpark,
    look,
    looks,
    played,
    without_spark,
)
from tests.fakes.waiting import until

FREE = Guards(minimum=1, maximum=20)


class Scripted:
    """Says what it is told to, one thing after the other; an exception is raised."""

    def __init__(self, says: tuple[Any, ...]) -> None:
        self.says = says

    def start(self, seed: int) -> int:
        return 0

    def decide(self, seen: Snapshot, memory: int) -> tuple[Any, int]:
        said = self.says[memory % len(self.says)]
        if isinstance(said, Exception):
            raise said
        return said, memory + 1


numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**12), 10**12),
    st.sampled_from(["12", None, True]),
)
needs = st.builds(Need, slots=numbers, cpu_share=st.none() | st.floats())
proposals = st.builds(
    Proposal,
    reason=st.text(max_size=20),
    needs=st.dictionaries(st.sampled_from(["read", "aggregate", "other"]), needs),
    pool_needs=st.dictionaries(st.sampled_from([POOL, "other"]), needs),
    place=st.just({}) | st.just({POOL: Placement(remove=("0", "7"), add_on=("n",))}),
)
sayings = st.one_of(
    proposals, st.none(), st.just("more"), st.just(RuntimeError("no idea")), st.just(Proposal)
)


@given(
    says=st.lists(sayings, min_size=1, max_size=6),
    size=st.integers(0, 12),
    minimum=st.integers(1, 8),
    room=st.integers(0, 8),
    lost=st.sets(st.integers(0, 5), max_size=3),
    guards=st.builds(
        Guards,
        over_provisioning=st.floats(0.01, 1e9),
        cool_down=st.sampled_from([0.0, 40.0]),
        step_up=st.none() | st.integers(1, 3),
        cap=st.none() | st.integers(1, 30),
        useful=st.booleans(),
    ),
)
@settings(max_examples=100)
def test_no_request_outside_the_limits_ever_leaves(
    says: list[Any], size: int, minimum: int, room: int, lost: set[int], guards: Guards
) -> None:
    maximum = minimum + room
    session: FakeSession

    def lose() -> None:
        for id in [i for i in session.alive if int(i) in lost]:
            session.alive.pop(id)

    story: list[Any] = [*looks(*[1000.0] * 4), lose, *looks(*[90.0] * 8, start=1500.0)]
    session = FakeSession(story, size=size)
    limits: Any = {"min_executors": minimum, "max_executors": maximum}
    with (
        without_spark(),
        Autoscaler(session, Scripted(tuple(says)), mode="act", guards=guards, **limits),
    ):
        until("the story is over", session.over.is_set)
    assert all(minimum <= asked <= maximum for asked in session.requests)
    asked = len(session.requests)
    gone = sum(call[0] == "decommission" for call in session.sparkContext.calls)
    assert asked or not gone  # nobody leaves unless a total within the limits was asked for
    if asked:
        assert minimum - len(lost) <= len(session.alive) <= max(maximum, session.requests[-1])


@given(asked=st.lists(numbers, min_size=1, max_size=6))
def test_the_last_gate_holds_even_if_the_guards_are_wrong(asked: list[Any]) -> None:
    class Wrong(Guards):
        def apply(self, *_: Any) -> Any:
            slots: Any = todo.pop()
            return {POOL: Change(before=4, slots=slots, raw=0.0)}, ()

    todo = list(asked)
    session = FakeSession(list(looks(*[1000.0] * len(asked))))
    engine = FakeEngine(session, window=15.0, cluster=None)
    engine.pool.limits = (2, 5)
    loop = Loop(engine, create("static"), Wrong(), mode="act")
    loop.run(period=15.0, ticks=len(asked))
    assert all(2 <= total <= 5 for total in session.requests)
    assert 2 <= len(session.alive) <= 5


@pytest.mark.parametrize("size", [1, 9])
def test_a_size_outside_the_limits_is_brought_back(size: int) -> None:
    session, _ = played(looks(1000.0), Scripted((RuntimeError("none"),)), size=size,
                        min_executors=3, max_executors=5)  # fmt: skip
    assert len(session.alive) == (3 if size < 3 else 5)


def test_executors_that_spark_does_not_replace_are_asked_for_again() -> None:
    session: FakeSession

    def die() -> None:
        session.alive.pop("0")

    story: list[Any] = [look(1000.0), die, look(1015.0), look(1030.0), look(1031.0 + GIVE_UP)]
    session = FakeSession([*story, look(1050.0 + GIVE_UP)], size=3)
    made: list[Any] = []
    with (
        without_spark(),
        Autoscaler(session, create("static"), mode="act", min_executors=3,
                   record=lambda decision, _: made.append(decision)),
    ):  # fmt: skip
        until("the story is over", session.over.is_set)
    assert [d.applied for d in made] == [False, False, False, True, False]
    assert {e.guard for e in made[1].effects} == {"bounds", "in-flight"}  # left to Spark at first
    assert session.requests == [3]


RISE_AND_FALL = [400.0, 900.0, 2500.0, 4000.0, 4000.0, 3000.0, *[300.0] * 6]
RISE_AND_FALL += [max(0.0, 1500 + 1400 * math.sin(i / 5)) for i in range(60)]


MINUTELY = ("gesscale", "mdl-nlunaware", "thr-nlunaware", "thr-nlaware")


@pytest.mark.parametrize("name", sorted(DECIDING))
def test_every_policy_works_on_what_spark_measures(name: str) -> None:
    story = []
    for i, rate in enumerate(RISE_AND_FALL):
        seen = look(1000.0 + 15 * i, rate=rate, busy=min(1.0, rate / 4000), lag=40 * rate)
        if i % 9 == 4:  # a batch that has not ended: little is known
            seen = replace(seen, operators={
                n: replace(o, service_rate=None, offered_rate=None, lag=None, cpu=None)
                for n, o in seen.operators.items()
            })  # fmt: skip
        story.append(seen)
    each_look = {"period": 15.0} if name in MINUTELY else {}
    session, made = played(story, create(name, each_look), guards=FREE)
    assert len(made) == len(story)
    assert not [d.explain() for d in made if "the policy" in d.proposal.reason]
    assert all(d.proposal.reason for d in made)
    assert all(1 <= asked <= 20 for asked in session.requests)
    shares = any(t.cpu_share is not None for d in made for t in d.targets.values())
    assert session.requests or shares or name == "static", "it never asked for anything"


def test_a_policy_that_lacks_a_figure_says_so() -> None:
    """Spark has no buffers: what Dhalion does not know, it says, and keeps the size."""
    blind = replace(look(), operators={
        n: replace(o, lag=None, busy=None, idle=None, backpressured=None)
        for n, o in look().operators.items()
    })  # fmt: skip
    _, (decision,) = played([blind], "dhalion", guards=FREE)
    assert decision.changes == {}
    assert "measured" in decision.explain()


def test_parameters_of_a_policy_come_from_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text('max_executors = 6\n[policy]\nname = "static"\nslots = 9\n')
    session, _ = played(looks(1000.0), config=file)
    assert session.requests == [6]
    session = FakeSession([], conf_of_session={"spark.penstock.policy.slots": "2"})
    with without_spark():
        made = Autoscaler(session, config=file)
        assert parameters_of(made.policy) == {"slots": 2, "pools": ""}
        assert made.settings.origins["policy.slots"] == "spark.penstock.policy.slots"
        again = Autoscaler.from_settings(session, made.settings)
        assert (again.policy, again.guards) == (made.policy, made.guards)
        with pytest.raises(InputError, match="mode: give either ready settings or single values"):
            Autoscaler(session, config=made.settings, mode="act")
        with pytest.raises(InputError, match="this policy is an object already"):
            Autoscaler(session, made.policy, parameters={"slots": 3})


def test_every_keyword_of_version_0_1_still_works(tmp_path: Path) -> None:
    """Those that are not in view any more are the typed others."""
    switch, heard = KillSwitch(), []
    (tmp_path / "penstock.toml").write_text("heartbeat = 7\n")
    session = FakeSession(list(looks(1000.0)))
    made = Autoscaler(
        session,
        policy="static",
        config=str(tmp_path / "penstock.toml"),
        parameters={"slots": 2},
        min_executors=2,
        max_executors=9,
        mode="act",
        period=5.0,
        window=20.0,
        guards=Guards(minimum=1, maximum=50, cool_down=1.0),
        journal=tmp_path / "journal",
        seed=3,
        freeze_file=tmp_path / "freeze",
        freeze_signals=False,
        metrics_port=0,
        metrics_host="127.0.0.1",
        cluster=Local(),
        record=lambda decision, _: heard.append(decision),
        switch=switch,
    )
    with made:
        until("the story is over", session.over.is_set)
    held = made.settings
    assert made.policy == create("static", {"slots": 2})
    assert (held.mode, held.period, held.window, held.seed) == ("act", 5.0, 20.0, 3)
    assert held.guards == Guards(minimum=2, maximum=9, cool_down=1.0)
    assert (held.journal, held.freeze_file) == (tmp_path / "journal", tmp_path / "freeze")
    assert (held.metrics_port, held.metrics_host) == (0, "127.0.0.1")
    assert (held.freeze_signals, held.heartbeat) == (False, 7.0)
    assert made.switch is switch and len(heard) == 1
    assert session.requests == [2]


class Local:
    """A cluster that makes the engine of its applications."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def engine(self, spark: Any, *, window: float, arrivals: bool) -> ApplicationEngine:
        self.asked.append({"window": window, "arrivals": arrivals})
        return FakeEngine(spark, window=window, arrivals=arrivals)


@pytest.mark.parametrize(("policy", "arrivals"), [("ds2", False), ("mead", True)])
def test_a_cluster_makes_the_engine(policy: str, arrivals: bool) -> None:
    cluster = Local()
    made = Autoscaler(FakeSession([]), policy, period="30s", batch_time="1 min", cluster=cluster)
    assert cluster.asked == [{"window": 30.0, "arrivals": arrivals}]
    assert made._engine.pool.limits == (1, 80) and made._engine.batch_time == 60.0


def test_a_policy_is_an_object_or_a_name() -> None:
    with without_spark():
        made = Autoscaler(FakeSession([]), DS2(), min_executors=1, max_executors=8, mode="act")
        assert made.policy == DS2() and made.settings.policy == "ds2"
        assert Autoscaler(FakeSession([]), "ds2").policy == DS2()


def test_everything_else_goes_by_config() -> None:
    said = {"heartbeat": "1 min", "policy": {"name": "static", "slots": 5}, "guards.drain": "none"}
    with without_spark():
        made = Autoscaler(FakeSession([]), max_executors=8, config=said)
    assert (made.settings.heartbeat, made.guards.drain, made.guards.maximum) == (60.0, None, 8)
    assert made.policy == create("static", {"slots": 5})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "max_executor",
            r"'max_executor'; did you mean 'max_executors'\? Known: at_cap, batch_time, blackouts,",
        ),
        ("freezefile", r"did you mean 'freeze_file'\?"),
        ("heartbeat", r"heartbeat is a key of config: config=\{'heartbeat': 8\}"),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_nearest(name: str, says: str) -> None:
    wrong: Any = {name: 8}
    with without_spark(), pytest.raises(InputError, match=says):
        Autoscaler(FakeSession([]), **wrong)


def test_every_guard_goes_by_its_own_name() -> None:
    whole = Guards(maximum=50, cool_down=1.0, step_up=7, drain=5.0, sleep=True)
    with without_spark():
        made = Autoscaler(
            FakeSession([]), guards=whole, max_executors=9, cool_down="2m", step_up=2,
            tolerance=0.2, blackouts=["22:00-06:30"], drain=None, step_down=1, useful=False,
            over_provisioning=1.5, max_age="1 min", cap=20, at_cap="cancel",
        )  # fmt: skip
        assert made.guards == Guards(
            maximum=9, cool_down=120.0, step_up=2, tolerance=0.2, drain=None, step_down=1,
            blackouts=(Blackout.parse("22:00-06:30"),), useful=False, over_provisioning=1.5,
            max_age=60.0, cap=20, at_cap="cancel", sleep=True,
        )  # fmt: skip
        plain = Autoscaler(FakeSession([]), step_up=None, config={"guards.step_up": 3})
        assert plain.guards.step_up is None  # said to have none


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"cooldown": 5}, "did you mean 'cool_down'"),
        ({"steps_up": 5}, "did you mean 'step_up'"),
        ({"minimum": 2}, "'minimum'; use 'min_executors'"),
        ({"cool_down": "soon"}, "guards.cool_down = 'soon' must be a duration"),
        ({"step_up": 0}, "guards.step_up = 0: must be|guards.step_up = 0 must be"),
        ({"blackouts": ["noon"]}, "blackouts = "),
    ],
)
def test_a_wrong_guard_is_refused(said: Any, says: str) -> None:
    with without_spark(), pytest.raises(InputError, match=says):
        Autoscaler(FakeSession([]), **said)


def test_a_client_of_spark_connect_is_told_what_to_do() -> None:
    class Remote:
        """Has neither ``sparkContext`` nor ``_jvm``."""

    Remote.__module__ = "pyspark.sql.connect.session"
    with pytest.raises(InputError) as error:
        Autoscaler(Remote(), mode="act")
    words = str(error.value)
    assert "cannot attach from the client" in words and "Declarative Pipelines" in words
    assert "`penstock advise --app-url`" in words and "server's driver" in words


def test_on_spark_a_rescale_stops_nothing() -> None:
    with without_spark():
        assert parameters_of(Autoscaler(FakeSession([]), "ds2+").policy)["downtime"] == 0.0
        told = Autoscaler(FakeSession([]), "ds2+", parameters={"downtime": 9.0})
        assert parameters_of(told.policy)["downtime"] == 9.0


def test_what_goes_wrong_costs_one_line_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock")
    path = tmp_path / "j"

    def record(*_: Any) -> None:
        raise ValueError("their bug")

    story: list[Any] = [
        NotReady("nothing yet"), look(1000.0), EngineError("REST is gone"),
        EngineError("REST is gone"), KeyError("odd"), look(1090.0), EngineError("REST is gone"),
        look(1120.0),
    ]  # fmt: skip
    played(story, Scripted((RuntimeError("out of ideas"),)), record=record, journal=path)
    assert [e.decision.seen.time for e in read(path)[1]] == [1000.0, 1090.0, 1120.0]
    said = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert said == [
        "no change: the policy raised RuntimeError: out of ideas",
        "record: ValueError: their bug; deciding goes on",
        "no decision this time: REST is gone",
        "no decision this time: KeyError: 'odd'",
        "no decision this time: REST is gone",  # it had worked again meanwhile
    ]


def test_a_journal_that_cannot_be_written_is_no_reason_to_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    session, made = played(
        looks(1000.0, 1000.0), create("static", {"slots": 5}), journal=tmp_path / "file" / "j"
    )
    assert session.requests == [5] and len(made) == 2
    assert caplog.text.count("no journal, deciding goes on without") == 1


def test_a_session_that_is_stopped_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock")
    context = FakeSpark()

    def stop_session() -> None:
        context.__dict__["_jsc"] = None  # as pyspark does

    session = FakeSession([look(1000.0), stop_session, look(1015.0), look(1030.0)])
    session.sparkContext = context
    with without_spark():
        scaler = Autoscaler(session, mode="act", metrics_port=0).start()
        until("it let go", lambda: session.attached == 0 and scaler.metrics_url is None)
        assert len(session.story) == 1
        assert "the session was stopped" in caplog.text
        scaler.stop()
        Autoscaler(session, mode="act").start().stop()  # the application is free again


def test_started_twice_stopped_twice_from_anywhere() -> None:
    session = FakeSession(list(looks(1000.0)))
    with without_spark():
        scaler = Autoscaler(session, mode="act")
        assert scaler.start() is scaler.start() is scaler
        assert session.attached == 1
        other = threading.Thread(target=scaler.stop)
        other.start()
        other.join()
        scaler.stop()
        assert session.attached == 0
        session.story += looks(1000.0, start=3000.0)
        session.over.clear()
        with scaler:  # and again
            until("it decided again", lambda: scaler.last is not None
                  and scaler.last.seen.time == 3000.0)  # fmt: skip


def test_it_may_be_stopped_by_its_own_callback() -> None:
    session = FakeSession(list(looks(*[1000.0] * 5)))
    with without_spark():
        scaler = Autoscaler(session, record=lambda *_: scaler.stop())
        scaler.start()
        until("it let go", lambda: session.attached == 0)
    assert len(session.story) == 4


def test_a_forked_child_leaves_the_parents_alone() -> None:
    session = FakeSession([])
    with without_spark(), Autoscaler(session) as scaler:
        child = os.fork()
        if child == 0:
            scaler.stop()
            os._exit(0 if session.attached == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert session.attached == 1


def test_nothing_is_done_after_stop() -> None:
    session: FakeSession
    scaler: Autoscaler

    def stop() -> None:
        scaler._engine.stopped.set()

    session = FakeSession([stop, look()])
    with without_spark():
        scaler = Autoscaler(session, create("static", {"slots": 9}), mode="act")
        with scaler:
            until("it has decided", lambda: scaler.last is not None)
    assert session.requests == []
    assert "frozen: it was stopped" in scaler.last.explain() if scaler.last else False


def test_acting_needs_executors_of_its_own() -> None:
    with without_spark(), pytest.raises(InputError, match=r"master is local\[2\]"):
        Autoscaler(FakeSession([], sparkContext=FakeSpark(master="local[2]")), mode="act")


def test_news_at_info_once_and_a_heartbeat(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock")
    quiet = looks(*[2000.0 + i for i in range(50)])
    played([*quiet, look(2000.0, rate=4000.0), look(2015.0, rate=4000.0)], "ds2",
           guards=Guards(maximum=20, tolerance=0.1, cool_down=300.0), size=10)  # fmt: skip
    said = [r.getMessage() for r in caplog.records if r.getMessage().startswith("executors")]
    assert len(said) == 1 + 2 + 1 + 1  # the first, 750 s of heartbeats, the action, what follows
    assert said[0].startswith("executors 10 stays: ")
    assert said[1].endswith("· load 50 %, lag 100 records (0 s of input), 2,020 records/s offered")
    assert said[3].startswith("executors 10→20: ")


def test_advice_is_repeated_only_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "penstock")
    played(looks(1000.0, 1000.0, 1001.0, 3000.0), "ds2", mode="advise", guards=FREE, size=1)
    info = [r for r in caplog.records if r.getMessage().startswith("would do: executors 1→")]
    assert [r.levelname for r in info] == ["INFO", "DEBUG", "DEBUG", "INFO"]
