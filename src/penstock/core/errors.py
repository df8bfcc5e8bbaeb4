"""Every error that Penstock raises on purpose.

::

    PenstockError               exit code 1: the work failed
    ├── InputError              exit code 2: a value, key or file the user gave is wrong
    ├── MissingError            exit code 3: this machine lacks something (Java, root, an extra)
    └── EngineError             exit code 1: an engine could not observe or act
        ├── NotReady            nothing has been measured yet: ordinary at the start
        └── FrozenError         the kill switch was put on right before acting

A message gives the value, the bound it broke and the way out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from penstock.core.findings import Finding


class PenstockError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is what the command line returns."""

    exit_code = 1


class InputError(PenstockError, ValueError):
    """A value, key or file that the user gave is wrong."""

    exit_code = 2


class MissingError(PenstockError):
    """Something needed is missing on this machine; the message says how to get it."""

    exit_code = 3


class EngineError(PenstockError):
    """An engine could not observe or act."""


class NotReady(EngineError):  # noqa: N818 (a state, not a fault)
    """Nothing has been measured yet; ordinary at the start of a query.

    findings: what is known all the same
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class FrozenError(EngineError):
    """Nothing may be done at this moment; ``why`` in the words of the kill switch."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"frozen: {self.why}"


def unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    """An error for a name that is not in a table, with the nearest one that is.

    >>> str(unknown("policy", "ds3", ["ds2", "static"]))
    "unknown policy 'ds3'; did you mean 'ds2'? Known: ds2, static"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return InputError(f"unknown {what} {name!r}{hint} Known: {', '.join(names) or 'none'}")


EXTRAS: Mapping[str, str] = {
    "scipy": "models",
    "numba": "sim",
    "matplotlib": "sim",
    "pyarrow": "lab",
    "pyspark": "spark",
    "py4j": "spark",
    "confluent_kafka": "kafka",
}
"""The extra that brings each package which a plain installation does without."""


def missing(error: ModuleNotFoundError) -> MissingError | None:
    """The way to get a package that an extra brings; ``None`` if no extra brings this one.

    >>> str(missing(ModuleNotFoundError(name="scipy.linalg")))
    "scipy is not installed. pip install 'penstock[models]'"
    """
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    name = package.replace("_", "-")
    return MissingError(f"{name} is not installed. pip install 'penstock[{extra}]'")
