"""Commands run in this process, in a folder of their own."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock import cli


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """``shell("bench", "x.toml")`` is ``penstock bench x.toml``; ``first`` goes before all."""

    def __init__(
        self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str], *first: str
    ) -> None:
        self._patch = patch
        self._captured = captured
        self._first = first

    @classmethod
    def at(
        cls,
        folder: Path,
        patch: pytest.MonkeyPatch,
        captured: pytest.CaptureFixture[str],
        *first: str,
    ) -> Shell:
        """In a folder, on a terminal of 80 columns."""
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        patch.delenv("PENSTOCK_DEBUG", raising=False)
        return cls(patch, captured, *first)

    def __call__(self, *arguments: str) -> Outcome:
        self._patch.setattr(sys, "argv", ["penstock", *self._first, *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = self._captured.readouterr()
        code = stopped.value.code
        return Outcome(code if isinstance(code, int) else 0, out, err)
