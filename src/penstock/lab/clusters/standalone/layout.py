"""The folder and the control groups of a cluster, and what its processes are started with."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from penstock.lab.clusters.standalone.daemons import Role
from penstock.lab.clusters.standalone.sessions import DRIVER_LOG, EXECUTOR_LOG, GATES, HOST, LEAN
from penstock.lab.host import cgroups, leftovers
from penstock.lab.host.java import ClassData, Java, class_path

FOLDERS = ("logs", "work", "local", "tmp", "gates", "executors", "classes", "java/bin")
NAMES = Path("/etc/hosts")
SHIM = Path(__file__).with_name("java_shim.sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What is where in the folder of a ``run``.

    ``host`` the cluster's address · ``groups`` the control groups of executors.
    """

    run: leftovers.OwnedRun
    java: Java
    spark: Path
    data: ClassData
    host: str = HOST
    groups: tuple[Path, ...] = ()

    @property
    def names(self) -> list[str]:
        """Java options that keep the questions for names of the cluster's addresses at home.

        Spark asks which name an address has. For loopback that is in a file; for any other the
        question would go to a name server, outside of the network that the cluster is in.
        """
        return [] if self.host == HOST else [f"-Djdk.net.hosts.file={self.run.folder / 'hosts'}"]

    def make(self) -> None:
        """Fill the folder."""
        folder = self.run.folder
        for name in FOLDERS:
            (folder / name).mkdir(parents=True)
        shim = folder / "java/bin/java"
        shim.write_text(SHIM.read_text())
        shim.chmod(0o700)
        (folder / "executor-log.properties").write_text(EXECUTOR_LOG)
        (folder / "driver-log.properties").write_text(DRIVER_LOG)
        known = NAMES.read_text() if NAMES.exists() else ""
        (folder / "hosts").write_text(f"{known}\n{HOST} localhost {socket.gethostname()}\n")

    def command(self, role: Role, name: str, arguments: list[str]) -> list[str]:
        """The command line of a master or worker of that name."""
        return [
            str(self.java.binary),
            *LEAN,
            "-XX:-UsePerfData",  # no file in /tmp
            "-Xmx256m",
            f"-Djava.io.tmpdir={self.run.folder / 'tmp'}",
            "-Dspark.master.rest.enabled=false",  # it would take the fixed port 6066
            "-Dspark.decommission.enabled=true",
            *self.names,
            *self.data.options(name),
            *("-cp", class_path(self.spark)),
            f"org.apache.spark.deploy.{role}.{role.capitalize()}",
            *arguments,
        ]

    def driver_environment(self) -> dict[str, str]:
        """Environment of a process that is to create a session on the cluster."""
        return {
            leftovers.RUN_VARIABLE: self.run.id,
            "JAVA_HOME": str(self.java.home),
            "SPARK_HOME": str(self.spark),
            "SPARK_LOCAL_IP": self.host,
            "SPARK_LAUNCHER_OPTS": " ".join([*LEAN, "-XX:-UsePerfData"]),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }

    def environment(self) -> dict[str, str]:
        """Environment of master and workers, which executors inherit and the shim reads."""
        folder, data = self.run.folder, self.data
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        return kept | {
            leftovers.RUN_VARIABLE: self.run.id,
            "SPARK_HOME": str(self.spark),
            "SPARK_SCALA_VERSION": "2.13",  # else the launcher looks for build folders
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "JAVA_HOME": str(folder / "java"),
            "TMPDIR": str(folder / "tmp"),
            "PENSTOCK_JAVA": str(self.java.binary),
            "PENSTOCK_JAVA_OPTIONS": " ".join(self.names),
            "PENSTOCK_TIED": "" if self.host == HOST else "yes",
            "PENSTOCK_EXECUTORS": str(folder / "executors"),
            "PENSTOCK_EXECUTOR_LOG": str(folder / "executor-log.properties"),
            "PENSTOCK_GROUPS": "\n".join(map(str, self.groups)),
            "PENSTOCK_CLASS_LISTS": str(data.lists) if data.wanted else "",
            "PENSTOCK_ARCHIVE": str(data.archive) if data.usable else "",
            GATES: str(folder / "gates"),
        }


# The control groups of a cluster's executors.


def find_hierarchy(cpu_share: float | None) -> tuple[cgroups.Hierarchy | None, str | None]:
    """Where control groups can be made; if nowhere, why executors have no limit."""
    meaning = (
        f"executors run without a CPU limit and compete for the {os.cpu_count()} cores of this "
        "machine, so figures for more executors than cores mean little"
    )
    if cpu_share is None:
        return None, f"No CPU share was asked for: {meaning}."
    found = cgroups.probe()
    if found.hierarchy is not None:
        return found.hierarchy, None
    reason = found.reason[0].upper() + found.reason[1:]
    return None, f"{reason}: {meaning}. To get limits, {found.fix}."


def groups_of(hierarchy: cgroups.Hierarchy | None, run_id: str) -> cgroups.Groups | None:
    """The control groups of a run; ``None`` where there can be none."""
    if hierarchy is None:
        return None
    return cgroups.Groups(hierarchy=hierarchy, name=f"penstock-{run_id}")


def group_folders(hierarchy: cgroups.Hierarchy | None, run_id: str) -> tuple[Path, ...]:
    """The folders of a run's control groups."""
    groups = groups_of(hierarchy, run_id)
    return () if groups is None else groups.folders
