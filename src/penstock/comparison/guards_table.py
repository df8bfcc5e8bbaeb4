"""Guards from a table of a file or by the name of a preset."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from penstock.comparison.cell import THESIS_GUARDS
from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards
from penstock.spark.settings.keys import FIELDS, PRODUCTION, guard_value

PRESETS: Mapping[str, Guards] = {
    # The thesis's limits, with decisions also during the cool-down.
    "default": Guards(minimum=1, maximum=80, cap=80, step_up=15, cool_down=300.0),
    "thesis": THESIS_GUARDS,
    # What an Autoscaler on Spark has if nothing is said.
    "production": PRODUCTION,
    "none": Guards(),
}


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
        raise unknown("guards", str(preset), PRESETS)
    name = table.pop("name", preset)
    for key in table:
        if key not in FIELDS:
            raise unknown("key of guards", key, [*FIELDS, "preset", "name"])
    values = {key: guard_value(key, value) for key, value in table.items()}
    return dataclasses.replace(PRESETS[preset], **values), str(name)
