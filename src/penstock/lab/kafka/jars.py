"""The jars of a Kafka broker and of Spark's Kafka connector: from Maven once, then from the cache.

The connector has to be made for the running Spark. Where Maven has none of that version, an older
one that passes our tests with it stands in (see ``STAND_INS``), and says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from penstock.core.errors import MissingError
from penstock.lab.host.java import GET_SPARK, find_spark
from penstock.lab.host.leftovers import cache_choices, cache_folder
from penstock.lab.host.probes import Check
from penstock.lab.kafka.maven import Artifact, NotPublishedError, Say, download

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


def check() -> Check:
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
    return Check(
        name="Kafka",
        ok=not lacks,
        found=f"not here: {', '.join(lacks)}" if lacks else ", ".join(have),
        enables="Nexmark's events through Kafka: penstock kafka",
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
