"""The configuration of an Autoscaler: one frozen value, and where each part of it came from.

From the weakest to the strongest: defaults, a TOML file, ``PENSTOCK_*`` variables,
``spark.penstock.*`` of the session, what the program or the command line says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Mode
from penstock.policies import create, parameters_of
from penstock.spark.settings import layers
from penstock.spark.settings.keys import KEYS, PARAMETER, PRODUCTION, shown
from penstock.spark.settings.layers import Said
from penstock.spark.settings.toml_file import mentioned, seconds

__all__ = ["PRODUCTION", "Settings", "load"]

DEFAULT = "default"
# Executors join and leave a running query: nothing stops, so a rescale costs no downtime.
ON_SPARK: Mapping[str, Any] = {"downtime": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be configured; the keys are in docs/configuration.md.

    ``parameters`` of the policy, all of them · ``guards`` with the limits and the blackout
    windows in them · ``origins`` where each key came from, by its dotted name.
    """

    policy: str
    parameters: Mapping[str, Any]
    mode: Mode
    guards: Guards
    period: float
    window: float | None
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
    config: Path | str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    spark: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Settings:
    """The settings that hold, of a file, the environment, a Spark configuration and a program.

    ``given`` by key, ``None`` means not given; ``guards`` as a whole value sets all of them ·
    ``flags`` the name on the command line of each given key, for the errors. Without ``config``
    the file is the one of ``spark.penstock.config`` or else of ``PENSTOCK_CONFIG``.
    """
    environment = os.environ if environment is None else environment
    path = config or layers.config_of(environment, spark or {})
    weakest_first = [
        layers.of_file(Path(path)) if path else [],
        layers.of_environment(environment),
        layers.of_spark(spark or {}),
        layers.of_program(given or {}, flags or {}),
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
    origins |= dict.fromkeys(["policy", *(PARAMETER + p for p in parameters)], layers.PROGRAM)
    return replace(settings, policy=name, parameters=parameters, origins=origins)
