"""Maven artifacts by Ivy, which comes with Spark: resolved, checked, and whole or not there.

Artifacts are downloaded into a folder ``….part`` that is renamed when it is complete, so a
download that was cut off leaves nothing that looks whole; a lock makes a second process wait for
the first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from penstock.core.errors import MissingError
from penstock.lab.host.java import find_java, find_spark
from penstock.lab.host.processes import Nursery

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
