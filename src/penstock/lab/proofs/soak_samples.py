"""What a long run is sampled for: memory, threads and open files of the driver, files on disk."""

from __future__ import annotations

import json
import os
import statistics
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import EngineError
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.spark.read.rest import Rest

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
SCRAPE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process: resident bytes, threads, open files."""

    rss: int
    threads: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakSample:
    """One look at a run, ``seconds`` after it began; sizes in bytes, ``None`` = not measured.

    python_*, jvm_*: the driver's Python and its JVM
    heap: what the JVM still uses right after a collection
    executor_rss: mean over the executors
    dead: executors that the driver remembers
    journal: size of it with all rotated files
    scrape: size of the Prometheus page
    """

    seconds: float
    python_rss: int
    python_threads: int
    python_files: int
    jvm_rss: int
    jvm_threads: int
    jvm_files: int
    heap: int | None
    executors: int
    executor_rss: float | None
    dead: int | None
    journal: int
    checkpoint: int
    scrape: int | None
    batch: int


def process(pid: int) -> Process | None:
    """A process as ``/proc`` shows it; ``None`` if it is gone."""
    folder = PROC / str(pid)
    try:
        pages = int((folder / "statm").read_text().split()[1])
        threads = len(list((folder / "task").iterdir()))
        files = len(list((folder / "fd").iterdir()))
    except (OSError, IndexError):
        return None
    return Process(rss=pages * PAGE, threads=threads, files=files)


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; those that vanish while we look count nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_size
            except OSError:
                continue
    return total


def journal_bytes(journal: Path) -> int:
    """Bytes of a journal and of those that were rotated away."""
    return sum(file.stat().st_size for file in journal.parent.glob(f"{journal.name}*"))


def scrape(url: str) -> int | None:
    """Bytes of a Prometheus page; ``None`` if it did not answer with a metric of ours."""
    try:
        with urllib.request.urlopen(url, timeout=SCRAPE_SECONDS) as answer:
            page: bytes = answer.read()
    except (OSError, urllib.error.URLError):
        return None
    return len(page) if b"penstock_info" in page else None


class SoakSampler:
    """Takes samples of a session on a cluster.

    ``batch`` gives the number of the newest batch, ``journal`` and ``checkpoint`` are on disk.
    """

    def __init__(
        self,
        spark: Any,
        cluster: LocalCluster,
        *,
        journal: Path,
        checkpoint: Path,
        batch: Callable[[], int],
    ) -> None:
        from pyspark import SparkContext

        context = spark.sparkContext
        gateway: Any = SparkContext._gateway
        self._jvm_pid = int(gateway.proc.pid)
        self._runtime = context._jvm.java.lang.Runtime.getRuntime()
        self._rest = Rest(context.uiWebUrl, context.applicationId)
        self._cluster, self._journal, self._checkpoint = cluster, journal, checkpoint
        self._batch = batch

    def take(self, seconds: float, *, collect: bool, url: str | None) -> SoakSample:
        """One sample; ``collect`` runs the JVM's collector first, ``url`` is scraped."""
        python, jvm = process(os.getpid()), process(self._jvm_pid)
        if python is None or jvm is None:
            raise EngineError("the driver's JVM is gone")
        executors = [e for e in map(process, self._cluster.executors().values()) if e is not None]
        return SoakSample(
            seconds=seconds,
            python_rss=python.rss,
            python_threads=python.threads,
            python_files=python.files,
            jvm_rss=jvm.rss,
            jvm_threads=jvm.threads,
            jvm_files=jvm.files,
            heap=self._heap() if collect else None,
            executors=len(executors),
            executor_rss=statistics.fmean(e.rss for e in executors) if executors else None,
            dead=self._dead(),
            journal=journal_bytes(self._journal),
            checkpoint=folder_bytes(self._checkpoint),
            scrape=None if url is None else scrape(url),
            batch=self._batch(),
        )

    def _heap(self) -> int:
        self._runtime.gc()
        return int(self._runtime.totalMemory()) - int(self._runtime.freeMemory())

    def _dead(self) -> int | None:
        try:
            return sum(not executor.alive for executor in self._rest.executors())
        except EngineError:
            return None


def append(sample: SoakSample, file: Path) -> None:
    """Add a sample to a file of JSON lines."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(sample)) + "\n")
