"""The Autoscaler: what a data engineer attaches to a running query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from penstock.core.errors import InputError, unknown
from penstock.core.guards import Blackout, Guards
from penstock.core.loop import Decision, Mode, State
from penstock.core.ports import Policy, wants_arrivals
from penstock.policies import create, name_of, parameters_of, spark_dra
from penstock.spark.controller import Controller
from penstock.spark.engine import SparkEngine
from penstock.spark.freeze import KillSwitch
from penstock.spark.ports import ApplicationEngine, Cluster
from penstock.spark.settings.keys import KEYS, SPARK
from penstock.spark.settings.settings import PRODUCTION, Settings, load, with_policy

__all__ = ["PRODUCTION", "Autoscaler"]

IN_VIEW = ("min_executors", "max_executors", "mode", "period", "journal", "config")


class SingleGuards(TypedDict, total=False):
    """Guards by their own names; each wins over the same one in ``guards``. See docs/guards.md.

    Durations in seconds or as ``"2m"``; ``None`` for no limit, where there may be none.
    """

    cool_down: float | str
    tolerance: float
    drain: float | str | None
    step_up: int | None
    step_down: int | None
    over_provisioning: float
    blackouts: Sequence[str | Blackout] | str
    useful: bool
    max_age: float | str
    cap: int | None
    at_cap: Literal["shrink", "cancel"]
    sleep: bool


class Others(SingleGuards, total=False):
    """What an Autoscaler takes besides the parameters in view: the guards, and these.

    parameters: of a policy that is given by its name
    window: seconds of finished batches that a decision looks at; the period, if not given
    batch_time: seconds that a batch may take of a query without a trigger
    guards: all guards as one value
    seed: of a policy that draws at random
    freeze_file: while this file exists, nothing is done
    freeze_signals: SIGUSR1 freezes, SIGUSR2 thaws
    metrics_port: port for Prometheus; 0 for any free one
    metrics_host: address that the port is bound to
    cluster: what runs the executors, if it offers more than Spark does: their CPU, their places
    record: called with each decision
    switch: a kill switch that is shared with others
    """

    parameters: Mapping[str, Any] | None
    window: float | str | None
    batch_time: float | str | None
    guards: Guards | None
    seed: int | None
    freeze_file: Path | str | None
    freeze_signals: bool | None
    metrics_port: int | None
    metrics_host: str | None
    cluster: Cluster | None
    record: Callable[[Decision, State], None] | None
    switch: KillSwitch | None


NO_KEYS = ("cluster", "record", "switch")  # objects of the program: no file can name them
LIMITS = {"minimum": "min_executors", "maximum": "max_executors"}  # as ``Guards`` calls them


class Autoscaler(Controller):
    """Watches the streaming queries of a session and, if allowed, resizes its executors.

    ::

        from penstock import Autoscaler
        from penstock.policies import DS2

        with Autoscaler(spark, DS2(), min_executors=1, max_executors=8, mode="act"):
            query.awaitTermination()

    ``mode="advise"`` (the default) only says what it would do and why, on the logger
    ``penstock`` and in the journal; ``mode="act"`` also does it. Whatever goes wrong in a
    policy, in a metric or in Spark's REST interface is logged and never reaches the query.

    policy: an object, or a name of ``penstock policies``; DS2 if not given
    min_executors, max_executors: nothing goes below or above
    period: time between decisions, in seconds or as ``"30s"``
    journal: file for the decisions; a restart goes on from it
    config: everything else: a TOML file, a mapping with the same keys, or ready ``Settings``
    others: every guard by its own name (``cool_down="2m"``, ``step_up=2``, ``tolerance=0.1``, …)
        and what :class:`Others` lists; most of them are keys of ``config`` too

    One that is started on the same session later, such as by a notebook's cell that is run again,
    replaces this one.

    What is not given here comes from ``PENSTOCK_*`` variables, ``spark.penstock.*`` or their
    configuration file; every key is in docs/configuration.md.
    """

    def __init__(
        self,
        spark: Any,
        policy: str | Policy | None = None,
        *,
        min_executors: int | None = None,
        max_executors: int | None = None,
        mode: Mode | None = None,
        period: float | str | None = None,
        journal: Path | str | None = None,
        config: Path | str | Mapping[str, Any] | Settings | None = None,
        **others: Unpack[Others],
    ) -> None:
        refuse_remote(spark)
        _refuse_unknown(others)
        given = {
            "policy": policy if isinstance(policy, str) else None,
            "min_executors": min_executors,
            "max_executors": max_executors,
            "mode": mode,
            "period": period,
            "journal": journal,
            **_said(others),
        }
        own = None if policy is None or isinstance(policy, str) else policy
        if own is not None and others.get("parameters"):
            raise InputError("parameters go with a policy's name; this policy is an object already")
        if own is not None and name_of(own) == spark_dra.NAME:
            raise spark_dra.refused("in an Autoscaler")
        settings = _settings(spark, config, given)
        if own is not None:
            settings = with_policy(settings, name_of(own), parameters_of(own))
        self._spark = spark
        window = settings.window or settings.period
        arrivals = wants_arrivals(own or create(settings.policy, settings.parameters))
        cluster = others.get("cluster")
        self._engine: ApplicationEngine
        if cluster is not None:
            self._engine = cluster.engine(spark, window=window, arrivals=arrivals)
        else:
            self._engine = SparkEngine(spark, window=window, arrivals=arrivals)
        self._engine.batch_time = settings.batch_time
        self._engine.pool.limits = (settings.guards.minimum, settings.guards.maximum)
        self._engine.pool.frozen = self._why_not
        if settings.mode == "act":
            self._engine.pool.refuse_if_not_ours()
        super().__init__(
            self._engine,
            settings,
            what=str(spark.sparkContext.applicationId),
            policy=own,
            record=others.get("record"),
            switch=others.get("switch"),
        )

    @classmethod
    def from_settings(cls, spark: Any, settings: Settings, **others: Unpack[Others]) -> Autoscaler:
        """An Autoscaler with ready settings; ``others`` are ``cluster``, ``record``, ``switch``."""
        return cls(spark, config=settings, **others)

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that have finished a batch and still run."""
        return self._engine.queries

    def _over(self) -> str | None:
        return "the session was stopped" if self._spark.sparkContext._jsc is None else None


def _said(others: Mapping[str, Any]) -> dict[str, Any]:
    """What is given besides the parameters in view, by key; a guard that is ``None`` is off."""
    said = {}
    for name, value in others.items():
        key = f"guards.{name}" if f"guards.{name}" in KEYS else name
        if key in KEYS and KEYS[key].kind == "guard" and value is None:
            value = "none"
        if name not in NO_KEYS:
            said[key] = value
    return said


def refuse_remote(spark: Any) -> None:
    """A client of Spark Connect has no driver in this process: nothing to attach to."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise InputError(REMOTE)


REMOTE = (
    "this is a session of Spark Connect (as those of Declarative Pipelines are): the driver is in "
    "another process, and Penstock cannot attach from the client. Watch it from outside with "
    "`penstock advise --app-url` and the address of the driver's UI, or run the Autoscaler in the "
    "server's driver"
)


def _refuse_unknown(others: Mapping[str, Any]) -> None:
    for name in others:
        if name in Others.__annotations__:
            continue
        if name in LIMITS:
            raise InputError(f"unknown parameter of Autoscaler {name!r}; use {LIMITS[name]!r}")
        if name in KEYS:
            raise InputError(f"{name} is a key of config: config={{{name!r}: {others[name]!r}}}")
        raise unknown("parameter of Autoscaler", name, [*IN_VIEW, *Others.__annotations__])


def _settings(
    spark: Any, config: Path | str | Mapping[str, Any] | Settings | None, given: dict[str, Any]
) -> Settings:
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
