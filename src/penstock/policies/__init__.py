"""The auto-scalers, one file or folder each, and the table that names them.

``create("ds2")`` or ``from penstock.policies import DS2``: a policy's module is loaded when it is
asked for, so none is paid for by those who use another.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec, resolve_name
from typing import TYPE_CHECKING, Any, get_type_hints

from penstock.core.errors import InputError, MissingError, unknown
from penstock.core.ports import Policy
from penstock.policies import spark_dra

if TYPE_CHECKING:
    from penstock.policies.decentralized import Decentralized
    from penstock.policies.dhalion import Dhalion
    from penstock.policies.dhalion_plus import DhalionPlus
    from penstock.policies.drs import Drs
    from penstock.policies.ds2 import DS2
    from penstock.policies.ds2_plus import DS2Plus
    from penstock.policies.gesscale.gesscale import Gesscale, MdlNlunaware
    from penstock.policies.gesscale.gesscale_plus import GesscalePlus
    from penstock.policies.gesscale.thresholds import ThrNlaware, ThrNlunaware
    from penstock.policies.hpa_cpu import HpaCpu
    from penstock.policies.hpa_plus import HpaPlus
    from penstock.policies.hpa_varga import HpaVarga
    from penstock.policies.mead.cpu_threshold import CpuThreshold
    from penstock.policies.mead.mead import Mead, MeadKingman, MeadMg1
    from penstock.policies.mead.mead_plus import MeadPlus
    from penstock.policies.proactive import Proactive
    from penstock.policies.spark_dra import DynamicAllocation
    from penstock.policies.spark_dra import DynamicAllocation as SparkDra
    from penstock.policies.static import Static

__all__ = [
    "DECIDING",
    "DS2",
    "POLICIES",
    "CpuThreshold",
    "DS2Plus",
    "Decentralized",
    "Dhalion",
    "DhalionPlus",
    "Drs",
    "DynamicAllocation",
    "Gesscale",
    "GesscalePlus",
    "HpaCpu",
    "HpaPlus",
    "HpaVarga",
    "MdlNlunaware",
    "Mead",
    "MeadKingman",
    "MeadMg1",
    "MeadPlus",
    "Proactive",
    "SparkDra",
    "Static",
    "ThrNlaware",
    "ThrNlunaware",
    "create",
    "name_of",
    "parameters_of",
]

PACKAGES: Mapping[str, str] = {"models": "scipy"}
"""By extra of Penstock the package that a policy needs of it."""


@dataclass(frozen=True, slots=True)
class Registered:
    """Where the policy of a name is; a call with its parameters makes one.

    module: with a dot before it, below ``penstock.policies``
    attribute: its class there, or a preset of a class, a ``functools.partial``
    extra: of Penstock that has to be installed for it
    settled: fields that the name decides, so that they are no parameters of it
    """

    name: str
    module: str
    attribute: str
    extra: str | None = None
    settled: tuple[str, ...] = ()

    def load(self) -> Callable[..., Any]:
        """The class or the preset; ``MissingError`` where the extra is not installed."""
        package = None if self.extra is None else PACKAGES[self.extra]
        if package is not None and find_spec(package) is None:
            raise MissingError(
                f"policy {self.name} needs {package}, which is not installed; "
                f'pip install "penstock[{self.extra}]"'
            )
        found: Callable[..., Any] = getattr(import_module(self._path), self.attribute)
        return found

    def __call__(self, **parameters: Any) -> Policy:
        """The policy with these parameters."""
        policy: Policy = self.load()(**parameters)
        return policy

    @property
    def kind(self) -> type[Any]:
        """The class of its objects."""
        return self._kind_and_preset()[0]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(f.name for f in dataclasses.fields(self.kind) if f.name not in self.settled)

    @property
    def idea(self) -> str:
        """The first line of its module."""
        self.load()
        return (inspect.getdoc(import_module(self._path)) or "").partition("\n")[0]

    @property
    def text(self) -> str:
        """Its rule and symbols, as its own docstring has them."""
        return inspect.getdoc(self.load()) or ""

    def made(self, policy: object) -> bool:
        """Whether a policy is one of this name: of its class, and with the preset's values."""
        if type(policy).__module__ != self._path:  # then nothing needs to be loaded
            return False
        kind, preset = self._kind_and_preset()
        return type(policy) is kind and all(getattr(policy, k) == v for k, v in preset.items())

    @property
    def _path(self) -> str:
        return resolve_name(self.module, __name__)

    def _kind_and_preset(self) -> tuple[type[Any], Mapping[str, Any]]:
        found = self.load()
        if isinstance(found, partial):
            return found.func, found.keywords  # type: ignore[return-value]
        return found, {}  # type: ignore[return-value]


_TABLE = (
    Registered("static", ".static", "Static"),
    Registered("hpa-cpu", ".hpa_cpu", "HpaCpu"),
    Registered("hpa-varga", ".hpa_varga", "HpaVarga"),
    Registered("ds2", ".ds2", "DS2"),
    Registered("dhalion", ".dhalion", "Dhalion"),
    Registered("hpa+", ".hpa_plus", "HpaPlus"),
    Registered("ds2+", ".ds2_plus", "DS2Plus"),
    Registered("dhalion+", ".dhalion_plus", "DhalionPlus"),
    Registered("proactive", ".proactive", "Proactive"),
    Registered("spark-dra", ".spark_dra", "DynamicAllocation"),
    Registered("mead", ".mead.mead", "Mead", "models", ("model",)),
    Registered("mead+", ".mead.mead_plus", "MeadPlus", "models"),
    Registered("mead-mg1", ".mead.mead", "MeadMg1", "models", ("model", "maps")),
    Registered(
        "mead-kingman", ".mead.mead", "MeadKingman", "models", ("model", "maps", "percentile")
    ),
    Registered("cpu-threshold", ".mead.cpu_threshold", "CpuThreshold"),
    Registered("drs", ".drs", "Drs"),
    Registered("gesscale", ".gesscale.gesscale", "Gesscale", "models", ("aware",)),
    Registered("gesscale+", ".gesscale.gesscale_plus", "GesscalePlus", "models"),
    Registered("mdl-nlunaware", ".gesscale.gesscale", "MdlNlunaware", "models", ("aware",)),
    Registered("thr-nlunaware", ".gesscale.thresholds", "ThrNlunaware", None, ("aware",)),
    Registered("thr-nlaware", ".gesscale.thresholds", "ThrNlaware", None, ("aware",)),
    Registered("decentralized", ".decentralized", "Decentralized"),
)
POLICIES: Mapping[str, Registered] = {policy.name: policy for policy in _TABLE}
DECIDING: Mapping[str, Registered] = {n: p for n, p in POLICIES.items() if n != spark_dra.NAME}
"""Those that decide here, on any engine; Spark's own allocation decides inside Spark."""


def create(name: str, parameters: Mapping[str, Any] | None = None) -> Policy:
    """A policy by name; parameters may be given as text, as on a command line.

    >>> create("ds2", {"over_provisioning": "1.4"})
    DS2(over_provisioning=1.4, strict=False)
    """
    if name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    chosen = POLICIES[name]
    hints = get_type_hints(chosen.kind)
    values = {}
    for key, value in (parameters or {}).items():
        if key not in chosen.parameters:
            raise unknown(f"parameter of policy {name}", key, chosen.parameters)
        values[key] = _typed(f"{name}: {key}", value, hints[key])
    return chosen(**values)


def parameters_of(policy: object) -> dict[str, Any]:
    """The parameters of a policy, as ``create`` takes them; none of one that is no dataclass."""
    if not dataclasses.is_dataclass(policy) or isinstance(policy, type):
        return {}
    found = _registered(policy)
    names = [f.name for f in dataclasses.fields(policy)] if found is None else found.parameters
    return {name: getattr(policy, name) for name in names}


def name_of(policy: Policy) -> str:
    """The registered name of a policy, or its class name if it is the user's own.

    >>> name_of(create("thr-nlunaware"))
    'thr-nlunaware'
    """
    found = _registered(policy)
    return type(policy).__name__ if found is None else found.name


def _registered(policy: object) -> Registered | None:
    """The entry of a policy; a preset before the class that it is a preset of."""
    found = [entry for entry in POLICIES.values() if entry.made(policy)]
    return max(found, key=lambda entry: isinstance(entry.load(), partial), default=None)


def _typed(what: str, value: Any, hint: Any) -> Any:
    """A value of the type a parameter is declared with: float, int, bool, str or ``| None``."""
    kinds = [k for k in getattr(hint, "__args__", (hint,)) if k is not type(None)]
    kind, optional = kinds[0], len(getattr(hint, "__args__", ())) > 1
    if optional and (value is None or (isinstance(value, str) and value.lower() == "none")):
        return None
    if not isinstance(value, str):
        fits = (int, float) if kind is float else kind
        if not isinstance(value, fits) or (isinstance(value, bool) and kind is not bool):
            raise InputError(f"{what} = {value!r} is not a {kind.__name__}")
        return value
    if kind is bool:
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise InputError(f"{what} = {value!r} must be true or false")
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise InputError(f"{what} = {value!r} is not a {kind.__name__}") from None


if not TYPE_CHECKING:  # a checker would take any name for one of these

    def __getattr__(name: str) -> Any:
        if name == "SparkDra":  # as it was called in 0.1
            name = "DynamicAllocation"
        for entry in _TABLE:
            if entry.attribute == name:
                return entry.load()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
