"""What tests with a cluster of their own share, and which of them may run side by side.

Most of their time Spark tests wait, so two processes share them (``pytest -n 2``). A process has
one Spark session, and tests that look for what killed runs left behind must not meet: both stay
in one group.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.spark.local import java, remains

IN_PROCESS = ("running", "test_bench_live", "test_faults")


@pytest.hookimpl(tryfirst=True)  # before groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("spark") is not None:
            inside = any(name in item.nodeid for name in IN_PROCESS)
            item.add_marker(pytest.mark.xdist_group("session" if inside else "commands"))


@pytest.fixture(scope="module")
def class_data() -> Iterator[None]:
    """Use class data if there are some, but do not make them: that takes too long for a test."""
    with pytest.MonkeyPatch.context() as patch:
        cache = remains.cache_folder()
        data = java.class_data(java.find_java(), java.find_spark(), cache=cache, lists=cache)
        if not data.usable:
            patch.setenv("PENSTOCK_CLASS_DATA", "off")
        yield
