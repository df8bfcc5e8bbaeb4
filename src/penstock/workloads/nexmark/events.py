"""What the events are: proportions, hot keys, disorder; and the order in which they come."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError, unknown
from penstock.workloads.schema import Schema

Table = Literal["person", "auction", "bid"]
Number = TypeVar("Number", int, npt.NDArray[np.int64])

TABLES: tuple[Table, ...] = ("person", "auction", "bid")  # in the order of an epoch
MOST = 2**31  # of any whole number here: products with it stay below 2^63


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkEvents:
    """Which persons, auctions and bids there are; when they come is ``NexmarkStream``'s.

    ``persons``, ``auctions``, ``bids`` events of each kind in an epoch, in that order ·
    ``hot_sellers``, ``hot_auctions``, ``hot_bidders`` Nexmark's ratios: with r, a share of
    1 − 1/r goes to the hot key, so 1 means none (Nexmark itself: 4, 2, 4) · ``disorder`` seconds
    that an event's ``date_time`` lies at most before its release · ``active_persons`` the latest
    persons, who sell and bid · ``auctions_in_flight`` the latest auctions, on which they bid.
    """

    seed: int = 0
    persons: int = 1
    auctions: int = 3
    bids: int = 46
    hot_sellers: int = 1
    hot_auctions: int = 1
    hot_bidders: int = 1
    disorder: float = 0.0
    active_persons: int = 1000
    auctions_in_flight: int = 100

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.name == "disorder":
                if not (math.isfinite(value) and value >= 0):
                    raise InputError(f"disorder {value} must be a finite number of seconds ≥ 0")
            elif f.name == "seed":
                if value < 0:
                    raise InputError(f"seed {value} must be ≥ 0")
            elif not 1 <= value < MOST:
                raise InputError(f"{f.name} {value} must be ≥ 1 and below 2^31")

    def per_epoch(self, table: Table) -> int:
        """Events of one kind in an epoch."""
        return {"person": self.persons, "auction": self.auctions, "bid": self.bids}[table]


PRESETS: Mapping[str, NexmarkEvents] = {
    "nexmark": NexmarkEvents(),
    "hot": NexmarkEvents(hot_sellers=4, hot_auctions=2, hot_bidders=4),
    "thesis": NexmarkEvents(bids=10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The events of some tables in one sequence: epoch by epoch, in each the tables in turn.

    >>> order = Order.of(NexmarkEvents(), ["bid", "auction"])
    >>> order.width, order.place("auction", 3), order.count("bid", 50)
    (49, 49, 46)
    """

    sizes: Mapping[Table, int]  # in the order of an epoch

    @classmethod
    def of(cls, events: NexmarkEvents, tables: Sequence[Table]) -> Order:
        """The order of these tables, in whatever order they are named."""
        return cls(sizes={table: events.per_epoch(table) for table in TABLES if table in tables})

    @property
    def width(self) -> int:
        """Events in an epoch."""
        return sum(self.sizes.values())

    def before(self, table: Table) -> int:
        """Events of an epoch before the first of a table."""
        if table not in self.sizes:
            raise unknown("table of this stream", table, self.sizes)
        names = list(self.sizes)
        return sum(self.sizes[name] for name in names[: names.index(table)])

    def place(self, table: Table, n: Number) -> Number:
        """Where in the sequence the n-th event of a table stands, both from 0."""
        before = self.before(table)
        size = self.sizes[table]
        return n // size * (self.width - size) + n + before

    def count(self, table: Table, events: int) -> int:
        """Events of a table among the first so many of the sequence."""
        before = self.before(table)
        epochs, rest = divmod(events, self.width)
        return epochs * self.sizes[table] + min(max(rest - before, 0), self.sizes[table])


SCHEMAS: Mapping[Table, Schema] = {
    "person": Schema(
        types={
            "id": "bigint",
            "name": "string",
            "email_address": "string",
            "credit_card": "string",
            "city": "string",
            "state": "string",
            "date_time": "timestamp",
            "extra": "string",
        }
    ),
    "auction": Schema(
        types={
            "id": "bigint",
            "item_name": "string",
            "description": "string",
            "initial_bid": "bigint",
            "reserve": "bigint",
            "date_time": "timestamp",
            "expires": "timestamp",
            "seller": "bigint",
            "category": "bigint",
            "extra": "string",
        }
    ),
    "bid": Schema(
        types={
            "auction": "bigint",
            "bidder": "bigint",
            "price": "bigint",
            "channel": "string",
            "url": "string",
            "date_time": "timestamp",
            "extra": "string",
        }
    ),
}
