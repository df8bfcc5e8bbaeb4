"""``penstock lab kafka`` as a user runs it: a broker in one terminal, events from another."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.lab.host import leftovers, processes
from penstock.lab.kafka.broker import free_port
from penstock.lab.kafka.cluster import KafkaCluster
from tests.fakes.shell import Shell
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark


def test_broker_and_produce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port, data = free_port(), tmp_path / "data"
    servers = f"127.0.0.1:{port}"
    command = [sys.executable, "-m", "penstock", "kafka", "broker"]
    broker = subprocess.Popen(
        [*command, "--port", str(port), "--data", str(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert broker.stdout is not None
        assert broker.stdout.readline() == f"{servers}\n"
        (run,) = [r for r in leftovers.runs(leftovers.cache_folder()) if r.owner.pid == broker.pid]
        (kafka,) = run.processes()
        start = int(time.time()) - 60
        shell = Shell.at(tmp_path, monkeypatch, capsys, "kafka", "produce")
        arguments = ["--bootstrap-servers", servers, "--workload", "constant", "--start"]
        options = [*arguments, str(start), "--minutes", "0.1", "--tables", "auction,bid"]
        done = shell(*options, "--json")
        assert done.code == 0
        assert (done.json["written"], done.json["interrupted"]) == (done.json["total"], False)
        assert done.json["topics"] == ["nexmark-auction", "nexmark-bid"]
        again = shell(*options)
        assert again.code == 0
        assert f"{done.json['total']:,}" in again.out
        assert max(map(len, again.out.splitlines())) <= 80
        cluster = KafkaCluster(servers)
        counts = [sum(cluster.end_offsets(topic).values()) for topic in done.json["topics"]]
        assert sum(counts) == done.json["total"]
    finally:
        broker.send_signal(signal.SIGINT)
        _, said = broker.communicate(timeout=60)
    assert broker.returncode == 130
    assert f"penstock lab kafka produce --bootstrap-servers {servers}" in said
    until("Kafka is gone", lambda: not processes.running(kafka), 10)
    assert (data / "meta.properties").exists()
    assert not run.record.exists() and not run.folder.exists()
