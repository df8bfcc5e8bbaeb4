"""``penstock.replay``: what each policy would have done with a recorded run, and at what cost.

A recording (a journal, an event log, progress documents, an address) gives a profile and the demand
that there was; every policy is played on both, beside what really ran.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import __version__
from penstock.batches.running import BATCH_TIME
from penstock.batches.snapshot import POOL
from penstock.comparison import runner
from penstock.comparison.advice import RAN, advised
from penstock.comparison.api import GivenGuards, Named, cells_of, given_guards, static_at_peak
from penstock.comparison.groups import key_of
from penstock.comparison.profiled import ProfileCell
from penstock.comparison.recorded_run import (
    Agreement,
    RecordedRun,
    Scheduled,
    acted,
    recorded_run,
    same_decisions,
)
from penstock.comparison.results import Results, read_scores
from penstock.comparison.runner import Progress
from penstock.comparison.scores import TOTAL_COST, total_cost
from penstock.comparison.sources import read_source
from penstock.comparison.summary import Comparison, summarize
from penstock.core.codec import to_json
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.ports import Policy
from penstock.history.files import atomic, write_text
from penstock.history.learning.learn import Learned, learn
from penstock.report import replay_page, runs, units
from penstock.report.bench_tables import Row
from penstock.report.replay_tables import Advice, OverTime, ReplayView, replay_lines
from penstock.report.statistics import Estimate
from penstock.report.table import terminal_text
from penstock.simulator.series import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ("ds2", "ds2+", "hpa-cpu", "hpa+", "hpa-varga", "dhalion", "dhalion+", "spark-dra")
NOW, RECORDED, PLAYED = "static (now)", "recorded", "as recorded"
ROOM, LEAST_ROOM = 2, 4  # times the most executors that there were, and at least so many
DAY = 24 * 3600.0
STEPS = ((6 * 3600.0, 1.0), (2 * DAY, 10.0), (math.inf, 60.0))  # of the demand, by its length
SEEDS = ((DAY, 5), (2 * DAY, 3), (math.inf, 1))  # runs of each policy, by the length
DEMAND = "demand.csv"
POINTS = 1500  # of a line
MINUTES = 10 * 3600.0  # seconds that are drawn in minutes; longer ones in hours
SHORTEST = 60.0  # seconds of a recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay found.

    learned: the profile, and how far to trust it
    recorded: what really ran
    comparison: the policies that were played, with every score
    agreement: how far what was played agrees with what ran
    view: what tables, picture and page show, the advice among it
    files: what was written, by name; empty if nothing was
    """

    learned: Learned
    recorded: RecordedRun
    comparison: Comparison
    agreement: Agreement
    view: ReplayView
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def advice(self) -> Advice:
        """The policy to try, with its limits, and what to do first."""
        return self.view.advice

    def table(self) -> str:
        """What ran, what would have, and the advice, in 80 columns."""
        return terminal_text(replay_lines(self.view))

    def figure(self, path: Path | str | None = None) -> Figure:
        """What came, executors and waits over time; also written as a PNG, given a path."""
        from penstock.report import replay_figure
        from penstock.report.figure import save_figure

        figure = replay_figure.figure_of(self.view)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "recorded": self.recorded.to_dict(),
            "advice": self.advice.to_dict(),
            "agreement": self.agreement.to_dict(),
            "read": list(self.learned.remarks),
            "not_learnt": list(self.learned.profile.notes),
            **self.comparison.to_dict(),
            "files": {name: str(path) for name, path in self.files.items()},
        }

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        parts = replay_lines(self.view)
        return "".join(p if isinstance(p, str) else p.html() for p in parts[:1])


def replay(
    source: str | Path,
    policies: Sequence[Policy | Named] = POLICIES,
    *,
    query: str | None = None,
    app: str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    slo: float = 30.0,
    minimum: int = 1,
    maximum: int | None = None,
    guards: GivenGuards = "production",
    price: float | None = None,
    late_price: float | None = None,
    period: float | None = None,
    batch_time: float = BATCH_TIME,
    seeds: int | None = None,
    out: Path | str | None = None,
    workers: int | None = 1,
    progress: Progress = lambda done, total: None,
    reading: Progress = lambda done, total: None,
) -> Replay:
    """Play policies on a recorded run: its own demand, and a profile made of it.

    source: a journal, a run's folder, an event log, progress documents or the address of a UI
    policies: by object or name, as in ``compare``
    query: which of several; all of them, on the executors that they share, if left out
    app: the application at an address
    executors, cores, partitions: what it ran on, where a file of progress does not tell
    slo: seconds that the oldest record may wait
    minimum, maximum: executors; twice as many as there were at most, if left out
    guards: what else limits the policies, as in ``compare``
    price, late_price: of an executor for an hour, and of an hour late; as in ``compare``
    period: seconds between decisions; 15, or a minute in recordings of more than a day
    batch_time: seconds that a batch may take of a query without a trigger
    seeds: runs of each policy, each with another draw of what the profile does not know well
    out: the folder under which the run is kept; nothing is written if left out
    workers, progress: as in ``compare``
    reading: told what has been read of the source, and of how much
    """
    if not policies:
        raise InputError("no policies to play; name at least one")
    if out is not None:
        runs.check_writable(Path(out))
    found = read_source(
        source,
        app=app,
        executors=executors,
        cores=cores,
        partitions=partitions,
        progress=reading,
    )
    learned = learn(found, queries=None if query is None else [query])
    seconds = math.floor(learned.seconds)
    if seconds < SHORTEST:
        raise InputError(
            f"{found.source}: lasts {learned.seconds:.0f} s; at least {SHORTEST:.0f} are needed to "
            "play anything on it. Let the query run for longer"
        )
    several = seeds or next(n for longest, n in SEEDS if seconds <= longest)
    every = tuple(range(several))
    sizes = learned.executors.counts
    if maximum is None:
        maximum = max(ROOM * max(sizes), LEAST_ROOM, minimum)
    limits = dataclasses.replace(given_guards(guards), minimum=minimum, maximum=maximum)
    query = "+".join(q.name for q in learned.profile.queries)
    with ExitStack() as stack:
        if out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-")))
        else:
            about = {
                "penstock": __version__,
                "command": "replay",
                "source": str(source),
                "slo": slo,
                "price": price,
                "late_price": late_price,
                "guards": to_json(limits),
                "seeds": list(every),
                "profile": to_json(learned.profile),
            }
            folder = runs.create(Path(out), key_of("replay", query), about)
            runs.point_latest(folder)
        fields = {
            "query": query,
            "workload": "trace",
            "workload_parameters": {"file": str(folder / DEMAND), "kind": "rate"},
            "shared": False,
            "profile": "live",
            "period": period or (15.0 if seconds <= DAY else 60.0),
            "minutes": seconds / 60.0,
            "slo": slo,
            "price": price,
            "late_price": late_price,
            "application": learned.profile,
            "columns": write_demand(learned, folder / DEMAND, seconds),
            "uncertain": several > 1,
            "batch_time": batch_time,
            "guards": limits,
            "start": min(max(1, sizes[0], minimum), limits.maximum),
        }
        cells = cells_of(ProfileCell, policies, fields)
        first = cells[0]
        assert isinstance(first, ProfileCell)
        recorded = recorded_run(found, learned, first)
        cells += [*static_at_peak(cells, every), *_beside(first, recorded, limits)]
        runner.run(cells, every, folder, workers=workers, progress=progress)
        results = Results(cells, every, dict(read_scores(folder)), folder)
        comparison = summarize(results, name=folder.name)
        agreement = _agreement(learned, recorded, results)
        view = _view(learned, recorded, comparison, agreement, first)
        files = {} if out is None else _written(folder, view)
    return Replay(
        learned=learned,
        recorded=recorded,
        comparison=comparison,
        agreement=agreement,
        view=view,
        files=files,
    )


def write_demand(learned: Learned, path: Path, seconds: int) -> dict[str, str]:
    """The recorded demand as a file of rates, a column for each source; columns by source."""
    step = next(step for most, step in STEPS if seconds <= most)
    ends = np.minimum(step * np.arange(math.ceil(seconds / step) + 1), seconds)
    columns, names = [], {}
    for number, source in enumerate(learned.profile.sources):
        demand = learned.demand.get(source)
        if demand is None:
            columns.append(np.zeros(len(ends) - 1))
        else:
            came = np.concatenate(([0.0], np.cumsum(demand.rates * np.diff(demand.edges))))
            columns.append(np.diff(np.interp(ends, demand.edges, came)) / step)
        names[source] = f"source_{number + 1}"
    with atomic(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", *names.values()])
        for row, begin in enumerate(ends[:-1]):
            writer.writerow([f"{learned.start + begin:.3f}", *(f"{c[row]:.6g}" for c in columns)])
    return names


def _beside(first: ProfileCell, recorded: RecordedRun, limits: Guards) -> list[ProfileCell]:
    """What stands beside the policies: the size of now, and the recorded run as it is played."""
    own = Scheduled(recorded.slots)
    least, most = limits.minimum, max(limits.maximum, recorded.largest)
    wide = Guards(minimum=1, maximum=most)
    found = [
        dataclasses.replace(
            first, key="recorded-played", policy="scheduled", policy_parameters={}, own=own,
            label=PLAYED, guards=wide, start=recorded.first,
        )
    ]  # fmt: skip
    if recorded.fixed is not None and least <= recorded.fixed <= limits.maximum:
        found.append(
            dataclasses.replace(
                first, key="static-now", policy="static", own=None, label=NOW,
                policy_parameters={"pools": f"{POOL}={recorded.fixed}"},
            )
        )  # fmt: skip
    header = acted(recorded)
    if header is not None:
        found.append(
            dataclasses.replace(
                first,
                key=RAN,
                policy=header.policy,
                policy_parameters=dict(header.parameters),
                own=None,
                label=f"{header.policy} (ran)",
                guards=header.guards,
                period=header.period or first.period,
                start=recorded.first,
            )
        )
    return found


def _agreement(learned: Learned, recorded: RecordedRun, results: Results) -> Agreement:
    same = same_decisions(recorded)
    played = None
    if any(cell.key == RAN for cell in results.cells):
        played = results.estimate(RAN, "slots_mean").mean
    wait = results.estimate("recorded-played", "latency_p95").mean
    known = recorded.scores.get("latency_p95")
    return Agreement(
        decisions=None if same is None else same[1],
        same=None if same is None else same[0],
        played=played,
        recorded=recorded.scores["slots_mean"],
        behind=None if known is None else (wait, known),
        batches=learned.error,
    )


def _view(
    learned: Learned,
    recorded: RecordedRun,
    comparison: Comparison,
    agreement: Agreement,
    cell: ProfileCell,
) -> ReplayView:
    """All that is shown."""
    rows = [row for group in comparison.groups for row in group.rows]
    group = dataclasses.replace(
        comparison.groups[0],
        rows=(_recorded_row(recorded, cell), *rows),
        title=f"{cell.query}: {units.seconds(learned.seconds)} recorded, {learned.batches} batches",
    )
    return ReplayView(
        title=f"Replay of {cell.query}",
        group=group,
        advice=advised(learned, recorded, comparison, cell),
        agreement=agreement.lines(),
        notes=learned.profile.notes,
        remarks=_remarks(learned),
        seconds=float(cell.seconds),
        slo=cell.slo,
        price=cell.price,
        over_time=_over_time(recorded, comparison, cell),
    )


def _remarks(learned: Learned) -> list[str]:
    demand = learned.demand.values()
    mean, peak = sum(d.mean for d in demand), sum(d.peak for d in demand)
    sizes = ", ".join(map(str, learned.sizes))
    return [
        f"{len(learned.demand)} source(s), mean {units.count(mean)}, peak {units.count(peak)} "
        "records/s",
        f"batches on {sizes} executors",
        *learned.remarks,
    ]


def _recorded_row(recorded: RecordedRun, cell: ProfileCell) -> Row:
    scores = dict(recorded.scores)
    scores[TOTAL_COST] = total_cost(scores, price=cell.price, late_price=cell.late_price)
    figures = {
        name: Estimate(mean=float(value), half_width=None, count=1)
        for name, value in scores.items()
        if value is not None
    }
    return Row(key=RECORDED, label=RECORDED, figures=figures)


def _over_time(recorded: RecordedRun, comparison: Comparison, cell: ProfileCell) -> OverTime:
    """Everybody at the same moments, as many as a picture can show."""
    results = comparison.results
    traces = {
        row.label: results.trace(row.key)
        for group in comparison.groups
        for row in group.rows
        if results.has_trace(row.key) and row.label != PLAYED
    }
    some = next(iter(traces.values()))
    moments = some.time[:: max(1, -(-len(some.time) // POINTS))]
    seconds = np.minimum(moments.astype(int), cell.seconds) - 1
    unit, scale = ("minutes", 60.0) if cell.seconds <= MINUTES else ("hours", 3600.0)

    def at_moments(times: Floats, values: Floats) -> list[float]:
        return [float(v) for v in np.interp(moments, times, values)]

    return OverTime(
        unit=unit,
        time=[float(t) / scale for t in moments],
        offered=at_moments(some.time, some.offered),
        oracle=at_moments(some.time, some.oracle),
        recorded=[float(v) for v in recorded.slots[seconds]],
        recorded_behind=[float(v) for v in recorded.behind[seconds]],
        slots={label: at_moments(t.time, t.slots) for label, t in traces.items()},
        behind={label: at_moments(t.time, t.latency) for label, t in traces.items()},
    )


def _written(folder: Path, view: ReplayView) -> dict[str, Path]:
    """Page, picture and tables of a run that is kept."""
    from penstock.report import replay_figure  # matplotlib takes a second to load

    picture = replay_figure.draw(view, folder / runs.PICTURE)
    config = runs.read_config(folder / runs.CONFIG)
    page = replay_page.write(folder / runs.PAGE, view, config=config)
    tables = folder / "tables.txt"
    write_text(tables, terminal_text(replay_lines(view)))
    return {
        "run": folder, "page": page, "picture": picture, "demand": folder / DEMAND,
        "tables": tables,
    }  # fmt: skip
