"""Names of commands and options that have changed: the old ones go on working for a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COMMANDS: Mapping[str, str] = {
    name: f"lab {name}" for name in ("agents", "calibrate", "kafka", "prove", "sites", "validate")
}
"""Old commands and what they are called now."""

OPTIONS: Mapping[str, Mapping[str, str]] = {
    "simulate": {"--slots": "--start", "--profile": "--rescale"},
    "compare": {"--profile": "--rescale"},
    "demo": {"--slots": "--max"},
    "workload show": {"--set": "--workload-set", "--out": "--picture"},
    "lab agents": {"--most": "--max"},
    "lab kafka produce": {"--start": "--start-time"},
    "lab prove agents": {"--share": "--cpu-share"},
    "lab sites": {"--check": "--once"},
}
"""Old options of a command, by its present name, and what they are called now."""

ONLY: Mapping[tuple[str, str], tuple[str, ...]] = {("compare", "--profile"): ("restart", "live")}
"""The values that an old option had, where a new one has its name."""


def modernized(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Arguments with the present names, and a line to print for each old name among them.

    >>> modernized(["kafka", "broker"])
    (['lab', 'kafka', 'broker'], ['penstock kafka is called penstock lab kafka now'])
    """
    new, said = list(arguments), []
    if new and new[0] in COMMANDS:
        said.append(f"penstock {new[0]} is called penstock {COMMANDS[new[0]]} now")
        new[:1] = COMMANDS[new[0]].split()
    for command, options in OPTIONS.items():
        words = command.split()
        if new[: len(words)] == words:
            for place, text in enumerate(new[len(words) :], len(words)):
                name, equals, value = text.partition("=")
                given = value if equals else "".join(new[place + 1 : place + 2])
                old = ONLY.get((command, name))
                if name in options and (old is None or given in old):
                    said.append(f"{name} is called {options[name]} now")
                    new[place] = f"{options[name]}{equals}{value}"
    return new, said
