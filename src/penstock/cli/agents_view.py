"""How a run of agents looks on the terminal: while it runs, and at its end."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from penstock.cli import output
from penstock.cli.live import POINTS, sparkline

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from penstock.lab.agents.pipeline.operators import Pipeline
    from penstock.lab.agents.pipeline.outcome import Outcome, Sample

EVERY = 5.0  # seconds between two lines where there is no terminal


class AgentsView:
    """Redraws in place on a terminal; elsewhere a line every few seconds on standard error."""

    def __init__(self) -> None:
        from rich.live import Live

        self._screen = output.console(stderr=True)
        self._samples: list[Sample] = []
        self._next = 0.0
        self._live = Live(self._render(), console=self._screen, refresh_per_second=4)

    def say(self, message: str) -> None:
        """A line of progress."""
        output.say(message)

    def watch(self, sample: Sample) -> None:
        """Show a look at the run."""
        self._samples.append(sample)
        if self._screen.is_terminal:
            self._live.update(self._render())
        elif sample.time >= self._next:
            self._next = sample.time + EVERY
            sizes = "  ".join(f"{name} {n}" for name, n in sample.instances.items())
            output.say(
                f"{sample.time:4.0f} s  load {sample.offered:7,.0f}/s  "
                f"delivered {sample.delivered:7,.0f}/s  {sizes}"
            )

    def __enter__(self) -> Self:
        if self._screen.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._screen.is_terminal:
            self._live.stop()

    def _render(self) -> RenderableType:
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        rows = Table.grid(padding=(0, 1), expand=True)
        rows.add_column(width=11, no_wrap=True)
        rows.add_column(width=11, justify="right", no_wrap=True)
        rows.add_column(no_wrap=True, overflow="crop", ratio=1)
        for name, values, unit, style in self._series():
            line = Text(sparkline(values), style=style)
            rows.add_row(name, f"{values[-1]:,.0f}{unit}", line)
        clock = f"{self._samples[-1].time:.0f} s" if self._samples else "starting"
        return Panel(rows, title=Text("penstock agents"), subtitle=Text(clock), title_align="left")

    def _series(self) -> Iterator[tuple[str, list[float], str, str]]:
        if self._samples:
            yield "load", [s.offered for s in self._samples], "/s", "blue"
            yield "delivered", [s.delivered for s in self._samples], "/s", "green"
            for name in self._samples[-1].instances:
                values = [float(s.instances[name]) for s in self._samples]
                yield f"operator {name}", values, "", "magenta"


def records_table(outcome: Outcome) -> Table:
    """What became of the records."""
    from penstock.report.style import plain_table

    table = plain_table("Records", "duplicated: came to the sink again, and were dropped there")
    names = ("emitted", "expected", "delivered", "lost", "duplicated", "unexpected")
    for name in names:
        table.add_column(name, justify="right")
    table.add_row(*(f"{getattr(outcome, name):,}" for name in names))
    return table


def operators_table(outcome: Outcome, pipeline: Pipeline) -> Table:
    """Instances over time, per operator."""
    from penstock.report.style import plain_table

    table = plain_table("Instances", "ideal: of most, highest load / (ratio · capacity)")
    table.add_column("operator")
    for name in ("first", "fewest", "most", "ideal", "last"):
        table.add_column(name, justify="right")
    table.add_column("over time")
    factor = 1.0
    for operator in pipeline.operators:
        fewest, most = outcome.span(operator.name)
        ideal = pipeline.high * factor / (operator.policy.ratio * operator.capacity)
        course = [float(sample.instances[operator.name]) for sample in outcome.samples]
        table.add_row(
            operator.name,
            str(operator.instances),
            str(fewest),
            str(most),
            f"{ideal:.1f}",
            f"{course[-1]:.0f}" if course else "–",
            sparkline(course[:: len(course) // POINTS + 1]),
        )
        factor *= operator.selectivity
    return table


def protocol_table(outcome: Outcome) -> Table:
    """What instances did and said."""
    from penstock.report.style import plain_table

    counts = outcome.counts
    table = plain_table("Protocol")
    table.show_header = False
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("duplications", str(outcome.duplications))
    table.add_row("deletions", str(outcome.deletions))
    table.add_row("messages", f"{counts.get('messages', 0):,}")
    table.add_row(
        "messages by the paper's formula", f"{counts.get('messages by the formula', 0):,}"
    )
    for name in sorted(set(counts) - {"messages", "messages by the formula"}):
        if counts[name]:
            table.add_row(name, f"{counts[name]:,}")
    return table
