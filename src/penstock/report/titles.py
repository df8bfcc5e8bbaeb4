"""What a run is called in a picture, on a page and in a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.report import units
from penstock.report.runs import Run

_RATES = ("rps", "low", "high", "start", "end", "noise", "change", "maximum", "base")
_PLAIN = ("seed", "scale", "speed", "height", "up", "down")


def title(run: Run) -> str:
    """Policy and mode: ``ds2 (over_provisioning 1.2) · act``."""
    given = ", ".join(f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in _some(run))
    policy = f"{run.header.policy} ({given})" if given else run.header.policy
    return f"{policy} · {run.header.mode}"


def subtitle(run: Run) -> str:
    """Workload and engine: ``cosine, low 200k/s, high 2.2M/s, period 60.0 min · simulated``."""
    parts = [_described(run.config.get(key), key) for key in ("workload", "engine")]
    return " · ".join(p for p in parts if p) or str(run.config.get("name", run.folder.name))


def _some(run: Run) -> list[tuple[str, Any]]:
    return [(k, v) for k, v in run.header.parameters.items() if v is not None][:4]


def _described(value: Any, key: str) -> str:
    """A name with its parameters; configs of other commands may hold plain text."""
    if not isinstance(value, Mapping):
        return "" if value is None else str(value)
    name = str(value.get("name", value.get("kind", key)))
    if key == "engine":
        profile = value.get("profile")
        return f"{name}, profile {profile}" if profile else name
    parts = [_parameter(k, v) for k, v in value.items() if k not in ("name", "kind")]
    return ", ".join([name, *(p for p in parts if p)])


def _parameter(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{key} {value}" if isinstance(value, str) else ""
    if key in _RATES:
        return f"{key} {units.count(value)}/s" if value else ""
    if key in _PLAIN:
        return f"{key} {value:g}" if value else ""
    return f"{key} {units.seconds(value)}" if value else ""
