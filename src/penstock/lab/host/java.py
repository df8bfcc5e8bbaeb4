"""Java for Spark: which installation to use, and a class-data archive that makes it start faster.

Spark's JVMs (master, worker, driver, executors) load some 7 000–12 000 classes each before they do
anything useful. A class-data archive (AppCDS) holds them parsed and verified in one file that all
JVMs map: an executor then needs about half the CPU to start, which matters most when its CPU is
throttled. The JVMs of the first run only *list* the classes they load, which costs next to
nothing; the archive is dumped from these lists when that run has ended, so no start gets slower.
(An archive recorded by the JVMs themselves, ``-XX:ArchiveClassesAtExit``, doubles the CPU that the
recording start needs.)
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import MissingError

OLDEST = 17  # Spark 4.3 is compiled for it
VECTOR = "jdk.incubator.vector"  # Spark's launcher always adds this module
GET_JAVA = "Debian and Ubuntu: apt-get install openjdk-17-jre-headless"
GET_SPARK = "pip install 'penstock[spark]'"
JVMS = Path("/usr/lib/jvm")
KEEP_SECONDS = 30 * 86_400.0  # archives that were not used for so long are removed; 200 MB each
_HOT = (
    "spark-catalyst",
    "spark-core",
    "scala-library",
    "spark-sql",
    "scala-reflect",
    "spark-sql-api",
    "log4j-core",
    "jackson-databind",
    "hadoop-client-api",
    "janino",
    "spark-config",
    "spark-network-common",
    "arrow-vector",
    "hadoop-client-runtime",
    "netty-common",
    "ivy",
    "netty-transport",
    "antlr4-runtime",
    "jackson-module-scala",
    "netty-buffer",
    "jackson-core",
    "spark-common-utils",
    "log4j-api",
    "icu4j",
    "jackson-annotations",
    "py4j",
    "json4s-ast",
    "spark-network-shuffle",
    "json4s-core",
    "arrow-memory-core",
    "netty-transport-classes-epoll",
    "spark-unsafe",
)
_SWITCH = "PENSTOCK_CLASS_DATA"  # "off": neither use nor make an archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """One Java installation: its folder, its version and whether it has the vector module."""

    home: Path
    version: str
    vector: bool

    @property
    def major(self) -> int:
        """The feature release: 17 for ``17.0.15``, 8 for ``1.8.0_402``.

        >>> Java(home=Path("/j"), version="1.8.0_402", vector=False).major
        8
        """
        numbers = [int(n) for n in re.findall(r"\d+", self.version)[:2]] or [0]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]

    @property
    def binary(self) -> Path:
        """The ``java`` program."""
        return self.home / "bin" / "java"

    @property
    def unfit(self) -> str | None:
        """Why Spark cannot run on it, or None."""
        if self.major < OLDEST:
            return f"Java {self.version} in {self.home} is older than {OLDEST}"
        if not self.vector:
            return f"Java {self.version} in {self.home} lacks the module {VECTOR}"
        return None


def _homes(environ: Mapping[str, str]) -> Iterator[Path]:
    """Folders that may hold a Java, the user's choice first."""
    if home := environ.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(java).resolve().parent.parent
    with contextlib.suppress(OSError):
        yield from sorted(JVMS.iterdir())


def inspect(home: Path) -> Java | None:
    """What is installed in ``home``, or None if there is no Java.

    Reads the ``release`` file, which every JDK and JRE since 9 has and which costs no JVM start;
    asks ``java`` itself where it is missing.
    """
    binary = home / "bin" / "java"
    if not os.access(binary, os.X_OK):
        return None
    with contextlib.suppress(OSError):
        fields = dict(re.findall(r'^(\w+)="(.*)"$', (home / "release").read_text(), re.M))
        if "JAVA_VERSION" in fields and "MODULES" in fields:
            modules = fields["MODULES"].split()
            return Java(home=home, version=fields["JAVA_VERSION"], vector=VECTOR in modules)
    try:
        said = subprocess.run(
            [binary, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        listed = subprocess.run(
            [binary, "--list-modules"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"java\.version = (\S+)", said.stderr)
    return version and Java(home=home, version=version[1], vector=VECTOR in listed.stdout)


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java that fits: JAVA_HOME's, then the one on the path, then any in /usr/lib/jvm.

    Raises MissingError that names every unfit Java found.
    """
    unfit: dict[str, None] = {}
    for home in _homes(environ):
        java = inspect(home)
        if java is not None and java.unfit is None:
            return java
        if java is not None and java.unfit is not None:
            unfit[java.unfit] = None
    found = "; ".join(unfit) or f"no Java found in JAVA_HOME, on PATH or in {JVMS}"
    raise MissingError(f"{found}. Spark needs Java {OLDEST} or newer with {VECTOR}. {GET_JAVA}")


def find_spark() -> Path:
    """The folder of the installed pyspark package, which holds a complete Spark."""
    try:
        import pyspark
    except ImportError:
        raise MissingError(f"pyspark is not installed. {GET_SPARK}") from None
    home = Path(pyspark.__file__).parent
    if not (home / "jars").is_dir():
        raise MissingError(
            f"{home} has no folder jars: this is pyspark-client, which cannot run a cluster. "
            f"{GET_SPARK}"
        )
    return home


def hot_jars(spark: Path) -> list[str]:
    """The jars that most classes come from, to be searched before the other 260.

    Class loading looks through the jars in order; with these in front, dumping an archive takes
    less than half the CPU and a start without one some 5 % less.
    """
    return [str(jar) for name in _HOT for jar in sorted((spark / "jars").glob(f"{name}[-_][0-9]*"))]


def class_path(spark: Path) -> str:
    """The class path of all JVMs: the hot jars, then what Spark's own launcher appends to them.

    An archive is only valid for the class path it was dumped with; hence also ``conf``, which the
    package does not have, and slf4j, which the launcher puts before the rest.
    """
    slf4j = sorted(str(jar) for jar in (spark / "jars").glob("slf4j-api-*.jar"))
    return ":".join([*hot_jars(spark), f"{spark}/conf/", *slf4j, f"{spark}/jars/*"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassData:
    """The class-data archive for one Java and one Spark, in the user's cache folder.

    ``lists`` is the folder of the present run in which JVMs list the classes they load while
    there is no archive yet.
    """

    java: Java
    spark: Path
    archive: Path
    lists: Path

    @property
    def usable(self) -> bool:
        """Whether there is an archive and it is not switched off."""
        return os.environ.get(_SWITCH) != "off" and self.archive.exists()

    @property
    def wanted(self) -> bool:
        """Whether this run should list classes so that an archive can be made from them."""
        return os.environ.get(_SWITCH) != "off" and not self.archive.exists()

    def options(self, name: str) -> list[str]:
        """JVM options for the process ``name``: use the archive, or list the classes it loads.

        ``-Xshare:auto`` makes a JVM that cannot use the archive go on without it. Its complaint
        would go to standard output, so the JVM's own log is switched off.
        """
        if self.wanted:
            return [f"-XX:DumpLoadedClassList={self.lists / name}.classes"]
        if self.usable:
            return ["-Xshare:auto", f"-XX:SharedArchiveFile={self.archive}", "-Xlog:disable"]
        return []

    def dump(self, succeeds: Callable[[list[str]], bool], say: Callable[[str], None]) -> bool:
        """Make the archive from the lists of this run, if an executor wrote one: ~20 s, once.

        ``succeeds`` runs a command. The archive appears in the cache only when a JVM has accepted
        it; any failure only means that there is none.
        """
        if not any(self.lists.glob("app-*.classes")):
            return False
        names = {
            line
            for file in self.lists.glob("*.classes")
            for line in file.read_text(errors="replace").splitlines()
            if line and line[0] != "#" and "$Proxy" not in line and "source:" not in line
        }
        say(f"saving {len(names)} classes so that later starts are faster (once, about 20 s)…")
        merged, fresh = self.lists / "merged.list", self.lists / "fresh.jsa"
        merged.write_text("\n".join(sorted(names)) + "\n")
        java, where = str(self.java.binary), class_path(self.spark)
        options = ["-Xlog:disable", f"-XX:SharedArchiveFile={fresh}", "-cp", where]
        dump = [java, "-Xshare:dump", f"-XX:SharedClassListFile={merged}", *options]
        if not (succeeds(dump) and succeeds([java, "-Xshare:on", *options, "-version"])):
            say("the classes could not be saved; starts stay as slow as they are")
            return False
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        fresh.replace(self.archive)
        for old in self.archive.parent.glob("*.jsa"):  # of a Java or Spark that was replaced
            if time.time() - old.stat().st_mtime > KEEP_SECONDS:
                old.unlink(missing_ok=True)
        return True


def class_data(java: Java, spark: Path, *, cache: Path, lists: Path) -> ClassData:
    """The archive that fits this Java and these Spark jars; its name changes when they change."""
    jars = sorted((jar.name, jar.stat().st_size) for jar in (spark / "jars").glob("*.jar"))
    what = f"{java.home} {java.version} {class_path(spark)} {jars}"
    key = hashlib.sha256(what.encode()).hexdigest()[:16]
    archive = cache / "class-data" / f"spark-{key}.jsa"
    with contextlib.suppress(OSError):
        os.utime(archive)  # in use: keep it
    return ClassData(java=java, spark=spark, archive=archive, lists=lists)
