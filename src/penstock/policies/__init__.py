"""The auto-scalers, one file each, and the table that names them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_type_hints

from penstock.core.errors import InputError, unknown
from penstock.core.ports import Policy
from penstock.policies.cpu_threshold import CpuThreshold
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
from penstock.policies.mead.mead import Mead, MeadKingman, MeadMg1
from penstock.policies.mead.mead_plus import MeadPlus
from penstock.policies.proactive import Proactive
from penstock.policies.spark_dra import SparkDra
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

POLICIES: Mapping[str, type[Any]] = {
    "static": Static,
    "hpa-cpu": HpaCpu,
    "hpa-varga": HpaVarga,
    "ds2": DS2,
    "dhalion": Dhalion,
    "hpa+": HpaPlus,
    "ds2+": DS2Plus,
    "dhalion+": DhalionPlus,
    "proactive": Proactive,
    "spark-dra": SparkDra,
    "mead": Mead,
    "mead+": MeadPlus,
    "mead-mg1": MeadMg1,
    "mead-kingman": MeadKingman,
    "cpu-threshold": CpuThreshold,
    "drs": Drs,
    "gesscale": Gesscale,
    "gesscale+": GesscalePlus,
    "mdl-nlunaware": MdlNlunaware,
    "thr-nlunaware": ThrNlunaware,
    "thr-nlaware": ThrNlaware,
    "decentralized": Decentralized,
}
DECIDING: Mapping[str, type[Any]] = {n: k for n, k in POLICIES.items() if k is not SparkDra}
"""Those that decide here, on any engine; Spark's own allocation decides inside Spark."""


def create(name: str, parameters: Mapping[str, Any] | None = None) -> Policy:
    """A policy by name; parameters may be given as text, as on a command line.

    >>> create("ds2", {"over_provisioning": "1.4"})
    DS2(over_provisioning=1.4, strict=False)
    """
    if name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    kind = POLICIES[name]
    hints = get_type_hints(kind)
    known = {f.name for f in dataclasses.fields(kind)}
    values = {}
    for key, value in (parameters or {}).items():
        if key not in known:
            raise unknown(f"parameter of policy {name}", key, known)
        values[key] = _typed(f"{name}: {key}", value, hints[key])
    policy: Policy = kind(**values)
    return policy


def parameters_of(policy: object) -> dict[str, Any]:
    """The parameters of a policy, as ``create`` takes them; none of one that is no dataclass."""
    if not dataclasses.is_dataclass(policy) or isinstance(policy, type):
        return {}
    return {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}


def wants_arrivals(policy: object) -> bool:
    """Whether a policy, or a class of them, needs the newest arrivals one by one.

    It says so by ``single_arrivals = True``; they are kept and journalled for no other.
    """
    return bool(getattr(policy, "single_arrivals", False))


def name_of(policy: Policy) -> str:
    """The registered name of a policy, or its class name if it is the user's own."""
    for name, kind in POLICIES.items():
        if type(policy) is kind:
            return name
    return type(policy).__name__


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
