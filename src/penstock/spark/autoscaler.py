"""The Autoscaler: what a data engineer attaches to a running query."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.guards import Guards
from penstock.core.journal import Header, Journal
from penstock.core.loop import Decision, Loop, Mode, State
from penstock.core.ports import Policy
from penstock.policies import create, name_of, parameters_of
from penstock.spark.cluster import LocalCluster
from penstock.spark.engine import SparkEngine

log = logging.getLogger("penstock")

PRODUCTION = Guards(tolerance=0.1, cool_down=60.0, drain=30.0)


class Autoscaler:
    """Watches the streaming queries of a session and, if allowed, resizes its executors.

    ``mode="advise"`` (the default) only says what it would do and why, on the logger
    ``penstock`` and in the journal; ``mode="act"`` also does it. Whatever goes wrong in a
    policy, in a metric or in Spark's REST interface is logged and never reaches the query::

        with Autoscaler(spark, policy="ds2", min_executors=1, max_executors=8):
            query.awaitTermination()

    ``period`` seconds between decisions · ``window`` seconds of finished batches that each one
    looks at · ``guards`` everything else that limits it · ``cluster`` the local cluster, if it is
    one of ours, for the CPU of each executor · ``journal`` a file for the decisions · ``record``
    called with each of them.
    """

    def __init__(
        self,
        spark: Any,
        policy: str | Policy = "ds2",
        *,
        parameters: Mapping[str, Any] | None = None,
        min_executors: int | None = None,
        max_executors: int | None = None,
        mode: Mode = "advise",
        period: float = 15.0,
        window: float | None = None,
        guards: Guards = PRODUCTION,
        cluster: LocalCluster | None = None,
        journal: Path | str | None = None,
        record: Callable[[Decision, State], None] | None = None,
        seed: int = 0,
    ) -> None:
        if not period > 0:
            raise InputError(f"period {period} s must be above 0")
        if not isinstance(policy, str) and parameters:
            raise InputError("parameters go with a policy's name; this policy is an object already")
        self.policy: Policy = create(policy, parameters) if isinstance(policy, str) else policy
        self.guards = replace(
            guards,
            minimum=guards.minimum if min_executors is None else min_executors,
            maximum=guards.maximum if max_executors is None else max_executors,
        )
        self.period = period
        self.mode = mode
        self.last: Decision | None = None
        self._also_record = record
        self._engine = SparkEngine(spark, window=window or period, cluster=cluster)
        self._loop = Loop(
            self._engine, self.policy, self.guards, mode=mode, seed=seed, record=self._record
        )
        if mode == "act":
            self._engine.pool.refuse_if_not_ours()
        self._journal_path = Path(journal) if journal is not None else None
        self.header = Header(
            policy=name_of(self.policy),
            parameters=parameters_of(self.policy),
            guards=self.guards,
            mode=mode,
            seed=seed,
            period=period,
        )
        self._journal: Journal | None = None
        self._thread: threading.Thread | None = None
        self._silent_since_error = False

    def start(self) -> Autoscaler:
        """Begin to watch, in a thread of its own."""
        if self._thread is None:
            self._engine.attach()
            if self._journal_path is not None:
                self._journal = Journal(self._journal_path, self.header)
            self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
            self._thread.start()
            log.info("%s in mode %s, every %g s", self.header.policy, self.mode, self.period)
        return self

    def stop(self) -> None:
        """Stop watching; the executors stay as they are."""
        if self._thread is None:
            return
        self._engine.stopped.set()
        self._thread.join(timeout=10.0)
        self._thread = None
        try:
            self._engine.detach()
        except Exception as error:  # the session may be gone already
            log.debug("could not detach from the session: %s", error)
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> Autoscaler:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that have finished a batch and still run."""
        return self._engine.queries

    def _run(self) -> None:
        while self._engine.advance(self.period):
            try:
                self._loop.tick()
                self._silent_since_error = False
            except NotReady as error:
                log.debug("%s", error)
            except EngineError as error:
                self._complain(str(error))
            except Exception as error:  # nothing here may ever harm the job
                self._complain(f"{type(error).__name__}: {error}")

    def _complain(self, what: str) -> None:
        """Say once that something is wrong, not at every tick."""
        if not self._silent_since_error:
            log.warning("no decision this time: %s", what)
        self._silent_since_error = True

    def _record(self, decision: Decision, state: State) -> None:
        self.last = decision
        level = logging.INFO if decision.changes else logging.DEBUG
        prefix = "" if decision.applied or not decision.changes else "would do: "
        log.log(level, "%s%s", prefix, decision.explain())
        if self._journal is not None:
            self._journal.record(decision, state)
        if self._also_record is not None:
            self._also_record(decision, state)
