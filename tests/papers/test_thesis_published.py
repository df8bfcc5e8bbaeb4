"""The published tables, against figures read from the print."""

from __future__ import annotations

import pytest

from penstock.papers.thesis import published
from penstock.papers.thesis.published import FIGURES, TABLES


def figures(id: str, label: str) -> list[float]:
    (row,) = (row for row in TABLES[id].rows if TABLES[id].label(row) == label)
    return [row.figures[name] for name in FIGURES]


@pytest.mark.parametrize(
    ("id", "label", "printed"),
    [
        ("7.1", "Dhalion 1.15", [15.4, 32, 20.1, 3.6, 80.1, 27]),
        ("7.2", "Dhalion 1.3", [30.9, 73, 145.3, 90.2, 388.6, 27]),
        ("7.3", "DS2 1.0", [6.5, 15, 311.8, 317.5, 554.6, 23]),
        ("7.4", "DS2 1.4", [15.8, 33, 160, 137.2, 405.5, 26]),
        ("7.5", "HPA-Varga 0.6", [9.6, 17, 12, 3.2, 42.6, 26]),
        ("7.6", "HPA-Varga 0.7", [26.5, 69, 219.3, 244.1, 379.8, 26]),
        ("7.7", "HPA-CPU 1.0", [4.3, 15, 327.7, 377.9, 60.6, 3]),
        ("7.8", "HPA-CPU 0.9", [8.8, 30, 296, 328.9, 539.9, 20]),
        ("7.9", "HPA-CPU", [11.4, 21, 8.6, 0.018, 35.8, 26]),
        ("7.10", "Dhalion", [22.8, 51, 130.7, 60, 353.3, 27]),
        ("7.11", "HPA-Varga", [10.4, 31, 51.4, 24.5, 215.3, 26]),
        ("7.12", "DS2", [14.8, 32, 295.8, 341.3, 611.8, 26]),
        ("7.13", "DS2", [9.1, 15, 30, 0.033, 158, 13]),
        ("7.14", "HPA-CPU", [17.7, 44, 125.5, 117.3, 324.5, 26]),
        ("7.15", "HPA-CPU", [13.7, 23, 6.4, 0.017, 36.8, 21]),
        ("7.16", "HPA-CPU", [23.8, 49, 107.9, 40.4, 323.6, 23]),
        ("7.18", "Q2 DS2", [8.9, 15, 40.5, 36.3, 122.2, 21]),
        ("7.18", "Q3 Dhalion", [16.1, 50, 1.7, 0.015, 14.3, 27]),
        ("7.18", "Q5 DS2", [23.2, 68, 81, 53.9, 245.9, 26]),
    ],
)
def test_printed_figures(id: str, label: str, printed: list[float]) -> None:
    assert figures(id, label) == printed


def test_every_table_but_the_rates_is_there() -> None:
    assert list(published.IDS) == [f"7.{n}" for n in range(1, 20) if n != 17]
    assert [len(t.rows) for t in TABLES.values()] == [
        *(5, 5, 3, 3, 3, 3, 6, 6),
        *(4, 4, 4, 4, 4, 4, 4, 4, 20),
    ]


def test_what_was_not_run_stays_missing() -> None:
    missing = {(t.id, t.label(r)) for t in TABLES.values() for r in t.rows if not r.figures}
    assert missing == {
        ("7.6", "HPA-Varga 0.6"),
        ("7.6", "HPA-Varga 0.8"),
        ("7.12", "HPA-Varga"),
        ("7.14", "HPA-Varga"),
        ("7.16", "Dhalion"),
        ("7.16", "HPA-Varga"),
        ("7.18", "Q3 DS2"),
    }
    partly = [r for t in TABLES.values() for r in t.rows if 0 < len(r.figures) < len(FIGURES)]
    assert partly == []


def test_cells_that_are_printed_twice_agree_but_for_the_misprints() -> None:
    """The swept tables come first; 7.9, 7.10 and 7.18 print some of their rows again."""
    first: dict[tuple[str, str, str, float], published.Row] = {}
    for table in TABLES.values():
        for row in table.rows:
            where = (row.query, row.workload, row.policy, row.value)
            before = first.setdefault(where, row)
            differing = {f for f in row.figures if row.figures[f] != before.figures[f]}
            assert differing == set(row.misprints if row is not before else ())


def test_misprints_are_noted_beside_the_figure_as_printed() -> None:
    noted = {
        (table.id, table.label(row), figure, row.figures[figure])
        for table in TABLES.values()
        for row in table.rows
        for figure in row.misprints
    }
    assert noted == {
        ("7.7", "HPA-CPU 1.0", "latency_p95", 60.6),
        ("7.9", "HPA-CPU", "latency_mean", 8.6),
        ("7.9", "HPA-Varga", "latency_mean", 17.0),
        ("7.18", "Q1 HPA-CPU", "latency_mean", 8.6),
        ("7.18", "Q1 HPA-Varga", "latency_mean", 17.0),
    }


def test_figures_are_consistent_in_themselves() -> None:
    for table in TABLES.values():
        for row in table.rows:
            if not row.figures:
                continue
            assert row.figures["slots_mean"] <= row.figures["slots_max"]
            if "latency_p95" not in row.misprints:
                assert row.figures["latency_p50"] <= row.figures["latency_p95"]


def test_only_two_came_to_rest() -> None:
    rested = {
        (row.query, row.policy, number): (stage.minutes, stage.actions)
        for row in published.CONVERGENCE
        for number, stage in enumerate(row.stages, 1)
        if stage.minutes is not None
    }
    assert rested == {("q1", "ds2", 2): (11, 3), ("q1", "hpa-cpu", 2): (9, 2)}
    assert [(r.query, r.policy) for r in published.CONVERGENCE if not r.stages] == [
        ("q11", "dhalion"),
        ("q11", "hpa-varga"),
    ]
