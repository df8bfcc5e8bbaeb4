"""Decides every few seconds in a thread of its own, whatever goes wrong around it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Self

from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.loop import Decision, Loop, State
from penstock.core.model import Change, Snapshot
from penstock.core.ports import Policy
from penstock.history.journal import Header
from penstock.policies import create
from penstock.spark.exporter import ErrorKind
from penstock.spark.freeze import KillSwitch
from penstock.spark.ports import LiveEngine
from penstock.spark.reporting import Reporter
from penstock.spark.settings.settings import Settings

log = logging.getLogger("penstock")

PATIENCE = 10.0  # seconds that ``stop`` waits for an observation or an action to come back
LOOK = 0.2  # seconds between looks at a thread that has to end first

_running: dict[str, Controller] = {}  # by what they decide on: two would undo each other
_starting = threading.RLock()  # one start at a time, so that a successor finds its predecessor
_actions: dict[str, threading.Lock] = {}  # by what they act on: held while something is done


class Controller:
    """Runs a policy on an engine: what an Autoscaler does, and the controller of a split pipeline.

    ``what`` it decides on: there is one in a process, and one that is started later replaces it ·
    ``policy`` an object, if it is not the one that the settings name · ``record`` called with each
    decision · ``switch`` a kill switch that is shared with others.
    """

    def __init__(
        self,
        engine: LiveEngine,
        settings: Settings,
        *,
        what: str,
        policy: Policy | None = None,
        record: Callable[[Decision, State], None] | None = None,
        switch: KillSwitch | None = None,
    ) -> None:
        self.settings = settings
        self.policy: Policy = policy or create(settings.policy, settings.parameters)
        self.guards, self.period, self.mode = settings.guards, settings.period, settings.mode
        self.header = Header(
            policy=settings.policy,
            parameters=settings.parameters,
            guards=settings.guards,
            mode=settings.mode,
            seed=settings.seed,
            period=settings.period,
        )
        self.last: Decision | None = None
        self.switch = switch or KillSwitch()
        self.switch.file = self.switch.file or settings.freeze_file
        self._what = what
        self._live = engine
        self._record = record
        self._state: State | None = None
        self._turn: _Turn | None = None
        self._threads: list[threading.Thread] = []  # the last, and those that did not end in time
        self._reporter: Reporter | None = None
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._open = ExitStack()

    def start(self) -> Self:
        """Begin to watch, in a thread of its own; a second call does nothing.

        Another one of this process that decides on the same application is stopped first.
        """
        with _starting, self._lock:
            if self._turn is not None and not self._turn.ended.is_set():
                return self
            if self._turn is not None:  # stopped by its own thread while this one came in
                self._stop(self._turn)
            self._replace()
            turn = _Turn(self._live, _actions.setdefault(self._what, threading.Lock()))
            reporter = Reporter(self.settings, self.header, self._record, what=self._what)
            with ExitStack() as opening:
                self._open_all(reporter, opening)
                self._open = opening.pop_all()
            self._pid = os.getpid()
            self._live.stopped.clear()
            self._turn, self._reporter = turn, reporter
            before = [thread for thread in self._threads if thread.is_alive()]
            run = (turn, self._new_loop(turn, reporter), reporter, before)
            thread = threading.Thread(target=self._run, args=run, name="penstock", daemon=True)
            self._threads = [*before, thread]
            thread.start()
        log.info("attached to %s, process %d: %s", self._what, self._pid, self.settings.line())
        return self

    def stop(self) -> None:
        """Stop watching; the executors stay as they are. May be called from any thread.

        What does not come back within 10 s is left behind: whatever it still finds, nothing is
        decided, done or written down any more.
        """
        if os.getpid() != self._pid:  # a fork: thread, files and gateway are the parent's
            return
        turn = self._turn
        if turn is not None:
            self._stop(turn)

    def _stop(self, turn: _Turn) -> None:
        turn.ended.set()
        inside = threading.current_thread() in self._threads
        if not self._lock.acquire(blocking=not inside):
            # Who starts or stops it waits for this thread, so this one does not wait for them.
            self._stop_from_outside(turn)
            return
        try:
            if self._turn is not turn:  # stopped already, and perhaps started again
                return
            self._live.stopped.set()
            self._turn = None
            if not inside:
                self._threads[-1].join(timeout=PATIENCE)
                if self._threads[-1].is_alive():
                    log.warning(
                        "%s: no answer within %g s; what still comes is ignored",
                        self._what, PATIENCE,
                    )  # fmt: skip
            self._open.close()
        finally:
            self._lock.release()

    def _stop_from_outside(self, turn: _Turn) -> None:
        threading.Thread(target=self._stop, args=(turn,), name="penstock-end", daemon=True).start()

    def freeze(self, reason: str = "asked to by the program") -> None:
        """Do nothing from now on, but go on observing. An action in flight is not undone."""
        self.switch.freeze(reason)

    def thaw(self) -> None:
        """Act again, unless the freeze file exists."""
        self.switch.thaw()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def metrics_url(self) -> str | None:
        """Where Prometheus finds the metrics; ``None`` if nowhere."""
        return self._reporter.url if self._reporter is not None else None

    def _replace(self) -> None:
        """Stop the one that decides on the same; from now on it is this one."""
        before = _running.get(self._what)
        if before is not None and before._pid != os.getpid():  # a fork: it is the parent's
            before = None
        if before is not None and before is not self:
            before.stop()
            log.warning(
                "%s had an Autoscaler already (%s in mode %s): it was stopped, this one takes over",
                self._what, before.settings.policy, before.mode,
            )  # fmt: skip

    def _release(self) -> None:
        if _running.get(self._what) is self:
            del _running[self._what]

    def _open_all(self, reporter: Reporter, opening: ExitStack) -> None:
        """Everything that ``stop`` closes again, the last first."""
        _running[self._what] = self
        opening.callback(self._release)
        if self.settings.freeze_signals:
            _require_main_thread()
            opening.enter_context(self.switch.signals())
        reporter.serve(opening)
        self._state = reporter.resume(opening) or self._state
        self._live.attach()
        opening.callback(self._detach)

    def _detach(self) -> None:
        try:
            self._live.detach()
        except Exception as error:  # the session may be gone already
            log.debug("could not detach from the session: %s", error)

    def _new_loop(self, turn: _Turn, reporter: Reporter) -> Loop:
        def record(decision: Decision, state: State) -> None:
            turn.check()
            self.last, self._state = decision, state
            reporter.report(decision, state)

        return Loop(
            turn,
            self.policy,
            self.guards,
            mode=self.mode,
            seed=self.settings.seed,
            state=self._state,
            record=record,
            frozen=lambda: self.switch.reason,
        )

    def _why_not(self) -> str | None:
        """Why nothing may be done at this moment, asked last of all."""
        return "it was stopped" if self._live.stopped.is_set() else self.switch.reason

    def _run(
        self, turn: _Turn, loop: Loop, reporter: Reporter, before: list[threading.Thread]
    ) -> None:
        if before:
            self._wait_for(before, turn)
        while turn.advance(self.period):
            reporter.switched(self.switch.reason)
            try:
                loop.tick()
                reporter.works_again("observe", "other")
            except _Over:
                return
            except NotReady as error:
                log.debug("%s", error)
                reporter.found(error.findings, time.time())
            except EngineError as error:
                turn.complain(reporter, "observe", f"no decision this time: {error}")
            except Exception as error:  # nothing here may ever harm the job
                problem = f"{type(error).__name__}: {error}"
                turn.complain(reporter, "other", f"no decision this time: {problem}")
            if (over := self._over()) is not None:
                log.info("%s: nothing more to decide", over)
                self._stop_from_outside(turn)
                return

    def _wait_for(self, before: list[threading.Thread], turn: _Turn) -> None:
        """Until the threads of earlier starts are gone: an engine serves one at a time."""
        log.warning("%s: waiting for what was asked before the last stop", self._what)
        for thread in before:
            while thread.is_alive() and not turn.ended.is_set():
                thread.join(timeout=LOOK)

    def _over(self) -> str | None:
        """Why there will never be anything to decide again, if so."""
        return None


class _Over(Exception):  # noqa: N818 (a state, not a fault)
    """The turn has ended: whatever was under way counts for nothing."""


class _Turn:
    """One start of a controller: its engine for as long as it has not been stopped.

    A thread may hang in the engine while its controller is stopped, and even started again. What
    it brings back then is dropped here, so that it neither decides nor does anything.
    """

    def __init__(self, engine: LiveEngine, action: threading.Lock) -> None:
        self.ended = threading.Event()
        self._engine = engine
        self._action = action

    def check(self) -> None:
        """Raise if it has ended."""
        if self.ended.is_set():
            raise _Over

    def observe(self) -> Snapshot:
        """What the engine sees."""
        seen = self._engine.observe()
        self.check()
        return seen

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Let the engine do it, unless an action of an earlier start is still being done."""
        if not self._action.acquire(blocking=False):
            raise EngineError("what was asked for before the last stop has not been answered yet")
        try:
            self.check()
            self._engine.apply(changes)
        finally:
            self._action.release()

    def advance(self, seconds: float) -> bool:
        """Wait; ``False`` once it has ended."""
        goes_on = not self.ended.is_set() and self._engine.advance(seconds)
        return goes_on and not self.ended.is_set()

    def complain(self, reporter: Reporter, kind: ErrorKind, what: str) -> None:
        """Say that something is wrong, unless it has ended."""
        if not self.ended.is_set():
            reporter.complain(kind, what)


def _require_main_thread() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise InputError(
            "freeze_signals needs the main thread, where Python allows signal handlers: start "
            "the Autoscaler there, or freeze it by file or call"
        )
