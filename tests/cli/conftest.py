"""What the tests of several commands need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.shell import Shell


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """Any command of ``penstock``, in a folder of its own."""
    return Shell.at(tmp_path, monkeypatch, capsys)
