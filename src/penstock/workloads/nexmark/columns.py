"""How each column of a row is made: vectors only, nothing per row.

Texts are taken by index from pools that are made once per process. The pools are the same for
every seed; which text a row takes depends on the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.workloads.draws import Draws, Whole, below, draw, one_of, unit
from penstock.workloads.nexmark.events import SCHEMAS, NexmarkEvents, Table
from penstock.workloads.pattern import Floats

FIRST_ID = 1000  # of persons and of auctions
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT_EVERY = 100  # of the persons or auctions, the first is hot until the next hundred begins
PRICE_KNOTS = 4096  # a price is right to two millionths between them
CHANNELS = 10_000  # besides the hot ones
TEXTS = 4096  # of each pool of random texts

STATES = ("az", "ca", "id", "or", "wa", "wy")
CITIES = (  # have nothing to do with the state, as in Nexmark
    *("phoenix", "los angeles", "san francisco", "boise", "portland"),
    *("bend", "redmond", "seattle", "kent", "cheyenne"),
)
FIRST_NAMES = (
    *("peter", "paul", "luke", "john", "saul", "vicky"),
    *("kate", "julie", "sarah", "deiter", "walter"),
)
LAST_NAMES = (
    *("shultz", "abrams", "spencer", "white", "bartels"),
    *("walton", "smith", "jones", "noris"),
)
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


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
        CHANNELS + below(len(HOT_CHANNELS), bits),
        below(CHANNELS, bits),
    )


def _take(pool: pa.StringArray, indices: Whole) -> pa.StringArray:
    return pool.take(pa.array(indices))


@cache
def _names() -> pa.StringArray:
    """First and last names, all combinations."""
    return pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])


@cache
def _texts(name: str, shortest: int, longest: int, spaces: bool = False) -> pa.StringArray:
    """Random lower-case texts of ``shortest`` to ``longest`` letters.

    With ``spaces`` every 13th character is a space; those at the ends are cut off.
    """
    lengths = shortest + below(longest - shortest + 1, draw(0, f"{name} lengths", 0, TEXTS))
    ends = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    bits = draw(0, f"{name} letters", 0, int(ends[-1]))
    letters = (ord("a") + below(26, bits)).astype(np.uint8)
    if spaces:
        letters[one_of(13, bits) == 0] = ord(" ")
    made = pa.StringArray.from_buffers(TEXTS, pa.py_buffer(ends), pa.py_buffer(letters))
    return pc.utf8_trim(made, " ") if spaces else made


@cache
def _emails() -> pa.StringArray:
    """Two random texts around an @."""
    return pc.binary_join_element_wise(
        _texts("user", 3, 6, spaces=True), "@", _texts("host", 3, 4, spaces=True), ".com", ""
    )


@cache
def _credit_cards() -> pa.StringArray:
    """Four times four digits."""
    digits = below(10_000, draw(0, "credit cards", 0, 4 * TEXTS)).reshape(TEXTS, 4)
    return pa.array([" ".join(f"{part:04d}" for part in row) for row in digits.tolist()])


@cache
def _channels() -> pa.StringArray:
    """The ``CHANNELS`` ordinary channels, then the hot ones."""
    return pa.array([*(f"channel-{i}" for i in range(CHANNELS)), *HOT_CHANNELS])


@cache
def _urls() -> pa.StringArray:
    """The address of each channel; nine of ten ordinary ones have its number, bits reversed."""
    count = CHANNELS + len(HOT_CHANNELS)
    folders = _texts("folders", 3, 4).to_pylist()
    picks = [below(TEXTS, draw(0, f"folder {i}", 0, count)).tolist() for i in range(3)]
    numbered = (below(10, draw(0, "numbered", 0, count)) > 0).tolist()
    made = []
    for i, (a, b, c) in enumerate(zip(*picks, strict=True)):
        folder = f"{folders[a]}/{folders[b]}/{folders[c]}"
        number = f"&channel_id={_channel_id(i)}" if i < CHANNELS and numbered[i] else ""
        made.append(f"https://www.nexmark.com/{folder}/item.htm?query=1{number}")
    return pa.array(made)


def _channel_id(channel: int) -> int:
    """The absolute value of the channel's number with its 32 bits in reverse.

    >>> _channel_id(7568)
    163053568
    """
    turned = int(f"{channel:032b}"[::-1], 2)
    return min(turned, 2**32 - turned)


Column = Callable[[Rows], "Whole | pa.Array"]

COLUMNS: Mapping[Table, Mapping[str, Column]] = {
    "person": {
        "id": lambda rows: rows.numbers + FIRST_ID,
        "name": lambda rows: rows.take(_names(), "name"),
        "email_address": lambda rows: rows.take(_emails(), "email_address"),
        "credit_card": lambda rows: rows.take(_credit_cards(), "credit_card"),
        "city": lambda rows: rows.take(pa.array(CITIES), "city"),
        "state": lambda rows: rows.take(pa.array(STATES), "state"),
        "date_time": lambda rows: rows.date_time,
        "extra": lambda rows: rows.take(_texts("person", 111, 166), "extra"),
    },
    "auction": {
        "id": lambda rows: rows.numbers + FIRST_ID,
        "item_name": lambda rows: rows.take(_texts("item", 3, 19, True), "item_name"),
        "description": lambda rows: rows.take(_texts("words", 3, 99, True), "description"),
        "initial_bid": lambda rows: _price(rows, "initial_bid"),
        "reserve": lambda rows: _price(rows, "initial_bid") + _price(rows, "reserve"),
        "date_time": lambda rows: rows.date_time,
        "expires": _expires,
        "seller": _seller,
        "category": lambda rows: FIRST_CATEGORY + below(CATEGORIES, rows.draw("category")),
        "extra": lambda rows: rows.take(_texts("auction", 313, 468), "extra"),
    },
    "bid": {
        "auction": _auction,
        "bidder": _bidder,
        "price": lambda rows: _price(rows, "price"),
        "channel": lambda rows: _take(_channels(), _channel(rows)),
        "url": lambda rows: _take(_urls(), _channel(rows)),
        "date_time": lambda rows: rows.date_time,
        "extra": lambda rows: rows.take(_texts("bid", 54, 81), "extra"),
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
