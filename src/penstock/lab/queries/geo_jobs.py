"""The jobs of the geo work: taxi rides, and maps and window joins over messages of sensors.

Each is the same transformation of a stream and of a batch, and every result row carries the event
time at which it is final, so that a stream can be compared with a batch at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.pandas.functions import arrow_udf

from penstock.core.errors import InputError, unknown
from penstock.lab.queries.geo_work import fibonaccis, nearest_of
from penstock.workloads.pattern import Pattern
from penstock.workloads.patterns import Constant
from penstock.workloads.rides import Rides
from penstock.workloads.sensors import Sensors
from penstock.workloads.timed_rows import Content, TimedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAP_SENSORS, JOIN_SENSORS = 100_000, 50_000  # of the study; the latter in each of two streams
WINDOW = 4.0  # seconds
# Rows of a stream come in order, but Spark's join drops one that comes at the watermark.
LATE = "1 millisecond"
NEAREST = "attraction string, distance double"
RIDES = 1_000.0  # per second, unless a pattern says otherwise

Transform = Callable[[Sequence["DataFrame"]], "DataFrame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Parameters of the jobs.

    ``work`` additions per record, or per joined pair · ``scale`` by which the study's sensors
    are divided, and so the records/s · ``values`` that the streams of the Id-Value join have: the
    hot keys.
    """

    work: int = 4_000
    scale: float = 50.0
    values: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        if self.work < 0:
            raise InputError(f"work {self.work} must be ≥ 0 additions")
        if not 1 <= self.scale <= JOIN_SENSORS:
            raise InputError(f"scale {self.scale} must lie between 1 and {JOIN_SENSORS:,}")
        if not 1 <= self.values <= self.sensors(JOIN_SENSORS):
            raise InputError(
                f"values {self.values} must lie between 1 and the {self.sensors(JOIN_SENSORS)} "
                "sensors of a stream: lower it, or the scale"
            )

    def sensors(self, of_the_study: int) -> int:
        """How many of the study's sensors there are at this scale."""
        return round(of_the_study / self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeoJob:
    """One job: what it reads, and how its result comes about.

    ``contents`` of its streams, in the order of its sources · ``rate`` records/s of each stream
    unless a pattern is given · ``work`` additions per record or pair · ``cycle`` records of all
    streams together after which a join's work repeats, those of one window: a message that comes
    late in its window meets more others than one that comes early.
    """

    name: str
    title: str
    contents: tuple[Content, ...]
    rate: float
    work: int
    stateful: bool
    cycle: int = 1
    transform: Transform = field(repr=False)

    def build(self, frames: Sequence[DataFrame]) -> DataFrame:
        """The result over streaming or batch frames of its contents."""
        return self.transform(frames)

    def events(
        self,
        *,
        start: float,
        seconds: float,
        partitions: int,
        max_rows: int | None = None,
        pattern: Pattern | None = None,
    ) -> tuple[TimedRows, ...]:
        """Its streams on the clock; ``pattern`` is the rate of each.

        ``partitions``, the tasks that read a micro-batch, and ``max_rows``, its most records, are
        of all streams together: each has an equal part.
        """
        streams = len(self.contents)
        for name, value in (("partitions", partitions), ("max_rows", max_rows)):
            if value is not None and value < streams:
                raise InputError(f"{name} {value} must be at least {streams}, one for each stream")
        return tuple(
            TimedRows(
                content=content,
                pattern=Constant(rps=self.rate) if pattern is None else pattern,
                start=start,
                seconds=seconds,
                partitions=partitions // streams,
                max_rows=None if max_rows is None else max_rows // streams,
            )
            for content in self.contents
        )


def create(name: str, settings: JobSettings | None = None) -> GeoJob:
    """A job by name: ``taxi``, ``map``, ``id-id`` or ``id-value``."""
    if name not in JOBS:
        raise unknown("geo job", name, JOBS)
    return JOBS[name](settings or JobSettings())


def taxi(settings: JobSettings) -> GeoJob:
    """Every ride with the nearest attraction and the distance to it. [arkian21, §V-A]"""

    def transform(frames: Sequence[DataFrame]) -> DataFrame:
        (rides,) = frames
        found = arrow_udf(nearest_of(settings.work), NEAREST)  # type: ignore[call-overload]
        with_it = rides.withColumn("nearest", found("id", "lon", "lat"))
        return with_it.select(*rides.columns, "nearest.attraction", "nearest.distance")

    return GeoJob(
        name="taxi",
        title="taxi: every ride with the nearest of three attractions",
        contents=(Rides(seed=settings.seed),),
        rate=RIDES,
        work=settings.work,
        stateful=False,
        transform=transform,
    )


def sensor_map(settings: JobSettings) -> GeoJob:
    """Every message with a Fibonacci number worked out for it. [arsalane24, §III-A]"""
    sensors = settings.sensors(MAP_SENSORS)

    def transform(frames: Sequence[DataFrame]) -> DataFrame:
        (messages,) = frames
        return _worked(messages, "id", "value", settings.work)

    return GeoJob(
        name="map",
        title="map: work on every message",
        contents=(Sensors(sensors=sensors, values=sensors, seed=settings.seed),),
        rate=sensors,
        work=settings.work,
        stateful=False,
        transform=transform,
    )


def id_id(settings: JobSettings) -> GeoJob:
    """Messages of the same sensor in both streams and the same window. [arsalane24, §III-A]"""
    sensors = settings.sensors(JOIN_SENSORS)
    return _join("id-id", "s1.id = s2.id", "id", values=sensors, settings=settings)


def id_value(settings: JobSettings) -> GeoJob:
    """Messages of a sensor of the first stream that the second names. [arsalane24, §III-A]"""
    return _join("id-value", "s1.id = s2.value", "value", values=settings.values, settings=settings)


JOBS: Mapping[str, Callable[[JobSettings], GeoJob]] = {
    "taxi": taxi,
    "map": sensor_map,
    "id-id": id_id,
    "id-value": id_value,
}


def _join(name: str, condition: str, right: str, *, values: int, settings: JobSettings) -> GeoJob:
    sensors = settings.sensors(JOIN_SENSORS)

    def side(frame: DataFrame, number: int, key: str) -> DataFrame:
        window = F.window("time", f"{round(WINDOW * 1e6)} microseconds")
        marked = frame.withWatermark("time", LATE)
        return marked.select(
            F.col(key).alias("key"),
            window.alias("window"),
            F.col("id").alias(f"id_{number}"),
            # By a detour, since a side of a join may have one column with a watermark.
            F.timestamp_micros(F.unix_micros("time")).alias(f"time_{number}"),
            F.col("value").alias(f"value_{number}"),
        )

    def transform(frames: Sequence[DataFrame]) -> DataFrame:
        first, second = frames
        pairs = side(first, 1, "id").join(side(second, 2, right), ["key", "window"])
        named = pairs.select(
            *(f"{c}_{number}" for number in (1, 2) for c in ("id", "time", "value")),
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            F.greatest("time_1", "time_2").alias("time"),
        )
        return _worked(named, "id_1", "value_2", settings.work)

    return GeoJob(
        name=name,
        title=f"{name}: pairs with {condition} in windows of {WINDOW:g} s, and work on each",
        contents=(
            Sensors(sensors=sensors, values=values, stream="s1", seed=settings.seed),
            Sensors(sensors=sensors, values=values, stream="s2", seed=settings.seed),
        ),
        rate=sensors,
        work=settings.work,
        stateful=True,
        cycle=round(2 * sensors * WINDOW),
        transform=transform,
    )


def _worked(frame: DataFrame, first: str, second: str, work: int) -> DataFrame:
    additions = arrow_udf(fibonaccis(work), "bigint")  # type: ignore[call-overload]
    return frame.withColumn("fibonacci", additions(first, second))
