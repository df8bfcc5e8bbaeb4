"""A Kafka broker on this machine: one process, on loopback, nothing left behind.

::

    with LocalBroker() as broker:
        print(broker.bootstrap_servers)

It is broker and controller at once (KRaft). It ends with this Python process, however that ends;
what a killed run leaves behind is cleaned at the next start (:mod:`penstock.lab.host.leftovers`).
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.daemons import tail
from penstock.lab.clusters.standalone.sessions import HOST, LEAN
from penstock.lab.host import leftovers, processes
from penstock.lab.host.java import find_java
from penstock.lab.kafka.jars import broker_jars

START_SECONDS = 60.0  # 3–5 s is normal
STOP_SECONDS = 15.0  # 2 s is normal
FORMAT_SECONDS = 60.0
TRIES = 3  # with other ports, when another program took one between our look and Kafka's
LOOK = 0.02
READY = b"Kafka Server started"
TAKEN = "Address already in use"
MEMORY = ("-Xms64m", "-Xmx384m")

LOG = """\
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""
# Offsets name rows, so nothing may be deleted, and a topic is only made on purpose. A killed
# broker cannot come back before its session has ended, which takes 9 s by default.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
log.retention.ms=-1
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
"""


class LocalBroker:
    """A running broker; a context manager, or :meth:`start` and :meth:`stop`.

    ``port`` on 127.0.0.1; None: a free one. ``data`` is a folder that is kept; None: a temporary
    one that goes with the broker. ``say`` gets one line per step of progress.
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        data: Path | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        if port is not None and not 1 <= port <= 65535:
            raise InputError(f"port is {port}; it must be between 1 and 65535")
        self._wanted, self._data, self._say = port, data, say
        self._ports = (0, 0)  # for clients, for the controller
        self._owner = os.getpid()
        self._run: leftovers.OwnedRun | None = None
        self._nursery = processes.Nursery()
        self._process: subprocess.Popen[bytes] | None = None
        self._signals = processes.NormalExit()

    @property
    def bootstrap_servers(self) -> str:
        """Its address, as clients take it."""
        self._running()
        return f"{HOST}:{self._ports[0]}"

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id; of the last process if it was killed."""
        self._running()
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> Path:
        """The file that it and its predecessors since :meth:`start` have logged to."""
        return self._running().folder / "broker.log"

    def start(self) -> Self:
        """Download Kafka if needed and start it; returns when clients can connect."""
        if self._run is not None:
            raise InputError("this broker is running already: stop it first, or call restart()")
        jars = broker_jars(self._say)
        self._java = find_java()
        self._class_path = ":".join(map(str, jars))
        cache = leftovers.cache_folder()
        leftovers.clean(cache, self._say)
        self._run = leftovers.open_run(cache)
        self._nursery = processes.Nursery()
        atexit.register(self.stop)
        self._signals.take()
        begun = time.monotonic()
        try:
            self._say("starting a Kafka broker…")
            self._lay_out()
            self._start_on_free_ports()
        except BaseException:
            self.stop()
            raise
        self._say(f"broker ready at {self.bootstrap_servers} ({time.monotonic() - begun:.1f} s)")
        return self

    def stop(self) -> None:
        """End it in order and remove what it wrote, except a folder given as ``data``."""
        run = self._run
        if run is None or os.getpid() != self._owner:  # a forked child must not end our broker
            return
        try:
            self._end()
        finally:
            self._nursery.close()
            if left := run.clear():
                self._say(f"could not remove {', '.join(left)}; the next start will try again")
            self._run = self._process = None
            self._signals.restore()
            atexit.unregister(self.stop)

    def kill(self) -> None:
        """End it at once, as when its machine fails; :meth:`restart` brings it back."""
        self._running()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Start it again on the same data and ports; ends it first if it runs."""
        self._running()
        self._end()
        self._launch()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _running(self) -> leftovers.OwnedRun:
        if self._run is None:
            raise EngineError("the broker is not running: call start(), or use it in a with block")
        return self._run

    @property
    def _data_folder(self) -> Path:
        return self._running().folder / "data" if self._data is None else self._data.absolute()

    def _lay_out(self) -> None:
        folder = self._running().folder
        (folder / "tmp").mkdir()
        (folder / "log.properties").write_text(LOG)
        try:
            self._data_folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(
                f"data folder {self._data_folder}: {problem.strerror}; name one that can be written"
            ) from None

    def _start_on_free_ports(self) -> None:
        for left in reversed(range(TRIES)):
            self._ports = (self._wanted or free_port(), free_port())
            try:
                self._format()
                self._launch()
                return
            except EngineError as problem:
                if TAKEN not in str(problem) or self._wanted is not None or not left:
                    raise

    def _format(self) -> None:
        """Write the properties; give a new data folder the identity that Kafka wants."""
        properties = self._running().folder / "server.properties"
        port, controller = self._ports
        properties.write_text(
            PROPERTIES.format(host=HOST, port=port, controller=controller, data=self._data_folder)
        )
        if (self._data_folder / "meta.properties").exists():
            return
        cluster = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        # A cluster id must not begin with a dash: Kafka's own tools would take it for an option.
        arguments = ["format", "--cluster-id", f"A{cluster[1:]}", "--config", str(properties)]
        child = self._child("kafka.tools.StorageTool", *arguments)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if child.wait(FORMAT_SECONDS) == 0:
                return
        child.kill()
        child.wait()
        raise EngineError(f"Kafka could not set up {self._data_folder}:\n{tail(self.log)}")

    def _launch(self) -> None:
        """Start the process and wait until it serves clients."""
        properties = self._running().folder / "server.properties"
        before = self.log.stat().st_size if self.log.exists() else 0
        self._process = self._child("kafka.Kafka", str(properties))
        deadline = time.monotonic() + START_SECONDS
        while True:
            ended = self._process.poll()
            with self.log.open("rb") as file:
                file.seek(before)
                if READY in file.read():
                    return
            if ended is not None:
                raise EngineError(f"Kafka ended with exit code {ended}:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise EngineError(
                    f"Kafka was not ready after {START_SECONDS:g} s (3–5 s is normal; is the "
                    f"machine overloaded?). Its last lines:\n{tail(self.log)}"
                )
            time.sleep(LOOK)

    def _child(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        run = self._running()
        command = [
            str(self._java.binary),
            *LEAN,
            *MEMORY,
            "-XX:-UsePerfData",  # no file in /tmp
            f"-Djava.io.tmpdir={run.folder / 'tmp'}",
            f"-Dlog4j2.configurationFile={run.folder / 'log.properties'}",
            *("-cp", self._class_path, main, *arguments),
        ]
        env = dict(os.environ) | {leftovers.RUN_VARIABLE: run.id}
        return self._nursery.start(command, env=env, cwd=run.folder, log=self.log)

    def _end(self) -> None:
        if self._process is not None and self.alive:
            processes.terminate(self._process, within=STOP_SECONDS)


def free_port() -> int:
    """A port of 127.0.0.1 that no program listens on at this moment."""
    with socket.socket(socket.AF_INET) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
