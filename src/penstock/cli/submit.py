"""What ``spark-submit`` takes, for a script that ``penstock run`` runs.

PySpark starts the driver's JVM by ``spark-submit`` itself, with the arguments in the variable
``PYSPARK_SUBMIT_ARGS``. So they go there, and mean what they always mean: what the script's code
says is strongest, then ``--conf``, then the properties file.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from penstock.core.errors import InputError

VARIABLE = "PYSPARK_SUBMIT_ARGS"
SHELL = "pyspark-shell"  # what spark-submit runs for a driver in Python
# Of a cluster that is started for the script and of the user both: neither may be lost.
JOINED: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executor.extraClassPath": os.pathsep,
}
_REMOTE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_LINE = re.compile(r"(?P<key>(?:\\.|[^\s=:\\])+)\s*[=:\s]?\s*(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """The arguments of ``spark-submit``, checked: what is missing is refused before anything runs.

    conf: ``KEY=VALUE`` texts, the last of a key wins
    jars, py_files: paths or addresses, joined by commas; patterns such as ``lib/*.jar`` too
    """

    conf: Mapping[str, str] = field(default_factory=dict)
    properties_file: Path | None = None
    packages: str | None = None
    jars: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    name: str | None = None
    master: str | None = None

    @classmethod
    def of(
        cls,
        *,
        conf: Sequence[str] | None = None,
        properties_file: Path | None = None,
        packages: str | None = None,
        jars: str | None = None,
        py_files: str | None = None,
        name: str | None = None,
        master: str | None = None,
    ) -> Submit:
        """As given on the command line; raises InputError for what cannot be."""
        if properties_file is not None and not properties_file.is_file():
            raise InputError(f"--properties-file {properties_file}: there is no such file")
        for package in _listed(packages):
            if package.count(":") != 2 or not all(package.split(":")):
                raise InputError(f"--packages {package!r} must look like GROUP:ARTIFACT:VERSION")
        return cls(
            conf=_conf(conf or ()),
            properties_file=properties_file,
            packages=packages,
            jars=_files("--jars", jars),
            py_files=_files("--py-files", py_files, kinds=(".py", ".zip", ".egg", ".whl", ".jar")),
            name=name,
            master=master,
        )

    @property
    def settings(self) -> dict[str, str]:
        """What the session will find of it, as far as the script does not say otherwise."""
        said = {"spark.app.name": self.name, "spark.master": self.master}
        file = {} if self.properties_file is None else read_properties(self.properties_file)
        return file | dict(self.conf) | {key: text for key, text in said.items() if text}

    def arguments(self, cluster: Mapping[str, str] | None = None) -> list[str]:
        """For ``spark-submit``; with the settings of a ``cluster`` that was started for it.

        The cluster's settings are defaults, but where the driver finds it is not up to a file.
        """
        words: list[str] = []
        if self.properties_file is not None and cluster is None:
            words += ["--properties-file", str(self.properties_file)]
        for option, text in (("--master", self.master), ("--name", self.name)):
            words += [option, text] if text else []
        for key, value in self.conf.items():
            words += ["--conf", f"{key}={_joined(key, value, cluster or {})}"]
        lists = {"--packages": self.packages or "", "--jars": ",".join(self.jars)}
        for option, text in (lists | {"--py-files": ",".join(self.py_files)}).items():
            words += [option, text] if text else []
        return words

    def defaults(self, cluster: Mapping[str, str]) -> dict[str, str]:
        """The properties of a session on a cluster that was started for it: file over cluster."""
        file = {} if self.properties_file is None else read_properties(self.properties_file)
        mine = {key: _joined(key, value, cluster) for key, value in file.items()}
        return {**cluster, **mine, **{key: cluster[key] for key in _FIXED if key in cluster}}

    def refuse_for_cluster(self, flag: str) -> None:
        """Refuse what a cluster that is started by the option ``flag`` says itself."""
        if self.master is not None:
            raise InputError(f"give either --master {self.master} or {flag}, not both")
        for key in _FIXED:
            if key in self.conf:
                raise InputError(
                    f"--conf {key}={self.conf[key]} cannot be with {flag}: {_FIXED[key]}"
                )

    @contextmanager
    def in_force(self, cluster: Mapping[str, str] | None = None) -> Iterator[None]:
        """Let the session that the script makes find all of it, and the script its modules.

        ``cluster`` has the settings of a cluster that was started for it.
        """
        before = os.environ.get(VARIABLE)
        given = shlex.split(before or "")
        own = given[:-1] if given and given[-1] == SHELL else given
        words = [*own, *self.arguments(cluster), SHELL]
        path = sys.path[:]
        with tempfile.TemporaryDirectory(prefix="penstock-py-files-") as folder:
            sys.path[1:1] = importable(self.py_files, Path(folder))
            os.environ[VARIABLE] = shlex.join(words)
            try:
                yield
            finally:
                sys.path[:] = path
                if before is None:
                    del os.environ[VARIABLE]
                else:
                    os.environ[VARIABLE] = before


_FIXED: Mapping[str, str] = {
    "spark.master": "the script runs on the cluster that is started for it",
    "spark.executor.cores": "its executors have one core each",
    "spark.dynamicAllocation.enabled": "Penstock itself sizes it",
    "spark.driver.host": "driver and cluster share an address of this machine",
    "spark.driver.bindAddress": "driver and cluster share an address of this machine",
    "spark.submit.deployMode": "the driver is this process",
}


def importable(files: Sequence[str], folder: Path) -> list[str]:
    """What goes onto Python's path so that files can be imported, as ``spark-submit`` does it.

    Archives go there themselves; single modules are copied to ``folder``, without their neighbours.
    """
    places = []
    for name in files:
        if _REMOTE.match(name):
            continue  # PySpark fetches it when the session starts
        path = Path(name.removeprefix("file://").removeprefix("file:"))
        if path.suffix == ".py":
            shutil.copy(path, folder)
            places.append(str(folder))
        else:
            places.append(str(path.resolve()))
    return list(dict.fromkeys(places))


def read_properties(path: Path) -> dict[str, str]:
    """The settings of a properties file: ``key value``, ``key=value`` or ``key: value`` a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--properties-file {path} cannot be read: {error}") from None
    found = {}
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        words = line.strip()
        if words and words[0] not in "#!" and (parts := _LINE.match(words)):
            key = re.sub(r"\\(.)", r"\1", parts["key"])
            found[key] = parts["value"].strip()
    return {key: value for key, value in found.items() if key.startswith("spark.")}


def _conf(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise InputError(
                f"--conf {text!r} must look like KEY=VALUE, such as spark.ui.port=4050"
            )
        if not key.strip().startswith("spark."):
            raise InputError(
                f"--conf {text!r}: Spark ignores keys that do not begin with 'spark.'; give "
                "others to the script itself, behind --"
            )
        found[key.strip()] = value
    return found


def _files(option: str, text: str | None, kinds: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The files of a list, patterns resolved; those on this machine have to be there."""
    found: list[str] = []
    for name in _listed(text):
        if _REMOTE.match(name):
            found.append(name)
            continue
        bare = name.removeprefix("file://").removeprefix("file:")
        there = sorted(glob.glob(bare))  # noqa: PTH207 (absolute patterns too)
        there = there or ([bare] if Path(bare).exists() else [])
        if not there:
            raise InputError(f"{option} {name}: there is no such file")
        if kinds and (wrong := [p for p in there if Path(p).suffix not in kinds]):
            raise InputError(f"{option} {wrong[0]} must be one of {', '.join(kinds)}")
        found += [str(Path(p).absolute()) for p in there]
    return tuple(found)


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _joined(key: str, value: str, cluster: Mapping[str, str]) -> str:
    both = (cluster.get(key, ""), value) if key in JOINED else (value,)
    return JOINED.get(key, "").join(part for part in both if part)
