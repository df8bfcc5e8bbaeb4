"""The records that come to each source of a simulated pipeline, second by second."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, cast

import numpy as np

from penstock.core.errors import InputError, unknown
from penstock.simulator.series import Floats
from penstock.simulator.spec import FluidSpec
from penstock.workloads.patterns import Pattern, per_second


def cumulative(spec: FluidSpec, pattern: Pattern | Mapping[str, Pattern], seconds: int) -> Floats:
    """Records that came to each source before each second."""
    sources = spec.pipeline.sources
    if isinstance(pattern, Mapping):
        if missing := [name for name in sources if name not in pattern]:
            raise InputError(f"no pattern for the source {', '.join(missing)}")
        for name in pattern:
            if name not in sources:
                raise unknown("source", name, sources)
        rows = [offered(pattern[name], seconds) for name in sources]
    else:
        whole = offered(pattern, seconds)
        even = 1.0 / len(sources)
        rows = [whole * spec.source_shares.get(name, even) for name in sources]
    table = np.zeros((len(sources), seconds + 1))
    for row, records in zip(table, rows, strict=True):
        np.cumsum(records, out=row[1:])
    return table


def offered(pattern: Pattern, seconds: int) -> Floats:
    """Records that a pattern offers in each second from 0 on; not to be written to."""
    try:
        return _offered_once(cast(Hashable, pattern), seconds)
    except TypeError:  # not hashable: work it out again each time
        return _checked(pattern, seconds)


@lru_cache(maxsize=32)
def _offered_once(pattern: Any, seconds: int) -> Floats:
    return _checked(pattern, seconds)


def _checked(pattern: Pattern, seconds: int) -> Floats:
    records = per_second(pattern, seconds)
    # A cumulative curve in floating point may fall by a rounding error where the rate is zero.
    records[np.abs(records) < 1e-9 * max(1.0, records.max())] = 0.0
    if not (np.isfinite(records).all() and (records >= 0).all()):
        raise InputError(f"{pattern}: offers a negative or infinite number of records")
    return records
