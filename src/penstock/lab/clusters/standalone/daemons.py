"""The master and the workers of a local cluster; a worker that dies is replaced.

When a worker is killed its executors notice that it is gone and end by themselves; the master
keeps in mind how many executors every application wants and starts them on the new worker. A
master keeps all that in its memory, so one that dies cannot be replaced: running queries go on
with the executors they have, and nothing can grow or be repaired any more.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.sessions import HOST
from penstock.lab.host import processes

Role = Literal["master", "worker"]
START_SECONDS = 60.0  # for the master or the worker; 2–4 s is normal
STOP_SECONDS = 5.0
LOOK = 0.1  # seconds between looks at the processes
RESTARTS, RESTARTS_WITHIN = 5, 60.0  # most new workers, and in how many seconds
MASTER = "master"
REGISTERED = rb"Successfully registered with master()"


class Restarts:
    """Allows so many restarts within so many seconds.

    >>> limit = Restarts(most=1, within=60.0)
    >>> limit.allowed(0.0), limit.allowed(1.0), limit.allowed(61.0)
    (True, False, True)
    """

    def __init__(self, *, most: int = RESTARTS, within: float = RESTARTS_WITHIN) -> None:
        self.most, self.within = most, within
        self._moments: deque[float] = deque(maxlen=most)

    def allowed(self, now: float) -> bool:
        """Whether one more may be done now; if so it counts."""
        if len(self._moments) == self.most and now - self._moments[0] < self.within:
            return False
        self._moments.append(now)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Where a worker stands, and what it offers.

    ``name`` unlike that of any other worker · ``slots`` executors that it may run, with
    ``memory`` for all of them, and ``cpu_share`` of one core for each, None: no limit · ``host``
    its address · ``network`` the descriptor of the network namespace of that address, None: ours.
    """

    name: str = "worker"
    slots: int
    memory: str
    cpu_share: float | None
    host: str = HOST
    network: int | None = None


@dataclass(frozen=True, slots=True)
class _Daemon:
    """A master or worker that was started."""

    role: Role
    process: subprocess.Popen[bytes]
    log: Path


class Daemons:
    """Starts a master and workers and keeps an eye on them.

    ``command`` gives the command line of a role, its name and its arguments, ``env`` their
    environment, ``folder`` is the cluster's, ``host`` the master's address. After :meth:`start`,
    ``url`` is the master's, ``restarts`` counts the workers that were replaced, ``failure`` says
    why no executor can start any more, if so.
    """

    def __init__(
        self,
        *,
        nursery: processes.Nursery,
        command: Callable[[Role, str, list[str]], list[str]],
        env: Mapping[str, str],
        folder: Path,
        say: Callable[[str], None],
        host: str = HOST,
        limit: Restarts | None = None,
    ) -> None:
        self.url = ""
        self.restarts = 0
        self.failure: str | None = None
        self._nursery, self._command = nursery, command
        self._env, self._folder, self._say, self._host = env, folder, say, host
        self._limit = limit or Restarts()
        self._posts: dict[str, Post] = {}
        self._running: dict[str, _Daemon] = {}
        self._lock = threading.Lock()  # of the two, where a worker comes or goes
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="penstock-daemons")
        self._thread.daemon = True

    @property
    def posts(self) -> dict[str, Post]:
        """Where workers stand, by name."""
        with self._lock:
            return dict(self._posts)

    def pid(self, name: str) -> int:
        """The process id of the worker of that name now, or of the master."""
        return self._running[name].process.pid

    def post_of(self, pid: int) -> Post | None:
        """Where the worker with this process id stands."""
        with self._lock:
            pids = {self._running[name].process.pid: post for name, post in self._posts.items()}
        return pids.get(pid)

    def start(self, *posts: Post) -> None:
        """Start the master, and the workers as soon as the master's port is open."""
        self._say("starting the Spark master…")
        where = ["--host", self._host, "--webui-port", "0", "--port", "0"]
        master = self._launch("master", MASTER, where, self._host, None)
        self._running[MASTER] = master
        port = self._wait_for(master, rb"service 'sparkMaster' on port (\d+)")
        self.url = f"spark://{self._host}:{port}"
        slots = sum(post.slots for post in posts)
        many = f"{len(posts)} workers" if len(posts) > 1 else "a worker"
        self._say(f"starting {many} with {slots} slot{'s' if slots > 1 else ''}…")
        for worker in [self.add(post) for post in posts]:
            self._wait_for(worker, REGISTERED)
        self._thread.start()

    def stop(self) -> None:
        """End all; nothing is restarted any more."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        for daemon in list(self._running.values()):
            daemon.process.terminate()
        for daemon in list(self._running.values()):
            processes.terminate(daemon.process, within=STOP_SECONDS)

    def add(self, post: Post) -> _Daemon:
        """Start one more worker; returns at once."""
        if post.name in self._running:
            raise InputError(f"there is a worker {post.name!r} already")
        with self._lock:
            self._posts[post.name] = post
            return self._start_worker(post)

    def remove(self, name: str) -> None:
        """End a worker, and what executors it has, for good; idempotent."""
        with self._lock:
            self._posts.pop(name, None)
            worker = self._running.pop(name, None)
        if worker is not None:
            processes.terminate(worker.process, within=STOP_SECONDS)

    def _start_worker(self, post: Post) -> _Daemon:
        where = ["--host", post.host, "--webui-port", "0"]
        offer = ["-c", str(post.slots), "-m", post.memory, "-d", str(self._folder / "work")]
        arguments = [*where, *offer, self.url]
        worker = self._launch("worker", post.name, arguments, post.host, post.network)
        self._running[post.name] = worker
        return worker

    def _launch(
        self, role: Role, name: str, arguments: list[str], host: str, network: int | None
    ) -> _Daemon:
        number = f"-{self.restarts}" if role == "worker" and self.restarts else ""
        log = self._folder / "logs" / f"{name}{number}.log"
        process = self._nursery.start(
            self._command(role, name, arguments),
            env={**self._env, "SPARK_LOCAL_IP": host},
            cwd=self._folder / "work",
            log=log,
            network=network,
        )
        return _Daemon(role, process, log)

    def _wait_for(self, daemon: _Daemon, pattern: bytes) -> str:
        """Wait until a daemon's log matches; returns what the pattern's group matched."""
        deadline = time.monotonic() + START_SECONDS
        role, log = daemon.role, daemon.log
        while not self._stopping.is_set():
            ended = daemon.process.poll()
            if found := re.search(pattern, log.read_bytes()):
                return found[1].decode()
            if ended is not None:
                raise EngineError(f"the Spark {role} ended with exit code {ended}:\n{tail(log)}")
            if time.monotonic() > deadline:
                raise EngineError(
                    f"the Spark {role} was not ready after {START_SECONDS:g} s (2–4 s is normal; "
                    f"is the machine overloaded?). Its last lines:\n{tail(log)}"
                )
            time.sleep(0.02)
        raise EngineError(f"the cluster was stopped while its {role} started")

    def _supervise(self) -> None:
        while not self._stopping.wait(LOOK):
            if (code := self._running[MASTER].process.poll()) is not None:
                self._fail(
                    f"the Spark master {_ended(code)}, and a master cannot be replaced: queries go "
                    "on with the executors they have, but get no new ones. Start a new cluster"
                )
                return
            for name, post in self.posts.items():
                worker = self._running.get(name)
                if worker is None or (code := worker.process.poll()) is None:
                    continue
                if not self._replace(post, worker, code):
                    return

    def _replace(self, post: Post, worker: _Daemon, code: int) -> bool:
        """Start a new worker for one that ended; False when the cluster is beyond repair."""
        with self._lock:
            if self._posts.get(post.name) is not post:  # it was removed on purpose
                return True
            if not self._limit.allowed(time.monotonic()):
                self._fail(
                    f"the Spark worker {_ended(code)} again after {self._limit.most} new ones "
                    f"within {self._limit.within:g} s; it is not started any more. Its last "
                    f"lines:\n{tail(worker.log)}"
                )
                return False
            self.restarts += 1
            self._say(f"the Spark worker {_ended(code)}; starting a new one…")
            begun = time.monotonic()
            fresh = self._start_worker(post)
        try:
            self._wait_for(fresh, REGISTERED)
        except EngineError as problem:
            if self._stopping.is_set():
                return False
            if post.name in self.posts:
                self._say(str(problem))  # the next look finds it ended, or still on its way
        else:
            self._say(f"the new worker is ready after {time.monotonic() - begun:.1f} s")
        return True

    def _fail(self, what: str) -> None:
        self.failure = what
        self._say(what)


def tail(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


def _ended(code: int) -> str:
    return f"was killed (signal {-code})" if code < 0 else f"ended with exit code {code}"
