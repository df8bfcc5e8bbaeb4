"""``penstock.simulate`` and ``penstock.compare``: policies on a query under a load, simulated.

A policy is an object such as ``DS2(over_provisioning=1.4)``, one of the user's own, or a name with
parameters: ``"ds2:over_provisioning=1.4"``. A workload is an object of ``penstock.workloads`` or a
name with parameters, too. Either may also be a mapping with a ``name``. What an object leaves at
its default is the query's own: ``Cosine()`` has the lowest and highest rate of the query, and a
trace that comes along (``Trace("taxi")``) is scaled so that its highest rate is the query's.
Traffic from a file of the user's own is never rescaled unless asked: ``Trace("week.csv",
scale=2)``, ``Trace("week.csv").scaled_to(5000)``.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.comparison import runner
from penstock.comparison.cell import Cell, workload_minutes
from penstock.comparison.check import check_cell
from penstock.comparison.experiment import Experiment, seed_range
from penstock.comparison.folder import create_folder, finish, run_experiment
from penstock.comparison.groups import base_of, key_of, policy_label
from penstock.comparison.guards_table import guards_of
from penstock.comparison.results import Results, read_scores
from penstock.comparison.runner import Progress
from penstock.comparison.simulation import Simulation, simulate_cell
from penstock.comparison.summary import Comparison, summarize
from penstock.core.codec import to_json
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.ports import Policy
from penstock.policies import POLICIES, create, name_of, parameters_of
from penstock.report import runs
from penstock.workloads import patterns
from penstock.workloads.patterns import PATTERNS, Pattern

Named = str | Mapping[str, Any]  # "name:key=value:key=value", or the same as a mapping
GivenGuards = str | Guards | Mapping[str, Any]  # a preset, or a table over one


def simulate(
    policy: Policy | Named = "ds2",
    *,
    query: str = "q1",
    workload: Pattern | Named = "cosine",
    minutes: float | None = None,
    seed: int = 0,
    guards: GivenGuards = "default",
    profile: str = "restart",
    period: float = 15.0,
    start: int | None = None,
    shared: bool = False,
    out: Path | str | None = None,
    progress: Progress = lambda done, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> Simulation:
    """Run one policy on a simulated Nexmark query: every decision, and what came of it.

    policy, workload: by object or name, as told above
    query: q1, q2, q3, q5, q8 or q11
    minutes: simulated time; the workload's own, or 140
    seed: of the load and of all noise
    guards: ``default``, ``thesis`` or ``none``, a ``Guards``, or a mapping of its fields
    profile: what a change of size costs: ``restart`` as in Flink, ``live`` as in Spark
    period: seconds between decisions
    start: slots of each pool at the beginning; the query's, within the guards' limits
    shared: whether all operators share one pool
    out: the folder under which the run is kept; nothing is written if left out
    progress: told the number of decisions, and of all
    say: told what was kept, if it is interrupted

    >>> simulate("ds2", query="q1", minutes=30).summary.slots_mean > 1
    True
    """
    name, parameters, own = _policy(policy)
    load, given = _workload(workload)
    cell = Cell(
        key="simulate",
        query=query,
        workload=load,
        workload_parameters=given,
        policy=name,
        policy_parameters=parameters,
        guards=_guards(guards),
        profile=profile,
        minutes=workload_minutes(load, given) if minutes is None else minutes,
        period=period,
        shared=shared,
        own=own,
    )
    root = None if out is None else Path(out)
    return simulate_cell(cell, seed, start=start, out=root, progress=progress, say=say)


def compare(
    policies: Sequence[Policy | Named],
    workload: Pattern | Named = "cosine",
    *,
    query: str = "q1",
    seeds: int | Sequence[int] = 10,
    minutes: float | None = None,
    guards: GivenGuards = "default",
    profile: str = "restart",
    period: float = 15.0,
    slo: float = 60.0,
    start: int | None = None,
    shared: bool = False,
    base: str | None = None,
    out: Path | str | None = None,
    workers: int | None = 1,
    progress: Progress = lambda done, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Run some policies on the same loads, seed by seed: scores, intervals, differences.

    policies: by object or name, as told above; the first is the base
    seeds: as many, from 0 on, or which
    slo: seconds of queue latency beyond which a second counts as late
    base: the policy that others are compared with, by its label
    workers: processes, all cores if ``None``; more than one need a script with the guard
        ``if __name__ == "__main__":``, as everywhere in Python
    progress: told the number of finished runs, and of all
    say: told how to go on, if it is stopped

    All else is as in ``simulate``.

    >>> found = compare(["ds2", "hpa-cpu"], query="q1", minutes=20, seeds=2)
    >>> [row.label for row in found.groups[0].rows]
    ['ds2', 'hpa-cpu']
    """
    load, given = _workload(workload)
    fields: dict[str, Any] = {
        "query": query,
        "workload": load,
        "workload_parameters": given,
        "shared": shared,
        "start": start,
        "profile": profile,
        "period": period,
        "slo": slo,
    }
    minutes = workload_minutes(load, given) if minutes is None else minutes
    cells = _cells(policies, {**fields, "guards": _guards(guards), "minutes": minutes})
    experiment = Experiment(
        name=f"compare-{query}-{load}",
        cells=tuple(cells),
        seeds=seed_range(seeds, "seeds") if isinstance(seeds, int) else tuple(seeds),
        journals=False,
        document={
            "policies": ",".join(_text(cell) for cell in cells),
            "guards": to_json(guards),
            "minutes": minutes,
            **fields,
        },
    )
    runner.check(experiment.cells, experiment.seeds, workers)
    base_of(cells, base)  # a wrong name fails now, not after the runs
    if out is None:
        with tempfile.TemporaryDirectory(prefix="penstock-") as kept:
            found = run_experiment(
                experiment, Path(kept), workers=workers, progress=progress, traces=False
            )
            results = Results(found.cells, found.seeds, dict(read_scores(Path(kept))))
        return summarize(results, name=experiment.name, base=base)
    runs.check_writable(Path(out))
    folder = create_folder(experiment, Path(out), command="compare")
    run_experiment(experiment, folder, workers=workers, progress=progress, say=say)
    return finish(folder, base=base)


def _cells(policies: Sequence[Policy | Named], fields: Mapping[str, Any]) -> list[Cell]:
    """A cell for each policy; each must have a label of its own."""
    cells: list[Cell] = []
    query = f"{fields['query']}-shared" if fields["shared"] else str(fields["query"])
    for given in policies:
        name, parameters, own = _policy(given)
        made = Cell(key="new", policy=name, policy_parameters=parameters, own=own, **fields)
        label = policy_label(made)
        cell = dataclasses.replace(made, key=key_of(query, made.workload, label))
        check_cell(cell)
        if any(cell.key == other.key for other in cells):
            raise InputError(f"policies has {label!r} twice")
        cells.append(cell)
    return cells


def _policy(given: Policy | Named) -> tuple[str, dict[str, Any], Policy | None]:
    """The name of a policy, the parameters that differ from its own, and an unregistered object."""
    if isinstance(given, str | Mapping):
        name, asked = _named(given, "policy")
        typed = parameters_of(create(name, asked))
        return name, {key: typed[key] for key in asked}, None
    if not (hasattr(given, "start") and hasattr(given, "decide")):
        raise InputError(f"{given!r} is no policy: it needs `start` and `decide`")
    name = name_of(given)
    if name in POLICIES:
        usual = parameters_of(create(name))
        found = parameters_of(given)
        return name, {key: v for key, v in found.items() if v != usual[key]}, None
    plain = {k: v for k, v in _changed(given).items() if isinstance(v, str | int | float | bool)}
    return name, plain, given


def _workload(given: Pattern | Named) -> tuple[str, dict[str, Any]]:
    """The name of a workload, and the parameters that differ from the query's."""
    if isinstance(given, str | Mapping):
        name, asked = _named(given, "workload")
        typed = patterns.describe(patterns.create(name, asked))
        return name, {key: typed[key] for key in asked}
    for name, kind in PATTERNS.items():
        if type(given) is kind:
            return name, _changed(given)
    known = ", ".join(PATTERNS)
    raise InputError(f"{given!r} is no workload; give one of penstock.workloads or of {known}")


def _changed(value: object) -> dict[str, Any]:
    """The fields of a dataclass that do not hold their default; none of another object."""
    if not dataclasses.is_dataclass(value):
        return {}
    fields = [f for f in dataclasses.fields(value) if f.init]
    return {f.name: v for f in fields if (v := getattr(value, f.name)) != f.default}


def _named(given: Named, what: str) -> tuple[str, dict[str, Any]]:
    """A name and its parameters.

    >>> _named("ds2:over_provisioning=1.4", "policy")
    ('ds2', {'over_provisioning': '1.4'})
    """
    if isinstance(given, Mapping):
        parameters = dict(given)
        if "name" not in parameters:
            raise InputError(f"{what} = {given!r} needs a name")
        return str(parameters.pop("name")), parameters
    name, *settings = given.strip().split(":")
    parameters = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise InputError(f"{what} {given!r}: {text!r} must look like KEY=VALUE")
        parameters[key.strip()] = value.strip()
    return name, parameters


def _guards(given: GivenGuards) -> Guards:
    return given if isinstance(given, Guards) else guards_of(given)[0]


def _text(cell: Cell) -> str:
    """A policy as the command line takes it."""
    given = (f"{key}={value}" for key, value in cell.policy_parameters.items())
    return ":".join([cell.policy, *given])
