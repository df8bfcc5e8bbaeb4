"""Nexmark queries 1, 2, 3, 5, 8 and 11: the same transformation of a stream and of a batch.

Windows are those of the evaluation framework [kanis23, §7.3]. Every result row carries the
event time at which it is final, so that a stream can be compared with a batch at any moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.pandas.functions import arrow_udf

from penstock.core.errors import InputError
from penstock.lab.queries.local_most import most_of_its_window
from penstock.workloads.nexmark import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MINUTE = 60.0  # seconds
JOIN_MINUTES = 5  # Q3 keeps persons and auctions this long
HOT_MINUTES, HOT_SLIDE_MINUTES = 5, 1  # Q5
NEW_USER_SECONDS = 10  # Q8
SESSION_GAP_SECONDS = 10  # Q11
NEAR_STATES = ("or", "id", "ca")  # Q3
CATEGORY = 10  # Q3


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Parameters of the queries.

    minute: seconds that a minute of the queries' windows lasts: 3 makes Q5's five minutes 15 s
    watermark: seconds to wait for events that come out of order, at least the events' disorder
    q1_rate: euros per dollar, exact
    q2_modulo: Q2 keeps auctions whose id it divides
    q2_auctions: Q2 keeps these auctions instead
    """

    minute: float = MINUTE
    watermark: float = 2.0
    q1_rate: Decimal = Decimal("0.908")
    q2_modulo: int = 123
    q2_auctions: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.minute) and self.minute >= 0.1):
            raise InputError(f"minute = {self.minute} must be at least 0.1 seconds")
        if not (math.isfinite(self.watermark) and self.watermark >= 0):
            raise InputError(f"watermark = {self.watermark} must be a finite number of seconds ≥ 0")
        if self.q2_modulo < 1:
            raise InputError(f"q2_modulo = {self.q2_modulo} must be ≥ 1; 1 keeps every bid")
        if self.q2_auctions is not None and not self.q2_auctions:
            raise InputError("q2_auctions is empty: name at least one auction, or leave it out")

    def scaled(self, seconds: float) -> float:
        """How long a time of the queries' definition lasts, in seconds."""
        return seconds * self.minute / MINUTE


Frames = Mapping[Table, "DataFrame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkQuery:
    """One query: what it reads, what it keeps, and how its result comes about.

    ``tables`` the columns it reads of each table, in the order of its sources · ``time`` the
    column of the result that says when a row is final: an event's own time (``date_time``, the
    row is final once later events have come) or the end of its window · ``emits`` whether rows
    come as soon as their events are read or when the watermark closes their window ·
    ``transform`` makes it of frames that have a watermark already, if it is stateful.
    """

    name: str
    title: str
    tables: Mapping[Table, tuple[str, ...]]
    columns: tuple[str, ...]
    time: Literal["date_time", "window_end", "session_end"]
    emits: Literal["at once", "at the watermark"]
    stateful: bool
    transform: Callable[[Frames, Settings], DataFrame]

    def build(self, frames: Frames, settings: Settings) -> DataFrame:
        """The result over streaming or batch frames of its tables."""
        if self.stateful:
            frames = {table: watermarked(frame, settings) for table, frame in frames.items()}
        return self.transform(frames, settings).select(*self.columns)

    def final(self, until: float) -> Column:
        """Whether a row of the result is final at a moment of event time (epoch seconds)."""
        moment = F.timestamp_micros(F.lit(round(until * 1e6)))
        time = F.col(self.time)
        return time < moment if self.time == "date_time" else time <= moment


def watermarked(frame: DataFrame, settings: Settings) -> DataFrame:
    """A millisecond more than asked: Spark's join drops a row that comes at the watermark."""
    return frame.withWatermark("date_time", f"{round(settings.watermark * 1e3) + 1} milliseconds")


def currency_conversion(frames: Frames, settings: Settings) -> DataFrame:
    """Q1: every bid with its price in euros, in exact decimals."""
    euros = F.col("price").cast("decimal(14,0)") * F.lit(settings.q1_rate)
    return frames["bid"].withColumn("price", euros)


def selection(frames: Frames, settings: Settings) -> DataFrame:
    """Q2: the bids on some auctions."""
    auction = F.col("auction")
    if settings.q2_auctions is None:
        return frames["bid"].where(auction % settings.q2_modulo == 0)
    return frames["bid"].where(auction.isin(*settings.q2_auctions))


def local_items(frames: Frames, settings: Settings) -> DataFrame:
    """Q3: what sellers in three states offer in one category.

    An auction meets its seller if they appear within five minutes of each other; without that
    bound a join of two streams has to keep every row for ever.
    """
    persons = frames["person"].where(F.col("state").isin(*NEAR_STATES))
    auctions = (
        frames["auction"]
        .where(F.col("category") == CATEGORY)
        .select("seller", F.col("id").alias("auction"), F.col("date_time").alias("opened"))
    )
    kept = _interval(settings.scaled(JOIN_MINUTES * MINUTE))
    near = F.col("opened").between(F.col("date_time") - kept, F.col("date_time") + kept)
    return persons.join(auctions, (F.col("id") == F.col("seller")) & near).withColumn(
        "date_time", F.greatest("date_time", "opened")
    )


def hot_items(frames: Frames, settings: Settings) -> DataFrame:
    """Q5: the auctions with most bids in each sliding window, all of them if several tie.

    Two aggregations in a row. Before the second, each task drops the auctions that others of
    the same task surpass, so that it gets a few rows instead of one per auction and window.
    """
    size = _duration(settings.scaled(HOT_MINUTES * MINUTE))
    slide = _duration(settings.scaled(HOT_SLIDE_MINUTES * MINUTE))
    counts = (
        frames["bid"]
        .groupBy(F.window("date_time", size, slide).alias("window"), "auction")
        .agg(F.count("*").alias("bids"))
    )
    not_surpassed = arrow_udf(most_of_its_window, "boolean")  # type: ignore[call-overload]
    hottest = (
        counts.where(not_surpassed("window.start", "bids"))
        .groupBy("window")
        .agg(F.collect_list(F.struct("bids", "auction")).alias("items"))
    )
    top = F.array_max("items")["bids"]
    return hottest.select(*_bounds(), F.inline(F.filter("items", lambda item: item["bids"] == top)))


def new_users(frames: Frames, settings: Settings) -> DataFrame:
    """Q8: persons who opened an auction in the tumbling window in which they registered."""
    size = _duration(settings.scaled(NEW_USER_SECONDS))
    window = F.window("date_time", size)
    persons = frames["person"].select("id", window.alias("window"), "name")
    auctions = frames["auction"].select(F.col("seller").alias("id"), window.alias("window"))
    both = persons.join(auctions, ["id", "window"]).dropDuplicates(["id", "window"])
    return both.select("id", "name", *_bounds())


def user_sessions(frames: Frames, settings: Settings) -> DataFrame:
    """Q11: how many bids a person makes until it makes none for ten seconds.

    The bounds are worked out from the bids: Spark applies a filter on the bounds of a session
    window to single bids, before they are merged into sessions, and so returns wrong ones.
    """
    gap = settings.scaled(SESSION_GAP_SECONDS)
    return (
        frames["bid"]
        .groupBy("bidder", F.session_window("date_time", _duration(gap)))
        .agg(
            F.count("*").alias("bids"),
            F.min("date_time").alias("session_start"),
            (F.max("date_time") + _interval(gap)).alias("session_end"),
        )
    )


def _bounds() -> tuple[Column, Column]:
    start, end = F.col("window.start"), F.col("window.end")
    return start.alias("window_start"), end.alias("window_end")


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1e6)} microseconds"


def _interval(seconds: float) -> Column:
    return F.expr(f"INTERVAL {_duration(seconds)}")


_ALL = (
    NexmarkQuery(
        name="q1",
        title="currency conversion: every bid with its price in euros",
        tables={"bid": ("auction", "bidder", "price", "date_time")},
        columns=("auction", "bidder", "price", "date_time"),
        time="date_time",
        emits="at once",
        stateful=False,
        transform=currency_conversion,
    ),
    NexmarkQuery(
        name="q2",
        title="selection: bids on some auctions",
        tables={"bid": ("auction", "price", "date_time")},
        columns=("auction", "price", "date_time"),
        time="date_time",
        emits="at once",
        stateful=False,
        transform=selection,
    ),
    NexmarkQuery(
        name="q3",
        title="local items: who sells in or, id and ca in category 10",
        tables={
            "person": ("id", "name", "city", "state", "date_time"),
            "auction": ("id", "seller", "category", "date_time"),
        },
        columns=("name", "city", "state", "auction", "date_time"),
        time="date_time",
        emits="at once",
        stateful=True,
        transform=local_items,
    ),
    NexmarkQuery(
        name="q5",
        title="hot items: auctions with most bids in the last five minutes, every minute",
        tables={"bid": ("auction", "date_time")},
        columns=("window_start", "window_end", "auction", "bids"),
        time="window_end",
        emits="at the watermark",
        stateful=True,
        transform=hot_items,
    ),
    NexmarkQuery(
        name="q8",
        title="new users: persons who opened an auction in their first ten seconds' window",
        tables={"person": ("id", "name", "date_time"), "auction": ("seller", "date_time")},
        columns=("id", "name", "window_start", "window_end"),
        time="window_end",
        emits="at once",
        stateful=True,
        transform=new_users,
    ),
    NexmarkQuery(
        name="q11",
        title="user sessions: bids of each person until ten seconds without one",
        tables={"bid": ("bidder", "date_time")},
        columns=("bidder", "bids", "session_start", "session_end"),
        time="session_end",
        emits="at the watermark",
        stateful=True,
        transform=user_sessions,
    ),
)
QUERIES: Mapping[str, NexmarkQuery] = {query.name: query for query in _ALL}
