"""Files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.history.files import atomic, write_text


def test_a_file_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    write_text(path, "one")
    write_text(path, "λ two")
    assert path.read_text(encoding="utf-8") == "λ two"
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_text(path, "one")
    with pytest.raises(ZeroDivisionError), atomic(path) as partial:
        partial.write_text("half")
        raise ZeroDivisionError
    assert path.read_text(encoding="utf-8") == "one"


def test_what_a_crash_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.json.part").write_text("half of an older one, and longer")
    write_text(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "new"
    assert not (tmp_path / "a.json.part").exists()
