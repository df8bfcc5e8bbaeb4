"""The jars of a Kafka broker and of Spark's Kafka connector: from Maven once, then from the cache.

The connector has to be made for the running Spark. Where Maven has none of that version, an older
one that passes our tests with it stands in (see ``STAND_INS``), and says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from penstock.core.errors import MissingError
from penstock.lab.host.java import GET_SPARK, find_java, find_spark
from penstock.lab.host.leftovers import cache_choices, cache_folder
from penstock.lab.host.probes import MachineCheck
from penstock.lab.host.processes import Nursery

# Maven artifacts by Ivy, which comes with Spark: resolved, checked, and whole or not there.
#
# Artifacts are downloaded into a folder ``….part`` that is renamed when it is complete, so a
# download that was cut off leaves nothing that looks whole; a lock makes a second process wait for
# the first.

Say = Callable[[str], None]
DOWNLOAD_SECONDS = 900.0  # for one set of jars; 20–60 s is normal
SAY_EVERY = 5.0  # seconds
LOOK = 0.1  # seconds between looks at Ivy
_OFFLINE = re.compile(rb"SERVER ERROR|Host .+ not found|[Cc]onnect(ion)? (refused|timed out|reset)")
_FOUND, _DONE = re.compile(rb"^\s*found ", re.M), b"[SUCCESSFUL ]"  # lines of Ivy


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A Maven artifact."""

    group: str
    name: str
    version: str


class NotPublishedError(MissingError):
    """Maven answered and does not have an artifact."""


def download(
    artifacts: Sequence[Artifact], folder: Path, *, excluded: Iterable[str] = (), say: Say
) -> None:
    """Get artifacts and all they need into ``folder``, unless another process does so first.

    ``excluded`` are names of artifacts that are not needed. Raises NotPublishedError if Maven
    does not have one, MissingError if Maven cannot be reached.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent / ".lock", say):
        if not folder.is_dir():  # another process may have got it while we waited
            _download(artifacts, folder, excluded, say)


@contextlib.contextmanager
def _alone(lock: Path, say: Say) -> Iterator[None]:
    """One process at a time; the kernel frees the lock of one that dies."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that downloads jars…")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(
    artifacts: Sequence[Artifact], folder: Path, excluded: Iterable[str], say: Say
) -> None:
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
    (part / "jars").mkdir(parents=True)
    log, order = part / "ivy.log", part / "ivy.xml"
    order.write_text(ivy_file(artifacts, excluded), encoding="utf-8")
    command = [
        str(find_java().binary),
        *("-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *("-cp", f"{find_spark()}/jars/*", "org.apache.ivy.Main"),
        *("-ivy", str(order), "-cache", str(part / "cache"), "-confs", "default"),
        *("-retrieve", f"{part}/jars/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    try:
        code = _run(command, part, log, say)
        if code != 0 or not any((part / "jars").glob("*.jar")):
            raise _failure(artifacts, folder, log.read_bytes())
        (part / "jars").rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _run(command: list[str], cwd: Path, log: Path, say: Say) -> int:
    """Ivy's exit code; it dies with us, and tells how far it is."""
    nursery = Nursery()
    child = nursery.start(command, env=os.environ, cwd=cwd, log=log)
    begun = said = time.monotonic()
    try:
        while child.poll() is None:
            now = time.monotonic()
            if now - begun > DOWNLOAD_SECONDS:
                raise MissingError(
                    f"the download was not done after {DOWNLOAD_SECONDS:g} s: try again on a "
                    "faster line"
                )
            if now - said >= SAY_EVERY:
                said = now
                text = log.read_bytes()
                found, done = len(_FOUND.findall(text)), text.count(_DONE)
                say(f"… {found} artifacts found, {done} downloaded after {now - begun:.0f} s")
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(LOOK)
        return child.returncode
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        nursery.close()


def _failure(artifacts: Iterable[Artifact], folder: Path, log: bytes) -> MissingError:
    named = ", ".join(f"{a.group}:{a.name}:{a.version}" for a in artifacts)
    missing = re.findall(rb"::\s+(\S+#\S+;\S+): not found", log)
    if missing and not _OFFLINE.search(log):
        absent = ", ".join(sorted({name.decode().replace("#", ":") for name in missing}))
        return NotPublishedError(
            f"Maven does not have {absent}, needed for {named}. Copy the folder {folder} from a "
            "machine that has it"
        )
    lines = [line.strip() for line in log.decode(errors="replace").splitlines() if line.strip()]
    why = next(
        (line for line in lines if _OFFLINE.search(line.encode())), lines[-1] if lines else ""
    )
    return MissingError(
        f"cannot get {named} from Maven: {why}. Is this machine "
        f"offline? Behind a proxy, set JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=…; without a network, "
        f"copy the folder {folder} from a machine that has it"
    )


def ivy_file(artifacts: Iterable[Artifact], excluded: Iterable[str]) -> str:
    """What Ivy is to resolve, in its own format."""
    wanted = "".join(
        f"<dependency org={quoteattr(a.group)} name={quoteattr(a.name)} "
        f'rev={quoteattr(a.version)} force="true" conf="default->default,runtime"/>'
        for a in artifacts
    )
    without = "".join(f"<exclude module={quoteattr(name)}/>" for name in sorted(set(excluded)))
    return (
        '<ivy-module version="2.0"><info organisation="penstock" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{wanted}{without}</dependencies></ivy-module>"
    )


SCALA = "2.13"
GET_CLIENT = "pip install 'penstock[kafka]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """Artifacts that are resolved together with all they need; ``name`` is the cache folder's.

    ``without_sparks`` leaves out what Spark has already.
    """

    name: str
    what: str
    artifacts: tuple[Artifact, ...]
    without_sparks: bool = False


KAFKA = "4.3.1"
BROKER = JarSet(
    name=f"kafka-broker-{KAFKA}",
    what=f"Apache Kafka {KAFKA} (45 MB)",
    artifacts=(
        Artifact(group="org.apache.kafka", name=f"kafka_{SCALA}", version=KAFKA),
        # Kafka's own tools bring SLF4J 1.7 and log4j 2.25; this joins the two.
        Artifact(group="org.apache.logging.log4j", name="log4j-slf4j-impl", version="2.25.4"),
    ),
)
_CONNECTOR, _TOKENS = f"spark-sql-kafka-0-10_{SCALA}", f"spark-token-provider-kafka-0-10_{SCALA}"
# By Spark series: connector and token provider of earlier releases that pass our tests with it.
STAND_INS: Mapping[str, tuple[str, str]] = {"4.3": ("4.2.0", "4.0.0")}


def connector(spark: str) -> JarSet:
    """The connector that was published with a version of Spark."""
    return JarSet(
        name=f"spark-kafka-{spark}",
        what=f"Spark's Kafka connector {spark} (10 MB)",
        artifacts=(Artifact(group="org.apache.spark", name=_CONNECTOR, version=spark),),
        without_sparks=True,
    )


def stand_in(spark: str) -> JarSet | None:
    """The connector of an earlier release that works with a version of Spark, if one is known."""
    versions = STAND_INS.get(".".join(spark.split(".")[:2]))
    if versions is None:
        return None
    pairs = zip((_CONNECTOR, _TOKENS), versions, strict=True)
    return JarSet(
        name=f"spark-kafka-{spark}-by-{versions[0]}",
        what=f"Spark's Kafka connector {versions[0]}, token provider {versions[1]} (10 MB)",
        artifacts=tuple(Artifact(group="org.apache.spark", name=n, version=v) for n, v in pairs),
        without_sparks=True,
    )


def folder_of(jars: JarSet) -> Path:
    """Where a set is kept; the folder exists only when the set is complete."""
    return cache_folder() / "jars" / jars.name


def cached(jars: JarSet) -> bool:
    """Whether a set need not be downloaded any more."""
    return folder_of(jars).is_dir()


def get(jars: JarSet, say: Say = lambda line: None) -> list[Path]:
    """The jars of a set, downloaded if this is the first time.

    Raises NotPublishedError if Maven does not have it, MissingError if Maven cannot be reached.
    """
    folder = folder_of(jars)
    if not folder.is_dir():
        say(f"downloading {jars.what}: once, about a minute…")
        download(
            jars.artifacts, folder, excluded=_sparks_own() if jars.without_sparks else (), say=say
        )
    return sorted(folder.glob("*.jar"))


def broker_jars(say: Say = lambda line: None) -> list[Path]:
    """The class path of a broker; not Spark's, which has other versions of the same classes."""
    return get(BROKER, say)


def connector_jars(say: Say = lambda line: None) -> list[Path]:
    """The jars that the installed Spark needs to read Kafka, and does not have.

    Once a stand-in is cached it stays in use; remove its folder to look for the right version.
    """
    choices = _connectors()
    if not choices:
        raise MissingError(f"pyspark is not installed. {GET_SPARK}")
    for jars in choices:
        if cached(jars):
            return get(jars, say)
    right, *others = choices
    try:
        return get(right, say)
    except NotPublishedError:
        if not others:
            raise
        say(f"Maven does not have it; an older one stands in: {others[0].what}")
        return get(others[0], say)


def connector_conf(say: Say = lambda line: None) -> dict[str, str]:
    """Spark configuration for a session that is to read Kafka; give it when the session is made."""
    return {"spark.jars": ",".join(map(str, connector_jars(say)))}


def check() -> MachineCheck:
    """What of Kafka is on this machine, for ``penstock doctor``; downloads and makes nothing."""
    wanted = {"broker": [BROKER], "connector": _connectors()}
    kept = [folder / "jars" for folder in cache_choices()]
    have, lacks = [], []
    for part, sets in wanted.items():
        found = next((s for s in sets for folder in kept if (folder / s.name).is_dir()), None)
        if found is None:
            lacks.append(f"the jars of the {part}")
        else:
            instead = "" if found is sets[0] else f" in place of {sets[0].artifacts[0].version}"
            have.append(f"{part} {found.artifacts[0].version}{instead}")
    fix = "nothing to do: they are downloaded at first use (55 MB)"
    if not find_spec("confluent_kafka"):
        lacks.append("confluent-kafka")
        fix = GET_CLIENT
    return MachineCheck(
        name="Kafka",
        ok=not lacks,
        found=f"not here: {', '.join(lacks)}" if lacks else ", ".join(have),
        enables="Nexmark's events through Kafka: penstock lab kafka",
        fix=fix,
    )


def _connectors() -> list[JarSet]:
    """The right connector and the one that may stand in, for the installed Spark if there is."""
    try:
        spark = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return []
    other = stand_in(spark)
    return [connector(spark)] + ([] if other is None else [other])


def _sparks_own() -> list[str]:
    """Names of the artifacts that Spark has, with their Scala version."""
    return [artifact_of(jar.name) for jar in (find_spark() / "jars").glob("*.jar")]


def artifact_of(jar: str) -> str:
    """The artifact that a jar is of.

    >>> artifact_of("spark-core_2.13-4.3.0.jar"), artifact_of("jsr305-3.0.0.jar")
    ('spark-core_2.13', 'jsr305')
    """
    return re.sub(r"-\d[^-]*(-[^-]*)*\.jar$", "", jar)
