"""Log lines from a seed, released as the packets of a trace."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.workloads.logs import PATTERN, SIGNATURES, STATUSES, LogLines, TimedLogs
from penstock.workloads.recorded import bellcore


@given(st.integers(0, 3), st.integers(0, 700), st.integers(0, 300))
def test_any_range_is_a_part_of_the_same_lines(seed: int, first: int, count: int) -> None:
    lines = LogLines(seed).lines(0, 1000)
    assert LogLines(seed).lines(first, first + count) == lines[first : first + count]


def test_lines_are_of_their_format_and_some_are_attacks() -> None:
    lines = LogLines(5).lines(0, 5000)
    parsed = [re.match(PATTERN, line) for line in lines]
    assert all(parsed)
    assert {found[7] for found in parsed if found} == set(STATUSES)
    assert 0.02 < LogLines(5).matches(0, 5000) / 5000 < 0.15
    assert LogLines(6).lines(0, 50) != lines[:50]


def test_every_signature_is_one_that_a_server_of_patterns_takes() -> None:
    for signature in SIGNATURES:
        assert re.compile(signature)
    assert len(set(SIGNATURES)) == len(SIGNATURES)


def test_lines_come_with_the_packets_of_the_trace() -> None:
    logs = TimedLogs(start=1000.0, first=10, packets=500, lines=3, speed=2.0)
    assert logs.rows == 1500
    assert logs.released(999.9) == 0
    assert logs.released(1000.0) == 3
    assert logs.released(1e9) == 1500
    assert logs.seconds == pytest.approx(float(bellcore()[11:510].sum()) / 2.0)
    times = logs.release_times(0, 1500)
    for moment in (1000.0, 1000.3, 1000.6):
        assert logs.released(moment) == int(np.count_nonzero(times <= moment))
    assert TimedLogs.from_options(logs.options()) == logs


@pytest.mark.parametrize(
    "wrong", [{"first": -1}, {"packets": 0}, {"packets": 2_000_000}, {"lines": 0}, {"speed": 0.0}]
)
def test_what_is_not_in_the_trace_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError):
        TimedLogs(start=0.0, **wrong)
    with pytest.raises(InputError):
        LogLines(-1)
    with pytest.raises(InputError):
        TimedLogs.from_options({"start": "0.0"})
