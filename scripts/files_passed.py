"""How many files a reader passes who follows one command: from a trace of its calls.

    python scripts/files_passed.py compare --policies static,ds2 --query q1
    python scripts/files_passed.py --within loop.py:tick simulate --query q1 --policy ds2

Counts the files of Penstock in which any function was called, on all threads of this process;
with ``--within`` only while that function was running. What importing a module runs does not
count. ``PYTHONPATH=<another tree>/src`` counts another version.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from penstock.cli import main as penstock

PACKAGE = sys.modules["penstock"].__path__[0] + "/"


class Trace:
    """Collects the files of the functions that are called."""

    def __init__(self, within: str | None) -> None:
        self.within = within
        self.calls: Counter[str] = Counter()
        self._depth = threading.local()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Count a call; called by the interpreter at every call and return."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(PACKAGE):
            return
        file = code.co_filename.removeprefix(PACKAGE)
        step = 1 if event == "call" else -1
        if code.co_name == "<module>":
            self._move("importing", step)
        if f"{Path(file).name}:{code.co_name}" == self.within:
            self._move("inside", step)
        counted = self.within is None or getattr(self._depth, "inside", 0) > 0
        if step == 1 and counted and not getattr(self._depth, "importing", 0):
            self.calls[file] += 1

    def _move(self, name: str, step: int) -> None:
        setattr(self._depth, name, getattr(self._depth, name, 0) + step)


def main(arguments: list[str]) -> int:
    """Run the command under a trace, then print the files on standard error."""
    within = None
    if arguments[:1] == ["--within"]:
        within, arguments = arguments[1], arguments[2:]
    trace = Trace(within)
    sys.argv = ["penstock", *arguments]
    threading.setprofile(trace)
    sys.setprofile(trace)
    code: Any = 0
    try:
        penstock()
    except SystemExit as end:
        code = end.code
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    for file, calls in sorted(trace.calls.items()):
        print(f"{calls:>9,} {file}", file=sys.stderr)
    print(f"{len(trace.calls)} files", file=sys.stderr)
    return code if isinstance(code, int) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
