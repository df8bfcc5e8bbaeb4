"""Prometheus: scraped over loopback and read by its own parser."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as families

from penstock import __version__
from penstock.core.errors import EngineError, InputError
from penstock.core.guards import Guards
from penstock.policies import Static
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.exporter import NAMES, Exporter, PortError
from penstock.spark.freeze import KillSwitch
from penstock.spark.settings.settings import load
from tests.fakes.spark import FakeSession, look, looks, without_spark
from tests.fakes.waiting import until

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
GUARDS = Guards(minimum=1, maximum=9, cool_down=100.0)


def scraped(url: str | None) -> Series:
    assert url is not None
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    return {
        (s.name, frozenset(s.labels.items())): s.value for f in families(text) for s in f.samples
    }


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, frozenset(labels.items())))


@pytest.fixture
def no_spark() -> Iterator[None]:
    with without_spark():
        yield


def after(story: list[Any], policy: Any = None, **options: Any) -> Series:
    """What a scrape shows when a story has been played to the end."""
    session = FakeSession(story)
    options = {"mode": "act", "guards": GUARDS, "metrics_port": 0, **options}
    with without_spark(), Autoscaler(session, policy, **options) as scaler:
        until("the story is over", session.over.is_set)
        return scraped(scaler.metrics_url)


def test_the_last_decision_and_what_was_done() -> None:
    shown = after(looks(1000.0, 1000.0, 1200.0), Static(slots=6))
    assert value(shown, "penstock_info", version=__version__, policy="static", mode="act") == 1
    assert value(shown, "penstock_backlog_records", query="q") == 100.0
    assert value(shown, "penstock_backlog_seconds", query="q") == pytest.approx(1 / 12)
    assert value(shown, "penstock_offered_records_per_second", query="q") == 1200.0
    assert value(shown, "penstock_processed_records_per_second", query="q") == 1200.0
    assert value(shown, "penstock_latency_seconds", query="q", quantile="0.95") == 2.0
    assert value(shown, "penstock_batch_duration_seconds", query="q") == 0.8
    assert value(shown, "penstock_state_rows", query="q") == 7
    assert value(shown, "penstock_busy_ratio", query="q") == 0.5
    assert value(shown, "penstock_state_bytes", query="q") is None  # not measured: no series
    assert value(shown, "penstock_executors", pool="executors") == 6
    assert value(shown, "penstock_target_executors", pool="executors") == 6
    assert value(shown, "penstock_raw_target_executors", pool="executors") == 6.0
    assert value(shown, "penstock_cpu_share_ratio", pool="executors") == 1.0
    assert value(shown, "penstock_min_executors") == 1
    assert value(shown, "penstock_max_executors") == 9
    assert value(shown, "penstock_executor_cpu_ratio", executor="5") == 0.5
    assert value(shown, "penstock_executor_load_ratio", executor="5") == 0.4
    assert value(shown, "penstock_last_decision_timestamp_seconds") == 1030.0
    assert value(shown, "penstock_observation_age_seconds") == 1.0
    assert value(shown, "penstock_frozen") == 0
    assert value(shown, "penstock_actions_total", pool="executors", direction="up") == 1
    said = {"policy": "static", "reason": "policy"}
    assert value(shown, "penstock_decisions_total", action="up", **said) == 1
    assert value(shown, "penstock_decisions_total", action="stay", **said) == 2
    times = "penstock_action_duration_seconds"
    assert value(shown, f"{times}_count", phase="registered") == 1  # once, though seen twice
    assert value(shown, f"{times}_sum", phase="registered") == 0.0
    assert value(shown, f"{times}_count", phase="steady") is None


def test_every_name_is_exported_and_no_other() -> None:
    exporter = Exporter(load(environment={}))
    found = {
        f.name + ("_total" if f.type == "counter" else "") for f in exporter.registry.collect()
    }
    assert found == set(NAMES)


@pytest.mark.parametrize(
    ("reason", "guards", "story"),
    [
        ("cool-down", GUARDS, [*looks(1000.0), look(1015.0, rate=5000.0)]),
        ("bounds", replace(GUARDS, maximum=5, cool_down=0.0), looks(1000.0, 9000.0)),
        ("unusable", GUARDS, [look(1000.0), look(1000.0)]),
    ],
)
def test_the_reason_is_a_word(reason: str, guards: Guards, story: list[Any]) -> None:
    shown = after(story, "ds2", guards=guards)
    counted = [dict(labels) for (name, labels), _ in shown.items() if name.endswith("ions_total")]
    assert reason in {labels.get("reason") for labels in counted}


def test_frozen_is_shown_and_counted(tmp_path: Path) -> None:
    (tmp_path / "freeze").touch()
    shown = after(looks(1000.0), Static(slots=6), freeze_file=tmp_path / "freeze")
    assert value(shown, "penstock_frozen") == 1
    assert (
        value(shown, "penstock_decisions_total", policy="static", action="up", reason="frozen") == 1
    )
    assert value(shown, "penstock_actions_total", pool="executors", direction="up") is None


def test_frozen_at_the_last_gate_is_frozen_and_an_error_of_acting() -> None:
    asked: list[int] = []

    class Late(KillSwitch):
        @property
        def reason(self) -> str | None:
            asked.append(1)
            return "just now" if len(asked) == 3 else None  # the tick, the loop, the last gate

    shown = after(looks(1000.0), Static(slots=6), switch=Late())
    decided = {"policy": "static", "action": "up", "reason": "frozen"}
    assert value(shown, "penstock_decisions_total", **decided) == 1
    assert value(shown, "penstock_errors_total", kind="act") == 1
    assert value(shown, "penstock_frozen") == 0


def test_errors_are_counted_every_time() -> None:
    shown = after([EngineError("gone"), EngineError("gone"), KeyError("odd"), look()])
    assert value(shown, "penstock_errors_total", kind="observe") == 2
    assert value(shown, "penstock_errors_total", kind="other") == 1
    assert value(shown, "penstock_errors_total", kind="policy") == 0


def test_series_of_what_is_gone_are_removed() -> None:
    gone = look(1000.0)
    both = replace(gone, queries={**gone.queries, "r" * 300: gone.queries["q"]})
    shown = after([both, look(1200.0)], Static(slots=2))
    assert value(shown, "penstock_backlog_records", query="q") == 100.0
    names = {dict(labels).get("query") for _, labels in shown}
    assert names == {None, "q"}
    shown = after([both, replace(look(1200.0), queries={})], Static(slots=2))
    assert {dict(labels).get("query") for _, labels in shown} == {None}
    long = after([both])
    assert {len(dict(labels).get("query", "q")) for _, labels in long} == {1, 100}
    four, two = after([look(1000.0)]), after([look(1000.0), look(1200.0)], Static(slots=2))
    executors = [{dict(labels).get("executor") for _, labels in s} - {None} for s in (four, two)]
    assert executors == [{"0", "1", "2", "3"}, {"2", "3"}]


def test_a_port_in_use_is_a_clear_error_and_nothing_is_left(no_spark: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        session = FakeSession([])
        with pytest.raises(PortError, match=rf"metrics_port {port} on 127.0.0.1 .*0 for any free"):
            Autoscaler(session, mode="act", metrics_port=port).start()
        assert session.attached == 0
        Autoscaler(session, mode="act").start().stop()  # it may be tried again without
    assert issubclass(PortError, InputError)


def test_stop_closes_the_port_and_it_can_be_had_again(no_spark: None) -> None:
    session = FakeSession([])
    with Autoscaler(session, metrics_port=0) as scaler:
        url = scaler.metrics_url
        assert url is not None and url.startswith("http://127.0.0.1:")
    assert scaler.metrics_url is None
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=10)
    port = int(url.split(":")[2].split("/")[0])
    with Autoscaler(session, metrics_port=port) as again:
        assert again.metrics_url == url
        assert value(scraped(url), "penstock_frozen") == 0


def test_off_by_default(no_spark: None) -> None:
    with Autoscaler(FakeSession([])) as scaler:
        assert scaler.metrics_url is None
