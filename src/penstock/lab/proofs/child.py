"""The driver of a proof as a child process: started, killed, started again.

A driver that ends by itself with an error is started again as well, a few times, as whatever runs
a driver in production would: on an overloaded machine Spark gives up waiting for a Python worker
after ten seconds. It goes on from its checkpoint, so the result has to be exact all the same.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.core.errors import EngineError
from penstock.history.journal import Entry, read
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.clusters.standalone.daemons import tail
from penstock.lab.host.processes import Nursery
from penstock.lab.proofs.child_orders import Kind, Order, Report, Reports
from penstock.lab.proofs.proof import Say

LOOK = 0.02  # seconds between looks at the driver's reports
RETRIES = 3  # of a driver that ended by itself
RESTART_SECONDS = 60.0  # for the first decision of a restarted driver


@dataclass(slots=True)
class Child:
    """The driver process: started, killed, started again; its reports in one sequence."""

    order: Order
    cluster: LocalCluster
    say: Say
    app: str = ""
    retries: int = 0
    _nursery: Nursery = field(default_factory=Nursery)
    _process: subprocess.Popen[bytes] | None = None
    _jvm: int | None = None
    _reports: Reports | None = None
    _pending: deque[Report] = field(default_factory=deque)
    _restarted: float = 0.0

    def start(self) -> None:
        """Start it, or start it again."""
        self._restarted = time.time()
        self._process = self._nursery.start(
            [sys.executable, "-m", "penstock.lab.proofs.driver",
             str(self.order.path / "order.json")],
            env=dict(os.environ) | self.cluster.environment(),
            cwd=self.order.path,
            log=self.order.path / "driver.log",
        )  # fmt: skip

    def kill(self) -> None:
        """Kill its JVM and its Python at once, as when a machine fails."""
        assert self._process is not None and self._jvm is not None
        for pid in (self._jvm, self._process.pid):
            os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End it, however far it is; its JVM ends with its standard input."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._nursery.close()

    def wait(
        self,
        kind: Kind,
        within: float,
        *,
        holds: Callable[[Report], bool] = lambda report: True,
        also: Callable[[], None] = lambda: None,
    ) -> Report:
        """The next report of a kind, of which a condition holds; others are passed over."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            self._pending.extend(self._new())
            while self._pending:
                report = self._pending.popleft()
                if report.kind == kind and holds(report):
                    return report
            self._alive()
            also()
            time.sleep(LOOK)
        raise EngineError(
            f"the driver reported no {kind!r} within {within:.0f} s. {self._last_words()}"
        )

    def rest(self, seconds: float) -> None:
        """Let it run on for so many seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._pending.extend(self._new())
            self._alive()
            time.sleep(LOOK)

    def resumed(self, journal: Path) -> bool:
        """Whether the restarted auto-scaler remembers the last action of the killed one."""
        before: list[Entry] = []
        after: list[Entry] = []
        deadline = time.monotonic() + RESTART_SECONDS
        while not after and time.monotonic() < deadline:
            self._alive()
            entries = read(journal)[1]
            before = [e for e in entries if e.decision.seen.time < self._restarted]
            after = [e for e in entries if e.decision.seen.time >= self._restarted]
            time.sleep(0.2)
        if not (before and after):
            return False
        remembered = after[0].state.last_action
        return remembered is not None and remembered >= (before[-1].state.last_action or 0.0)

    def _new(self) -> Sequence[Report]:
        self._reports = self._reports or Reports(self.order)
        new = self._reports.new()
        for report in new:
            if report.kind == "started":
                self.app, self._jvm = report.more["app"], int(report.more["jvm"])
        return new

    def _alive(self) -> None:
        assert self._process is not None
        if (code := self._process.poll()) is None:
            return
        if code == 0 or self.retries == RETRIES:
            raise EngineError(f"the driver ended with exit code {code}. {self._last_words()}")
        self.retries += 1
        reason = (tail(self.order.path / "jvm.log").rpartition("Caused by: ")[2] or "?").split("\n")
        self.say(f"the driver ended with exit code {code} ({reason[0]}); starting it again…")
        self.start()

    def _last_words(self) -> str:
        logs = [self.order.path / name for name in ("jvm.log", "driver.log")]
        texts = (f"Last lines of {log.name}:\n{tail(log)}" for log in logs if log.exists())
        return "\n".join(texts)
