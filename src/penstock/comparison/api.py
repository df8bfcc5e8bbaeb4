"""``penstock.simulate`` and ``penstock.compare``: policies on a query under a load, simulated.

A policy is an object such as ``DS2(over_provisioning=1.4)``, one of the user's own, or a name with
parameters: ``"ds2:over_provisioning=1.4"``. A workload is an object of ``penstock.workloads`` or a
name with parameters, too. Either may also be a mapping with a ``name``. What an object leaves at
its default is the query's own: ``Cosine()`` has the lowest and highest rate of the query, and a
trace that comes along (``Trace("taxi")``) is scaled so that its highest rate is the query's.
Traffic from a file of the user's own is never rescaled unless asked: ``Trace("week.csv",
scale=2)``, ``Trace("week.csv").scaled_to(5000)``.

With a profile of a query of one's own (``penstock profile``) that is compared on, batch by batch,
instead of a Nexmark query.
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
from penstock.comparison.profiled import ProfileCell, read_cell
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
from penstock.simulator import PROFILES
from penstock.simulator.microbatch.profile import Profile, read_profile
from penstock.workloads import patterns
from penstock.workloads.patterns import PATTERNS, Pattern

A_DAY = 24 * 60.0  # minutes
AT_PEAK = "static (peak)"

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
        guards=given_guards(guards),
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
    guards: GivenGuards | None = None,
    profile: str | Path | Profile = "restart",
    period: float | None = None,
    slo: float = 60.0,
    start: int | None = None,
    shared: bool = False,
    base: str | None = None,
    price: float | None = None,
    late_price: float | None = None,
    baselines: bool = True,
    out: Path | str | None = None,
    workers: int | None = 1,
    progress: Progress = lambda done, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Run some policies on the same loads, seed by seed: scores, intervals, differences.

    policies: by object or name, as told above; the first is the base
    seeds: as many, from 0 on, or which
    guards: as in ``simulate``; with a profile ``production`` if left out, as an Autoscaler has
    profile: what a change of size costs, or the profile of an application (a value, or its file)
        that is played instead of a Nexmark query
    period: seconds between decisions; 15, or a minute where more than a day of an application is
        played
    slo: seconds of queue latency beyond which a second counts as late
    price, late_price: of a slot for an hour, and of an hour that is late; left out, costs are told
        in what the oracle pays, and an hour late counts as ten of the oracle's
    baselines: whether the fewest slots that cover the highest rate, as a fixed size, stand beside
    base: the policy that others are compared with, by its label
    workers: processes, all cores if ``None``; more than one need a script with the guard
        ``if __name__ == "__main__":``, as everywhere in Python
    progress: told the number of finished runs, and of all
    say: told how to go on, if it is stopped

    All else is as in ``simulate``.

    >>> found = compare(["ds2", "hpa-cpu"], query="q1", minutes=20, seeds=2)
    >>> [row.label for row in found.groups[0].rows]
    ['ds2', 'hpa-cpu', 'static (peak)']
    """
    load, given = _workload(workload)
    minutes = workload_minutes(load, given) if minutes is None else minutes
    measured = _application(profile)
    kind: type[Cell] = Cell
    fields: dict[str, Any] = {
        "query": query,
        "workload": load,
        "workload_parameters": given,
        "shared": shared,
        "start": start,
        "slo": slo,
        "price": price,
        "late_price": late_price,
    }
    guards = guards if guards is not None else "default" if measured is None else "production"
    if measured is None:
        fields |= {"profile": profile, "period": 15.0 if period is None else period}
    else:
        refuse_unrated(load, given)
        query = "+".join(q.name for q in measured.queries)
        kind = ProfileCell
        period = period or (15.0 if minutes <= A_DAY else 60.0)
        fields |= {"query": query, "profile": "live", "period": period, "application": measured}
    every = seed_range(seeds, "seeds") if isinstance(seeds, int) else tuple(seeds)
    cells = cells_of(kind, policies, {**fields, "guards": given_guards(guards), "minutes": minutes})
    if baselines and cells:
        cells += static_at_peak(cells, every)
    fields.pop("application", None)
    experiment = Experiment(
        name=key_of("compare", query, load),
        cells=tuple(cells),
        seeds=every,
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
            results = Results(cells, found.seeds, dict(read_scores(Path(kept))))
        return summarize(results, name=experiment.name, base=base)
    runs.check_writable(Path(out))
    folder = create_folder(experiment, Path(out), command="compare")
    run_experiment(experiment, folder, workers=workers, progress=progress, say=say)
    return finish(folder, base=base, read=read_cell)


def _application(profile: str | Path | Profile) -> Profile | None:
    """The application that a profile tells of; ``None`` for what a change costs."""
    if isinstance(profile, Profile):
        return profile
    return None if profile in PROFILES else read_profile(Path(profile))


def refuse_unrated(load: str, given: Mapping[str, Any]) -> None:
    """Refuse a load whose rates nobody has named: an application has none of its own."""
    rates = RATES_OF.get(load, ())
    if rates and not any(name in given for name in rates):
        raise InputError(
            f"workload {load} on an application of your own needs its rates: {', '.join(rates)}. "
            "Give them, or recorded traffic (--trace FILE; in Python Trace(FILE))"
        )


RATES_OF: Mapping[str, tuple[str, ...]] = {
    "constant": ("rps",),
    "step": ("low", "high"),
    "cosine": ("low", "high"),
    "random": ("start", "maximum"),
    "increasing": ("maximum",),
    "decreasing": ("maximum",),
    "convergence": ("high", "low"),
    "spikes": ("base",),
}
"""Parameters of loads that are records/s."""


def static_at_peak(cells: Sequence[Cell], seeds: Sequence[int]) -> list[Cell]:
    """The baseline beside some policies: a fixed size that covers the highest rate, by pool."""
    first = cells[0]
    sizes: dict[str, int] = {}
    for seed in seeds:
        for pool, size in first.peak_sizes(seed).items():
            sizes[pool] = max(sizes.get(pool, 1), size)
    least, most = first.guards.minimum, first.guards.maximum
    sizes = {pool: min(max(size, least), most) for pool, size in sizes.items()}
    cell = dataclasses.replace(
        first,
        key=f"{first.key}-peak",
        policy="static",
        policy_parameters={"pools": " ".join(f"{pool}={size}" for pool, size in sizes.items())},
        label=AT_PEAK,
        own=None,
    )
    return [cell]


def cells_of(
    kind: type[Cell], policies: Sequence[Policy | Named], fields: Mapping[str, Any]
) -> list[Cell]:
    """A cell for each policy; each must have a label of its own."""
    cells: list[Cell] = []
    query = f"{fields['query']}-shared" if fields["shared"] else str(fields["query"])
    for given in policies:
        name, parameters, own = _policy(given)
        made = kind(key="new", policy=name, policy_parameters=parameters, own=own, **fields)
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


def given_guards(given: GivenGuards) -> Guards:
    """Guards as they are, or of a preset or a table."""
    return given if isinstance(given, Guards) else guards_of(given)[0]


def _text(cell: Cell) -> str:
    """A policy as the command line takes it."""
    given = (f"{key}={value}" for key, value in cell.policy_parameters.items())
    return ":".join([cell.policy, *given])
