"""The Autoscaler: what a data engineer attaches to a running query."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.guards import Guards
from penstock.core.journal import Header
from penstock.core.loop import Decision, Loop, Mode, State
from penstock.core.ports import Policy
from penstock.policies import SparkDra, create, name_of, parameters_of, spark_dra
from penstock.spark.engine import SparkEngine
from penstock.spark.freeze import KillSwitch
from penstock.spark.local.cluster import LocalCluster
from penstock.spark.settings.keys import SPARK
from penstock.spark.settings.settings import PRODUCTION, Settings, load, with_policy
from penstock.spark.witnesses import Witnesses

__all__ = ["PRODUCTION", "Autoscaler"]

log = logging.getLogger("penstock")

_acting: dict[str, Autoscaler] = {}  # by application: two that act would undo each other
_acting_lock = threading.Lock()


class Autoscaler:
    """Watches the streaming queries of a session and, if allowed, resizes its executors.

    ``mode="advise"`` (the default) only says what it would do and why, on the logger
    ``penstock`` and in the journal; ``mode="act"`` also does it. Whatever goes wrong in a
    policy, in a metric or in Spark's REST interface is logged and never reaches the query::

        with Autoscaler(spark, policy="ds2", min_executors=1, max_executors=8):
            query.awaitTermination()

    What is not given here comes from ``config`` (a TOML file), ``PENSTOCK_*`` variables or
    ``spark.penstock.*``; every key is in docs/configuration.md. ``config`` may also be ready
    ``Settings``. Besides: ``guards`` all of them as one value · ``cluster`` the local cluster, if
    it is one of ours, for the CPU of each executor · ``record`` called with each decision ·
    ``switch`` a kill switch that is shared with others.
    """

    def __init__(
        self,
        spark: Any,
        policy: str | Policy | None = None,
        *,
        config: Path | str | Settings | None = None,
        parameters: Mapping[str, Any] | None = None,
        min_executors: int | None = None,
        max_executors: int | None = None,
        mode: Mode | None = None,
        period: float | None = None,
        window: float | None = None,
        guards: Guards | None = None,
        journal: Path | str | None = None,
        seed: int | None = None,
        freeze_file: Path | str | None = None,
        freeze_signals: bool | None = None,
        metrics_port: int | None = None,
        metrics_host: str | None = None,
        cluster: LocalCluster | None = None,
        record: Callable[[Decision, State], None] | None = None,
        switch: KillSwitch | None = None,
    ) -> None:
        given = {
            "policy": policy if isinstance(policy, str) else None,
            "parameters": parameters,
            "guards": guards,
            "min_executors": min_executors,
            "max_executors": max_executors,
            "mode": mode,
            "period": period,
            "window": window,
            "journal": journal,
            "seed": seed,
            "freeze_file": freeze_file,
            "freeze_signals": freeze_signals,
            "metrics_port": metrics_port,
            "metrics_host": metrics_host,
        }
        own = None if policy is None or isinstance(policy, str) else policy
        if own is not None and parameters:
            raise InputError("parameters go with a policy's name; this policy is an object already")
        if isinstance(own, SparkDra):
            raise spark_dra.refused("in an Autoscaler")
        self.settings = _settings(spark, config, given)
        if own is not None:
            self.settings = with_policy(self.settings, name_of(own), parameters_of(own))
        chosen = self.settings
        self.policy: Policy = own or create(chosen.policy, chosen.parameters)
        self.guards, self.period, self.mode = chosen.guards, chosen.period, chosen.mode
        self.header = Header(
            policy=chosen.policy,
            parameters=chosen.parameters,
            guards=chosen.guards,
            mode=chosen.mode,
            seed=chosen.seed,
            period=chosen.period,
        )
        self.last: Decision | None = None
        self.switch = switch or KillSwitch()
        self.switch.file = self.switch.file or chosen.freeze_file
        self._spark = spark
        self._witnesses = Witnesses(chosen, self.header, record)
        self._engine = SparkEngine(spark, window=chosen.window or self.period, cluster=cluster)
        self._engine.pool.limits = (self.guards.minimum, self.guards.maximum)
        self._engine.pool.frozen = self._why_not
        if self.mode == "act":
            self._engine.pool.refuse_if_not_ours()
        self._loop = Loop(
            self._engine,
            self.policy,
            self.guards,
            mode=self.mode,
            seed=chosen.seed,
            record=self._record,
            frozen=lambda: self.switch.reason,
        )
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._open = ExitStack()

    @classmethod
    def from_settings(cls, spark: Any, settings: Settings, **others: Any) -> Autoscaler:
        """An Autoscaler with ready settings; ``others`` are ``cluster``, ``record``, ``switch``."""
        return cls(spark, config=settings, **others)

    def start(self) -> Autoscaler:
        """Begin to watch, in a thread of its own; a second call does nothing."""
        with self._lock:
            if self._thread is not None:
                return self
            with ExitStack() as opening:
                self._open_all(opening)
                self._open = opening.pop_all()
            self._pid = os.getpid()
            self._engine.stopped.clear()
            self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
            self._thread.start()
        application = self._spark.sparkContext.applicationId
        log.info("attached to %s, process %d: %s", application, self._pid, self.settings.line())
        return self

    def stop(self) -> None:
        """Stop watching; the executors stay as they are. May be called from any thread."""
        if os.getpid() != self._pid:  # a fork: thread, files and gateway are the parent's
            return
        self._engine.stopped.set()
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

    def __enter__(self) -> Autoscaler:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that have finished a batch and still run."""
        return self._engine.queries

    @property
    def metrics_url(self) -> str | None:
        """Where Prometheus finds the metrics; ``None`` if nowhere."""
        return self._witnesses.url

    def _open_all(self, opening: ExitStack) -> None:
        """Everything that ``stop`` closes again, the last first."""
        if self.mode == "act":
            opening.callback(_release, self._claim())
        if self.settings.freeze_signals:
            _require_main_thread()
            opening.enter_context(self.switch.signals())
        self._witnesses.serve(opening)
        state = self._witnesses.resume(opening)
        if state is not None:
            self._loop.state = state
        self._engine.attach()
        opening.callback(self._detach)

    def _claim(self) -> str:
        application = str(self._spark.sparkContext.applicationId)
        with _acting_lock:
            if application in _acting:
                raise InputError(
                    f"another Autoscaler acts on {application} already; stop it first, or use "
                    "mode='advise'"
                )
            _acting[application] = self
        return application

    def _detach(self) -> None:
        try:
            self._engine.detach()
        except Exception as error:  # the session may be gone already
            log.debug("could not detach from the session: %s", error)

    def _why_not(self) -> str | None:
        """Why nothing may be done at this moment, asked last of all."""
        return "it was stopped" if self._engine.stopped.is_set() else self.switch.reason

    def _run(self) -> None:
        while self._engine.advance(self.period):
            self._witnesses.switched(self.switch.reason)
            try:
                self._loop.tick()
                self._witnesses.content("observe", "other")
            except NotReady as error:
                log.debug("%s", error)
            except EngineError as error:
                self._witnesses.complain("observe", f"no decision this time: {error}")
            except Exception as error:  # nothing here may ever harm the job
                problem = f"{type(error).__name__}: {error}"
                self._witnesses.complain("other", f"no decision this time: {problem}")
            if self._spark.sparkContext._jsc is None:
                log.info("the session was stopped: nothing more to decide")
                threading.Thread(target=self.stop, name="penstock-end", daemon=True).start()
                return

    def _record(self, decision: Decision, state: State) -> None:
        self.last = decision
        self._witnesses.hear(decision, state)


def _settings(spark: Any, config: Path | str | Settings | None, given: dict[str, Any]) -> Settings:
    if isinstance(config, Settings):
        said = sorted(key for key, value in given.items() if value is not None)
        if said:
            raise InputError(f"{', '.join(said)}: give either ready settings or single values")
        return config
    return load(config, spark=configured(spark), given=given)


def configured(spark: Any) -> dict[str, str]:
    """The ``spark.penstock.*`` of a session: of its application, then of the session itself."""
    both = [*spark.sparkContext.getConf().getAll(), *spark.conf.getAll.items()]
    return {key: str(value) for key, value in both if key.startswith(SPARK)}


def _release(application: str) -> None:
    with _acting_lock:
        _acting.pop(application, None)


def _require_main_thread() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise InputError(
            "freeze_signals needs the main thread, where Python allows signal handlers: start "
            "the Autoscaler there, or freeze it by file or call"
        )
