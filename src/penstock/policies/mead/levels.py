"""Levels of CPU, as parameters of a policy: text, so that a command line can set them."""

from __future__ import annotations

from penstock.core.errors import InputError

LEVELS = "0.4,0.55,0.7,0.85,1"  # [russo21, §VII]


def levels_of(policy: str, text: str) -> tuple[float, ...]:
    """Shares of a slot's nominal CPU that rise.

    >>> levels_of("mead", "0.5,1")
    (0.5, 1.0)
    """
    levels = numbers(f"{policy}: levels", text)
    if any(not 0.0 < level <= 1.0 for level in levels) or list(levels) != sorted(set(levels)):
        raise InputError(f"{policy}: levels = {text!r} must be shares in (0, 1] that rise")
    return levels


def numbers(what: str, text: str) -> tuple[float, ...]:
    """Numbers with commas between."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{what} = {text!r} must be numbers with commas between") from None
