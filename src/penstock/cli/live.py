"""The live view: load, throughput, lag, executors and the last decision, in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from penstock.cli import output

if TYPE_CHECKING:
    from rich.console import RenderableType

    from penstock.core.loop import Decision

BLOCKS = "▁▂▃▄▅▆▇█"
POINTS = 48


class LiveView:
    """Redraws in place on a terminal; elsewhere one line per decision on standard error."""

    def __init__(self, title: str, most_slots: int) -> None:
        from rich.live import Live

        self._title = title
        self._most_slots = most_slots
        self._screen = output.console(stderr=True)
        self._status = ""
        self._clock = 0.0
        self._series: dict[str, list[float]] = {
            "load": [],
            "throughput": [],
            "lag": [],
            "slots": [],
        }
        self._last: Decision | None = None
        self._last_change = "none yet"
        self._live = Live(
            self._render(), console=self._screen, refresh_per_second=4, transient=False
        )
        self._terminal = self._screen.is_terminal

    def say(self, message: str) -> None:
        """Show a line of progress."""
        self._status = message
        if self._terminal:
            self._live.update(self._render())
        else:
            output.say(message)

    def watch(self, decision: Decision, clock: float) -> None:
        """Show a decision."""
        seen = decision.seen
        sources = [seen.operators[n] for n in seen.pipeline.sources if n in seen.operators]
        self._clock = clock
        if clock > 0:
            self._status = ""
        self._add("load", sum(o.offered_rate or 0.0 for o in sources))
        self._add("throughput", sum(o.arrival_rate or 0.0 for o in sources))
        self._add("lag", sum(o.lag or 0.0 for o in sources))
        self._add("slots", float(sum(len(slots) for slots in seen.pools.values())))
        self._last = decision
        if decision.changes:
            self._last_change = f"{clock:.0f} s  {decision.explain()}"
        if self._terminal:
            self._live.update(self._render())
        else:
            now = {name: values[-1] for name, values in self._series.items()}
            output.say(
                f"{clock:4.0f} s  load {now['load']:7,.0f}/s  done {now['throughput']:7,.0f}/s  "
                f"lag {now['lag']:9,.0f}  executors {now['slots']:.0f}"
            )
            if decision.changes:
                output.say(f"        {decision.explain()}")

    def __enter__(self) -> Self:
        if self._terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            self._live.stop()

    def _add(self, name: str, value: float) -> None:
        self._series[name].append(value)

    def _render(self) -> RenderableType:
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        rows = Table.grid(padding=(0, 1), expand=True)
        rows.add_column(width=11, no_wrap=True)
        rows.add_column(width=14, justify="right", no_wrap=True)
        rows.add_column(no_wrap=True, overflow="crop", ratio=1)
        top = max([1.0, *self._series["load"], *self._series["throughput"]])
        for name, unit, most, style in (
            ("load", "/s", top, "blue"),
            ("throughput", "/s", top, "green"),
            ("lag", " records", None, "yellow"),
            ("slots", f" of {self._most_slots}", float(self._most_slots), "magenta"),
        ):
            values = self._series[name]
            label = "executors" if name == "slots" else name
            now = f"{values[-1]:,.0f}{unit}" if values else "–"
            rows.add_row(label, now, Text(sparkline(values, most), style=style))
        reason = self._last.proposal.reason if self._last else "waiting for the first batch"
        words = Table.grid(padding=(0, 1), expand=True)
        words.add_column(width=11, no_wrap=True)
        words.add_column(ratio=1)
        words.add_row("last action", Text(self._last_change))
        words.add_row("now", Text(reason))
        words.add_row("", Text(self._status, style="dim"))
        body = Table.grid(expand=True)
        body.add_row(rows)
        body.add_row(words)
        clock = f"{self._clock:.0f} s" if self._series["load"] else "starting"
        return Panel(body, title=Text(self._title), subtitle=Text(clock), title_align="left")


def sparkline(values: list[float], most: float | None = None) -> str:
    """The last values as a row of blocks, the highest as a full one.

    >>> sparkline([0, 1, 2, 4], most=4)
    '▁▃▅█'
    """
    shown = values[-POINTS:]
    top = most if most is not None else max([1.0, *shown])
    last = len(BLOCKS) - 1
    return "".join(BLOCKS[min(last, round(v / top * last))] for v in shown)
