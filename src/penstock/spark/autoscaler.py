"""The Autoscaler: what a data engineer attaches to a running query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards
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


class Others(TypedDict, total=False):
    """What an Autoscaler takes besides the parameters in view.

    parameters: of a policy that is given by its name
    window: seconds of finished batches that a decision looks at; the period, if not given
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
    others: see :class:`Others`; most of them are keys of ``config`` too

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
        _refuse_unknown(others)
        given = {
            "policy": policy if isinstance(policy, str) else None,
            "min_executors": min_executors,
            "max_executors": max_executors,
            "mode": mode,
            "period": period,
            "journal": journal,
            **{name: value for name, value in others.items() if name not in NO_KEYS},
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


def _refuse_unknown(others: Mapping[str, Any]) -> None:
    for name in others:
        if name in Others.__annotations__:
            continue
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
