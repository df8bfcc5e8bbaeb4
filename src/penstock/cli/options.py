"""Options that several commands share."""

from __future__ import annotations

from penstock.core.errors import InputError


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """``KEY=VALUE`` texts as a mapping; the last of the same key wins."""
    values = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise InputError(f"{option} {text!r} must look like KEY=VALUE")
        values[key.strip()] = value.strip()
    return values
