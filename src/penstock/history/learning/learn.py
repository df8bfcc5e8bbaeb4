"""The profile of an application that ran, the demand it met, and what could not be learnt."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from penstock.batches.actions import usual_join
from penstock.batches.values import Stage
from penstock.core.errors import InputError, MissingError
from penstock.history.demand import Demand, Floats, demand_of, joined, names_of_sources
from penstock.history.learning.durations import with_stages
from penstock.history.learning.told import limits_of, trigger_of
from penstock.history.profiling.experiment import Experiment
from penstock.history.profiling.fit import Explained, Fit, fit_lineup
from penstock.history.profiling.lineup import Lineup, line_up
from penstock.history.recording import RecordedApplication, RecordedQuery
from penstock.simulator.microbatch.profile import (
    VERSION,
    ExecutorProfile,
    Profile,
    SourceProfile,
)

BLOCK = 12  # batches in a row that are kept together, so that each has its forerunner
MOST_FITTED, LEAST_FITTED = 800, 120  # batches of a query that are fitted
TASKS_FITTED = 200_000  # of all stages of those batches together
AFTER_CHANGE = 30  # batches that are kept after an executor came
ASSUMED_JOIN = 15.0  # seconds, where nobody knows the cluster manager
TOO_MANY = 0.5  # of the batches lack a stage: they are no longer told apart
SIZES = "penstock lab calibrate measures a query at several"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ExecutorsOverTime:
    """How many executors there were: ``counts[i]`` from ``edges[i]`` seconds after ``start``."""

    start: float
    edges: Floats
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What was learnt of an application.

    profile: with standard errors and what could not be learnt
    fits: of each query
    explained: by query, its batches on each number of executors, measured and as the profile has
        them
    sizes: numbers of executors on which settled batches ran, ascending
    demand: what came to each source, by its name; edges count from ``start``
    start, seconds: of the recording, from the first batch to the end of the last
    batches: that ran, of all queries
    executors: how many there were over time
    remarks: what reading the source left out or took for granted
    """

    profile: Profile
    fits: Mapping[str, Fit]
    explained: Mapping[str, tuple[Explained, ...]]
    sizes: tuple[int, ...]
    demand: Mapping[str, Demand]
    start: float
    seconds: float
    batches: int
    executors: ExecutorsOverTime
    remarks: tuple[str, ...] = ()

    @property
    def linear(self) -> bool:
        """Whether batches ran on one number of executors only: capacity on others is assumed to
        follow from tasks, waves and driver time alone.
        """
        return len(self.sizes) < 2

    @property
    def error(self) -> float:
        """Mean absolute deviation of batch durations, as a share of their mean."""
        weights = [sum(e.batches * e.measured for e in some) for some in self.explained.values()]
        errors = [fit.error for fit in self.fits.values()]
        return sum(w * e for w, e in zip(weights, errors, strict=True)) / sum(weights)


@dataclass(slots=True)
class _Notes:
    """Notes, each once; of several queries with the name before."""

    several: bool
    lines: list[str] = field(default_factory=list)

    def add(self, line: str, query: str = "") -> None:
        text = f"{query}: {line}" if query and self.several else line
        if text not in self.lines:
            self.lines.append(text)


def learn(
    application: RecordedApplication,
    *,
    queries: Sequence[str] | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
) -> Learned:
    """The profile of all queries of an application, or of those that are named.

    ``executors`` of ``cores`` each, and ``partitions``, are for recordings that tell of batches
    only, and refused elsewhere.
    """
    _check_scipy()
    application = _staged(application, executors=executors, cores=cores, partitions=partitions)
    if not application.executors:
        raise InputError(
            f"{application.source}: tells of no executors, so that nothing can be said of them; "
            "the recording must be whole from the beginning of the application"
        )
    names = list(dict.fromkeys(q.name for q in application.queries))
    chosen = names
    if queries:
        chosen = list(dict.fromkeys(application.query(name).name for name in queries))
    notes = _Notes(several=len(chosen) > 1)
    fits: dict[str, Fit] = {}
    demand: dict[str, list[Demand]] = {}
    refused: list[InputError] = []
    for name in chosen:
        runs = [q for q in application.queries if q.name == name]
        try:
            fits[name] = _fit(application, name, runs, notes)
        except InputError as error:
            refused.append(InputError(f"{application.source}, query {name}: {error}"))
            if queries:
                raise refused[-1] from error
            continue
        for source, came in _demand(name, runs, fits[name], notes).items():
            demand.setdefault(source, []).append(came)
    if not fits:
        raise refused[0]
    for problem in refused:
        notes.add(f"left out: {problem}")
    kept = [q for q in application.queries if q.name in fits]
    if len(names) > 1:
        notes.add(
            "several queries share the executors: where their batches ran side by side, driver "
            "times include what they waited for each other. A log of each alone tells them apart"
        )
    start = min(b.start for q in kept for b in q.batches)
    end = max(b.end for q in kept for b in q.batches)
    made = _profile(application, fits, notes)
    explained = {name: fit.explained for name, fit in fits.items()}
    sizes = tuple(sorted({e.executors for some in explained.values() for e in some}))
    _say_sizes(sizes, explained, notes)
    return Learned(
        profile=replace(made, notes=tuple(notes.lines)),
        fits=fits,
        explained=explained,
        sizes=sizes,
        # A stream that several queries read is known best from the one that read it longest.
        demand={s: max(some, key=lambda d: d.seconds).since(start) for s, some in demand.items()},
        start=start,
        seconds=end - start,
        batches=sum(_ran(q) for q in kept),
        executors=_over_time(application, start, end),
        remarks=application.remarks,
    )


def _check_scipy() -> None:
    try:
        import scipy  # noqa: F401
    except ImportError:
        raise MissingError("profiles are fitted with scipy: pip install 'penstock[sim]'") from None


def _staged(
    application: RecordedApplication,
    *,
    executors: int | None,
    cores: int | None,
    partitions: int | None,
) -> RecordedApplication:
    """With stages, where the recording has none."""
    if not application.executors and not any(q.stages for q in application.queries):
        return with_stages(application, executors=executors, cores=cores, partitions=partitions)
    given = {"--executors": executors, "--cores": cores, "--partitions": partitions}
    for option, value in given.items():
        if value is not None:
            raise InputError(
                f"{option} {value} is for files of progress documents only; "
                f"{application.source} tells its executors itself: leave it out"
            )
    return application


def _fit(
    application: RecordedApplication, name: str, runs: Sequence[RecordedQuery], notes: _Notes
) -> Fit:
    """The fit of one query over all of its runs."""
    worked = [q for q in runs if any(not b.idle and b.rows for b in q.batches)]
    if not worked:
        raise InputError("no batch read any records; let the query run on data for a while")
    experiments = [_thinned(application.experiment(q)) for q in worked]
    lineup = _lined_up(experiments, name, notes)
    sources = _sources(worked, lineup, name, notes)
    trigger = next((q.trigger for q in reversed(worked) if q.trigger is not None), None)
    if trigger is None:
        trigger = trigger_of(max(worked, key=_ran).batches)
        said = f"{trigger:g} s" if trigger else "0, one batch follows the other (or is as long)"
        notes.add(f"the trigger is not told: taken as {said}, by when batches began", name)
    found = fit_lineup(name, lineup, experiments, sources, trigger=trigger or 0.0)
    for note in found.notes:
        notes.add(note, name)
    _say_tasks(lineup, name, notes)
    return found


def _lined_up(experiments: Sequence[Experiment], name: str, notes: _Notes) -> Lineup:
    """The batches with their stages; all stages as one where they cannot be told apart."""
    problem: InputError | None = None
    try:
        found = line_up(experiments, lenient=True)
        complete = sum(row.batch.rows > 0 for row in found.rows)
        if found.incomplete <= TOO_MANY * (complete + found.incomplete):
            if found.restless:
                notes.add(
                    "executors came and went all the time: batches count that met some coming, "
                    "going or warming up, which cost more. A run on a fixed size tells more",
                    name,
                )
            return found
    except InputError as error:
        problem = error
    try:
        found = line_up([_merged(e) for e in experiments], lenient=True)
    except InputError as error:
        raise (problem or error) from None
    notes.add(
        "batches run different stages from one to the next (several jobs, or adaptive execution): "
        "taken together as one",
        name,
    )
    return found


def _merged(experiment: Experiment) -> Experiment:
    """The same with all stages of a batch as one."""
    widths = [
        max(1, max((s.tasks for s in some), default=1)) for some in experiment.stages.values()
    ]
    usual = round(float(np.median(widths))) if widths else 1
    rows = {b.id: b.rows for b in experiment.batches}
    stages = {
        id: (_sum_of(some, usual, rows.get(id, 0)),)
        for id, some in experiment.stages.items()
        if some
    }
    return replace(experiment, stages=stages, tasks={})


def _sum_of(stages: Sequence[Stage], tasks: int, rows: int) -> Stage:
    return replace(
        stages[0],
        tasks=tasks,
        run_time=sum(s.run_time for s in stages),
        cpu_time=sum(s.cpu_time for s in stages),
        fetch_wait=sum(s.fetch_wait for s in stages),
        input_records=max(1, rows),
        read_records=0,
        write_records=0,
        submitted=None,
        ended=None,
    )


def _thinned(experiment: Experiment) -> Experiment:
    """At most so many batches as can be fitted in seconds: blocks of some in a row, evenly spread,
    and those after an executor came. Batches of which no stage is known say nothing.
    """
    ran = [
        b for b in experiment.batches if not b.idle and (experiment.stages.get(b.id) or not b.rows)
    ]
    if any(experiment.stages.values()):
        known = {b.id for b in ran}
        experiment = replace(
            experiment, batches=tuple(b for b in experiment.batches if b.idle or b.id in known)
        )
    widths = [sum(s.tasks for s in some) for some in experiment.stages.values()] or [1]
    most = TASKS_FITTED // max(1, round(float(np.median(widths))))
    most = min(MOST_FITTED, max(LEAST_FITTED, most))
    if len(ran) <= most:
        return experiment
    every = math.ceil(len(ran) / most)
    kept = {b.id for place, b in enumerate(ran) if place // BLOCK % every == 0}
    starts = np.array([b.start for b in ran])
    came = [e.added for e in experiment.executors if e.added > experiment.start]
    for moment in came[: most // AFTER_CHANGE]:
        at = max(0, int(np.searchsorted(starts, moment)) - 2)
        kept |= {b.id for b in ran[at : at + AFTER_CHANGE]}
    return replace(
        experiment, batches=tuple(b for b in experiment.batches if b.idle or b.id in kept)
    )


def _sources(
    runs: Sequence[RecordedQuery], lineup: Lineup, name: str, notes: _Notes
) -> tuple[SourceProfile, ...]:
    """The sources with their limits; one for all where stages do not tell them apart."""
    run = max(runs, key=_ran)
    names = _source_names(run)
    most = run.most_rows
    if len(most) != len(names) or not any(most):
        inferred = limits_of(run.batches)
        most = inferred if len(inferred) == len(names) else (None,) * len(names)
        for source, limit in zip(names, most, strict=True):
            if limit is None:
                notes.add(
                    f"{source}: whether a batch takes only so many records is not told "
                    "(maxOffsetsPerTrigger and the like), and no batch shows it: no limit",
                    name,
                )
            else:
                notes.add(
                    f"{source}: several batches took {limit:,} records while more waited: taken "
                    "as the limit of a batch",
                    name,
                )
    reading = sum(source is not None for source in lineup.sources)
    if len(names) > 1 and reading != len(names):
        notes.add(
            f"{reading} stages read {len(names)} sources: they count as one source, with the "
            "records of all",
            name,
        )
        known = [m for m in most if m is not None]
        together = sum(known) if len(known) == len(names) else None
        return (SourceProfile(name=" + ".join(names), max_rows=together),)
    if len(names) == 1 < reading:
        notes.add(f"{reading} stages read {names[0]}, or tables beside it", name)
    return tuple(
        SourceProfile(name=source, max_rows=limit)
        for source, limit in zip(names, most, strict=True)
    )


def _source_names(run: RecordedQuery) -> tuple[str, ...]:
    usual = run.batches[-1] if run.batches else None
    ran = [b for b in run.batches if not b.idle]
    if ran:
        count = max({len(b.inputs) for b in ran}, key=[len(b.inputs) for b in ran].count)
        usual = next(b for b in reversed(ran) if len(b.inputs) == count)
    assert usual is not None
    return names_of_sources(usual.inputs)


def _demand(name: str, runs: Sequence[RecordedQuery], fit: Fit, notes: _Notes) -> dict[str, Demand]:
    """What came to each source of a query, by the names that its profile has."""
    limits = [source.max_rows for source in fit.query.sources]
    parts: dict[str, list[Demand]] = {}
    for run in runs:
        if run.demand:
            found = dict(run.demand)
        elif run.plannings is not None:
            found = run.plannings.demand(limits)
        elif len(run.batches) > 1:
            found = demand_of([run.batches], limits)
        else:
            found = {}
        for source, made in found.items():
            parts.setdefault(source, []).append(made)
    whole = joined(parts)
    if len(fit.query.sources) == 1 and len(whole) > 1:
        whole = {fit.query.sources[0].name: _summed(list(whole.values()))}
    if not whole:
        notes.add("fewer than two batches were planned: the demand is not known", name)
    for source, made in whole.items():
        if made.lower_bound > 0:
            notes.add(
                f"{source}: demand is a lower bound for {made.lower_bound:.0%} of the time: "
                "batches took all that they may, and the source does not tell what waited",
                name,
            )
    return whole


def _summed(parts: Sequence[Demand]) -> Demand:
    start = min(d.start for d in parts)
    moved = [d.since(start) for d in parts]
    edges = np.unique(np.concatenate([d.edges for d in moved]))
    middles = (edges[:-1] + edges[1:]) / 2
    rates = np.zeros(len(middles))
    for d in moved:
        place = np.searchsorted(d.edges, middles, side="right") - 1
        inside = (place >= 0) & (place < len(d.rates))
        rates += np.where(inside, d.rates[np.clip(place, 0, len(d.rates) - 1)], 0.0)
    bound = max(d.lower_bound for d in parts)
    return Demand(start=start, edges=edges, rates=rates, lower_bound=bound)


def _profile(application: RecordedApplication, fits: Mapping[str, Fit], notes: _Notes) -> Profile:
    best = max(fits.values(), key=lambda f: sum(e.batches for e in f.explained))
    executor = _with_start(application, best, notes)
    errors: dict[str, float] = {}
    for name, fit in fits.items():
        prefix = f"{name}/" if len(fits) > 1 else ""
        own = {k for k in fit.errors if k not in best.errors or "." in k or k == "planning"}
        errors |= {prefix + k: v for k, v in fit.errors.items() if k in own}
        errors |= {k: v for k, v in best.errors.items() if "." not in k and k != "planning"}
    spans = [(b.start, b.end) for q in application.queries for b in q.batches]
    provenance = {
        "source": application.source,
        "kind": application.kind,
        "application": " ".join(filter(None, (application.name, application.id))),
        "seconds": f"{max(e for _, e in spans) - min(s for s, _ in spans):.0f}",
        "batches": str(sum(_ran(q) for q in application.queries if q.name in fits)),
        **({"spark": v} if (v := application.settings.get("spark.version")) else {}),
    }
    return Profile(
        version=VERSION,
        queries=tuple(fit.query for fit in fits.values()),
        executor=executor,
        measured=f"{application.kind or 'recording'} {application.source}, by penstock profile",
        provenance=provenance,
        errors=errors,
    )


def _with_start(application: RecordedApplication, fit: Fit, notes: _Notes) -> ExecutorProfile:
    """The executor; where nobody saw one start, with what its cluster manager usually takes."""
    executor = fit.executor
    if "start" in fit.errors:
        return executor
    join = application.join
    if join is not None and join.origin == "measured":
        notes.add(f"executors start within {join.seconds:g} s: the median that was measured then")
        return replace(executor, start=join.seconds)
    master = application.settings.get("spark.master", "")
    seconds = usual_join(master) or (join.seconds if join else ASSUMED_JOIN)
    notes.add(
        f"executor start = {seconds:g} s is assumed: nobody was seen asking for one. A journal "
        "in mode act, or penstock lab calibrate, tells"
    )
    return replace(executor, start=seconds)


def _say_sizes(
    sizes: Sequence[int], explained: Mapping[str, Iterable[Explained]], notes: _Notes
) -> None:
    if len(sizes) == 1:
        off = [e.error for some in explained.values() for e in some]
        notes.add(
            f"seen at one size only, {sizes[0]} executors: capacity at others follows from tasks, "
            f"waves and driver time, as if executors shared nothing (batches at this size are off "
            f"by {max(off):.0%}; elsewhere that is the least). {SIZES}"
        )
    for name, some in explained.items():
        for e in some:
            if len(sizes) > 1 and abs(e.profile / e.measured - 1.0) > 0.15:
                notes.add(
                    f"on {e.executors} executors batches take {e.measured:.2f} s, by the profile "
                    f"{e.profile:.2f} s: capacity does not grow as tasks and waves say",
                    name,
                )


def _say_tasks(lineup: Lineup, name: str, notes: _Notes) -> None:
    for role, stage in enumerate(lineup.names):
        counts = {row.stages[role].tasks for row in lineup.settled}
        if len(counts) > 1:
            notes.add(
                f"{stage} had {min(counts)} to {max(counts)} tasks: the profile has the most "
                f"common number, {lineup.tasks(role)}",
                name,
            )


def _ran(query: RecordedQuery) -> int:
    """Batches that a run had."""
    if query.plannings is not None:
        return query.plannings.count
    return sum(query.means.get(b.id, 1) for b in query.batches if not b.idle)


def _over_time(application: RecordedApplication, start: float, end: float) -> ExecutorsOverTime:
    steps: dict[float, int] = {start: 0}
    for e in application.executors:
        steps[max(start, e.added)] = steps.get(max(start, e.added), 0) + 1
        if e.removed is not None:
            gone = max(start, e.removed)
            steps[gone] = steps.get(gone, 0) - 1
    moments = sorted(t for t in steps if t <= end)
    counts = np.cumsum([steps[t] for t in moments])
    edges = [t - start for t in moments]
    kept = [0, *(i for i, (a, b) in enumerate(pairwise(counts.tolist()), 1) if a != b)]
    return ExecutorsOverTime(
        start=start,
        edges=np.array([edges[i] for i in kept]),
        counts=tuple(int(counts[i]) for i in kept),
    )
