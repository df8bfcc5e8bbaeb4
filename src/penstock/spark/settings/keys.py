"""Every key of the configuration: its name, what it means, its bound and its default.

The same key is ``guards.cool_down`` in a file (``cool_down`` in its table ``[guards]``),
``PENSTOCK_GUARDS_COOL_DOWN`` in the environment and ``spark.penstock.guards.cool_down`` in a
Spark configuration. The parameters of a policy are keys too: ``policy.over_provisioning``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_type_hints

from penstock.batches.running import BATCH_TIME
from penstock.core.errors import InputError, unknown
from penstock.core.guards import Blackout, Guards
from penstock.policies import DECIDING, spark_dra
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


PRODUCTION = Guards(tolerance=0.1, cool_down=60.0, drain=30.0)
ENVIRONMENT, SPARK = "PENSTOCK_", "spark.penstock."
PARAMETER = "policy."

Kind = Literal["policy", "mode", "count", "duration", "flag", "text", "path", "times", "guard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: ``least`` and ``most`` bound a number, ``optional`` allows ``none``."""

    name: str
    kind: Kind
    default: Any
    text: str
    least: float = 0
    most: float | None = None
    above: bool = False  # whether the bound itself is too little
    optional: bool = False

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return variable_of(self.name)

    def read(self, value: Any) -> Any:
        """The value of this key from one of a TOML file; the error says what it must be."""
        if self.optional and value in ("none", None):
            return None
        if self.kind == "guard":
            return self._guard(value)
        found = _READERS[self.kind](value)
        if found is None or not self._within(found):
            raise InputError(f"must be {self._bound()}")
        return found

    def from_text(self, text: str) -> Any:
        """The value of this key from text, as in an environment variable."""
        if self.kind in ("policy", "mode", "text", "path"):
            return self.read(text)
        if self.kind == "times":
            return self.read([part.strip() for part in text.split(",") if part.strip()])
        return self.read(plain(text))

    def shown(self, value: Any) -> str:
        """A value of this key as a person writes it."""
        timed = self.kind == "duration" or self.name.removeprefix("guards.") in DURATIONS
        return shown(value) + ("s" if timed and value is not None else "")

    def _guard(self, value: Any) -> Any:
        field = self.name.removeprefix("guards.")
        try:
            found = guard_value(field, value)
            replace(PRODUCTION, **{field: found})
        except InputError as error:
            # The place and the value are said already.
            raise InputError(f"must be {str(error).partition(' must be ')[2]}") from None
        return found

    def _within(self, value: Any) -> bool:
        if self.kind not in ("count", "duration"):
            return True
        if not math.isfinite(value):
            return False
        enough = value > self.least if self.above else value >= self.least
        return enough and (self.most is None or value <= self.most)

    def _bound(self) -> str:
        words = {
            "policy": f"one of {', '.join(DECIDING)}",
            "mode": "advise or act",
            "count": "a whole number",
            "duration": 'seconds or a duration such as "30s"',
            "flag": "true or false",
            "text": "a text",
            "path": "the path of a file",
            "times": "daily times such as 22:00-06:30 (UTC)",
        }[self.kind]
        if self.kind in ("count", "duration"):
            words += f", {'above' if self.above else '≥'} {self.least:g}"
            words += f" and ≤ {self.most:g}" if self.most is not None else ""
        return words + (', or "none"' if self.optional else "")


def plain(text: str) -> Any:
    """Text as the TOML value it looks like: a number, true, false, else itself.

    >>> plain("8"), plain("0.1"), plain("true"), plain("30s")
    (8, 0.1, True, '30s')
    """
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def variable_of(key: str) -> str:
    """The environment variable of a key."""
    return ENVIRONMENT + key.replace(".", "_").upper()


def shown(value: Any) -> str:
    """A value as a person writes it.

    >>> shown(None), shown(True), shown(60.0), shown((Blackout.parse("22:00-06:30"),))
    ('none', 'true', '60', '22:00-06:30')
    """
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, tuple):
        return ", ".join(shown(v) for v in value)
    return str(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _path(value: Any) -> Path | None:
    return Path(value) if value and isinstance(value, str | Path) else None


def _times(value: Any) -> tuple[Blackout, ...] | None:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        return None
    return tuple(t if isinstance(t, Blackout) else Blackout.parse(str(t)) for t in texts)


def _policy(value: Any) -> str | None:
    if value == spark_dra.NAME:
        raise spark_dra.refused("in an Autoscaler, run or advise")
    if isinstance(value, str) and value not in DECIDING:
        raise unknown("policy", value, DECIDING)
    return value if isinstance(value, str) else None


_READERS: Mapping[Kind, Any] = {
    "policy": _policy,
    "mode": lambda v: v if v in ("advise", "act") else None,
    "count": _whole,
    "duration": seconds,
    "flag": lambda v: v if isinstance(v, bool) else None,
    "text": _text,
    "path": _path,
    "times": _times,
}

_GUARDS = {
    "cool_down": "Seconds without another action.",
    "tolerance": "Relative distance from the present size that is not worth an action.",
    "drain": "No scale-down while the lag is worth more seconds of input than this.",
    "step_up": "Most executors added by one action.",
    "step_down": "Most executors removed by one action.",
    "over_provisioning": "Factor on what the policy asks for.",
    "useful": "Refuse executors beyond those that work on all partitions at once.",
    "max_age": "Age of the newest finished batch above which nothing is decided.",
    "cap": "Most executors of all pools together.",
    "at_cap": "What happens to a plan above `cap`: `shrink` or `cancel`.",
    "sleep": "Do not even ask the policy during the cool-down.",
}


def _guard_key(field: str, text: str) -> Key:
    optional = type(None) in getattr(FIELDS[field], "__args__", ())
    default = getattr(PRODUCTION, field)
    return Key(name=f"guards.{field}", kind="guard", default=default, text=text, optional=optional)


_ALL = (
    Key(name="policy", kind="policy", default="ds2", text="The policy (`penstock policies`)."),
    Key(name="mode", kind="mode", default="advise",
        text="`advise` only says what it would do, `act` also does it."),
    Key(name="min_executors", kind="count", default=PRODUCTION.minimum, least=1,
        text="Fewest executors; nothing goes below."),
    Key(name="max_executors", kind="count", default=PRODUCTION.maximum, least=1,
        text="Most executors; nothing goes above."),
    Key(name="period", kind="duration", default=15.0, above=True,
        text="Time between decisions."),
    Key(name="window", kind="duration", default=None, above=True, optional=True,
        text="Time of finished batches that a decision looks at; `none`: the period."),
    Key(name="batch_time", kind="duration", default=BATCH_TIME, above=True,
        text="Time that a batch may take of a query without a trigger."),
    Key(name="blackouts", kind="times", default=(),
        text="Daily times without actions, UTC, such as `22:00-06:30`."),
    Key(name="freeze_file", kind="path", default=None, optional=True,
        text="While this file exists, nothing is done."),
    Key(name="freeze_signals", kind="flag", default=False,
        text="SIGUSR1 freezes, SIGUSR2 thaws (main thread; `penstock run` always does)."),
    Key(name="journal", kind="path", default=None, optional=True,
        text="File for the decisions; a restart goes on from it."),
    Key(name="journal_max_bytes", kind="count", default=50_000_000, least=10_000,
        text="Size at which the journal is rotated."),
    Key(name="journal_keep", kind="count", default=4, most=1000,
        text="Old journals that are kept (`.1`, `.2`, …)."),
    Key(name="metrics_port", kind="count", default=None, most=65535, optional=True,
        text="Port for Prometheus; 0: any free one."),
    Key(name="metrics_host", kind="text", default="127.0.0.1",
        text="Address that the port is bound to."),
    Key(name="heartbeat", kind="duration", default=300.0, above=True,
        text="Time after which a line is logged though nothing changes."),
    Key(name="seed", kind="count", default=0, text="Of a policy that draws at random."),
    *(_guard_key(field, text) for field, text in _GUARDS.items()),
)  # fmt: skip
KEYS: Mapping[str, Key] = {key.name: key for key in _ALL}
