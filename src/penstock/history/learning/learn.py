"""The profile of an application that ran, the demand it met, and what could not be learnt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.batches.actions import usual_join
from penstock.core.errors import InputError, MissingError
from penstock.history.demand import Demand
from penstock.history.learning.batches import lined_up, say_tasks, thinned
from penstock.history.learning.durations import refuse_sizes, with_stages
from penstock.history.learning.executors import ExecutorsOverTime, over_time
from penstock.history.learning.notes import Notes
from penstock.history.learning.streams import batches_of, demand_of_query, sources_of
from penstock.history.learning.told import trigger_of
from penstock.history.profiling.fit import Explained, Fit, fit_lineup
from penstock.history.recording import RecordedApplication, RecordedQuery
from penstock.simulator.microbatch.profile import VERSION, ExecutorProfile, Profile

ASSUMED_JOIN = 15.0  # seconds, where nobody knows the cluster manager
SIZES = "penstock lab calibrate measures a query at several"


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
    notes = Notes(several=len(chosen) > 1)
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
        for source, came in demand_of_query(name, runs, fits[name], notes).items():
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
        batches=sum(batches_of(q) for q in kept),
        executors=over_time(application, start, end),
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
    refuse_sizes(application.source, executors=executors, cores=cores, partitions=partitions)
    return application


def _fit(
    application: RecordedApplication, name: str, runs: Sequence[RecordedQuery], notes: Notes
) -> Fit:
    """The fit of one query over all of its runs."""
    worked = [q for q in runs if any(not b.idle and b.rows for b in q.batches)]
    if not worked:
        raise InputError("no batch read any records; let the query run on data for a while")
    experiments = [thinned(application.experiment(q)) for q in worked]
    lineup = lined_up(experiments, name, notes)
    sources = sources_of(worked, lineup, name, notes)
    trigger = next((q.trigger for q in reversed(worked) if q.trigger is not None), None)
    if trigger is None:
        trigger = trigger_of(max(worked, key=batches_of).batches)
        said = f"{trigger:g} s" if trigger else "0, one batch follows the other (or is as long)"
        notes.add(f"the trigger is not told: taken as {said}, by when batches began", name)
    found = fit_lineup(name, lineup, experiments, sources, trigger=trigger or 0.0)
    for note in found.notes:
        notes.add(note, name)
    say_tasks(lineup, name, notes)
    return found


def _profile(application: RecordedApplication, fits: Mapping[str, Fit], notes: Notes) -> Profile:
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
        "batches": str(sum(batches_of(q) for q in application.queries if q.name in fits)),
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


def _with_start(application: RecordedApplication, fit: Fit, notes: Notes) -> ExecutorProfile:
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
    sizes: Sequence[int], explained: Mapping[str, Iterable[Explained]], notes: Notes
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
