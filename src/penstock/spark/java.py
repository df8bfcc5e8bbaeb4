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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import MissingError

OLDEST = 17  # Spark 4.3 is compiled for it
VECTOR = "jdk.incubator.vector"  # Spark's launcher always adds this module
GET_JAVA = "Debian and Ubuntu: apt-get install openjdk-17-jre-headless"
GET_SPARK = "pip install 'penstock[spark]'"
DUMP_SECONDS = 300.0
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
    if java := shutil.which("java", path=environ.get("PATH")):
        yield Path(java).resolve().parent.parent
    with contextlib.suppress(OSError):
        yield from sorted(Path("/usr/lib/jvm").iterdir())


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
    """The Java to use: JAVA_HOME, then ``java`` on the path, then /usr/lib/jvm; the first that fits.

    Raises MissingError that names every unfit Java found.
    """
    unfit: dict[str, None] = {}
    for home in _homes(environ):
        java = inspect(home)
        if java is not None and java.unfit is None:
            return java
        if java is not None and java.unfit is not None:
            unfit[java.unfit] = None
    found = "; ".join(unfit) or "no Java found in JAVA_HOME, on PATH or in /usr/lib/jvm"
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


def class_path(spark: Path) -> str:
    """The class path that Spark's own launcher gives executors and drivers, in its order.

    An archive is only valid for the class path it was dumped with; hence also ``conf``, which the
    package does not have, and slf4j, which the launcher puts first.
    """
    first = sorted(str(jar) for jar in (spark / "jars").glob("slf4j-api-*.jar"))
    return ":".join([f"{spark}/conf/", *first, f"{spark}/jars/*"])


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
    def wanted(self) -> bool:
        """Whether this run should list classes so that an archive can be made from them."""
        return os.environ.get(_SWITCH) != "off" and not self.archive.exists()

    def options(self, name: str) -> list[str]:
        """JVM options for the process ``name``: use the archive, or list the classes it lacks.

        ``-Xshare:auto`` makes a JVM that cannot use the archive go on without it. Its complaint
        would go to standard output, so the JVM's own log is switched off.
        """
        if os.environ.get(_SWITCH) == "off":
            return []
        if self.wanted:
            return [f"-XX:DumpLoadedClassList={self.lists / name}.classes"]
        return ["-Xshare:auto", f"-XX:SharedArchiveFile={self.archive}", "-Xlog:disable"]

    def dump(self, say: Callable[[str], None]) -> bool:
        """Make the archive from the lists of this run, if an executor wrote one; takes ~20 s once.

        The archive appears in the cache only when a JVM has accepted it. Any failure only means
        that there is none.
        """
        names = {
            line
            for file in self.lists.glob("*.classes")
            for line in file.read_text(errors="replace").splitlines()
            if line and "$Proxy" not in line and "source:" not in line and line[0] != "#"
        }
        if not any(self.lists.glob("app-*.classes")):
            return False
        say(f"saving class data so that later starts are faster (once, {len(names)} classes)…")
        merged, fresh = self.lists / "merged.list", self.lists / "fresh.jsa"
        merged.write_text("\n".join(sorted(names)) + "\n")
        java = [str(self.java.binary), "-Xlog:disable", "-Xlog:all=off"]
        place = [f"-XX:SharedArchiveFile={fresh}", "-cp", class_path(self.spark)]
        made = _succeeds([*java, "-Xshare:dump", f"-XX:SharedClassListFile={merged}", *place])
        if not made or not _succeeds([*java, "-Xshare:on", *place, "-version"]):
            say("class data could not be saved; starts stay as slow as they are")
            return False
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        os.replace(fresh, self.archive)
        return True


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=DUMP_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def class_data(java: Java, spark: Path, *, cache: Path, lists: Path) -> ClassData:
    """The archive that fits this Java and these Spark jars; its name changes when they change."""
    jars = sorted((jar.name, jar.stat().st_size) for jar in (spark / "jars").glob("*.jar"))
    what = f"{java.home} {java.version} {class_path(spark)} {jars}"
    key = hashlib.sha256(what.encode()).hexdigest()[:16]
    return ClassData(
        java=java, spark=spark, archive=cache / "class-data" / f"spark-{key}.jsa", lists=lists
    )
