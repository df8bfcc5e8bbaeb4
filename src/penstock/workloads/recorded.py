"""Single arrivals, one by one: recorded ones that come along."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.resources import files

import numpy as np

from penstock.workloads.pattern import Floats


@lru_cache(maxsize=1)
def bellcore() -> Floats:
    """BC-pAug89: seconds between a million packets on an Ethernet of Bellcore's, August 1989."""
    data = files("penstock.workloads").joinpath("data", "bc_paug89.csv.gz").read_bytes()
    text = gzip.decompress(data).decode("ascii")
    microseconds = np.array(text.split("\n")[1:-1], dtype=np.float64)
    seconds = microseconds / 1e6
    seconds.setflags(write=False)
    return seconds
