"""Nexmark's events: persons, auctions and bids, each a pure function of seed and row number."""

from penstock.workloads.nexmark.events import PRESETS, SCHEMAS, TABLES, NexmarkEvents, Table
from penstock.workloads.nexmark.options import Reading
from penstock.workloads.nexmark.stream import NexmarkStream
from penstock.workloads.schema import Schema

__all__ = [
    "PRESETS",
    "SCHEMAS",
    "TABLES",
    "NexmarkEvents",
    "NexmarkStream",
    "Reading",
    "Schema",
    "Table",
]
