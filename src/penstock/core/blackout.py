"""Daily times without actions."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import InputError

DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blackout:
    """A daily time without actions: seconds after midnight UTC; may run past midnight.

    >>> Blackout.parse("22:00-06:30").covers(23 * 3600.0)
    True
    """

    start: float
    end: float

    def __post_init__(self) -> None:
        for value in (self.start, self.end):
            if not 0 <= value <= DAY:
                raise InputError(f"blackout time {value} s must lie within a day, 0 to {DAY:.0f} s")
        if self.start == self.end:
            raise InputError("a blackout must not begin and end at the same time")

    @classmethod
    def parse(cls, text: str) -> Blackout:
        """Read ``HH:MM-HH:MM``, UTC."""
        try:
            (h1, m1), (h2, m2) = (part.split(":") for part in text.split("-"))
            hours, minutes = (int(h1), int(h2)), (int(m1), int(m2))
        except ValueError:
            raise InputError(f"blackout {text!r} must look like 22:00-06:30 (UTC)") from None
        if not all(0 <= h <= 24 and 0 <= m < 60 for h, m in zip(hours, minutes, strict=True)):
            raise InputError(f"blackout {text!r}: hours go from 00 to 24, minutes from 00 to 59")
        start, end = (h * 3600.0 + m * 60.0 for h, m in zip(hours, minutes, strict=True))
        return cls(start=start, end=end)

    def __str__(self) -> str:
        times = (divmod(round(t / 60), 60) for t in (self.start, self.end))
        return "-".join(f"{hours:02}:{minutes:02}" for hours, minutes in times)

    def covers(self, time: float) -> bool:
        """Whether a time (seconds since an epoch at midnight UTC) falls into it."""
        now = time % DAY
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end
