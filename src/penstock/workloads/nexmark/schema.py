"""The columns of the three tables."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.workloads.nexmark.events import Table
from penstock.workloads.schema import Schema

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
