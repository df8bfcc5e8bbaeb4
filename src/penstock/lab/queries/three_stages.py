"""A query of three stages with one operator slowed: at its source, in the middle or at its end.

Every bid is mapped, dealt out by bidder, mapped, dealt out by auction and mapped once more. Each
dealing is a shuffle, so the three maps run in three stages, and all of them see every record: what
each costs is the work that it is given, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.pandas.functions import arrow_udf

from penstock.core.errors import unknown
from penstock.lab.queries.geo_work import fibonaccis
from penstock.lab.queries.nexmark_queries import Frames, NexmarkQuery, Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACES = ("first", "middle", "last")  # in the order of the stages
QUICK, SLOW = 20, 600  # additions per record
DEALT_BY = (None, "bidder", "auction")  # how records come to the operator at each place


def three_stages(slow: str, *, partitions: int) -> NexmarkQuery:
    """The query with the operator at a place slowed; ``partitions`` of each shuffle."""
    if slow not in PLACES:
        raise unknown("place", slow, PLACES)

    def transform(frames: Frames, settings: Settings) -> DataFrame:
        rows = frames["bid"]
        for place, key in zip(PLACES, DEALT_BY, strict=True):
            if key is not None:
                rows = rows.repartition(partitions, F.col(key))
            additions = SLOW if place == slow else QUICK
            work = arrow_udf(fibonaccis(additions), "bigint")  # type: ignore[call-overload]
            rows = rows.withColumn(place, work("auction", "bidder"))
        return rows

    return NexmarkQuery(
        name=f"slow-{slow}",
        title=f"three maps in three stages, the {slow} one slow",
        tables={"bid": ("auction", "bidder", "date_time")},
        columns=("auction", "bidder", "date_time", *PLACES),
        time="date_time",
        emits="at once",
        stateful=False,
        transform=transform,
    )
