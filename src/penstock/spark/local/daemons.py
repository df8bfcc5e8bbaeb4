"""The master and the worker of a local cluster; a worker that dies is replaced.

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
from pathlib import Path
from typing import Literal

from penstock.core.errors import EngineError
from penstock.spark.local import processes
from penstock.spark.local.cluster_spec import ClusterSpec
from penstock.spark.local.driver import HOST

Role = Literal["master", "worker"]
START_SECONDS = 60.0  # for the master or the worker; 2–4 s is normal
STOP_SECONDS = 5.0
LOOK = 0.1  # seconds between looks at the two processes
RESTARTS, RESTARTS_WITHIN = 5, 60.0  # most new workers, and in how many seconds
LOCAL = ("--host", HOST, "--webui-port", "0")


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


class Daemons:
    """Starts a master and a worker and keeps an eye on them.

    ``command`` gives the command line of a role with its arguments, ``env`` their environment,
    ``folder`` is the cluster's. After :meth:`start`, ``url`` is the master's, ``restarts`` counts
    the workers that were replaced, ``failure`` says why no executor can start any more, if so.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        nursery: processes.Nursery,
        command: Callable[[Role, list[str]], list[str]],
        env: Mapping[str, str],
        folder: Path,
        say: Callable[[str], None],
        limit: Restarts | None = None,
    ) -> None:
        self.url = ""
        self.restarts = 0
        self.failure: str | None = None
        self._spec, self._nursery, self._command = spec, nursery, command
        self._env, self._folder, self._say = env, folder, say
        self._limit = limit or Restarts()
        self._running: dict[Role, subprocess.Popen[bytes]] = {}
        self._logs: dict[Role, Path] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="penstock-daemons")
        self._thread.daemon = True

    def pid(self, role: Role) -> int:
        """The process id of the daemon that plays a role now."""
        return self._running[role].pid

    def start(self) -> None:
        """Start the master, and the worker as soon as the master's port is open."""
        self._say("starting the Spark master…")
        self._launch("master", [*LOCAL, "--port", "0"])
        port = self._wait_for("master", rb"service 'sparkMaster' on port (\d+)")
        self.url = f"spark://{HOST}:{port}"
        self._say(f"starting a worker with {self._spec.slots} slots…")
        self._start_worker()
        self._thread.start()

    def stop(self) -> None:
        """End both; nothing is restarted any more."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        for daemon in self._running.values():
            daemon.terminate()
        for daemon in self._running.values():
            processes.terminate(daemon, within=STOP_SECONDS)

    def _start_worker(self) -> None:
        offer = ["-c", str(self._spec.slots), "-m", self._spec.worker_memory]
        self._launch("worker", [*LOCAL, *offer, "-d", str(self._folder / "work"), self.url])
        self._wait_for("worker", rb"Successfully registered with master()")

    def _launch(self, role: Role, arguments: list[str]) -> None:
        number = f"-{self.restarts}" if role == "worker" and self.restarts else ""
        self._logs[role] = self._folder / "logs" / f"{role}{number}.log"
        self._running[role] = self._nursery.start(
            self._command(role, arguments),
            env=self._env,
            cwd=self._folder / "work",
            log=self._logs[role],
        )

    def _wait_for(self, role: Role, pattern: bytes) -> str:
        """Wait until a daemon's log matches; returns what the pattern's group matched."""
        deadline = time.monotonic() + START_SECONDS
        log = self._logs[role]
        while not self._stopping.is_set():
            ended = self._running[role].poll()
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
            if (code := self._running["master"].poll()) is not None:
                self._fail(
                    f"the Spark master {_ended(code)}, and a master cannot be replaced: queries go "
                    "on with the executors they have, but get no new ones. Start a new cluster"
                )
                return
            if (code := self._running["worker"].poll()) is not None and not self._replace(code):
                return

    def _replace(self, code: int) -> bool:
        """Start a new worker for one that ended; False when the cluster is beyond repair."""
        if not self._limit.allowed(time.monotonic()):
            self._fail(
                f"the Spark worker {_ended(code)} again after {self._limit.most} new ones within "
                f"{self._limit.within:g} s; it is not started any more. Its last lines:\n"
                f"{tail(self._logs['worker'])}"
            )
            return False
        self.restarts += 1
        self._say(f"the Spark worker {_ended(code)}; starting a new one…")
        begun = time.monotonic()
        try:
            self._start_worker()
        except EngineError as problem:
            if self._stopping.is_set():
                return False
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
