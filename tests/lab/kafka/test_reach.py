"""Reaching Kafka, and the commands, without a broker: what is said and how soon."""

from __future__ import annotations

import builtins
import socket
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import InputError, MissingError
from penstock.lab.kafka.broker import LocalBroker, free_port
from penstock.lab.kafka.cluster import KafkaCluster, addresses
from penstock.lab.sources.kafka import stream
from tests.fakes.shell import Shell


@pytest.fixture
def kafka(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell.at(tmp_path, monkeypatch, capsys, "kafka")


def test_a_missing_broker_is_said_with_every_address_and_the_ways_out(
    capfd: pytest.CaptureFixture[str],
) -> None:
    one, two = free_port(), free_port()
    with pytest.raises(MissingError) as caught:
        KafkaCluster(f"127.0.0.1:{one},127.0.0.1:{two}")
    assert caught.value.exit_code == 3
    for port in (one, two):
        assert f"127.0.0.1:{port}: Connection refused" in str(caught.value)
    for part in ("s of 10", "penstock lab kafka broker", "check the address"):
        assert part in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_something_else_that_listens_is_not_taken_for_kafka(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(MissingError, match="does not answer as Kafka does"):
            KafkaCluster(address, within=1.0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", ":9092", "a:1,b", "a:70000"])
def test_addresses_must_have_a_host_and_a_port(text: str) -> None:
    with pytest.raises(InputError, match="must look like HOST:PORT"):
        addresses(text)


def test_without_the_client_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("confluent_kafka"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingError, match=r"pip install 'penstock\[kafka\]'"):
        KafkaCluster("127.0.0.1:9")


def test_wrong_values_of_the_source_are_refused() -> None:
    unused: Any = None
    with pytest.raises(InputError, match="max_rows 0 must be ≥ 1"):
        stream(unused, "t", "bid", bootstrap_servers="127.0.0.1:9", max_rows=0)
    with pytest.raises(InputError, match="must look like HOST:PORT"):
        stream(unused, "t", "bid", bootstrap_servers="here")


def test_a_port_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="port is 0; it must be between 1 and 65535"):
        LocalBroker(port=0)


SERVERS = ("produce", "--bootstrap-servers", "127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*SERVERS, "--workload", "cosin"], "did you mean 'cosine'"),
        ([*SERVERS, "--workload-set", "low"], "--workload-set 'low' must look like KEY=VALUE"),
        ([*SERVERS, "--minutes", "0"], "--minutes 0 must be at least a second"),
        ([*SERVERS, "--tables", "bid,bids"], "unknown table 'bids'"),
        ([*SERVERS, "--partitions", "0"], "partitions 0 must be ≥ 1"),
        ([*SERVERS, "--processes", "9"], "processes 9 must be between 1 and 8"),
        (["produce", "--bootstrap-servers", "here"], "must look like HOST:PORT"),
        (["broker", "--port", "70000"], "port is 70000"),
    ],
)
def test_wrong_values_exit_2_before_anything_starts(
    kafka: Shell, arguments: list[str], said: str
) -> None:
    done = kafka(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_no_broker_exits_3_at_once(kafka: Shell) -> None:
    port = free_port()
    done = kafka("produce", "--bootstrap-servers", f"127.0.0.1:{port}", "--json")
    assert (done.code, done.out) == (3, "")
    assert "Connection refused" in done.err
