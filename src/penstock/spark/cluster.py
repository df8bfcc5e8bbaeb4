"""A Spark standalone cluster on this machine, from the pip package: one call to start, none left.

::

    with LocalCluster(ClusterSpec(slots=8, cpu_share=0.2)) as cluster:
        spark = cluster.session("demo", start_with=1)

One master, one worker with as many *slots* as executors may ever run, and executors with one core
and one slot each. Every executor lives in a control group with a CPU quota, so that eight of them
scale honestly on a machine with two cores. The quota is set when the executor has registered:
starting a JVM at a fifth of a core would take 15 s and measure nothing.

The processes die with this Python process, however it ends; what a killed run leaves behind (its
groups, its folder) is cleaned at the next start, see :mod:`penstock.spark.remains`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.core.errors import EngineError, InputError
from penstock.spark import cgroups, processes, remains
from penstock.spark.java import ClassData, Java, class_data, class_path, find_java, find_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
START_SECONDS = 60.0  # for the master, the worker or the first executors; 2–4 s is normal
STOP_SECONDS = 5.0
TICK = 0.1  # s between two looks at the executors
QUOTA_AFTER = 60.0  # s after which an executor is limited even if its log does not say it registered
LEAST_MEMORY = 450 << 20  # bytes: Spark refuses executors with less
SHIM = Path(__file__).with_name("java_shim.sh")
START_WITH, GATES = "PENSTOCK_START_WITH", "PENSTOCK_GATES"

# Small, short-lived JVMs: one collector thread, one quick compiler, no file in /tmp.
_LEAN = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_EXECUTOR_LOG = """\
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
_REGISTERED = b"Successfully registered with driver"
_EXECUTOR_LOG_TELLS = """\
logger.backend.name = org.apache.spark.executor.CoarseGrainedExecutorBackend
logger.backend.level = info
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """What a local cluster offers.

    ``slots`` is the most executors that can run at once, ``executor_memory`` the heap of each in
    Spark's notation, ``cpu_share`` the CPU quota of each as a share of one core; None: no limit.

    >>> ClusterSpec(slots=4).cpu_share
    0.2
    """

    slots: int = 8
    executor_memory: str = "512m"
    cpu_share: float | None = 0.2

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= 256:
            raise InputError(f"slots is {self.slots}; it must be between 1 and 256")
        memory = _bytes(self.executor_memory)
        if memory is None:
            raise InputError(
                f"executor_memory is {self.executor_memory!r}; write it like '512m' or '2g'"
            )
        if memory < LEAST_MEMORY:
            raise InputError(
                f"executor_memory is {self.executor_memory}; Spark refuses less than 450m"
            )
        if self.cpu_share is not None:
            check_share(self.cpu_share)

    @property
    def worker_memory(self) -> str:
        """What the worker has to offer so that memory never limits the slots."""
        return f"{((_bytes(self.executor_memory) or 0) * self.slots >> 20) + 1}m"


def check_share(share: float) -> None:
    """Raise InputError unless ``share`` (of one core) is one that this machine can give."""
    most = os.cpu_count() or 1
    if not cgroups.LEAST_SHARE <= share <= most:
        raise InputError(
            f"cpu_share is {share:g}; it must be between {cgroups.LEAST_SHARE:g} and {most}, "
            "the number of cores of this machine"
        )


def _bytes(memory: str) -> int | None:
    match = re.fullmatch(r"(\d+)([mg])b?", memory.strip().lower())
    return None if match is None else int(match[1]) << {"m": 20, "g": 30}[match[2]]


@dataclass(slots=True)
class _Executor:
    """An executor process that the shim announced; ``app`` and ``id`` are Spark's names."""

    app: str
    id: str
    pid: int
    since: float = field(default_factory=time.monotonic)
    registered: bool = False

    @property
    def key(self) -> str:
        return f"{self.app}.{self.id}"


class LocalCluster:
    """A running standalone cluster; a context manager, or :meth:`start` and :meth:`stop`.

    ``url`` is the master's, ``folder`` holds everything the cluster writes and is removed with it.
    ``limited`` says whether CPU quotas are in force; if not, ``why_unlimited`` says why and what
    that means. ``say`` gets one line per step of progress.
    """

    def __init__(
        self, spec: ClusterSpec | None = None, *, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.spec = spec or ClusterSpec()
        self.url = ""
        self.limited = False
        self.why_unlimited: str | None = None
        self._say = say
        self._run: remains.Run | None = None
        self._owner = os.getpid()
        self._groups: cgroups.Groups | None = None
        self._nursery: processes.Nursery | None = None
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._executors: dict[str, _Executor] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None
        self._session: Any = None
        self._owns_driver = False
        self._handlers: dict[int, Any] = {}

    # ---- life ------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start master and worker; on failure nothing is left. Cleans up after killed runs first."""
        if self._run is not None:
            raise InputError("this cluster was already started; make a new LocalCluster")
        self._java, self._spark = find_java(), find_spark()
        begun = time.monotonic()
        cache = remains.cache_folder()
        remains.clean(cache, self._say)
        self._find_groups()
        hierarchy = self._hierarchy
        self._run = remains.open_run(cache, lambda id: _groups_of(hierarchy, id))
        atexit.register(self.stop)
        self._handle_signals()
        try:
            self._lay_out(cache)
            self._nursery = processes.Nursery()
            self._say("starting the Spark master…")
            self._launch("master", ["--host", HOST, "--port", "0", "--webui-port", "0"])
            port = self._wait_for("master", rb"service 'sparkMaster' on port (\d+)")
            self.url = f"spark://{HOST}:{port}"
            self._say(f"starting a worker with {self.spec.slots} slots…")
            slots, memory = str(self.spec.slots), self.spec.worker_memory
            options = ["--host", HOST, "--webui-port", "0", "-c", slots, "-m", memory]
            self._launch("worker", [*options, "-d", str(self.folder / "work"), self.url])
            self._wait_for("worker", rb"Successfully registered with master()")
        except BaseException:
            self.stop()
            raise
        self._watcher = threading.Thread(target=self._watch, name="penstock-watch", daemon=True)
        self._watcher.start()
        self._say(f"cluster ready at {self.url} after {time.monotonic() - begun:.1f} s")
        if self.why_unlimited is not None:
            self._say(self.why_unlimited)
        return self

    def stop(self) -> None:
        """End everything the cluster started and remove its groups and its folder; idempotent."""
        self._stop(save=False)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop(save=kind is None)

    def _stop(self, *, save: bool) -> None:
        run = self._run
        if run is None or os.getpid() != self._owner:  # a forked child must not end our cluster
            return
        try:
            self._end_session()
            self._stopping.set()
            if self._watcher is not None and self._watcher is not threading.current_thread():
                self._watcher.join(STOP_SECONDS)
            for executor in self._executors.values():
                if self._groups is not None:
                    with contextlib.suppress(OSError):
                        self._groups.limit(executor.key, None)  # so that it ends at full speed
            for daemon in self._daemons.values():
                daemon.terminate()
            for daemon in self._daemons.values():
                processes.terminate(daemon, within=STOP_SECONDS)
            if self._nursery is not None:
                self._nursery.close()
            processes.end_all(run.processes, within=STOP_SECONDS)
            if save and self._class_data.wanted:
                self._class_data.dump(self._say)
        finally:
            left = run.clear()
            if left:
                self._say(f"could not remove {', '.join(left)}; the next start will try again")
            self._run = None
            self._executors.clear()
            self._restore_signals()
            atexit.unregister(self.stop)

    def _handle_signals(self) -> None:
        """Let SIGTERM and SIGHUP end Python the normal way, unless the program handles them."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, _exit_normally)

    def _restore_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
        self._handlers.clear()

    # ---- starting --------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The private folder of this run: logs, work, local and temporary files."""
        if self._run is None:
            raise EngineError("the cluster is not running")
        return self._run.folder

    def _find_groups(self) -> None:
        self._hierarchy: cgroups.Hierarchy | None = None
        meaning = (
            "executors run without a CPU limit and compete for the "
            f"{os.cpu_count()} cores of this machine; figures for more executors than cores mean "
            "little"
        )
        if self.spec.cpu_share is None:
            self.why_unlimited = f"No CPU share was asked for: {meaning}."
            return
        found = cgroups.probe()
        self._hierarchy = found.hierarchy
        if found.hierarchy is None:
            self.why_unlimited = f"{found.reason}: {meaning}. To get limits, {found.fix}."
            self.why_unlimited = self.why_unlimited[0].upper() + self.why_unlimited[1:]

    def _lay_out(self, cache: Path) -> None:
        assert self._run is not None
        folder = self._run.folder
        for name in ("logs", "work", "local", "tmp", "gates", "executors", "classes", "java/bin"):
            (folder / name).mkdir(parents=True)
        (folder / "java/bin/java").symlink_to(SHIM)
        (folder / "executor-log.properties").write_text(_EXECUTOR_LOG + _EXECUTOR_LOG_TELLS)
        (folder / "driver-log.properties").write_text(_EXECUTOR_LOG)
        self._class_data: ClassData = class_data(
            self._java, self._spark, cache=cache, lists=folder / "classes"
        )
        if self._hierarchy is not None:
            self._groups = cgroups.Groups(hierarchy=self._hierarchy, name=_group(self._run.id))
            self._groups.create()
            self.limited = True

    def _launch(self, role: str, arguments: list[str]) -> None:
        assert self._run is not None and self._nursery is not None
        folder = self._run.folder
        command = [
            str(self._java.binary),
            *_LEAN,
            "-XX:-UsePerfData",
            "-Xmx256m",
            f"-Djava.io.tmpdir={folder / 'tmp'}",
            "-Dspark.master.rest.enabled=false",
            "-Dspark.decommission.enabled=true",
            *self._class_data.options(role),
            *("-cp", class_path(self._spark)),
            f"org.apache.spark.deploy.{role}.{role.capitalize()}",
            *arguments,
        ]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        self._daemons[role] = self._nursery.start(
            command, env=kept | self._daemon_env(), cwd=folder / "work", log=self._log(role)
        )

    def _daemon_env(self) -> dict[str, str]:
        """Environment of master and worker, which executors inherit and the shim reads."""
        assert self._run is not None
        folder, data = self._run.folder, self._class_data
        listing = data.wanted
        using = data.archive.exists() and bool(data.options("x"))
        return {
            remains.RUN_VARIABLE: self._run.id,
            "SPARK_HOME": str(self._spark),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "JAVA_HOME": str(folder / "java"),
            "TMPDIR": str(folder / "tmp"),
            "PENSTOCK_JAVA": str(self._java.binary),
            GATES: str(folder / "gates"),
            "PENSTOCK_EXECUTORS": str(folder / "executors"),
            "PENSTOCK_EXECUTOR_LOG": str(folder / "executor-log.properties"),
            "PENSTOCK_GROUPS": "\n".join(map(str, self._groups.folders if self._groups else ())),
            "PENSTOCK_CLASS_LISTS": str(data.lists) if listing else "",
            "PENSTOCK_ARCHIVE": str(data.archive) if using else "",
        }

    def _log(self, role: str) -> Path:
        return self.folder / "logs" / f"{role}.log"

    def _wait_for(self, role: str, pattern: bytes) -> str:
        """Wait until a daemon's log matches; returns what the pattern's group matched."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            ended = self._daemons[role].poll()
            log = self._log(role).read_bytes()
            if found := re.search(pattern, log):
                return found[1].decode()
            last = "\n".join(log.decode(errors="replace").splitlines()[-15:])
            if ended is not None:
                raise EngineError(f"the Spark {role} ended with exit code {ended}:\n{last}")
            if time.monotonic() > deadline:
                raise EngineError(
                    f"the Spark {role} was not ready after {START_SECONDS:g} s (2–4 s is normal; "
                    f"is the machine overloaded?). Its last lines:\n{last}"
                )
            time.sleep(0.02)

    # ---- executors -------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stopping.wait(TICK):
            self._look()

    def _look(self) -> None:
        """Notice new, registered and ended executors; limit the registered, clean up the ended."""
        assert self._run is not None
        announced = self._run.folder / "executors"
        for file in announced.glob("app-*"):
            if file.name not in self._executors:
                app, id = file.name.rsplit(".", 1)
                executor = _Executor(app, id, int(file.read_text()))
                with self._lock:
                    self._executors[executor.key] = executor
        for executor in list(self._executors.values()):
            if not processes.running(executor.pid):
                if self._groups is None or self._groups.remove(executor.key):
                    (announced / executor.key).unlink(missing_ok=True)
                    with self._lock:
                        del self._executors[executor.key]
            elif not executor.registered and self._has_registered(executor):
                if self._groups is not None and self.spec.cpu_share is not None:
                    with contextlib.suppress(EngineError):  # it ended meanwhile
                        self._groups.set_share(executor.key, self.spec.cpu_share)
                executor.registered = True

    def _has_registered(self, executor: _Executor) -> bool:
        if time.monotonic() - executor.since > QUOTA_AFTER:
            return True
        with contextlib.suppress(OSError):
            log = self.folder / "work" / executor.app / executor.id / "stderr"
            return _REGISTERED in log.read_bytes()
        return False

    def _of(self, app: str | None) -> dict[str, _Executor]:
        """Registered executors by id, of one application or of the newest that has any."""
        with self._lock:
            seen = [executor for executor in self._executors.values() if executor.registered]
        app = app or max((executor.app for executor in seen), default="")
        return {executor.id: executor for executor in seen if executor.app == app}

    def executors(self, app: str | None = None) -> dict[str, int]:
        """Process id of every registered executor, by executor id.

        Executor ids repeat between applications; ``app`` is the application id, and without it
        the newest application that has executors is meant, here and below.
        """
        return {id: executor.pid for id, executor in self._of(app).items()}

    def cpu_seconds(self, app: str | None = None) -> dict[str, float]:
        """CPU seconds that each executor has used since it started, Python workers included."""
        executors = self._of(app)
        if self._groups is None:
            used = processes.tree_cpu_seconds(executor.pid for executor in executors.values())
            return {id: used[e.pid] for id, e in executors.items() if e.pid in used}
        seconds = {id: self._groups.cpu_seconds(e.key) for id, e in executors.items()}
        return {id: value for id, value in seconds.items() if value is not None}

    def share(self, executor_id: str, app: str | None = None) -> float | None:
        """The share of one core that an executor is limited to now; None without a limit."""
        executor = self._known(executor_id, app)
        return None if self._groups is None else self._groups.share(executor.key)

    def set_share(self, executor_id: str, share: float, app: str | None = None) -> None:
        """Give an executor another share of one core; it takes effect within 0.1 s."""
        check_share(share)
        executor = self._known(executor_id, app)
        if self._groups is None:
            raise EngineError(
                f"cannot give executor {executor_id} a share of {share:g}. {self.why_unlimited}"
            )
        self._groups.set_share(executor.key, share)

    def _known(self, id: str, app: str | None) -> _Executor:
        executors = self._of(app)
        if id not in executors:
            have = ", ".join(executors) or "none"
            raise InputError(f"no executor {id!r} is registered; there are: {have}")
        return executors[id]

    # ---- sessions --------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """Environment variables for a process that is to create a session from :meth:`conf`."""
        return {
            remains.RUN_VARIABLE: self.folder.name,
            "JAVA_HOME": str(self._java.home),
            "SPARK_HOME": str(self._spark),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }

    def conf(self, *, start_with: int = 1) -> dict[str, str]:
        """Spark configuration for a streaming application that begins with ``start_with`` executors.

        The application has to call :func:`settle` once its session exists (:meth:`session` does);
        until then it stays at ``start_with``.
        """
        if not 1 <= start_with <= self.spec.slots:
            raise InputError(
                f"start_with is {start_with}; it must be between 1 and the {self.spec.slots} slots"
            )
        folder = self.folder
        driver = [
            f"-Djava.io.tmpdir={folder / 'tmp'}",
            f"-Dderby.system.home={folder / 'tmp'}",
            f"-Dlog4j2.configurationFile={folder / 'driver-log.properties'}",
            "-XX:-UsePerfData",
            *self._class_data.options(f"driver-{time.monotonic_ns()}"),
        ]
        return {
            "spark.master": self.url,
            "spark.executor.cores": "1",
            "spark.executor.memory": self.spec.executor_memory,
            "spark.executor.extraJavaOptions": " ".join(_LEAN),
            f"spark.executorEnv.{START_WITH}": str(start_with),
            f"spark.executorEnv.{GATES}": str(folder / "gates"),
            "spark.driver.extraJavaOptions": " ".join(driver),
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.ui.port": "0",
            "spark.ui.showConsoleProgress": "false",
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.pyspark.python": sys.executable,
            "spark.dynamicAllocation.enabled": "false",
            "spark.locality.wait": "0s",  # else a new executor may get no stateful task
            "spark.decommission.enabled": "true",
            "spark.storage.decommission.enabled": "true",
            "spark.storage.decommission.rddBlocks.enabled": "true",
            "spark.storage.decommission.shuffleBlocks.enabled": "true",
            "spark.storage.decommission.replicationReattemptInterval": "1s",
        }

    def session(
        self, name: str, *, start_with: int = 1, conf: Mapping[str, str] | None = None
    ) -> SparkSession:
        """A new Spark session on this cluster with ``start_with`` registered executors.

        ``conf`` adds to :meth:`conf` and wins over it. The session ends with the cluster.
        """
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        if SparkContext._active_spark_context is not None:
            raise InputError(
                "this process already has a Spark session, and Spark allows one: stop it first"
            )
        if self._session is not None:
            self._end_session()
        settings = self.conf(start_with=start_with) | dict(conf or {})
        fresh = SparkContext._gateway is None
        self._say("starting the Spark driver…")
        with _environment(self.environment()):
            builder: Any = SparkSession.builder.appName(name)
            for key, value in settings.items():
                builder = builder.config(key, value)
            try:
                session = builder.getOrCreate()
            finally:
                self._owns_driver = fresh and SparkContext._gateway is not None
        self._session = session
        settle(session)
        self._wait_for_executors(session.sparkContext.applicationId, start_with)
        return session

    def _wait_for_executors(self, app: str, count: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while len(self._of(app)) < count:
            if time.monotonic() > deadline:
                logs = sorted((self.folder / "work" / app).glob("*/stderr"))
                last = "\n".join(logs[-1].read_text().splitlines()[-15:]) if logs else "none"
                raise EngineError(
                    f"{len(self._of(app))} of {count} executors registered within "
                    f"{START_SECONDS:g} s. Last lines of the newest executor's log:\n{last}"
                )
            time.sleep(0.02)

    def _end_session(self) -> None:
        """Stop our session, and the driver's JVM if it was started for it."""
        if self._session is None and not self._owns_driver:
            return
        from pyspark import SparkContext

        session, self._session = self._session, None
        gateway: Any = SparkContext._gateway
        process = getattr(gateway, "proc", None)
        if session is not None and (process is None or process.poll() is None):
            with contextlib.suppress(Exception):  # it may have been stopped, or its JVM killed
                session.stop()
        if self._owns_driver and gateway is not None:
            self._owns_driver = False
            with contextlib.suppress(Exception):
                gateway.shutdown()
            if process is not None:
                process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS)
                if process.poll() is None:
                    process.kill()
                    process.wait()
            SparkContext._gateway = SparkContext._jvm = None


def settle(session: SparkSession) -> None:
    """Tell the master how many executors a new application begins with; harmless elsewhere.

    A standalone master starts executors on every free slot when an application registers; the
    cluster's Java shim holds all but the first ``start_with`` back until this was called.
    """
    context: Any = session.sparkContext
    configured = context.getConf()
    gates = configured.get(f"spark.executorEnv.{GATES}")
    start_with = configured.get(f"spark.executorEnv.{START_WITH}")
    if gates is None or start_with is None:
        return
    gate = Path(gates) / context.applicationId
    if not gate.exists():
        empty = context._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
        context._jsc.sc().requestTotalExecutors(int(start_with), 0, empty)
        gate.touch()


def _group(run_id: str) -> str:
    return f"penstock-{run_id}"


def _groups_of(hierarchy: cgroups.Hierarchy | None, run_id: str) -> tuple[Path, ...]:
    if hierarchy is None:
        return ()
    return cgroups.Groups(hierarchy=hierarchy, name=_group(run_id)).folders


def _exit_normally(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
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
