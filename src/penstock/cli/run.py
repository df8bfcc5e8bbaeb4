"""``penstock run``: an unmodified PySpark script, watched or scaled."""

from __future__ import annotations

import runpy
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.config import show
from penstock.cli.options import (
    FLAGS,
    Config,
    CoolDown,
    Fewest,
    FreezeFile,
    JournalFile,
    MetricsPort,
    Parameters,
    Period,
    PolicyName,
    PrintConfig,
    WhichMode,
    pairs,
)
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.lab.clusters.standalone.cluster import LocalCluster
    from penstock.lab.sites.cluster import SiteCluster
    from penstock.spark.autoscaler import Autoscaler
    from penstock.spark.freeze import KillSwitch
    from penstock.spark.settings.settings import Settings

LOOK = 0.2  # seconds between looks for a session


def run(
    script: Annotated[Path, typer.Argument(help="A PySpark script.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its own arguments.")] = None,
    config: Config = None,
    policy: PolicyName = None,
    set_: Parameters = None,
    mode: WhichMode = None,
    minimum: Fewest = None,
    maximum: Annotated[
        int | None,
        typer.Option("--max", help="Most executors.", show_default="80, or what the cluster has"),
    ] = None,
    period: Period = None,
    cool_down: CoolDown = None,
    local_cluster: Annotated[
        int | None,
        typer.Option(help="Start a local cluster with this many one-core executors for it."),
    ] = None,
    sites: Annotated[
        Path | None,
        typer.Option(help="Start a cluster on the sites of this file for it (docs/sites.md)."),
    ] = None,
    cpu_share: Annotated[
        float, typer.Option(help="Share of a core per executor of the local cluster.")
    ] = 0.2,
    journal: JournalFile = None,
    freeze_file: FreezeFile = None,
    metrics_port: MetricsPort = None,
    print_config: PrintConfig = False,
) -> None:
    """Run a PySpark script unchanged and attach Penstock to the session it makes.

    Decisions go to standard error. What the options leave open comes from
    the configuration file, PENSTOCK_* variables and spark.penstock.* of the
    session. SIGUSR1 freezes it, SIGUSR2 thaws it. With --local-cluster or
    --sites the script runs on a cluster started for it, unless it names a
    master itself.
    """
    from penstock.spark.freeze import KillSwitch

    given = {
        "policy": policy,
        "parameters": pairs("--set", set_) or None,
        "mode": mode,
        "min_executors": minimum,
        "max_executors": maximum,
        "period": period,
        "guards.cool_down": cool_down,
        "journal": journal,
        "freeze_file": freeze_file,
        "metrics_port": metrics_port,
    }
    if local_cluster is not None and sites is not None:
        raise InputError("give either --local-cluster or --sites, not both")
    room, flag, places = local_cluster, "--local-cluster", None
    if sites is not None:
        from penstock.lab.sites.spec import SitesSpec

        places = SitesSpec.read(sites)
        room, flag = places.slots, "--sites"
    wanted = _Wanted(config=config, given=given, room=room, flag=flag)
    settings = wanted.settings({})
    if print_config:
        show(settings)
        return
    if not script.is_file():
        raise InputError(f"no script at {script}")
    output.say(f"penstock: {settings.line()}")
    with ExitStack() as stack:
        stack.enter_context(output.log_to_stderr())
        cluster: LocalCluster | SiteCluster | None = None
        if local_cluster is not None:
            from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster

            spec = ClusterSpec(slots=local_cluster, cpu_share=cpu_share)
            cluster = stack.enter_context(LocalCluster(spec, say=output.say))
            conf = cluster.conf(start_with=settings.guards.minimum)
            stack.enter_context(_defaults(cluster, conf))
        elif places is not None:
            from penstock.lab.sites.cluster import SiteCluster

            first = places.nearest(settings.guards.minimum)
            cluster = stack.enter_context(SiteCluster(places, start_on=first, say=output.say))
            stack.enter_context(_defaults(cluster, cluster.conf()))
        switch = KillSwitch()
        stack.enter_context(switch.signals())
        stack.enter_context(_Attacher(wanted, cluster, switch))
        sys.argv = [str(script), *(arguments or [])]
        sys.path.insert(0, str(script.resolve().parent))
        runpy.run_path(str(script), run_name="__main__")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What the command line says of the configuration; the session's part comes later.

    ``room`` the most executors of the cluster that is started for the script, if one is, by the
    option ``flag``.
    """

    config: Path | None
    given: Mapping[str, Any]
    room: int | None
    flag: str

    def settings(self, spark: Mapping[str, str]) -> Settings:
        from penstock.spark.settings.settings import load

        found = load(self.config, spark=spark, given=self.given, flags=FLAGS)
        room, most = self.room, found.guards.maximum
        if room is None or most <= room:
            return found
        if "max_executors" in found.origins:
            origin = found.origins["max_executors"]
            raise InputError(f"{origin} {most} is above {self.flag} {room}")
        flags = {**FLAGS, "max_executors": self.flag}
        given = {**self.given, "max_executors": room}
        return load(self.config, spark=spark, given=given, flags=flags)


class _Attacher:
    """Waits in a thread for the script's session and attaches an Autoscaler to it.

    A script may stop its session and make another: that one gets an Autoscaler of its own.
    """

    def __init__(
        self, wanted: _Wanted, cluster: LocalCluster | SiteCluster | None, switch: KillSwitch
    ) -> None:
        self._wanted, self._cluster, self._switch = wanted, cluster, switch
        self._stopped = threading.Event()
        self._autoscaler: Autoscaler | None = None
        self._thread = threading.Thread(target=self._watch, name="penstock-attach", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=10.0)
        if self._autoscaler is not None:
            self._autoscaler.stop()

    def _watch(self) -> None:
        from pyspark.sql import SparkSession

        known = None
        while not self._stopped.wait(LOOK):
            session = SparkSession._instantiatedSession
            if session is None or session is known:
                continue
            known = session
            if self._autoscaler is not None:
                self._autoscaler.stop()
            try:
                if self._cluster is not None:
                    from penstock.lab.clusters.standalone.sessions import settle

                    settle(session)
                self._autoscaler = self._attached(session)
            except Exception as error:  # the script goes on, whatever is wrong with us
                output.say(f"penstock: not attached: {error}")

    def _attached(self, session: Any) -> Autoscaler:
        from penstock.spark.autoscaler import Autoscaler, configured
        from penstock.spark.exporter import PortError

        settings = self._wanted.settings(configured(session))

        def start(settings: Settings) -> Autoscaler:
            made = Autoscaler.from_settings(
                session, settings, cluster=self._cluster, switch=self._switch
            )
            return made.start()

        try:
            return start(settings)
        except PortError as error:
            output.say(f"penstock: no metrics: {error}")
            return start(replace(settings, metrics_port=None))


@contextmanager
def _defaults(cluster: LocalCluster | SiteCluster, conf: Mapping[str, str]) -> Iterator[None]:
    """Give the cluster's settings to any session that the script makes, as Spark's defaults."""
    from penstock.lab.clusters.standalone.sessions import environment

    folder = cluster.folder / "conf"
    folder.mkdir()
    lines = [f"{key} {value}\n" for key, value in conf.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    with environment({**cluster.environment(), "SPARK_CONF_DIR": str(folder)}):
        yield
