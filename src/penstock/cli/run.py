"""``penstock run``: an unmodified PySpark script, watched or scaled."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
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
from penstock.cli.script import ended_by_sigterm, run_script
from penstock.cli.submit import Submit
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.lab.clusters.standalone.cluster import LocalCluster
    from penstock.lab.sites.cluster import SiteCluster
    from penstock.spark.autoscaler import Autoscaler
    from penstock.spark.freeze import KillSwitch
    from penstock.spark.settings.settings import Settings

LOOK = 0.2  # seconds between looks for a session
# An ordinary job has 200 partitions, each with a state of its own: what the laboratory's small
# executors have is not enough for it.
EXECUTOR_MEMORY = "1g"

SPARK = "As for spark-submit"  # panels of --help
GUARDS = "Guards"


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
        float | None,
        typer.Option(
            help="Share of a core per executor of the local cluster.",
            show_default="an equal share of this machine, at most 1",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            "-c",
            metavar="KEY=VALUE",
            help="A Spark setting; repeatable.",
            rich_help_panel=SPARK,
        ),
    ] = None,
    properties_file: Annotated[
        Path | None, typer.Option(help="A file of Spark settings.", rich_help_panel=SPARK)
    ] = None,
    packages: Annotated[
        str | None,
        typer.Option(help="Maven packages, joined by commas.", rich_help_panel=SPARK),
    ] = None,
    jars: Annotated[
        str | None, typer.Option(help="Jars, joined by commas.", rich_help_panel=SPARK)
    ] = None,
    py_files: Annotated[
        str | None,
        typer.Option(help="Python modules and archives, joined by commas.", rich_help_panel=SPARK),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the application.", rich_help_panel=SPARK)
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="The cluster's master.", rich_help_panel=SPARK)
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Relative distance that is worth no action.",
            show_default="0.1",
            rich_help_panel=GUARDS,
        ),
    ] = None,
    step_up: Annotated[
        int | None,
        typer.Option(help="Most executors added by one action.", rich_help_panel=GUARDS),
    ] = None,
    step_down: Annotated[
        int | None,
        typer.Option(help="Most executors removed by one action.", rich_help_panel=GUARDS),
    ] = None,
    drain: Annotated[
        str | None,
        typer.Option(
            help="No scale-down while more of input waits: 30s, 2m, or none.",
            show_default="30s",
            rich_help_panel=GUARDS,
        ),
    ] = None,
    blackout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FROM-TO",
            help="Daily time without actions, UTC; repeatable.",
            rich_help_panel=GUARDS,
        ),
    ] = None,
    journal: JournalFile = None,
    freeze_file: FreezeFile = None,
    metrics_port: MetricsPort = None,
    print_config: PrintConfig = False,
) -> None:
    """Run a PySpark script unchanged and attach Penstock to the session it makes.

    Put its own options behind --. It ends as under Python: with its own
    traceback and exit code; 130 by Ctrl-C, 143 by SIGTERM. Decisions go to
    standard error. What the options leave open comes from the configuration
    file, PENSTOCK_* variables and spark.penstock.* of the session. SIGUSR1
    freezes it, SIGUSR2 thaws it. With --local-cluster or --sites the script
    runs on a cluster started for it, unless it names a master itself.
    """
    from penstock.history.lock import refuse_if_written
    from penstock.spark.freeze import KillSwitch
    from penstock.spark.settings.keys import plain

    submit = Submit.of(
        conf=conf,
        properties_file=properties_file,
        packages=packages,
        jars=jars,
        py_files=py_files,
        name=name,
        master=master,
    )
    given = {
        "policy": policy,
        "parameters": pairs("--set", set_) or None,
        "mode": mode,
        "min_executors": minimum,
        "max_executors": maximum,
        "period": period,
        "guards.cool_down": cool_down,
        "guards.tolerance": tolerance,
        "guards.step_up": step_up,
        "guards.step_down": step_down,
        "guards.drain": None if drain is None else plain(drain),
        "blackouts": blackout or None,
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
    if room is not None:
        submit.refuse_for_cluster(flag)
    wanted = _Wanted(config=config, given=given, room=room, flag=flag)
    settings = wanted.settings(submit.settings)
    if print_config:
        show(settings)
        return
    if not script.is_file():
        raise InputError(f"no script at {script}")
    if settings.journal is not None:
        refuse_if_written(settings.journal)
    output.say(f"penstock: {settings.line()}")
    with ExitStack() as stack:
        stack.enter_context(output.log_to_stderr())
        stack.enter_context(ended_by_sigterm())
        cluster: LocalCluster | SiteCluster | None = None
        found: Mapping[str, str] | None = None
        if local_cluster is not None:
            from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster

            spec = ClusterSpec(
                slots=local_cluster,
                executor_memory=submit.settings.get("spark.executor.memory", EXECUTOR_MEMORY),
                cpu_share=_equal_share(local_cluster) if cpu_share is None else cpu_share,
            )
            cluster = stack.enter_context(LocalCluster(spec, say=output.say))
            found = cluster.conf(start_with=settings.guards.minimum)
        elif places is not None:
            from penstock.lab.sites.cluster import SiteCluster

            first = places.nearest(settings.guards.minimum)
            cluster = stack.enter_context(SiteCluster(places, start_on=first, say=output.say))
            found = cluster.conf()
        if cluster is not None and found is not None:
            stack.enter_context(_defaults(cluster, submit.defaults(found)))
            stack.callback(_end_session)
        switch = KillSwitch()
        stack.enter_context(switch.signals())
        stack.enter_context(_Attacher(wanted, cluster, switch))
        stack.enter_context(submit.in_force(found))
        run_script(script, arguments or [])


def _equal_share(slots: int) -> float:
    """The share of a core of each executor that leaves none of them waiting for another."""
    return min(1.0, (os.cpu_count() or 1) / max(slots, 1))


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

        from penstock.spark.autoscaler import refuse_remote

        known: Any = None
        while not self._stopped.wait(LOOK):
            session = SparkSession._instantiatedSession or _remote_session()
            if session is None or session is known:
                continue
            known = session
            if self._autoscaler is not None:
                self._autoscaler.stop()
            try:
                refuse_remote(session)
                if (address := session.sparkContext.uiWebUrl) is not None:
                    output.say(f"penstock: Spark UI at {address}")
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


def _end_session() -> None:
    """Stop the session that the script has left open, before the cluster goes that it is on."""
    from pyspark import SparkContext

    if (context := SparkContext._active_spark_context) is not None:
        with suppress(Exception):  # its JVM may be gone
            context.stop()


def _remote_session() -> Any:
    """The script's session if it is one of Spark Connect, which is no driver of this process."""
    connect = sys.modules.get("pyspark.sql.connect.session")
    return None if connect is None else connect.SparkSession._default_session


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
