"""Sessions on a local cluster: their configuration, the driver's JVM, and how many executors.

Spark's standalone master starts executors on *every* free slot when an application registers:
``spark.executor.instances`` is ignored there, and ``spark.cores.max`` would also forbid growing
later. So the Java shim holds all but the first few executors back, as sleeping shells, until the
driver has told the master how many it wants: that is :func:`settle`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from penstock.core.errors import InputError
from penstock.lab.host.java import ClassData, hot_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
START_WITH, GATES = "PENSTOCK_START_WITH", "PENSTOCK_GATES"  # environment of executors
END_SECONDS = 5.0

# Small, short-lived JVMs: one collector thread and the quick compiler.
LEAN = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

LOG = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.hadoop.name = org.apache.hadoop.util.NativeCodeLoader
logger.hadoop.level = error
"""
# The line "Successfully registered with driver" must be there: the watch looks for it.
EXECUTOR_LOG = f"""\
{LOG}
logger.backend.name = org.apache.spark.executor.CoarseGrainedExecutorBackend
logger.backend.level = info
"""
# An executor that was told to leave is no error, and a batch that falls behind is what Penstock
# measures; that adaptive execution is off in streams, that a checkpoint is temporary and that
# messages arrive after the end is as it should be.
DRIVER_LOG = f"""\
{LOG}
logger.write.name = org.apache.spark.sql.execution.streaming.runtime.ResolveWriteToStream
logger.write.level = error
logger.trigger.name = org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor
logger.trigger.level = error
logger.rpc.name = org.apache.spark.rpc.netty.Dispatcher
logger.rpc.level = error
logger.batch.name = org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
logger.batch.level = warn
logger.batch.filter.aqe.type = RegexFilter
logger.batch.filter.aqe.regex = Disabling AQE.*
logger.batch.filter.aqe.onMatch = deny
logger.batch.filter.aqe.onMismatch = neutral
logger.scheduler.name = org.apache.spark.scheduler.TaskSchedulerImpl
logger.scheduler.level = warn
logger.scheduler.filter.leave.type = RegexFilter
logger.scheduler.filter.leave.regex = Lost (an )?executor.*[Dd]ecommission.*
logger.scheduler.filter.leave.onMatch = deny
logger.scheduler.filter.leave.onMismatch = neutral
"""


def spark_conf(
    *,
    url: str,
    host: str,
    folder: Path,
    memory: str,
    start_with: int,
    data: ClassData,
    options: Sequence[str] = (),
) -> dict[str, str]:
    """Spark configuration for a streaming application on throttled one-core executors.

    ``host`` the driver's address · ``options`` more options for its Java.

    Everything is written below ``folder``, nothing into the working folder. Blocks of an executor
    that is decommissioned move to others, so that no stage has to be computed again.
    """
    hot = ":".join(hot_jars(data.spark))
    driver = [
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-Dderby.system.home={folder / 'tmp'}",
        f"-Dlog4j2.configurationFile={folder / 'driver-log.properties'}",
        "-XX:-UsePerfData",
        *options,
        *data.options(f"driver-{time.monotonic_ns()}"),
    ]
    return {
        "spark.master": url,
        "spark.executor.cores": "1",
        "spark.executor.memory": memory,
        "spark.executor.extraJavaOptions": " ".join(LEAN),
        "spark.executor.extraClassPath": hot,
        f"spark.executorEnv.{START_WITH}": str(start_with),
        f"spark.executorEnv.{GATES}": str(folder / "gates"),
        "spark.driver.extraJavaOptions": " ".join(driver),
        "spark.driver.extraClassPath": hot,
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.pyspark.python": sys.executable,
        "spark.dynamicAllocation.enabled": "false",
        "spark.locality.wait": "0s",  # else a new executor may get no stateful task
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        "spark.storage.decommission.replicationReattemptInterval": "1s",  # 30 s delays leaving
    }


def settle(session: SparkSession) -> None:
    """Tell the master how many executors a new application begins with, and open the gate.

    Call it once, right after a session was made from a cluster's ``conf()``; a second call does
    nothing, nor does one for a session on any other cluster.
    """
    context: Any = session.sparkContext
    configured = context.getConf()
    gates = configured.get(f"spark.executorEnv.{GATES}")
    start_with = configured.get(f"spark.executorEnv.{START_WITH}")
    if gates is None or start_with is None or not Path(gates).is_dir():
        return
    gate = Path(gates) / context.applicationId
    if not gate.exists():
        empty = context._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
        context._jsc.sc().requestTotalExecutors(int(start_with), 0, empty)
        gate.touch()


class Driver:
    """The one Spark session that this Python process has on a cluster, and the JVM behind it."""

    def __init__(self) -> None:
        self._session: Any = None
        self._owns_jvm = False

    def open(
        self, name: str, conf: Mapping[str, str], env: Mapping[str, str], log: Path
    ) -> SparkSession:
        """A new session; its JVM is started with ``env`` unless this process has one already.

        What the JVM writes goes to ``log``: a terminal with a live view has no room for it.
        """
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        active: Any = SparkContext._active_spark_context
        if active is not None:
            raise InputError(
                f"this process already has a Spark session on {active.master}, and Spark allows "
                "one: stop it first"
            )
        self.close()
        fresh = SparkContext._gateway is None
        with environment(env), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
            settings = SparkConf(loadDefaults=False).setAppName(name).setAll(list(conf.items()))
            builder: Any = SparkSession.builder.config(conf=settings)
            try:
                if fresh:
                    with log.open("ab") as file:
                        streams = {"stdout": file, "stderr": file}
                        launch: Any = launch_gateway
                        SparkContext._gateway = launch(settings, popen_kwargs=streams)
                    SparkContext._jvm = SparkContext._gateway.jvm
                with own_interrupt():
                    self._session = builder.getOrCreate()
            finally:
                self._owns_jvm = fresh and SparkContext._gateway is not None
        return cast("SparkSession", self._session)

    def close(self) -> None:
        """Stop the session, and its JVM if it was started for it: the JVM's files go with us."""
        if self._session is None and not self._owns_jvm:
            return
        from pyspark import SparkContext

        session, self._session = self._session, None
        gateway: Any = SparkContext._gateway
        process = getattr(gateway, "proc", None)
        if session is not None and (process is None or process.poll() is None):
            with contextlib.suppress(Exception):  # it may have been stopped, or its JVM killed
                session.stop()
        if self._owns_jvm and gateway is not None:
            with contextlib.suppress(Exception):
                gateway.shutdown()
            if process is not None:
                _end(process)
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        self._owns_jvm = False


def _end(jvm: subprocess.Popen[bytes]) -> None:
    """A driver's JVM ends when its standard input does; kill it if it takes too long."""
    with contextlib.suppress(OSError):
        if jvm.stdin is not None:
            jvm.stdin.close()
    try:
        jvm.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


@contextlib.contextmanager
def own_interrupt() -> Iterator[None]:
    """Keep our SIGINT handler: Spark's calls into the JVM from inside a call into the JVM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while; the driver's JVM inherits them when it starts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
