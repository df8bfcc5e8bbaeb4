"""Settings for all tests."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: machines are noisy. A fixed seed: a red run can be repeated.
settings.register_profile("penstock", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("penstock")

# Where the tests were begun in the background of a shell, Ctrl-C is ignored, and so it would be by
# the commands that they interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

SESSION = Path(__file__).parent / "live" / "session"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a cluster stay together where several processes run tests with Spark."""
    for item in items:
        if item.get_closest_marker("spark"):
            together = "session" if SESSION in item.path.parents else item.path.name
            item.add_marker(pytest.mark.xdist_group(together))
