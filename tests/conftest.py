"""Settings for all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

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
SESSION = "tests/live/session/"
# `make test` looks for marked tests only there: to collect all tests takes each process seconds.
FOLDERS = {"spark": TESTS / "live", "alone": TESTS / "lab"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse marked tests that `make test` would not find."""
    for item in items:
        for mark, folder in FOLDERS.items():
            if item.get_closest_marker(mark) and folder not in item.path.parents:
                raise pytest.UsageError(f"{item.nodeid} is marked {mark}: move it to {folder}")


class ByCluster(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Tests of a folder that shares a cluster, or of a file, stay together in one process."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path.rpartition("/")[0] if path.startswith(SESSION) else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByCluster | None:
    """Deal tests out by cluster where `--dist loadscope` is asked for."""
    return ByCluster(config, log) if config.getvalue("dist") == "loadscope" else None
