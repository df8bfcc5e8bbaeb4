"""``penstock run``: an unmodified PySpark script, watched or scaled."""

from __future__ import annotations

import logging
import runpy
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from penstock.cli import output
from penstock.cli.options import pairs
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.spark.autoscaler import Autoscaler
    from penstock.spark.cluster import LocalCluster

LOOK = 0.2  # seconds between looks for a session


def run(
    script: Annotated[Path, typer.Argument(help="A PySpark script.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its own arguments.")] = None,
    policy: Annotated[str, typer.Option(help="Policy.")] = "ds2",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Policy parameter, KEY=VALUE; repeatable.")
    ] = None,
    mode: Annotated[str, typer.Option(help="advise: only say; act: also do.")] = "advise",
    minimum: Annotated[int, typer.Option("--min", help="Fewest executors.")] = 1,
    maximum: Annotated[int, typer.Option("--max", help="Most executors.")] = 8,
    period: Annotated[float, typer.Option(help="Seconds between decisions.")] = 15.0,
    cool_down: Annotated[float, typer.Option(help="Seconds between actions.")] = 60.0,
    local_cluster: Annotated[
        int | None,
        typer.Option(help="Start a local cluster with this many one-core executors for it."),
    ] = None,
    cpu_share: Annotated[
        float, typer.Option(help="Share of a core per executor of the local cluster.")
    ] = 0.2,
    journal: Annotated[Path | None, typer.Option(help="File for the decisions.")] = None,
) -> None:
    """Run a PySpark script unchanged and attach Penstock to the session it makes.

    Decisions go to standard error. With --local-cluster the script runs on a cluster started
    for it, unless it names a master itself.
    """
    from dataclasses import replace

    from penstock.policies import create
    from penstock.spark.autoscaler import PRODUCTION

    parameters = pairs("--set", set_)
    create(policy, parameters)
    guards = replace(PRODUCTION, minimum=minimum, maximum=maximum, cool_down=cool_down)
    chosen: Literal["advise", "act"]
    if mode == "act":
        chosen = "act"
    elif mode == "advise":
        chosen = "advise"
    else:
        raise InputError(f"--mode {mode!r} must be advise or act")
    if not period > 0:
        raise InputError(f"--period {period:g} must be above 0 seconds")
    if not script.is_file():
        raise InputError(f"no script at {script}")
    # On our own logger only: how the script logs is its own affair.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    log = logging.getLogger("penstock")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False

    def attach(session: Any, cluster: LocalCluster | None) -> Autoscaler:
        from penstock.spark.autoscaler import Autoscaler

        return Autoscaler(
            session,
            policy,
            parameters=parameters,
            mode=chosen,
            period=period,
            guards=guards,
            cluster=cluster,
            journal=journal,
        )

    with ExitStack() as stack:
        cluster = None
        if local_cluster is not None:
            from penstock.spark.cluster import ClusterSpec, LocalCluster

            if maximum > local_cluster:
                raise InputError(f"--max {maximum} is above --local-cluster {local_cluster}")
            spec = ClusterSpec(slots=local_cluster, cpu_share=cpu_share)
            cluster = stack.enter_context(LocalCluster(spec, say=output.say))
            stack.enter_context(_defaults(cluster, minimum))
        stack.enter_context(_Attacher(attach, cluster))
        sys.argv = [str(script), *(arguments or [])]
        sys.path.insert(0, str(script.resolve().parent))
        runpy.run_path(str(script), run_name="__main__")


class _Attacher:
    """Waits in a thread for the script's session and attaches an Autoscaler to it."""

    def __init__(self, attach: Any, cluster: LocalCluster | None) -> None:
        self._attach, self._cluster = attach, cluster
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

        while not self._stopped.wait(LOOK):
            session = SparkSession._instantiatedSession
            if session is None:
                continue
            try:
                if self._cluster is not None:
                    from penstock.spark.driver import settle

                    settle(session)
                self._autoscaler = self._attach(session, self._cluster).start()
            except Exception as error:  # the script goes on, whatever is wrong with us
                output.say(f"penstock: not attached: {error}")
            return


@contextmanager
def _defaults(cluster: LocalCluster, start_with: int) -> Iterator[None]:
    """Give the cluster's settings to any session that the script makes, as Spark's defaults."""
    from penstock.spark.driver import environment

    folder = cluster.folder / "conf"
    folder.mkdir()
    lines = [f"{key} {value}\n" for key, value in cluster.conf(start_with=start_with).items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    with environment({**cluster.environment(), "SPARK_CONF_DIR": str(folder)}):
        yield
