"""Lines of a log that come as the packets of a trace came: some lines with every packet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.logs import LogLines
from penstock.workloads.pattern import Floats
from penstock.workloads.recorded import bellcore


@dataclass(frozen=True)
class TimedLogs:
    """Log lines on the wall clock, released as the packets of BC-pAug89.

    ``start`` epoch seconds at which packet ``first`` comes · ``packets`` in all · ``lines`` that
    each brings · ``speed`` times as fast as they were recorded · ``seed`` of the lines.
    """

    start: float
    first: int = 0
    packets: int = 100_000
    lines: int = 10
    speed: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        most = len(bellcore())
        if not (self.first >= 0 and self.packets >= 1 and self.first + self.packets <= most):
            raise InputError(
                f"packets {self.first} to {self.first + self.packets} of the trace: there are "
                f"0 to {most}"
            )
        if not (self.lines >= 1 and self.speed > 0.0):
            raise InputError(f"lines {self.lines} must be ≥ 1 and speed {self.speed} above 0")

    @cached_property
    def times(self) -> Floats:
        """Epoch seconds of the packets."""
        gaps = bellcore()[self.first : self.first + self.packets]
        return np.asarray(self.start + (np.cumsum(gaps) - gaps[0]) / self.speed)

    @property
    def seconds(self) -> float:
        """From the first packet to the last."""
        return float(self.times[-1] - self.times[0])

    @property
    def rows(self) -> int:
        """Lines in all."""
        return self.packets * self.lines

    def released(self, now: float) -> int:
        """Lines that have come by then."""
        return int(np.searchsorted(self.times, now, side="right")) * self.lines

    def release_times(self, first: int, end: int) -> Floats:
        """When each of these lines came."""
        return np.asarray(self.times[np.arange(first, end) // self.lines])

    def texts(self, first: int, end: int) -> list[str]:
        """These lines."""
        return LogLines(self.seed).lines(first, end)

    def options(self) -> dict[str, str]:
        """As text, for a data source."""
        return {field.name: repr(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> TimedLogs:
        """What ``options`` has written."""
        kinds: dict[str, Any] = {"start": float, "speed": float}
        names = [field.name for field in fields(cls)]
        if missing := [name for name in names if name not in options]:
            raise InputError(f"the source of log lines needs the option {missing[0]!r}")
        return cls(**{name: kinds.get(name, int)(options[name]) for name in names})
