"""Where runs can be spread to: Spark on this machine, or a standalone cluster.

A session lives as long as its ``with`` block. What it writes is in a folder of its own, which is
removed with it; :mod:`penstock.lab.host.leftovers` cleans up if this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock
from penstock.comparison.runner import cores
from penstock.core.errors import EngineError, InputError, MissingError
from penstock.lab.clusters.standalone.daemons import tail
from penstock.lab.clusters.standalone.sessions import (
    END_SECONDS,
    HOST,
    LEAN,
    LOG,
    environment,
    own_interrupt,
)
from penstock.lab.host import leftovers, processes
from penstock.lab.host.java import class_data, find_java, find_spark, hot_jars

if TYPE_CHECKING:
    from pyspark import SparkContext

CONNECT_SECONDS = 5.0  # for a master to take a connection
REGISTER_SECONDS = 30.0  # for a master to accept an application; 2 s is normal
EXECUTOR_SECONDS = 60.0  # for the first executor of a cluster; 3 s is normal
SETTLE_SECONDS = 1.0  # without another executor: they are all there
MEMORY = "512m"  # of an executor's Java, which only passes bytes on
TRIES = 4  # of a task whose Python was killed, as on a cluster; local Spark would give up at once
NAME = "penstock-bench"
WARM = "penstock.bench.spread.warm_daemon"  # forks workers that have imported all
CODE = "penstock-code"  # the folder that executors unpack the package into

_LOCAL = re.compile(r"local(?:\[(\*|[1-9]\d{0,3})\])?")
_REMOTE = re.compile(r"spark://[^\s,:/]+:\d{1,5}(?:,[^\s,:/]+:\d{1,5})*")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """``local`` (one run at a time), ``local[N]``, ``local[*]`` or ``spark://HOST:PORT``.

    ``cores`` of a standalone cluster to use at most; all that are free if left out.
    """

    url: str
    cores: int | None = None

    def __post_init__(self) -> None:
        if not (self.remote or _LOCAL.fullmatch(self.url)):
            raise InputError(
                f"the master {self.url!r} must be spark://HOST:PORT, local, local[*], or local[N] "
                "with N from 1 to 9999"
            )
        if not self.remote and self.cores is not None:
            raise InputError(
                f"{self.cores} workers on {self.url}: say local[{self.cores}] instead; a number of "
                "workers is for spark://HOST:PORT"
            )

    @property
    def remote(self) -> bool:
        """Whether it is a cluster, whose executors may be on other machines."""
        return _REMOTE.fullmatch(self.url) is not None

    @property
    def slots(self) -> int | None:
        """Runs at a time; ``None`` where only the cluster knows.

        >>> Master(url="local[3]").slots
        3
        """
        local = _LOCAL.fullmatch(self.url)
        if local is None:
            return self.cores
        return cores() if local[1] == "*" else int(local[1] or 1)

    def check(self) -> None:
        """Raise ``MissingError`` unless Java and Spark are here and the master answers."""
        find_spark()
        find_java()
        self.address()

    def address(self) -> str:
        """The address of this machine under which executors can reach the driver."""
        if not self.remote:
            return HOST
        tried = []
        for place in self.url.removeprefix("spark://").split(","):
            host, _, port = place.rpartition(":")
            try:
                with socket.create_connection((host, int(port)), CONNECT_SECONDS) as connection:
                    return str(connection.getsockname()[0])
            except (OSError, OverflowError) as error:
                tried.append(f"{place}: {getattr(error, 'strerror', None) or error}")
        raise MissingError(
            f"no Spark master answers ({'; '.join(tried)}). Start it, or give the URL that it "
            "shows on its page; local[N] needs none"
        )


@contextmanager
def connected(master: Master, files: Mapping[str, str], say: Say) -> Iterator[SparkContext]:
    """A Spark application on a master, with executors.

    ``files`` to send with the package to a cluster: where they go, by their path here.
    """
    _check_unused()
    cache = leftovers.cache_folder()
    leftovers.clean(cache, say)
    run = leftovers.open_run(cache)
    signals = processes.NormalExit()
    signals.take()
    try:
        say(f"starting Spark on {master.url}…")
        context = _start(master, run)
        if master.remote:
            context.addArchive(f"{_packed(run.folder, files)}#{CODE}")
            _wait_for_executors(master, context)
        yield context
    finally:
        _stop()
        if left := run.clear():  # Java and what it started end here, if they still run
            say(f"could not remove {', '.join(left)}; the next start will try again")
        signals.restore()


def _start(master: Master, run: leftovers.OwnedRun) -> SparkContext:
    for name in ("tmp", "local"):
        (run.folder / name).mkdir()
    (run.folder / "log.properties").write_text(LOG)
    log = run.folder / "driver.log"
    address = master.address()
    conf = _conf(master, run, address)
    late = _Deadline(run)
    with environment(_environment(master, run, address)):
        try:
            return _context(conf, log, late if master.remote else contextlib.nullcontext())
        except Exception as error:
            if late.passed:
                raise MissingError(
                    f"{master.url} took the connection, but did not accept this Spark "
                    f"{version('pyspark')} within {REGISTER_SECONDS:g} s: it is no Spark master, "
                    "or one of another version"
                ) from error
            raise EngineError(
                f"Spark did not start. Last lines of its log:\n{tail(log)}"
            ) from error


def _check_unused() -> None:
    from pyspark import SparkContext

    if getattr(SparkContext, "_gateway", None) is not None:
        raise InputError(
            "this Python process has started Spark before, and Spark can be started once; "
            "spread runs from a process of its own"
        )


def _context(conf: Mapping[str, str], log: Path, deadline: Any) -> SparkContext:
    """A Java of our own and a context in it; a session would take some seconds longer."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    shared: Any = SparkContext
    settings = SparkConf(loadDefaults=False).setAppName(NAME).setAll(list(conf.items()))
    with log.open("ab") as file:
        launch: Any = launch_gateway
        shared._gateway = launch(settings, popen_kwargs={"stdout": file, "stderr": file})
    shared._jvm = shared._gateway.jvm
    with own_interrupt(), deadline:
        return SparkContext(conf=settings)


def _stop() -> None:
    from pyspark import SparkContext

    shared: Any = SparkContext
    context, gateway = shared._active_spark_context, shared._gateway
    with contextlib.suppress(Exception):  # Java may be gone
        if context is not None:
            server, context._accumulatorServer = context._accumulatorServer, None
            server.handle_error = lambda *_: None  # Java leaves it, as it should
            threading.Thread(target=server.shutdown, daemon=True).start()  # takes a second
            context.stop()
    with contextlib.suppress(Exception):
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()  # Java ends with it
            gateway.proc.wait(END_SECONDS)
    shared._gateway = shared._jvm = shared._active_spark_context = None


def _environment(master: Master, run: leftovers.OwnedRun, address: str) -> dict[str, str]:
    return {
        leftovers.RUN_VARIABLE: run.id,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(find_spark()),
        "SPARK_LOCAL_IP": address,
        "SPARK_LOCAL_DIRS": str(run.folder / "local"),
        "SPARK_LAUNCHER_OPTS": " ".join([*LEAN, "-XX:-UsePerfData"]),
        "PYSPARK_PYTHON": _python(master),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


class _Deadline:
    """Ends the Java of a run that a master does not accept in time; Spark would try for longer."""

    def __init__(self, run: leftovers.OwnedRun) -> None:
        self.passed = False
        self._run = run
        self._timer = threading.Timer(REGISTER_SECONDS, self._end)
        self._timer.daemon = True

    def _end(self) -> None:
        self.passed = True
        processes.end_all(self._run.processes, within=leftovers.END_SECONDS)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _conf(master: Master, run: leftovers.OwnedRun, address: str) -> dict[str, str]:
    data = class_data(find_java(), find_spark(), cache=leftovers.cache_folder(), lists=run.folder)
    options = [
        f"-Djava.io.tmpdir={run.folder / 'tmp'}",
        f"-Dlog4j2.configurationFile={run.folder / 'log.properties'}",
        "-XX:-UsePerfData",
        *LEAN,
        *(data.options("driver") if data.usable else ()),
    ]
    conf = {
        "spark.master": master.url if master.remote else f"local[{master.slots},{TRIES}]",
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.driver.extraClassPath": ":".join(hot_jars(find_spark())),
        "spark.driver.maxResultSize": "0",  # journals pass through, they do not pile up
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(run.folder / "warehouse"),
        "spark.dynamicAllocation.enabled": "false",
    }
    if master.remote:
        conf |= {
            "spark.executor.memory": MEMORY,
            "spark.executorEnv.PYTHONPATH": CODE,
        }
    else:  # the same Python as here
        conf["spark.python.daemon.module"] = WARM
    if master.cores is not None:
        conf["spark.cores.max"] = str(master.cores)
    return conf


def _python(master: Master) -> str:
    """The interpreter of the executors: on other machines it may be elsewhere."""
    return os.environ.get("PYSPARK_PYTHON", sys.executable) if master.remote else sys.executable


def _packed(folder: Path, files: Mapping[str, str]) -> Path:
    """This package and some files as an archive, whole: it cannot run from inside a zip file."""
    package = Path(penstock.__file__).parent
    archive = folder / f"{CODE}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                packed.write(path, path.relative_to(package.parent))
        for file, place in files.items():
            packed.write(file, place)
    return archive


def _wait_for_executors(master: Master, context: Any) -> None:
    """Until the cluster has given what it has, or not a single one."""
    begun = changed = time.monotonic()
    count = 0
    while not count or time.monotonic() - changed < SETTLE_SECONDS:
        now = context._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is one, too
        if now != count:
            count, changed = now, time.monotonic()
        if not count and time.monotonic() - begun > EXECUTOR_SECONDS:
            raise MissingError(
                f"{master.url} has started no executor within {EXECUTOR_SECONDS:g} s: no worker "
                f"there has a free core and {MEMORY} of memory, or its executors cannot reach "
                f"this machine at {context.getConf().get('spark.driver.host')}"
            )
        time.sleep(0.1)
