"""What each place says of the configuration: a file, the environment, Spark, the program."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards
from penstock.policies import POLICIES
from penstock.spark.settings.keys import ENVIRONMENT, KEYS, PARAMETER, SPARK, variable_of
from penstock.spark.settings.toml_file import Place, TomlFile

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
        known = [f.name for f in fields(POLICIES[policy])]
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


def of_program(given: Mapping[str, Any], flags: Mapping[str, str]) -> list[Said]:
    """What a program or a command line says; ``None`` says nothing."""
    said: list[Said] = []
    for key, value in given.items():
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


def _of_guards(guards: Guards) -> list[Said]:
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
