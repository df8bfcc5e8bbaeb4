"""Log analysis on Spark: every line counted, matched and timed once."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.lab.queries.log_analysis import Sink, start
from penstock.lab.queries.running import stop
from penstock.workloads.logs import PATTERN, LogLines, TimedLogs
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark


def test_the_sink_has_every_line_once_as_python_finds_it(spark: Any, tmp_path: Path) -> None:
    logs = TimedLogs(start=time.time() - 2.0, packets=1000, lines=2, seed=4)
    sink = Sink()
    query = start(spark, logs, sink, folder=tmp_path, name="lines")
    try:
        until("all lines", lambda: len(sink.responses()[0]) == logs.rows or not query.isActive, 120)
        assert query.isActive, query.exception()
    finally:
        stop(query)
    lines = LogLines(4).lines(0, logs.rows)
    assert sink.total() == Counter(re.match(PATTERN, line)[7] for line in lines)  # type: ignore[index]
    assert sink.matched == LogLines(4).matches(0, logs.rows) > 0
    released, stays = sink.responses()
    assert sorted(released.tolist()) == logs.release_times(0, logs.rows).tolist()
    assert (stays > 0.0).all()
