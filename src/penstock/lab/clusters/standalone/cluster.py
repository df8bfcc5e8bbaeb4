"""A Spark standalone cluster on this machine, from the pip package: one call, nothing left behind.

::

    with LocalCluster(ClusterSpec(slots=8, cpu_share=0.2)) as cluster:
        spark = cluster.session("demo", start_with=1)

One master, one worker with as many *slots* as executors may ever run, and executors with one core
and one slot each. Every executor lives in a control group with a CPU quota, so that eight of them
scale honestly on a machine with two cores. The quota is set when the executor has registered and
warmed up: starting a JVM at a fifth of a core would take half a minute and measure nothing.

The processes die with this Python process, however it ends; what a killed run leaves behind (its
groups, its folder) is cleaned at the next start, see :mod:`penstock.lab.host.leftovers`.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.daemons import (
    START_SECONDS,
    STOP_SECONDS,
    Daemons,
    Post,
    tail,
)
from penstock.lab.clusters.standalone.layout import (
    Layout,
    find_hierarchy,
    group_folders,
    groups_of,
)
from penstock.lab.clusters.standalone.sessions import HOST, Driver, settle, spark_conf
from penstock.lab.clusters.standalone.spec import ClusterSpec, check_share
from penstock.lab.clusters.standalone.watch import Executor, ExecutorWatch
from penstock.lab.host import cgroups, leftovers, processes
from penstock.lab.host.java import class_data, find_java, find_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.engine import SparkEngine

__all__ = ["ClusterSpec", "LocalCluster"]

DUMP_SECONDS = 300.0  # for the class-data archive; 20–60 s is normal


class LocalCluster:
    """A running standalone cluster; a context manager, or :meth:`start` and :meth:`stop`.

    ``url`` is the master's, ``folder`` holds everything the cluster writes and is removed with it.
    ``limited`` says whether CPU quotas are in force; if not, ``why_unlimited`` says why and what
    that means. ``say`` gets one line per step of progress.

    By default there is one worker, on loopback. ``host`` is another address of this machine for
    the master and for drivers, ``posts`` are where its first workers stand instead: see
    :mod:`penstock.lab.sites.cluster`.

    Executor ids repeat between applications. Methods that take an executor id or return some mean
    the application ``app`` (its Spark id), or the newest that has executors.
    """

    def __init__(
        self,
        spec: ClusterSpec | None = None,
        *,
        host: str = HOST,
        posts: Sequence[Post] | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.spec = spec = spec or ClusterSpec()
        self.host = host
        memory = spec.worker_memory(spec.slots)
        only = Post(host=host, slots=spec.slots, memory=memory, cpu_share=spec.cpu_share)
        self._posts = [only] if posts is None else list(posts)
        self.why_unlimited: str | None = None
        self._say = say
        self._owner = os.getpid()
        self._used = False
        self._run: leftovers.OwnedRun | None = None
        self._groups: cgroups.Groups | None = None
        self._nursery = processes.Nursery()
        self._daemons: Daemons | None = None
        self._watch: ExecutorWatch | None = None
        self._driver = Driver()
        self._signals = processes.NormalExit()

    @property
    def url(self) -> str:
        """The master's address."""
        return "" if self._daemons is None else self._daemons.url

    @property
    def failure(self) -> str | None:
        """Why it can start no executor any more, if so: its master died, or every new worker."""
        return None if self._daemons is None else self._daemons.failure

    @property
    def worker(self) -> int:
        """Process id of the first worker; a worker that dies is replaced by another."""
        return self._started().pid(self._posts[0].name)

    @property
    def posts(self) -> dict[str, Post]:
        """Where its workers stand, by name."""
        return self._started().posts

    def add_worker(self, post: Post) -> None:
        """Start one more worker; returns at once, it takes a few seconds to register."""
        self._started().add(post)

    def remove_worker(self, name: str) -> None:
        """End a worker, with what executors it has; idempotent."""
        self._started().remove(name)

    def worker_of(self, executor_id: str, app: str | None = None) -> str | None:
        """The name of the worker that started an executor; None if it is gone."""
        post = self._started().post_of(self._known(executor_id, app).worker)
        return None if post is None else post.name

    def _started(self) -> Daemons:
        self._running()
        assert self._daemons is not None
        return self._daemons

    @property
    def limited(self) -> bool:
        """Whether executors have a CPU quota."""
        return self._groups is not None

    @property
    def groups(self) -> cgroups.Groups | None:
        """The control groups of its executors, named APPLICATION.ID; ``None`` without limits."""
        return self._groups

    @property
    def folder(self) -> Path:
        """The private folder of this run: logs, work, local and temporary files."""
        return self._running().folder

    def _running(self) -> leftovers.OwnedRun:
        if self._run is None:
            raise EngineError("the cluster is not running: call start(), or use it in a with block")
        return self._run

    # ---- executors -------------------------------------------------------------------------

    def executors(self, app: str | None = None) -> dict[str, int]:
        """Process id of every registered executor, by executor id."""
        return {id: executor.pid for id, executor in self._registered(app).items()}

    def cpu_seconds(self, app: str | None = None) -> dict[str, float]:
        """CPU seconds that each executor has used since it started, Python workers included."""
        executors = self._registered(app)
        if self._groups is None:
            used = processes.tree_cpu_seconds(executor.pid for executor in executors.values())
            return {id: used[e.pid] for id, e in executors.items() if e.pid in used}
        seconds = {id: self._groups.cpu_seconds(e.key) for id, e in executors.items()}
        return {id: value for id, value in seconds.items() if value is not None}

    def nominal_share(self, executor_id: str, app: str | None = None) -> float | None:
        """The share of one core that an executor was promised; None: no limit."""
        return self._nominal_share(self._known(executor_id, app))

    def _nominal_share(self, executor: Executor) -> float | None:
        post = self._started().post_of(executor.worker)
        return self.spec.cpu_share if post is None else post.cpu_share

    def share(self, executor_id: str, app: str | None = None) -> float | None:
        """The share of one core that an executor is limited to now; None without a limit."""
        executor = self._known(executor_id, app)
        return None if self._groups is None else self._groups.share(executor.key)

    @property
    def warm(self) -> bool:
        """Whether there are executors, all past their time at full speed (unlimited: at once)."""
        ids = self.executors()
        return bool(ids) and (not self.limited or all(self.share(id) is not None for id in ids))

    def set_share(self, executor_id: str, share: float, app: str | None = None) -> None:
        """Give an executor another share of one core; it takes effect within 0.1 s."""
        check_share(share)
        executor = self._known(executor_id, app)
        if self._groups is None:
            raise EngineError(
                f"cannot give executor {executor_id} a share of {share:g}. {self.why_unlimited}"
            )
        if self._watch is not None:
            self._watch.end_warm_up(executor)
        self._groups.set_share(executor.key, share)

    def _registered(self, app: str | None) -> dict[str, Executor]:
        return {} if self._watch is None else self._watch.of(app)

    def _known(self, id: str, app: str | None) -> Executor:
        executors = self._registered(app)
        if id not in executors:
            have = ", ".join(executors) or "none"
            raise InputError(f"no executor {id!r} is registered; there are: {have}")
        return executors[id]

    # ---- sessions --------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """Environment variables for a process that is to create a session from :meth:`conf`."""
        self._running()
        return self._layout.driver_environment()

    def conf(self, *, start_with: int = 1) -> dict[str, str]:
        """Spark configuration for an application that begins with ``start_with`` executors.

        :meth:`session` does all that is needed. A program that makes its own session has to call
        :func:`penstock.lab.clusters.standalone.sessions.settle` with it; until then it stays at
        ``start_with``.
        """
        if not 1 <= start_with <= self.spec.slots:
            raise InputError(
                f"start_with is {start_with}; it must be between 1 and the {self.spec.slots} slots"
            )
        return spark_conf(
            url=self.url,
            host=self.host,
            folder=self.folder,
            memory=self.spec.executor_memory,
            start_with=start_with,
            data=self._layout.data,
            options=self._layout.names,
        )

    def session(
        self, name: str, *, start_with: int = 1, conf: Mapping[str, str] | None = None
    ) -> SparkSession:
        """A new Spark session on this cluster, with ``start_with`` executors registered.

        ``conf`` adds to :meth:`conf` and wins over it. The session ends with the cluster.
        """
        settings = self.conf(start_with=start_with) | dict(conf or {})
        self._say("starting the Spark driver…")
        session = self._driver.open(
            name, settings, self.environment(), self.folder / "logs" / "driver.log"
        )
        settle(session)
        self._wait_for_executors(session.sparkContext.applicationId, start_with)
        return session

    def engine(self, spark: Any, *, window: float = 15.0, arrivals: bool = False) -> SparkEngine:
        """The engine of a session on this cluster, which measures and limits its CPU."""
        from penstock.spark.engine import SparkEngine  # here: who only starts one has no use for it

        return SparkEngine(spark, window=window, cluster=self, arrivals=arrivals)

    def _wait_for_executors(self, app: str, count: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while (have := len(self._registered(app))) < count:
            if self.failure is not None:
                raise EngineError(self.failure)
            if time.monotonic() > deadline:
                logs = sorted((self.folder / "work" / app).glob("*/stderr"))
                raise EngineError(
                    f"{have} of {count} executors registered within {START_SECONDS:g} s. "
                    f"Last lines of an executor's log:\n{tail(logs[-1]) if logs else 'none'}"
                )
            time.sleep(0.02)

    # ---- start and stop --------------------------------------------------------------------

    def start(self) -> Self:
        """Clean up after killed runs, then start master and worker; a failure leaves nothing."""
        if self._used:
            raise InputError("a LocalCluster starts once; make a new one")
        self._java, self._spark = find_java(), find_spark()
        self._used = True
        begun = time.monotonic()
        cache = leftovers.cache_folder()
        leftovers.clean(cache, self._say)
        hierarchy, self.why_unlimited = find_hierarchy(self.spec.cpu_share)
        self._run = leftovers.open_run(cache, lambda id: group_folders(hierarchy, id))
        atexit.register(self._stop, save=False)
        self._signals.take()
        try:
            layout = self._layout = self._lay_out(cache, hierarchy)
            self._daemons = Daemons(
                nursery=self._nursery,
                command=layout.command,
                env=layout.environment(),
                folder=self.folder,
                say=self._say,
                host=self.host,
            )
            self._daemons.start(*self._posts)
        except BaseException:
            self._stop(save=False)
            raise
        self._watch = ExecutorWatch(
            self.folder, self._groups, self._nominal_share, self.spec.warm_up
        )
        self._say(f"cluster ready at {self.url} after {time.monotonic() - begun:.1f} s")
        if self.why_unlimited is not None:
            self._say(self.why_unlimited)
        return self

    def stop(self) -> None:
        """End everything the cluster started and remove its groups and its folder; idempotent.

        The first run on a machine then saves class data, unless an exception is on its way.
        """
        self._stop(save=sys.exception() is None)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop(save=kind is None)

    def _stop(self, *, save: bool) -> None:
        run = self._run
        if run is None or os.getpid() != self._owner:  # a forked child must not end our cluster
            return
        try:
            self._driver.close()
            if self._watch is not None:
                self._watch.stop()
            if self._daemons is not None:
                self._daemons.stop()
            processes.end_all(run.processes, within=STOP_SECONDS)
            if save and self._layout.data.wanted:
                self._layout.data.dump(self._succeeds, self._say)
        finally:
            self._nursery.close()
            if left := run.clear():
                self._say(f"could not remove {', '.join(left)}; the next start will try again")
            self._run = self._watch = None
            self._signals.restore()
            atexit.unregister(self._stop)

    def _succeeds(self, command: list[str]) -> bool:
        """Run one more child of this cluster to its end."""
        run = self._running()
        env = dict(os.environ) | {leftovers.RUN_VARIABLE: run.id}
        child = self._nursery.start(
            command, env=env, cwd=run.folder, log=run.folder / "logs" / "class-data.log"
        )
        try:
            return child.wait(DUMP_SECONDS) == 0
        except subprocess.TimeoutExpired:
            return False

    def _lay_out(self, cache: Path, hierarchy: cgroups.Hierarchy | None) -> Layout:
        """Fill the run's folder and make its control groups."""
        run = self._running()
        groups = groups_of(hierarchy, run.id)
        if groups is not None:
            groups.create()
            self._groups = groups
        layout = Layout(
            run=run,
            java=self._java,
            spark=self._spark,
            data=class_data(self._java, self._spark, cache=cache, lists=run.folder / "classes"),
            host=self.host,
            groups=() if groups is None else groups.folders,
        )
        layout.make()
        return layout
