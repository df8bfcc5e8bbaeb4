"""One of Spark's own examples through ``penstock run``, under a load that rises and falls."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from penstock.core.errors import EngineError, InputError, MissingError
from penstock.history import journal
from penstock.lab.clusters.standalone.daemons import tail
from penstock.lab.host.java import find_spark
from penstock.lab.host.processes import Nursery, terminate
from penstock.lab.kafka.broker import LocalBroker
from penstock.lab.kafka.jars import connector_jars
from penstock.lab.proofs.examples_course import EventLog, ExampleCourse, Look, looks_of, thinned
from penstock.lab.proofs.examples_feed import Feed, KafkaFeed, SocketFeed, lines_of
from penstock.lab.proofs.proof import Say

EXAMPLES = Path("examples/src/main/python/sql/streaming")  # in the pyspark package
TIMES = 10  # the load goes up so many times
BATCH_TIME = 30.0  # seconds: 200 tasks of each stage keep two cores busy, whatever they read
START_SECONDS = 180.0  # until the example has its session and reads
STOP_SECONDS = 60.0
LOOK = 1.0  # seconds between looks at the journal
STILL = 3  # looks without an action before the load may change
TOPIC, PARTS = "lines", 4
SEED = 0


class ExampleError(EngineError):
    """An example has ended by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One script of the pyspark package and what it is fed.

    arguments: behind the address · low: lines per second before and after · vocabulary, words:
    different words, and those of a line · kafka: whether it reads Kafka, not a socket · needs:
    a package that the script imports
    """

    script: str
    low: float
    vocabulary: int
    words: int = 10
    arguments: tuple[str, ...] = ()
    kafka: bool = False
    needs: str = "pyspark"


BY_NAME: Mapping[str, Example] = {
    "windowed": Example(
        script="structured_network_wordcount_windowed.py",
        low=200.0,
        vocabulary=200,
        arguments=("60", "30"),
    ),
    "sessions": Example(
        script="structured_network_wordcount_session_window.py",
        low=1_000.0,
        vocabulary=200,
        needs="pandas",
    ),
    "sessionization": Example(script="structured_sessionization.py", low=200.0, vocabulary=200),
    "kafka": Example(
        script="structured_kafka_wordcount.py",
        low=2_000.0,
        vocabulary=200,
        words=40,
        kafka=True,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Who sizes an example, and on what.

    policy: that acts · period: seconds between its decisions · executors: most of them, each with
    ``cpu_share`` of a core
    """

    policy: str = "ds2"
    period: float = 10.0
    executors: int = 4
    cpu_share: float = 0.4

    def __post_init__(self) -> None:
        if not 2 <= self.period <= 60:
            raise InputError(f"--period {self.period:g} must lie between 2 and 60 seconds")
        if not 2 <= self.executors <= 64:
            raise InputError(f"--executors {self.executors} must lie between 2 and 64")


def check_example(name: str) -> None:
    """Refuse an example that is not known."""
    if name not in BY_NAME:
        raise InputError(f"unknown example {name!r}; there are {', '.join(BY_NAME)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamplesSettings:
    """What is run and for how long; seconds.

    only: examples by name · calm: at least before the rise · settle: at most until the executors
    rest before it · busy: of the high load · after: at most for the way down · executors: most of
    them, each with ``cpu_share`` of a core · done: a folder of an earlier run, whose finished
    examples count
    """

    only: tuple[str, ...] = tuple(BY_NAME)
    period: float = 10.0
    calm: float = 90.0
    settle: float = 420.0
    busy: float = 120.0
    after: float = 420.0
    executors: int = 4
    cpu_share: float = 0.4
    done: str | None = None

    def __post_init__(self) -> None:
        for name in self.only:
            check_example(name)
        if not self.only:
            raise InputError("--only names none")
        if not 3 * self.setting.period <= self.busy <= 3600:
            raise InputError(f"--busy {self.busy:g} must lie between 3 periods and 3600 seconds")

    @property
    def setting(self) -> Setting:
        """How each of them is run."""
        return Setting(period=self.period, executors=self.executors, cpu_share=self.cpu_share)


def script_of(example: Example) -> Path:
    """Where the pyspark package has it; raises MissingError if it, or what it needs, is missing."""
    path = find_spark() / EXAMPLES / example.script
    if find_spec(example.needs) is None:
        raise MissingError(f"{example.script} needs {example.needs}: pip install {example.needs}")
    if not path.is_file():
        raise MissingError(f"this pyspark package has no {EXAMPLES / example.script}")
    return path


def run(name: str, spec: ExamplesSettings, *, folder: Path, say: Say) -> ExampleCourse:
    """Play the load to one example; its journal, its output and its event log are in ``folder``."""
    low = BY_NAME[name].low
    with playing(name, spec.setting, folder=folder, say=say) as play:
        begun = time.time()
        play.until("the first decision", lambda: bool(play.looks()), spec.settle + spec.calm)
        play.wait(
            lambda: time.time() > begun + spec.calm and _at_rest(play.looks(), spec),
            spec.settle,
        )
        rise = play.load(TIMES * low)
        play.wait(lambda: False, spec.busy)
        fall = play.load(low)
        play.wait(lambda: _is_down(play.looks(), rise), spec.after)
        end = time.time()
        looks = play.looks()
        counts = thinned(play.feed.counts)
    log = EventLog.read(events_of(folder))
    return ExampleCourse(
        name=name,
        period=spec.period,
        window=spec.period,
        rise=rise,
        fall=fall,
        end=end,
        low=low,
        high=TIMES * low,
        counts=counts,
        batches=log.batches,
        joined=log.joined,
        left=log.left,
        looks=looks,
    )


@contextmanager
def playing(name: str, setting: Setting, *, folder: Path, say: Say) -> Iterator[Play]:
    """An example that runs, has been fed its first line, and is fed at the low rate."""
    example = BY_NAME[name]
    script = script_of(example)
    lines = lines_of(example.vocabulary, example.words, SEED)
    events = events_of(folder)
    events.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        feed, arguments, conf = _fed(example, lines, stack, say)
        child = stack.enter_context(_running(script, arguments, conf, setting, folder))
        play = Play(name, child, folder, feed, say)
        if isinstance(feed, KafkaFeed):
            # Without a starting offset the query begins at what is newest when it starts.
            play.until("the query has begun", lambda: _begun(events), START_SECONDS)
            feed.may_begin.set()
        play.until("the first line was fed", lambda: feed.begun, START_SECONDS)
        say(f"{name}: {feed.rate:,.0f} lines/s")
        yield play


def _fed(
    example: Example, lines: list[bytes], stack: ExitStack, say: Say
) -> tuple[Feed, list[str], dict[str, str]]:
    """The feed, the arguments of the script and what Spark needs to read it."""
    if not example.kafka:
        feed = stack.enter_context(SocketFeed(lines, example.low))
        return feed, ["127.0.0.1", str(feed.port), *example.arguments], {}
    jars = connector_jars(say)
    broker = stack.enter_context(LocalBroker(say=say))
    kafka = stack.enter_context(
        KafkaFeed(lines, example.low, broker=broker, topic=TOPIC, parts=PARTS)
    )
    arguments = [broker.bootstrap_servers, "subscribe", TOPIC]
    return kafka, arguments, {"spark.jars": ",".join(map(str, jars))}


@contextmanager
def _running(
    script: Path,
    arguments: list[str],
    conf: Mapping[str, str],
    setting: Setting,
    folder: Path,
) -> Iterator[subprocess.Popen[bytes]]:
    """``penstock run`` as anyone would start it, with Spark's event log, and batches of 30 s."""
    settings = {
        **conf,
        "spark.penstock.batch_time": f"{BATCH_TIME:g}s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events_of(folder).absolute().as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    command = [
        *(sys.executable, "-m", "penstock", "run", str(script)),
        *("--local-cluster", str(setting.executors), "--cpu-share", f"{setting.cpu_share:g}"),
        *("--policy", setting.policy, "--mode", "act", "--period", f"{setting.period:g}"),
        *("--cool-down", "0"),
        *("--journal", str(journal_of(folder).absolute())),
        *(word for item in settings.items() for word in ("--conf", "=".join(item))),
        *("--", *arguments),
    ]
    nursery = Nursery()
    child = nursery.start(command, env=os.environ, cwd=folder, log=folder / "output.log")
    try:
        yield child
    finally:
        terminate(child, within=STOP_SECONDS)
        nursery.close()


def journal_of(folder: Path) -> Path:
    """The journal of the decisions."""
    return folder / "decisions.jsonl"


def events_of(folder: Path) -> Path:
    """The folder of Spark's event log."""
    return folder / "events"


class Play:
    """Changes the load of an example that runs, and waits for things to happen."""

    def __init__(
        self, name: str, child: subprocess.Popen[bytes], folder: Path, feed: Feed, say: Say
    ) -> None:
        self._name, self._child, self._folder = name, child, folder
        self.feed, self._say = feed, say
        self._asked = 0

    def load(self, rate: float) -> float:
        """Feed so many lines/s from now on; when that is."""
        self.feed.rate = rate
        moment = time.time()
        self._say(f"{self._name}: {rate:,.0f} lines/s, {_size(self.looks())} executors")
        return moment

    def looks(self) -> tuple[Look, ...]:
        """What Penstock has seen so far; actions are told as they come."""
        try:
            _, entries = journal.read(journal_of(self._folder))
        except InputError:  # not there yet
            return ()
        found = looks_of(entry.decision for entry in entries)
        asked = [look for look in found if look.asked is not None]
        for look in asked[self._asked :]:
            self._say(f"{self._name}: executors {look.executors}→{look.asked}")
        self._asked = len(asked)
        return found

    def wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether it came true in time; an example that ends meanwhile is an error."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                log = self._folder / "output.log"
                raise ExampleError(
                    f"{self._name} ended with exit code {self._child.returncode}:\n{tail(log)}"
                )
            if holds():
                return True
            self.looks()
            time.sleep(LOOK)
        return False

    def until(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """The same for what has to come true."""
        if not self.wait(holds, seconds):
            log = self._folder / "output.log"
            raise EngineError(f"{self._name}: not within {seconds:g} s: {what}\n{tail(log)}")


def _begun(events: Path) -> bool:
    """Whether a query has started, by Spark's event log."""
    paths = (p for p in events.rglob("*") if p.is_file() and p.suffix != ".crc")
    return any(b"QueryStartedEvent" in path.read_bytes() for path in paths)


def _size(looks: tuple[Look, ...]) -> int:
    return looks[-1].executors if looks else 0


def _at_rest(looks: tuple[Look, ...], spec: ExamplesSettings) -> bool:
    """Whether the last looks changed nothing and there is room to grow."""
    last = looks[-STILL:]
    return len(looks) > STILL and all(
        look.asked is None and look.executors < spec.executors for look in last
    )


def _is_down(looks: tuple[Look, ...], rise: float) -> bool:
    """Whether there are again no more executors than before the rise, which had grown."""
    before = [look.executors for look in looks if look.time <= rise]
    since = [look.executors for look in looks if look.time > rise]
    if not before or not since:
        return False
    return max(since) > before[-1] and since[-1] <= before[-1]
