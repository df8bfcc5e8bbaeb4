"""Guards from a table of a file or by the name of a preset."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_type_hints

from penstock.bench.cell import THESIS_GUARDS
from penstock.bench.specs.toml_file import seconds
from penstock.core.errors import InputError, unknown
from penstock.core.guards import Blackout, Guards

PRESETS: Mapping[str, Guards] = {
    # The thesis's limits, with decisions also during the cool-down.
    "default": Guards(minimum=1, maximum=80, cap=80, step_up=15, cool_down=300.0),
    "thesis": THESIS_GUARDS,
    "none": Guards(),
}
_DURATIONS = ("cool_down", "drain", "max_age")


def guards_of(given: Any) -> tuple[Guards, str]:
    """Guards and a short name: a preset, or a table of fields over one.

    >>> guards_of({"preset": "thesis", "step_up": "none"})[0].step_up is None
    True
    """
    if isinstance(given, str):
        if given not in PRESETS:
            raise unknown("guards", given, PRESETS)
        return PRESETS[given], given
    if not isinstance(given, Mapping):
        raise InputError(f"guards = {given!r} must be one of {', '.join(PRESETS)}, or a table")
    table = dict(given)
    preset = table.pop("preset", "none")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise unknown("preset of guards", str(preset), PRESETS)
    name = table.pop("name", preset)
    hints = get_type_hints(Guards)
    for key in table:
        if key not in hints:
            raise unknown("key of guards", key, [*hints, "preset", "name"])
    values = {key: _typed(key, value, hints[key]) for key, value in table.items()}
    return dataclasses.replace(PRESETS[preset], **values), str(name)


def _typed(key: str, value: Any, hint: Any) -> Any:
    kinds = getattr(hint, "__args__", (hint,))
    if value == "none" and type(None) in kinds:
        return None
    if key == "blackouts":
        texts = value if isinstance(value, list) else [value]
        return tuple(Blackout.parse(str(text)) for text in texts)
    if key in _DURATIONS:
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
