"""The configuration of an Autoscaler: one frozen value, and where each part of it came from.

From the weakest to the strongest: defaults, a TOML file, ``PENSTOCK_*`` variables,
``spark.penstock.*`` of the session, what the program or the command line says: a mapping with the
keys of a file, then single values.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards
from penstock.core.loop import Mode
from penstock.policies import POLICIES, create, parameters_of
from penstock.spark.settings.keys import (
    ENVIRONMENT,
    KEYS,
    PARAMETER,
    PRODUCTION,
    SPARK,
    shown,
    variable_of,
)
from penstock.spark.settings.toml_file import Place, TomlFile, mentioned, seconds

__all__ = ["PRODUCTION", "Settings", "load"]


DEFAULT = "default"
# Executors join and leave a running query: nothing stops, so a rescale costs no downtime.
ON_SPARK: Mapping[str, Any] = {"downtime": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be configured; the keys are in docs/configuration.md.

    parameters: all those of the policy
    guards: with the limits and the blackout windows in them
    file: the configuration file that was read, if any
    origins: where each key came from, by its dotted name
    """

    policy: str
    parameters: Mapping[str, Any]
    mode: Mode
    guards: Guards
    period: float
    window: float | None
    batch_time: float
    freeze_file: Path | None
    freeze_signals: bool
    journal: Path | None
    journal_max_bytes: int
    journal_keep: int
    metrics_port: int | None
    metrics_host: str
    heartbeat: float
    seed: int
    file: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict, repr=False)

    def rows(self) -> list[tuple[str, Any, str]]:
        """Key, value and origin of everything, in the order of the documentation."""
        keys = [KEYS["policy"].name, *(PARAMETER + name for name in self.parameters)]
        keys += [name for name in KEYS if name != "policy"]
        return [(key, self.value(key), self.origins.get(key, DEFAULT)) for key in keys]

    def value(self, key: str) -> Any:
        """The value of a key by its dotted name."""
        if key.startswith(PARAMETER):
            return self.parameters[key.removeprefix(PARAMETER)]
        short = {"min_executors": "minimum", "max_executors": "maximum", "blackouts": "blackouts"}
        guard = short.get(key, key.removeprefix("guards.") if key.startswith("guards.") else None)
        return getattr(self, key) if guard is None else getattr(self.guards, guard)

    def __str__(self) -> str:
        rows = [(key, shown_value(key, value), origin) for key, value, origin in self.rows()]
        wide = [max(len(row[i]) for row in rows) for i in (0, 1)]
        return "\n".join(f"{k:{wide[0]}}  {v:{wide[1]}}  {o}" for k, v, o in rows)

    def line(self) -> str:
        """One line for a log: policy, mode, limits, period and where they came from."""
        files = f"configured by {self.file}" if self.file is not None else "no configuration file"
        return (
            f"{self.policy} in mode {self.mode}, {self.guards.minimum} to "
            f"{self.guards.maximum} executors, every {self.period:g} s, {files}"
        )


def load(
    config: Path | str | Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    spark: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Settings:
    """The settings that hold, of a file, the environment, a Spark configuration and a program.

    config: a file, or a mapping with the keys of one; without a file it is the one of
        ``spark.penstock.config`` or else of ``PENSTOCK_CONFIG``
    given: values by key, ``None`` means not given; ``guards`` as a whole value sets all of them
    flags: the name on the command line of each given key, for the errors
    """
    environment = os.environ if environment is None else environment
    said = config if isinstance(config, Mapping) else {}
    path = config if config and not isinstance(config, Mapping) else None
    path = path or config_of(environment, spark or {})
    weakest_first = [
        of_file(Path(path)) if path else [],
        of_environment(environment),
        of_spark(spark or {}),
        of_mapping(said),
        of_program(given or {}, flags or {}),
    ]
    return _merged(weakest_first, Path(path) if path else None)


def _merged(weakest_first: Sequence[Sequence[Said]], path: Path | None) -> Settings:
    """The strongest of each key; naming another policy drops the parameters said before."""
    values: dict[str, Any] = {name: key.default for name, key in KEYS.items()}
    last: dict[str, Said] = {}
    parameters: dict[str, Any] = {}
    # In each place the policy comes before its parameters.
    for one in (s for said in weakest_first for s in sorted(said, key=lambda s: s.key != "policy")):
        if one.key == "policy" and one.value != values["policy"]:
            parameters = {}
            last = {k: v for k, v in last.items() if not k.startswith(PARAMETER)}
        if one.key.startswith(PARAMETER):
            name = one.key.removeprefix(PARAMETER)
            one.check_parameter(name, values["policy"])
            duration = seconds(one.value) if isinstance(one.value, str) else None
            parameters[name] = one.value if duration is None else duration
        else:
            values[one.key] = one.value
        last[one.key] = one
    return _settings(values, parameters, last, path)


def _settings(
    values: dict[str, Any], parameters: dict[str, Any], last: Mapping[str, Said], path: Path | None
) -> Settings:
    origins = {key: one.origin for key, one in last.items()}
    name = values.pop("policy")
    for key, value in ON_SPARK.items():
        if key in parameters_of(create(name)) and key not in parameters:
            parameters[key] = value
            origins[PARAMETER + key] = f"{DEFAULT} on Spark"
    try:
        policy = create(name, parameters)
    except InputError as error:
        about = last.get(PARAMETER + mentioned(parameters, str(error)))
        raise InputError(f"{about.place}{error}" if about else str(error)) from None
    guards = {k.removeprefix("guards."): values.pop(k) for k in KEYS if k.startswith("guards.")}
    least, most = values.pop("min_executors"), values.pop("max_executors")
    if least > most:
        raise InputError(
            f"minimum {least} is above maximum {most}; lower the one or raise the other "
            f"(min_executors: {origins.get('min_executors', DEFAULT)}, "
            f"max_executors: {origins.get('max_executors', DEFAULT)})"
        )
    limits = Guards(minimum=least, maximum=most, blackouts=values.pop("blackouts"), **guards)
    return Settings(
        policy=name,
        parameters=parameters_of(policy),
        guards=limits,
        file=path,
        origins=origins,
        **values,
    )


def shown_value(key: str, value: Any) -> str:
    """A value as a person writes it, by its dotted key."""
    return KEYS[key].shown(value) if key in KEYS else shown(value)


def plain_value(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, tuple):
        return [str(v) for v in value]
    return str(value) if isinstance(value, Path) else value


def with_policy(settings: Settings, name: str, parameters: Mapping[str, Any]) -> Settings:
    """The settings with a policy that the program made itself."""
    origins = {k: v for k, v in settings.origins.items() if not k.startswith(PARAMETER)}
    origins |= dict.fromkeys(["policy", *(PARAMETER + p for p in parameters)], PROGRAM)
    return replace(settings, policy=name, parameters=parameters, origins=origins)


PROGRAM = "program"
CONFIG = "config"
# Variables of the project that are no configuration of an Autoscaler.
OTHERS = frozenset(
    ENVIRONMENT + name
    for name in (
        "ARCHIVE", "CLASS_DATA", "CLASS_LISTS", "CONFIG", "DEBUG", "EXECUTORS", "EXECUTOR_LOG",
        "GATES", "GROUPS", "JAVA", "JAVA_OPTIONS", "KEY", "RUN", "START_WITH", "TIED",
    )
)  # fmt: skip
# Kubernetes gives every container the address of each service, in variables of its name.
_SERVICE = re.compile(r"_SERVICE_(HOST|PORT)(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
_INSTEAD = {
    "guards.minimum": "min_executors",
    "guards.maximum": "max_executors",
    "guards.blackouts": "blackouts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One key and its value, where it was said, and how an error about it begins."""

    key: str
    value: Any
    origin: str
    place: str = ""

    def check_parameter(self, name: str, policy: str) -> None:
        """Refuse a parameter that the policy does not have."""
        known = POLICIES[policy].parameters
        if name not in known:
            error = unknown(f"parameter of policy {policy}", name, known)
            raise InputError(f"{self.place}{error}")


def config_of(environment: Mapping[str, str], spark: Mapping[str, str]) -> str | None:
    """The file that Spark's configuration or the environment names."""
    return spark.get(SPARK + CONFIG) or environment.get(ENVIRONMENT + CONFIG.upper()) or None


def of_file(path: Path) -> list[Said]:
    """What a TOML file says."""
    file = TomlFile.read(path, "configuration file")
    said: list[Said] = []
    for key, value in file.document.items():
        if key in ("policy", "guards") and isinstance(value, Mapping):
            said += _of_table(file, key, value)
        elif key == "guards":
            file.fail(f"guards = {value!r} must be a table: [guards]", Place(key=key))
        else:
            said.append(_of_key(file, key, value, Place(key=key)))
    return said


def of_environment(environment: Mapping[str, str]) -> list[Said]:
    """What the ``PENSTOCK_*`` variables say; an empty one says nothing."""
    by_name = {variable_of(key): key for key in KEYS}
    prefix = variable_of(PARAMETER.rstrip(".")) + "_"
    found = []
    for name in sorted(environment):
        text = environment[name].strip()
        if not name.startswith(ENVIRONMENT) or name in OTHERS or not text:
            continue
        if _SERVICE.search(name) or _ADDRESS.match(text):
            continue
        if name not in by_name and not name.startswith(prefix):
            raise _unknown(f"variable {name}", name, by_name)
        key = by_name.get(name, PARAMETER + name.removeprefix(prefix).lower())
        found.append(_of_text(key, text, name))
    return found


def of_spark(conf: Mapping[str, str]) -> list[Said]:
    """What the ``spark.penstock.*`` entries of a Spark configuration say."""
    found = []
    for name in sorted(conf):
        key = name.removeprefix(SPARK)
        if not name.startswith(SPARK) or key == CONFIG:
            continue
        if key not in KEYS and not key.startswith(PARAMETER):
            raise _unknown(f"Spark key {name}", key, KEYS, SPARK)
        found.append(_of_text(key, str(conf[name]).strip(), name))
    return found


def of_mapping(config: Mapping[str, Any]) -> list[Said]:
    """What a mapping of the program says: dotted keys, or tables as in a file.

    >>> [(one.key, one.value) for one in of_mapping({"guards": {"cool_down": "2 min"}})]
    [('guards.cool_down', 120.0)]
    """
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if key in ("policy", "guards") and isinstance(value, Mapping):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    if "policy.name" in flat:
        flat["policy"] = flat.pop("policy.name")
    parameters = {k: flat.pop(k) for k in list(flat) if k.startswith(PARAMETER)}
    flat["parameters"] = {k.removeprefix(PARAMETER): v for k, v in parameters.items()}
    return of_program(flat, {})


def of_program(given: Mapping[str, Any], flags: Mapping[str, str]) -> list[Said]:
    """What a program or a command line says; ``None`` says nothing.

    All guards as one value come first, so that single limits win over those in it.
    """
    said: list[Said] = []
    for key, value in sorted(given.items(), key=lambda item: item[0] != "guards"):
        if value is None:
            continue
        if key == "guards":
            said += _of_guards(value)
        elif key == "parameters":
            origin = flags.get(key, PROGRAM)
            said += [Said(key=PARAMETER + k, value=v, origin=origin) for k, v in value.items()]
        elif key not in KEYS:
            raise _unknown(f"key {key}", key, KEYS)
        else:
            flag = flags.get(key)
            subject = f"{flag} {_quoted(value)}" if flag else f"{key} = {_quoted(value)}"
            said.append(_checked(key, value, KEYS[key].read, flag or PROGRAM, subject))
    return said


def _of_guards(guards: Any) -> list[Said]:
    if not isinstance(guards, Guards):
        raise InputError(f"guards = {guards!r} must be Guards, or in config a table of them")
    values = {f"guards.{f.name}": getattr(guards, f.name) for f in fields(guards)}
    return [Said(key=_INSTEAD.get(k, k), value=v, origin=PROGRAM) for k, v in values.items()]


def _of_table(file: TomlFile, table: str, values: Mapping[str, Any]) -> list[Said]:
    said = []
    for name, value in values.items():
        place = Place(table=table, key=name)
        if table == "policy" and name != "name":
            at = _at(file, place)
            said.append(Said(key=PARAMETER + name, value=value, origin=at, place=f"{at}: "))
        else:
            key = "policy" if table == "policy" else f"guards.{name}"
            said.append(_of_key(file, key, value, place))
    return said


def _of_key(file: TomlFile, key: str, value: Any, place: Place) -> Said:
    if key not in KEYS:
        file.fail(str(_unknown(f"key {key!r}", key, KEYS)), place)
    at = _at(file, place)
    subject = f"{at}: {place.key} = {_quoted(value)}"
    return _checked(key, value, KEYS[key].read, at, subject)


def _of_text(key: str, text: str, name: str) -> Said:
    if key.startswith(PARAMETER):
        return Said(key=key, value=text, origin=name, place=f"{name}: ")
    return _checked(key, text, KEYS[key].from_text, name, f"{name} = {text!r}")


def _checked(key: str, given: Any, read: Callable[[Any], Any], origin: str, subject: str) -> Said:
    """The value, or an error that begins with its place and itself."""
    try:
        return Said(key=key, value=read(given), origin=origin)
    except InputError as error:
        joint = " " if str(error).startswith("must") else ": "
        raise InputError(f"{subject}{joint}{error}") from None


def _at(file: TomlFile, place: Place) -> str:
    line = file.line(place)
    return f"{file.path}, line {line}" if line else str(file.path)


def _quoted(value: Any) -> str:
    return repr(str(value) if isinstance(value, Path) else value)


def _unknown(what: str, name: str, known: Iterable[str], prefix: str = "") -> InputError:
    names = list(known)
    near = [_INSTEAD[name]] if name in _INSTEAD else difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {prefix + near[0]!r}? " if near else ""
    return InputError(f"unknown {what}; {hint}Known: {', '.join(sorted(names))}")
