"""The Autoscaler: what a data engineer attaches to a running query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Mode, State
from penstock.core.ports import Policy, wants_arrivals
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.sites.cluster import SiteCluster
from penstock.lab.sites.engine import SiteEngine
from penstock.policies import create, name_of, parameters_of, spark_dra
from penstock.spark.controller import Controller
from penstock.spark.engine import SparkEngine
from penstock.spark.freeze import KillSwitch
from penstock.spark.settings.keys import SPARK
from penstock.spark.settings.settings import PRODUCTION, Settings, load, with_policy

__all__ = ["PRODUCTION", "Autoscaler"]


class Autoscaler(Controller):
    """Watches the streaming queries of a session and, if allowed, resizes its executors.

    ``mode="advise"`` (the default) only says what it would do and why, on the logger
    ``penstock`` and in the journal; ``mode="act"`` also does it. Whatever goes wrong in a
    policy, in a metric or in Spark's REST interface is logged and never reaches the query::

        with Autoscaler(spark, policy="ds2", min_executors=1, max_executors=8):
            query.awaitTermination()

    What is not given here comes from ``config`` (a TOML file), ``PENSTOCK_*`` variables or
    ``spark.penstock.*``; every key is in docs/configuration.md. ``config`` may also be ready
    ``Settings``. Besides: ``guards`` all of them as one value · ``cluster`` the local cluster, if
    it is one of ours, for the CPU of each executor and, where it has sites, their places ·
    ``record`` called with each decision · ``switch`` a kill switch that is shared with others.
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
        cluster: LocalCluster | SiteCluster | None = None,
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
        if own is not None and name_of(own) == spark_dra.NAME:
            raise spark_dra.refused("in an Autoscaler")
        settings = _settings(spark, config, given)
        if own is not None:
            settings = with_policy(settings, name_of(own), parameters_of(own))
        self._spark = spark
        window = settings.window or settings.period
        arrivals = wants_arrivals(own or create(settings.policy, settings.parameters))
        self._engine: SparkEngine | SiteEngine
        if isinstance(cluster, SiteCluster):
            self._engine = SiteEngine(spark, cluster, window=window, arrivals=arrivals)
        else:
            self._engine = SparkEngine(spark, window=window, cluster=cluster, arrivals=arrivals)
        self._engine.pool.limits = (settings.guards.minimum, settings.guards.maximum)
        self._engine.pool.frozen = self._why_not
        if settings.mode == "act":
            self._engine.pool.refuse_if_not_ours()
        super().__init__(
            self._engine,
            settings,
            what=str(spark.sparkContext.applicationId),
            policy=own,
            record=record,
            switch=switch,
        )

    @classmethod
    def from_settings(cls, spark: Any, settings: Settings, **others: Any) -> Autoscaler:
        """An Autoscaler with ready settings; ``others`` are ``cluster``, ``record``, ``switch``."""
        return cls(spark, config=settings, **others)

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that have finished a batch and still run."""
        return self._engine.queries

    def _over(self) -> str | None:
        return "the session was stopped" if self._spark.sparkContext._jsc is None else None


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
