"""The former name of :mod:`penstock.report.table`, for what still imports it."""

from __future__ import annotations

from penstock.report.table import NONE, interval, number, percent, printed
from penstock.report.table import Table as Grid

__all__ = ["NONE", "Grid", "interval", "number", "percent", "printed"]
