"""What a comparison found: policies in groups, as tables, a picture and a plain document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.comparison.groups import groups
from penstock.comparison.results import Results
from penstock.core.errors import InputError
from penstock.report.bench_tables import FRONT, Group, group_tables
from penstock.report.table import terminal_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The results of an experiment, in groups of policies that saw the same load.

    name: of the experiment
    results: every score of every run
    groups: means with intervals, differences from a base, and the oracle beside them
    files: what was written, by name; empty if nothing was
    """

    name: str
    results: Results
    groups: tuple[Group, ...]
    files: Mapping[str, Path] = field(default_factory=dict)

    def table(self) -> str:
        """The tables in 80 columns: means with intervals, and differences from the base."""
        tables = [table for group in self.groups for table in group_tables(group)]
        return terminal_text([*(part for table in tables for part in (table, "")), FRONT])

    def figure(self, path: Path | str | None = None) -> Figure:
        """Latency against slot-seconds, a panel per group; also written as a PNG, given a path."""
        from penstock.report import bench_figure
        from penstock.report.figure import save_figure

        figure = bench_figure.figure_of(self.groups, title=self.name)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints: groups, policies, scores with intervals, differences, files."""
        return {
            "complete": self.results.complete,
            "seeds": list(self.results.seeds),
            "groups": [group_document(self.results, group) for group in self.groups],
            "files": {name: str(path) for name, path in self.files.items()},
        }

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The tables, for a notebook."""
        tables = (table.html() for group in self.groups for table in group_tables(group))
        return "".join(tables) + f"<p>{FRONT}</p>"


def summarize(results: Results, *, name: str = "", base: str | None = None) -> Comparison:
    """Results in groups; nothing is written.

    base: the policy that others are compared with; the first of each group if left out
    """
    if not results.done:
        raise InputError(
            f"{results.folder or 'this bench'} has no finished run yet; go on with it by "
            "`penstock bench --resume`"
        )
    return Comparison(name=name, results=results, groups=tuple(groups(results, base=base)))


def group_document(results: Results, group: Group) -> dict[str, Any]:
    """One group as ``--json`` prints it."""
    return {
        "title": group.title,
        "oracle": {name: figure.mean for name, figure in group.oracle.items()},
        "policies": [
            {
                **results.cell(row.key).to_dict(),
                "label": row.label,
                "front": row.front,
                "seeds": len(results.seeds_of(row.key)),
                "scores": {
                    name: {"mean": f.mean, "half_width": f.half_width}
                    for name, f in row.figures.items()
                },
            }
            for row in group.rows
        ],
        "base": group.base,
        "differences": [
            {
                "label": row.label,
                "scores": {
                    name: {
                        "mean": d.mean,
                        "half_width": d.half_width,
                        "relative": d.relative,
                        "verdict": d.verdict,
                    }
                    for name, d in row.differences.items()
                },
            }
            for row in group.against
        ],
    }
