"""What tests with a cluster of their own share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.lab.host import java, leftovers


@pytest.fixture(scope="module")
def class_data() -> Iterator[None]:
    """Use class data if there are some, but do not make them: that takes too long for a test."""
    with pytest.MonkeyPatch.context() as patch:
        cache = leftovers.cache_folder()
        data = java.class_data(java.find_java(), java.find_spark(), cache=cache, lists=cache)
        if not data.usable:
            patch.setenv("PENSTOCK_CLASS_DATA", "off")
        yield
