"""A guard's value as a file or a command line writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from penstock.core.errors import InputError
from penstock.core.guards import Blackout, Guards
from penstock.spark.settings.toml_file import seconds

FIELDS: Mapping[str, Any] = get_type_hints(Guards)
DURATIONS = ("cool_down", "drain", "max_age")


def guard_value(key: str, value: Any) -> Any:
    """The value of a field of ``Guards``; durations as ``"30s"``, ``"none"`` for no limit.

    >>> guard_value("cool_down", "5 min"), guard_value("step_up", "none")
    (300.0, None)
    """
    hint = FIELDS[key]
    kinds = getattr(hint, "__args__", (hint,))
    if value == "none" and type(None) in kinds:
        return None
    if key == "blackouts":
        texts = value if isinstance(value, list | tuple) else [value]
        return tuple(Blackout.parse(str(text)) for text in texts)
    if key in DURATIONS:
        found = seconds(value)
        if found is None:
            raise InputError(f'guards: {key} = {value!r} must be a duration such as "300s"')
        return found
    wanted = str if str in map(type, kinds) else kinds[0]
    fits = (int, float) if wanted is float else wanted
    if not isinstance(value, fits) or (isinstance(value, bool) and wanted is not bool):
        words = {int: "a whole number", float: "a number", bool: "true or false"}
        raise InputError(f"guards: {key} = {value!r} must be {words.get(wanted, 'a text')}")
    return value
