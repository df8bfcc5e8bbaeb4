"""One simulated run: every decision of a policy, its figures, its picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import __version__
from penstock.comparison.cell import Cell
from penstock.comparison.runner import Progress
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Loop, State
from penstock.history.journal import Entry, Header
from penstock.report import runs
from penstock.report.build import Finished, finish, finished_document, run_document
from penstock.report.run_tables import decisions_table, summary_table
from penstock.report.runs import Recording, Run
from penstock.report.summary import Summary, summarize
from penstock.report.table import Table, terminal_text
from penstock.simulator import FluidEngine
from penstock.workloads import patterns

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A run that was simulated.

    config: what was run, with every parameter
    header: the policy, its guards and its period, as a journal begins
    entries: every decision with what it was based on
    finished: what was written, if anything was
    """

    config: Mapping[str, Any]
    header: Header
    entries: tuple[Entry, ...]
    finished: Finished | None = None

    @property
    def summary(self) -> Summary:
        """Its figures: slots, lag, latency, actions, what was saved."""
        return summarize(self.header, self.entries)

    @property
    def tables(self) -> tuple[Table, Table]:
        """Its figures, and its last changes."""
        return summary_table(self.summary), decisions_table(self.entries)

    def table(self) -> str:
        """The tables in 80 columns."""
        figures, decisions = self.tables
        return terminal_text([figures, "", decisions])

    def figure(self, path: Path | str | None = None) -> Figure:
        """Load, lag and slots over time; also written as a PNG, given a path."""
        from penstock.report.figure import figure_of, save_figure

        folder = Path() if self.finished is None else self.finished.run.folder
        figure = figure_of(
            Run(folder=folder, config=self.config, header=self.header, entries=self.entries)
        )
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints: figures, changes, and where it is."""
        if self.finished is not None:
            return finished_document(self.finished)
        return run_document(self.summary, self.entries)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The tables, for a notebook."""
        return "".join(table.html() for table in self.tables)


def simulate_cell(
    cell: Cell,
    seed: int,
    *,
    start: int | None = None,
    out: Path | None = None,
    progress: Progress = lambda done, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> Simulation:
    """Run a cell once and keep every decision; see ``penstock.simulate``."""
    spec, pattern, policy = cell.fluid_spec(), cell.pattern(seed), cell.create_policy()
    sizes = start_within(start, cell.guards, spec.start)
    engine = FluidEngine(
        dataclasses.replace(spec, start=sizes), pattern, seconds=cell.seconds, seed=seed
    )
    header = cell.header(policy, seed)
    config = {
        "penstock": __version__,
        "command": "simulate",
        "policy": {"name": cell.policy, **header.parameters},
        "query": cell.query,
        "workload": patterns.describe(pattern),
        "engine": {"name": cell.engine, "profile": cell.profile, "start": sizes, "seed": seed},
        "guards": dataclasses.asdict(cell.guards),
        "seconds": cell.seconds,
        "period": cell.period,
    }
    entries: list[Entry] = []
    kept: Recording | None = None

    def record(decision: Decision, state: State) -> None:
        entries.append(Entry(decision=decision, state=state))
        if kept is not None:
            kept.record(decision, state)
        progress(len(entries), cell.ticks)

    loop = Loop(engine, policy, cell.guards, mode="act", seed=seed, record=record)
    try:
        with ExitStack() as stack:
            if out is not None:
                name = f"{cell.policy}-{cell.query}-{cell.workload}"
                kept = stack.enter_context(runs.recording(out, name, config, header))
            loop.run(period=cell.period, ticks=cell.ticks)
    except KeyboardInterrupt:  # what it leaves behind is a valid run up to there
        if kept is not None and kept.ticks:
            say(f"interrupted; the first {kept.ticks} decisions are in {kept.folder}")
            finish(kept.folder)
        raise
    return Simulation(
        config=config,
        header=header,
        entries=tuple(entries),
        finished=None if kept is None else finish(kept.folder),
    )


def start_within(start: int | None, guards: Guards, own: Mapping[str, int]) -> dict[str, int]:
    """The start size of each pool; it must respect the limits that the guards will hold."""
    most = guards.maximum if guards.cap is None else min(guards.maximum, guards.cap // len(own))
    if most < guards.minimum:
        raise InputError(
            f"cap = {guards.cap} is too small for {len(own)} pools of at least "
            f"{guards.minimum} slots; raise it to {guards.minimum * len(own)} or more"
        )
    if start is None:
        return {pool: min(max(size, guards.minimum), most) for pool, size in own.items()}
    if not guards.minimum <= start <= most:
        raise InputError(f"start = {start} must lie within the limits, {guards.minimum} to {most}")
    return dict.fromkeys(own, start)
