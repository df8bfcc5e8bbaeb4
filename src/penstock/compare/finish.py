"""Finish a bench: everything that can be made from its scores."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.bench.spark.plan import described
from penstock.compare.groups import groups
from penstock.compare.results import Results
from penstock.core.errors import InputError
from penstock.report import runs
from penstock.report.bench_page import Lines
from penstock.report.bench_tables import FRONT, Group, against_table, group_table, markdown
from penstock.report.runs import CELLS

TABLES_TEXT, TABLES_MARKDOWN = "tables.txt", "tables.md"
CHARTS = 24  # groups that are drawn over time
MOST_POINTS = 300  # of a line on the page


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The results of a bench in groups, and the files that were written, by name."""

    results: Results
    groups: tuple[Group, ...]
    files: Mapping[str, Path] = field(default_factory=dict)


def is_bench(folder: Path) -> bool:
    """Whether a folder holds a bench and not a single run."""
    return (folder / CELLS).is_file()


def finish(folder: Path, *, base: str | None = None) -> Finished:
    """Write measurements, tables, picture and page of a bench, complete or not.

    ``base`` the policy that others are compared with; the first of each group if left out.
    """
    from penstock.report import bench_figure, bench_page  # matplotlib takes a second to load

    done = summarize(Results.load(folder), base=base)
    config = _config(folder)
    title = str(config.get("name", folder.resolve().name))
    picture = bench_figure.draw(done.groups, folder / runs.PICTURE, title=title)
    page = bench_page.write(
        folder / runs.PAGE,
        done.groups,
        [_lines(done.results, g) if n < CHARTS else None for n, g in enumerate(done.groups)],
        title=title,
        subtitle=_subtitle(done.results),
        picture=picture,
        config=config,
    )
    tables = folder / TABLES_TEXT
    tables.write_text(_text(done.groups), encoding="utf-8")
    (folder / TABLES_MARKDOWN).write_text(markdown(done.groups), encoding="utf-8")
    metrics = write_metrics(folder, done.results)
    files = {"run": folder, "page": page, "picture": picture, "metrics": metrics, "tables": tables}
    return replace(done, files=files)


def summarize(results: Results, *, base: str | None = None) -> Finished:
    """Results in groups, with differences from a base; nothing is written."""
    if not results.done:
        raise InputError(
            f"{results.folder or 'this bench'} has no finished run yet; go on with it by "
            "`penstock bench --resume`"
        )
    return Finished(results=results, groups=tuple(groups(results, base=base)))


def _config(folder: Path) -> dict[str, Any]:
    path = folder / runs.CONFIG
    return runs.read_config(path) if path.is_file() else {}


def write_metrics(folder: Path, results: Results) -> Path:
    """``metrics.parquet``: one row per cell and seed with all scores; not measured is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(results.rows())
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = ("cell", "query", "workload", "policy")
    kinds = {**dict.fromkeys(texts, pa.string()), "seed": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in names])
    path = folder / runs.METRICS
    partial = path.with_name(path.name + ".part")
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), partial)
    partial.replace(path)
    return path


def document(done: Finished) -> dict[str, Any]:
    """A bench for ``--json``: groups, policies, scores with intervals, differences, files."""
    results = done.results
    return {
        "complete": results.complete,
        "seeds": list(results.seeds),
        "groups": [group_document(results, group) for group in done.groups],
        "files": {name: str(path) for name, path in done.files.items()},
    }


def group_document(results: Results, group: Group) -> dict[str, Any]:
    """One group for ``--json``."""
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


def _subtitle(results: Results) -> str:
    cells, seeds = len(results.cells), len(results.seeds)
    how = described(results.cells[0])
    text = f"{cells} cells × {seeds} seeds, {how}"
    if results.complete:
        return text
    return f"{text}; interrupted after {results.done} of {cells * seeds} runs"


def _text(found: Sequence[Group]) -> str:
    from rich.console import Console

    screen = Console(file=io.StringIO(), width=80, markup=False, emoji=False, highlight=False)
    for group in found:
        screen.print(group_table(group))
        screen.print()
        if group.against:
            screen.print(against_table(group))
            screen.print()
    screen.print(FRONT)
    text: str = screen.file.getvalue()  # type: ignore[attr-defined]
    return text


def _lines(results: Results, group: Group) -> Lines | None:
    """The first seed of a group over time, thinned out; ``None`` where it left no trace."""
    slots, latency = {}, {}
    trace = None
    for row in group.rows:
        if results.has_trace(row.key):
            trace = results.trace(row.key)
            step = max(1, -(-len(trace.time) // MOST_POINTS))
            slots[row.label] = trace.slots[::step].tolist()
            latency[row.label] = trace.latency[::step].tolist()
    if trace is None:
        return None
    return Lines(
        time=(trace.time[::step] / 60.0).tolist(),
        oracle=trace.oracle[::step].tolist(),
        slots=slots,
        latency=latency,
    )
