"""A script run as Python would run it: its errors, its exit code, its end by a signal."""

from __future__ import annotations

import runpy
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType

FAILED = 1
TERMINATED = 128 + signal.SIGTERM


def run_script(script: Path, arguments: Sequence[str]) -> None:
    """Run a script as ``__main__``; an error of its own is shown as its own, then exit code 1.

    ``sys.exit`` and Ctrl-C pass through.
    """
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Exception as error:
        own = own_frames(error.__traceback__, str(script))
        sys.stdout.flush()
        sys.excepthook(type(error), error.with_traceback(own), own)
        sys.exit(FAILED)


def own_frames(trace: TracebackType | None, script: str) -> TracebackType | None:
    """A traceback from the first frame of the script on; none if it did not even begin."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the script as ``sys.exit(143)`` does, so that all is cleaned up behind it.

    A second one is ignored: the end is under way. A script that handles the signal itself does.
    """

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
