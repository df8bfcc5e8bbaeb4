"""Decides every few seconds in a thread of its own, whatever goes wrong around it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.loop import Decision, Loop, State
from penstock.core.ports import Policy
from penstock.history.journal import Header
from penstock.policies import create
from penstock.spark.freeze import KillSwitch
from penstock.spark.ports import LiveEngine
from penstock.spark.reporting import Reporter
from penstock.spark.settings.settings import Settings

log = logging.getLogger("penstock")

_acting: dict[str, Controller] = {}  # by what they act on: two that act would undo each other
_acting_lock = threading.Lock()


class Controller:
    """Runs a policy on an engine: what an Autoscaler does, and the controller of a split pipeline.

    ``what`` it acts on: only one in a process may act on it · ``policy`` an object, if it is not
    the one that the settings name · ``record`` called with each decision · ``switch`` a kill
    switch that is shared with others.
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
        self._reporter = Reporter(settings, self.header, record)
        self._loop = Loop(
            engine,
            self.policy,
            self.guards,
            mode=self.mode,
            seed=settings.seed,
            record=self._record,
            frozen=lambda: self.switch.reason,
        )
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._open = ExitStack()

    def start(self) -> Self:
        """Begin to watch, in a thread of its own; a second call does nothing."""
        with self._lock:
            if self._thread is not None:
                return self
            with ExitStack() as opening:
                self._open_all(opening)
                self._open = opening.pop_all()
            self._pid = os.getpid()
            self._live.stopped.clear()
            self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
            self._thread.start()
        log.info("attached to %s, process %d: %s", self._what, self._pid, self.settings.line())
        return self

    def stop(self) -> None:
        """Stop watching; the executors stay as they are. May be called from any thread."""
        if os.getpid() != self._pid:  # a fork: thread, files and gateway are the parent's
            return
        self._live.stopped.set()
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is None:
                return
            if thread is not threading.current_thread():
                thread.join(timeout=10.0)
            self._open.close()

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
        return self._reporter.url

    def _open_all(self, opening: ExitStack) -> None:
        """Everything that ``stop`` closes again, the last first."""
        if self.mode == "act":
            opening.callback(_release, self._claim())
        if self.settings.freeze_signals:
            _require_main_thread()
            opening.enter_context(self.switch.signals())
        self._reporter.serve(opening)
        state = self._reporter.resume(opening)
        if state is not None:
            self._loop.state = state
        self._live.attach()
        opening.callback(self._detach)

    def _claim(self) -> str:
        with _acting_lock:
            if self._what in _acting:
                raise InputError(
                    f"another Autoscaler acts on {self._what} already; stop it first, or use "
                    "mode='advise'"
                )
            _acting[self._what] = self
        return self._what

    def _detach(self) -> None:
        try:
            self._live.detach()
        except Exception as error:  # the session may be gone already
            log.debug("could not detach from the session: %s", error)

    def _why_not(self) -> str | None:
        """Why nothing may be done at this moment, asked last of all."""
        return "it was stopped" if self._live.stopped.is_set() else self.switch.reason

    def _run(self) -> None:
        while self._live.advance(self.period):
            self._reporter.switched(self.switch.reason)
            try:
                self._loop.tick()
                self._reporter.works_again("observe", "other")
            except NotReady as error:
                log.debug("%s", error)
            except EngineError as error:
                self._reporter.complain("observe", f"no decision this time: {error}")
            except Exception as error:  # nothing here may ever harm the job
                problem = f"{type(error).__name__}: {error}"
                self._reporter.complain("other", f"no decision this time: {problem}")
            if (over := self._over()) is not None:
                log.info("%s: nothing more to decide", over)
                threading.Thread(target=self.stop, name="penstock-end", daemon=True).start()
                return

    def _over(self) -> str | None:
        """Why there will never be anything to decide again, if so."""
        return None

    def _record(self, decision: Decision, state: State) -> None:
        self.last = decision
        self._reporter.report(decision, state)


def _release(what: str) -> None:
    with _acting_lock:
        _acting.pop(what, None)


def _require_main_thread() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise InputError(
            "freeze_signals needs the main thread, where Python allows signal handlers: start "
            "the Autoscaler there, or freeze it by file or call"
        )
