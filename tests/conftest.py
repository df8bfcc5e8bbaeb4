"""Settings for all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Before numpy is loaded: several processes run tests, and matrices of this size gain nothing from
# the threads that BLAS would start in each of them; waiting for one another costs more than half.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline: machines are noisy. A fixed seed: a red run can be repeated.
settings.register_profile("penstock", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("penstock")

# Where the tests were begun in the background of a shell, Ctrl-C is ignored, and so it would be by
# the commands that they interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
SESSION = TESTS / "live" / "session"
# `make test` looks for marked tests only there: to collect all tests takes each process seconds.
FOLDERS = {"spark": TESTS / "live", "alone": TESTS / "lab"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a folder that shares a cluster, or of a file, stay together in one process."""
    for item in items:
        for mark, folder in FOLDERS.items():
            if item.get_closest_marker(mark) and folder not in item.path.parents:
                raise pytest.UsageError(f"{item.nodeid} is marked {mark}: move it to {folder}")
        if item.get_closest_marker("spark"):
            shared = SESSION in item.path.parents
            together = item.path.parent.name if shared else item.path.name
            item.add_marker(pytest.mark.xdist_group(together))
