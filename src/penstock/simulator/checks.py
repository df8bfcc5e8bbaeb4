"""Figures that describe a simulated pipeline, refused where they cannot be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.core.errors import InputError, unknown


def number(
    what: str,
    value: Any,
    *,
    low: float,
    high: float = math.inf,
    open_low: bool = False,
    unit: str = "",
) -> None:
    """A finite number from ``low`` (or above it) to ``high``."""
    good = (
        isinstance(value, int | float)
        and math.isfinite(value)
        and (low < value if open_low else low <= value)
        and value <= high
    )
    if not good:
        above = f"above {low:g}" if open_low else f"≥ {low:g}"
        below = f" and ≤ {high:g}" if math.isfinite(high) else ""
        raise InputError(f"{what} = {value!r} must be a finite number {above}{below}{unit}")


def names(
    what: str, given: Mapping[str, Any], known: Iterable[str], *, complete: bool = False
) -> None:
    """Only known names, and with ``complete`` all of them."""
    all_names = dict.fromkeys(known)
    for name in given:
        if name not in all_names:
            raise unknown(f"name in {what}:", name, all_names)
    if complete and (missing := [name for name in all_names if name not in given]):
        raise InputError(f"{what}: nothing is given for {', '.join(missing)}; add it")
