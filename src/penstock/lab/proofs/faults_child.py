"""The driver of a proof as a child process: started, killed, started again.

A driver that ends by itself with an error is started again as well, a few times, as whatever runs
a driver in production would: on an overloaded machine Spark gives up waiting for a Python worker
after ten seconds. It goes on from its checkpoint, so the result has to be exact all the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import EngineError
from penstock.history.journal import Entry, read
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.clusters.standalone.daemons import tail
from penstock.lab.host.processes import Nursery
from penstock.lab.proofs.proof import Say

LOOK = 0.02  # seconds between looks at the driver's reports
RETRIES = 3  # of a driver that ended by itself
RESTART_SECONDS = 60.0  # for the first decision of a restarted driver


@dataclass(slots=True)
class FaultsDriver:
    """The driver process: started, killed, started again; its reports in one sequence."""

    order: DriverOrder
    cluster: LocalCluster
    say: Say
    app: str = ""
    retries: int = 0
    _nursery: Nursery = field(default_factory=Nursery)
    _process: subprocess.Popen[bytes] | None = None
    _jvm: int | None = None
    _reports: DriverReports | None = None
    _pending: deque[DriverReport] = field(default_factory=deque)
    _restarted: float = 0.0

    def start(self) -> None:
        """Start it, or start it again."""
        self._restarted = time.time()
        self._process = self._nursery.start(
            [sys.executable, "-m", "penstock.lab.proofs.faults_driver",
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
        holds: Callable[[DriverReport], bool] = lambda report: True,
        also: Callable[[], None] = lambda: None,
    ) -> DriverReport:
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

    def _new(self) -> Sequence[DriverReport]:
        self._reports = self._reports or DriverReports(self.order)
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


# What a proof and the driver that it runs as a child process tell each other, in files.
#
# The proof writes a :class:`DriverOrder` and touches flags; the driver appends one JSON line per
# report. Files survive a kill of either side, which is the point.

SEESAW = "seesaw"  # the policy of this package; others by their registered names
Flag = Literal["limited", "finish"]
Kind = Literal["started", "asked", "batch", "comparing", "result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOrder:
    """What the driver is to run.

    folder: for everything the two share
    conf: that of the session, from the cluster
    journal: the auto-scaler's, which goes on where an earlier driver stopped
    rate: records/s that one executor takes (``None``: find out)
    low, high: the load as multiples of that
    calm, busy: seconds of each of the two, in turn
    period: seconds between decisions
    cool_down: seconds between actions
    """

    folder: str
    query: str
    conf: Mapping[str, str]
    journal: str
    slots: int
    policy: str
    parameters: Mapping[str, Any]
    rate: float | None
    low: float
    high: float
    calm: int
    busy: int
    period: float
    cool_down: float

    @property
    def path(self) -> Path:
        """The folder that both sides share."""
        return Path(self.folder)

    def save(self) -> Path:
        """Write it down; returns the file."""
        self.path.mkdir(parents=True)
        file = self.path / "order.json"
        file.write_text(json.dumps(asdict(self)))
        return file

    @classmethod
    def load(cls, file: Path) -> DriverOrder:
        """The order in a file."""
        return cls(**json.loads(file.read_text()))

    def flag(self, name: Flag) -> Path:
        """A file whose presence tells the driver something."""
        return self.path / name


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReport:
    """One line of a driver: what happened, when (epoch seconds), and more."""

    kind: Kind
    time: float
    more: Mapping[str, Any]


def report(order: DriverOrder, kind: Kind, time: float, **more: Any) -> None:
    """Append a line; one write, so a reader sees all of it or a part without its end."""
    line = json.dumps({"kind": kind, "time": time, "more": more}) + "\n"
    with (order.path / "reports.jsonl").open("ab", buffering=0) as file:
        file.write(line.encode())


class DriverReports:
    """Reads the reports of an order as they come."""

    def __init__(self, order: DriverOrder) -> None:
        self._file = order.path / "reports.jsonl"
        self._read = 0

    def new(self) -> list[DriverReport]:
        """Those since the last call; a line without its end is left for the next."""
        if not self._file.exists():
            return []
        with self._file.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        if not newline:
            return []
        self._read += len(whole) + 1
        # A driver that was killed in the middle of a line leaves it to be continued by the next.
        lines = (line[line.rfind(b'{"kind"') :] for line in whole.split(b"\n") if line)
        return [DriverReport(**json.loads(line)) for line in lines]
