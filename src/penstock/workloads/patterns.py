"""Rate patterns by name: how many records are offered, as a function of time.

Each pattern knows its rate and, in closed form, the number of records offered since the start,
so that a simulator and a real source release exactly the same records. Patterns that draw at
random have a ``seed``: the same seed gives the same load.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, get_type_hints

from penstock.core.errors import InputError, unknown
from penstock.workloads.cosine import Cosine
from penstock.workloads.pattern import MINUTE, Floats, Pattern, offered_at, per_second
from penstock.workloads.simple import Constant, Convergence, Step
from penstock.workloads.spikes import Spikes
from penstock.workloads.trace import Trace
from penstock.workloads.walks import Decreasing, Increasing, Random

__all__ = [
    "PATTERNS",
    "Constant",
    "Convergence",
    "Cosine",
    "Decreasing",
    "Floats",
    "Increasing",
    "Pattern",
    "Random",
    "Spikes",
    "Step",
    "Trace",
    "create",
    "describe",
    "duration",
    "offered_at",
    "parse",
    "per_second",
    "to_text",
]

PATTERNS: Mapping[str, type[Any]] = {
    "constant": Constant,
    "step": Step,
    "cosine": Cosine,
    "random": Random,
    "increasing": Increasing,
    "decreasing": Decreasing,
    "convergence": Convergence,
    "spikes": Spikes,
    "trace": Trace,
}

MINUTES = 140  # of a run in the thesis


def create(name: str, parameters: Mapping[str, Any] | None = None, seed: int = 0) -> Pattern:
    """A pattern by name; parameters may be given as text, as on a command line.

    ``seed`` is for patterns that draw at random, unless the parameters have one.

    >>> create("step", {"high": "5000"})
    Step(low=1000.0, high=5000.0, at=60.0, hold=0.0)
    >>> create("random", seed=3)
    Random(start=1250000.0, change=500000.0, maximum=2500000.0, minute=60.0, seed=3)
    """
    if name not in PATTERNS:
        raise unknown("workload", name, PATTERNS)
    kind = PATTERNS[name]
    hints = get_type_hints(kind)
    known = {f.name for f in dataclasses.fields(kind) if f.init}
    values: dict[str, Any] = {"seed": seed} if "seed" in known else {}
    for key, value in (parameters or {}).items():
        if key not in known:
            raise unknown(f"parameter of workload {name}", key, known)
        values[key] = _typed(f"{name}: {key}", value, hints[key])
    pattern: Pattern = kind(**values)
    return pattern


def describe(pattern: Pattern) -> dict[str, Any]:
    """Name and parameters, as ``create`` takes them."""
    name = next(n for n, kind in PATTERNS.items() if type(pattern) is kind)
    fields = dataclasses.fields(pattern)  # type: ignore[arg-type]
    return {"name": name, **{f.name: getattr(pattern, f.name) for f in fields if f.init}}


def to_text(pattern: Pattern) -> str:
    """As JSON, from which ``parse`` makes an equal pattern."""
    return json.dumps(describe(pattern))


def parse(text: str) -> Pattern:
    """A pattern from its name, or from JSON with name and parameters.

    >>> parse("constant") == parse('{"name": "constant", "rps": 1000}')
    True
    """
    if not text.lstrip().startswith("{"):
        return create(text)
    try:
        parameters = json.loads(text)
        return create(parameters.pop("name"), parameters)
    except (KeyError, json.JSONDecodeError):
        example = '{"name": "constant", "rps": 1000}'
        raise InputError(
            f"pattern {text!r} must be the name of a workload or JSON such as {example}"
        ) from None


def duration(pattern: Pattern) -> float:
    """Seconds that a pattern is meant to run: its own length, or the thesis's 140 minutes."""
    own: float | None = getattr(pattern, "duration", None)
    return MINUTES * float(getattr(pattern, "minute", MINUTE)) if own is None else own


def _typed(what: str, value: Any, kind: type) -> Any:
    """A value as the type a parameter is declared with: float, int, bool or str."""
    if kind is str:
        if isinstance(value, str):
            return value
        raise InputError(f"{what} = {value!r} is not a text")
    if kind is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise InputError(f"{what} = {value!r} must be true or false")
    try:
        if isinstance(value, bool) or (kind is int and isinstance(value, float) and value % 1):
            raise ValueError
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        wanted = "a number" if kind is float else "a whole number"
        raise InputError(f"{what} = {value!r} is not {wanted}") from None
