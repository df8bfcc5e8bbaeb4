"""The kill switch: while it is on, everything is observed and nothing is done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

LONGEST = 100  # characters of a freeze file that are shown as the reason


class KillSwitch:
    """Frozen by a call, by a signal, or for as long as a file exists.

    ``thaw`` ends what a call or a signal began; a file has to be removed. A file that cannot be
    looked at counts as there: in doubt nothing is done.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self._reason: str | None = None

    def freeze(self, reason: str = "asked to") -> None:
        """Do nothing from now on."""
        self._reason = reason

    def thaw(self) -> None:
        """Go on, unless the file says otherwise."""
        self._reason = None

    @property
    def reason(self) -> str | None:
        """Why nothing may be done at this moment; ``None`` if it may."""
        return self._reason if self._reason is not None else self._of_file()

    @contextmanager
    def signals(self) -> Iterator[None]:
        """SIGUSR1 freezes, SIGUSR2 thaws; only in the main thread, as Python wants it."""

        # A handler only sets a flag: it may run in the middle of anything, even of logging.
        def on(number: int, frame: FrameType | None) -> None:
            self.freeze("SIGUSR1")

        def off(number: int, frame: FrameType | None) -> None:
            self.thaw()

        before = {
            signal.SIGUSR1: signal.signal(signal.SIGUSR1, on),
            signal.SIGUSR2: signal.signal(signal.SIGUSR2, off),
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _of_file(self) -> str | None:
        if self.file is None:
            return None
        try:
            with self.file.open(encoding="utf-8", errors="replace") as file:
                words = " ".join(file.read(LONGEST).split())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except IsADirectoryError:
            words = ""
        except OSError as error:
            words = f"cannot be read: {error.strerror}"
        return f"{self.file} exists" if not words else f"{self.file}: {words}"
