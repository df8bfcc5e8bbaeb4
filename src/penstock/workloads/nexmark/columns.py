"""How each column of a row is made: vectors only, nothing per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property

import numpy as np
import pyarrow as pa

from penstock.workloads.draws import Draws, Whole, below, draw, one_of, unit
from penstock.workloads.nexmark import pools
from penstock.workloads.nexmark.events import SCHEMAS, NexmarkEvents, Table
from penstock.workloads.pattern import Floats

FIRST_ID = 1000  # of persons and of auctions
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT_EVERY = 100  # of the persons or auctions, the first is hot until the next hundred begins
PRICE_KNOTS = 4096  # a price is right to two millionths between them


class Rows:
    """Rows ``first`` to ``end`` − 1 of one table while their columns are made.

    ``release`` gives, for each row and any number of rows ahead, when that row is released, in
    microseconds; beyond the last row it is the release of the last.
    """

    def __init__(
        self,
        events: NexmarkEvents,
        table: Table,
        first: int,
        end: int,
        release: Callable[[int], Whole],
    ) -> None:
        self.events, self.table, self.first, self.end = events, table, first, end
        self.release = release

    def draw(self, column: str) -> Draws:
        """64 random bits per row; every column has its own."""
        return draw(self.events.seed, f"{self.table}.{column}", self.first, self.end)

    def take(self, pool: pa.StringArray, column: str) -> pa.StringArray:
        """A text of a pool per row."""
        return _take(pool, below(len(pool), self.draw(column)))

    @cached_property
    def numbers(self) -> Whole:
        """The row numbers."""
        return np.arange(self.first, self.end, dtype=np.int64)

    @cached_property
    def epochs(self) -> Whole:
        """The epoch of each row; its persons come before its auctions, those before its bids."""
        return self.numbers // self.events.per_epoch(self.table)

    @cached_property
    def persons(self) -> Whole:
        """How many persons there are when the row comes."""
        return (self.epochs + 1) * self.events.persons

    @cached_property
    def auctions(self) -> Whole:
        """How many auctions there are when a bid comes."""
        return (self.epochs + 1) * self.events.auctions

    @cached_property
    def released(self) -> Whole:
        """When each row is released, in microseconds."""
        return self.release(0)

    @cached_property
    def date_time(self) -> Whole:
        """When each row says that it happened, in microseconds: not after its release."""
        most = round(self.events.disorder * 1e6)
        if not most:
            return self.released
        jitter = (unit(self.draw("date_time")) * (most + 1)).astype(np.int64)
        return self.released - np.minimum(jitter, most)


def _person(rows: Rows, column: str, hot_ratio: int, hot: int) -> Whole:
    """One of the active persons, or the ``hot``-th of the latest hundred."""
    bits, last = rows.draw(column), rows.persons - 1
    active = np.minimum(rows.persons, rows.events.active_persons)
    chosen = last - below(active, bits)
    if hot_ratio > 1:
        latest = np.minimum(last // HOT_EVERY * HOT_EVERY + hot, last)
        chosen = np.where(one_of(hot_ratio, bits) > 0, latest, chosen)
    return chosen + FIRST_ID


def _seller(rows: Rows) -> Whole:
    return _person(rows, "seller", rows.events.hot_sellers, hot=0)


def _bidder(rows: Rows) -> Whole:
    """The second of a hundred is hot, so that hot bidders and hot sellers differ."""
    return _person(rows, "bidder", rows.events.hot_bidders, hot=1)


def _auction(rows: Rows) -> Whole:
    bits, last = rows.draw("auction"), rows.auctions - 1
    chosen = last - below(np.minimum(rows.auctions, rows.events.auctions_in_flight + 1), bits)
    ratio = rows.events.hot_auctions
    if ratio > 1:
        chosen = np.where(one_of(ratio, bits) > 0, last // HOT_EVERY * HOT_EVERY, chosen)
    return chosen + FIRST_ID


def _price(rows: Rows, column: str) -> Whole:
    """100 · 10^(6u), u evenly from 0 to 1, interpolated between knots: no rounding of ``exp``."""
    place = unit(rows.draw(column)) * PRICE_KNOTS
    knot = place.astype(np.int64)
    place -= knot
    low, step = _price_knots()
    place *= step[knot]
    place += low[knot]
    return np.rint(place).astype(np.int64)


@cache
def _price_knots() -> tuple[Floats, Floats]:
    """The price at each knot, in millionths, and the way to the next."""
    knots = np.array([round(10 ** (6 * i / PRICE_KNOTS) * 100, 6) for i in range(PRICE_KNOTS + 1)])
    return knots[:-1], np.diff(knots)


def _expires(rows: Rows) -> Whole:
    """1 ms after ``date_time`` or later: evenly up to twice the time of the auctions in flight."""
    ahead = rows.release(rows.events.auctions_in_flight) - rows.released
    length = unit(rows.draw("expires")) * (2 * ahead)
    return rows.date_time + 1000 + length.astype(np.int64)


def _channel(rows: Rows) -> Whole:
    """Every second bid comes by one of the hot channels."""
    bits = rows.draw("channel")
    return np.where(
        one_of(2, bits) > 0,
        pools.CHANNELS + below(len(pools.HOT_CHANNELS), bits),
        below(pools.CHANNELS, bits),
    )


def _take(pool: pa.StringArray, indices: Whole) -> pa.StringArray:
    return pool.take(pa.array(indices))


Column = Callable[[Rows], "Whole | pa.Array"]

COLUMNS: Mapping[Table, Mapping[str, Column]] = {
    "person": {
        "id": lambda rows: rows.numbers + FIRST_ID,
        "name": lambda rows: rows.take(pools.names(), "name"),
        "email_address": lambda rows: rows.take(pools.emails(), "email_address"),
        "credit_card": lambda rows: rows.take(pools.credit_cards(), "credit_card"),
        "city": lambda rows: rows.take(pools.cities(), "city"),
        "state": lambda rows: rows.take(pools.states(), "state"),
        "date_time": lambda rows: rows.date_time,
        "extra": lambda rows: rows.take(pools.texts("person", 111, 166), "extra"),
    },
    "auction": {
        "id": lambda rows: rows.numbers + FIRST_ID,
        "item_name": lambda rows: rows.take(pools.texts("item", 3, 19, True), "item_name"),
        "description": lambda rows: rows.take(pools.texts("words", 3, 99, True), "description"),
        "initial_bid": lambda rows: _price(rows, "initial_bid"),
        "reserve": lambda rows: _price(rows, "initial_bid") + _price(rows, "reserve"),
        "date_time": lambda rows: rows.date_time,
        "expires": _expires,
        "seller": _seller,
        "category": lambda rows: FIRST_CATEGORY + below(CATEGORIES, rows.draw("category")),
        "extra": lambda rows: rows.take(pools.texts("auction", 313, 468), "extra"),
    },
    "bid": {
        "auction": _auction,
        "bidder": _bidder,
        "price": lambda rows: _price(rows, "price"),
        "channel": lambda rows: _take(pools.channels(), _channel(rows)),
        "url": lambda rows: _take(pools.urls(), _channel(rows)),
        "date_time": lambda rows: rows.date_time,
        "extra": lambda rows: rows.take(pools.texts("bid", 54, 81), "extra"),
    },
}


def make(rows: Rows, columns: tuple[str, ...]) -> pa.RecordBatch:
    """The rows with these columns."""
    schema = SCHEMAS[rows.table].select(columns).arrow
    arrays = []
    for field in schema:
        made = COLUMNS[rows.table][field.name](rows)
        arrays.append(pa.array(made).view(field.type) if isinstance(made, np.ndarray) else made)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
