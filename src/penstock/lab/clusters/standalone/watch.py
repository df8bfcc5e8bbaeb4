"""Watching the executors of a local cluster: who is there, and a CPU quota once they are warm.

The Java shim announces each executor as a file ``executors/<application>.<id>`` that holds its
pid. A thread looks ten times a second for new files, for the line in an executor's log that says
it has registered (which needs no help from the driver, so it works for any application), and for
processes that are gone.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import EngineError
from penstock.lab.host import cgroups, processes

TICK = 0.1  # s
QUOTA_AFTER = 60.0  # s until an executor is limited even if its log does not say it registered
REGISTERED = b"Successfully registered with driver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """An executor process; ``app`` and ``id`` are Spark's names for it.

    ``worker`` is the process id of the worker that started it.
    """

    app: str
    id: str
    pid: int
    worker: int

    @property
    def key(self) -> str:
        """Its name among all applications; ids repeat between them."""
        return f"{self.app}.{self.id}"


class ExecutorWatch:
    """Knows the registered executors of a cluster and keeps their control groups in order.

    ``folder`` is the cluster's; ``groups`` is None without limits; ``share_of`` an executor is
    what it may use of one core, None: no limit; ``warm_up`` CPU-seconds an executor may use at
    full speed after it has registered.
    """

    def __init__(
        self,
        folder: Path,
        groups: cgroups.Groups | None,
        share_of: Callable[[Executor], float | None],
        warm_up: float = 0.0,
    ) -> None:
        self._folder = folder
        self._groups = groups
        self._share_of = share_of
        self._warm_up = warm_up
        self._warming: dict[str, float] = {}  # CPU-seconds at which each is limited
        self._starting: dict[str, tuple[Executor, float]] = {}  # with the time it was first seen
        self._registered: dict[str, Executor] = {}  # replaced as a whole, so readers need no lock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and take all limits off, so that executors end at full speed."""
        self._stopping.set()
        self._thread.join()
        if self._groups is not None:
            for key in (*self._registered, *self._starting):
                with contextlib.suppress(OSError):
                    self._groups.limit(key, None)

    def of(self, app: str | None) -> dict[str, Executor]:
        """Registered executors by id, of one application or of the newest that has any."""
        seen = self._registered.values()
        app = app or max((executor.app for executor in seen), default="")
        return {executor.id: executor for executor in seen if executor.app == app}

    def end_warm_up(self, executor: Executor) -> None:
        """Leave the limit of an executor to the caller from now on."""
        self._warming.pop(executor.key, None)

    def _run(self) -> None:
        while not self._stopping.wait(TICK):
            with contextlib.suppress(OSError):  # a file vanished with its executor: look again
                self._look()

    def _look(self) -> None:
        for file in (self._folder / "executors").glob("app-*"):
            if file.name not in self._starting and file.name not in self._registered:
                app, id = file.name.rsplit(".", 1)
                pid = int(file.read_text())
                executor = Executor(app=app, id=id, pid=pid, worker=processes.parent(pid) or 0)
                self._starting[file.name] = (executor, time.monotonic())
        for executor in [*self._registered.values(), *(e for e, _ in self._starting.values())]:
            if not processes.running(executor.pid):
                self._bury(executor)
        for executor, since in list(self._starting.values()):
            if self._has_registered(executor) or time.monotonic() - since > QUOTA_AFTER:
                self._begin(executor)
                self._registered = self._registered | {executor.key: executor}
                del self._starting[executor.key]
        for key, limit_at in list(self._warming.items()):
            if key in self._registered and (self._cpu_seconds(key) or limit_at) >= limit_at:
                del self._warming[key]
                self._limit(self._registered[key])

    def _has_registered(self, executor: Executor) -> bool:
        log = self._folder / "work" / executor.app / executor.id / "stderr"
        return REGISTERED in log.read_bytes()

    def _begin(self, executor: Executor) -> None:
        used = self._cpu_seconds(executor.key)
        if self._warm_up > 0 and used is not None:
            self._warming[executor.key] = used + self._warm_up
        else:
            self._limit(executor)

    def _cpu_seconds(self, key: str) -> float | None:
        return None if self._groups is None else self._groups.cpu_seconds(key)

    def _limit(self, executor: Executor) -> None:
        share = self._share_of(executor)
        if self._groups is not None and share is not None:
            with contextlib.suppress(EngineError):  # it ended meanwhile
                self._groups.set_share(executor.key, share)

    def _bury(self, executor: Executor) -> None:
        """Forget an executor that ended, once its group is gone."""
        self._warming.pop(executor.key, None)
        rest = {key: e for key, e in self._registered.items() if key != executor.key}
        self._registered = rest
        if self._groups is None or self._groups.clear(executor.key):
            (self._folder / "executors" / executor.key).unlink(missing_ok=True)
            self._starting.pop(executor.key, None)
        else:  # a process is still ending in it: try again at the next look
            self._starting[executor.key] = (executor, time.monotonic())
