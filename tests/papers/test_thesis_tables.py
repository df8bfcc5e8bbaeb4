"""Tables, distances from the paper, what improved, the extended sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import pytest
from rich.console import Console

from penstock.comparison.cell import THESIS_GUARDS
from penstock.papers.thesis import (
    accuracy,
    cells,
    convergence,
    experiment,
    extended,
    extended_tables,
    improved,
    published,
)
from penstock.papers.thesis.paper import PAPER
from penstock.papers.thesis.tables import compare
from penstock.report.table import Table
from penstock.simulator import queries
from tests.fakes.thesis_results import made

EVERYTHING = [c for id in published.IDS for c in cells.of_table(id)] + cells.of_improved()
HUGE: Mapping[str, float] = {
    "slots_mean": 78.9,
    "latency_mean": 599.9,
    "latency_p95": 599.9,
    "actions": 27.4,
}


def shown(grid: Table) -> list[str]:
    out = StringIO()
    Console(file=out, width=80, markup=False, highlight=False).print(grid.rich())
    return [line.rstrip() for line in out.getvalue().splitlines()]


def row(lines: list[str], label: str) -> list[str]:
    return next(line for line in lines if line.startswith(label)).split()


class TestCells:
    def test_guards_and_times_are_the_thesiss(self) -> None:
        for cell in EVERYTHING:
            g = cell.guards
            assert (g.minimum, g.maximum, g.cap, g.step_up) == (1, 80, 80, 15)
            assert (g.cool_down, g.sleep, g.tolerance, g.drain) == (300.0, True, 0.0, None)
            assert (cell.period, cell.profile, cell.shared) == (15.0, "restart", False)
            assert cell.minutes == (90.0 if cell.workload == "convergence" else 140.0)

    def test_published_rows_run_with_the_thesiss_faults_and_the_new_ones_without(self) -> None:
        for id in published.IDS:
            for cell in cells.of_table(id):
                assert cell.policy_parameters["strict"] is True
        for cell in cells.of_improved():
            assert cell.policy_parameters == {}

    @pytest.mark.parametrize(
        ("query", "workload", "slots"),
        [
            ("q1", "cosine", 5),
            ("q2", "cosine", 5),
            ("q3", "cosine", 10),
            ("q5", "cosine", 10),
            ("q11", "decreasing", 10),
            ("q1", "increasing", 1),
            ("q11", "increasing", 10),  # Table 7.14 has 30 slots at the beginning
            ("q1", "convergence", 1),
            ("q11", "convergence", 1),
        ],
    )
    def test_start_sizes(self, query: str, workload: str, slots: int) -> None:
        cell = cells.chosen(query, workload, "ds2")
        assert set(cell.fluid_spec().start.values()) == {slots}

    @pytest.mark.parametrize(
        ("query", "low", "high"),
        [("q1", 200e3, 2.2e6), ("q3", 3e3, 33e3), ("q5", 10e3, 110e3), ("q11", 200e3, 2.2e6)],
    )
    def test_cosine_starts_at_the_rates_of_table_7_17(
        self, query: str, low: float, high: float
    ) -> None:
        load = cells.load(query, "cosine")
        quiet = replace(
            cells.cell(query, "cosine", "ds2"), workload_parameters={**load, "noise": 0.0}
        )
        pattern = quiet.pattern(seed=0)
        assert pattern.rate(0.0) == pytest.approx(high)
        assert pattern.rate(1800.0) == pytest.approx(low)
        assert pattern.rate(3600.0) == pytest.approx(high)
        assert pattern.rate(61.0) == pattern.rate(119.0)  # one rate per minute

    def test_random_starts_in_the_middle(self) -> None:
        pattern = cells.chosen("q11", "random", "ds2").pattern(seed=7)
        rates = [pattern.rate(60.0 * minute) for minute in range(140)]
        assert rates[0] == 1.25e6
        assert max(rates) <= 2.5e6
        assert max(abs(b - a) for a, b in pairwise(rates)) <= 500e3

    def test_convergence_has_the_thesiss_stages(self) -> None:
        pattern = cells.chosen("q1", "convergence", "ds2").pattern(seed=0)
        assert pattern.stages == ((600.0, 3000.0, 2e6), (3000.0, 5400.0, 1e6))  # type: ignore[attr-defined]

    def test_a_cell_of_several_tables_runs_once(self) -> None:
        assert len(experiment.all_cells(PAPER.asked(only=("7.1", "7.9")))) == 5 + 4 - 1
        once = {c.key: c for c in experiment.all_cells(PAPER.asked())}
        assert len(once) == 78 + 144
        assert all(once[cell.key] == cell for cell in EVERYTHING)

    def test_shortened(self) -> None:
        (short,) = cells.shortened([cells.cell("q1", "cosine", "ds2")], 5.0)
        assert (short.minutes, short.key) == (5.0, "q1-cosine-ds2")


class TestTables:
    def test_ours_beside_the_papers(self) -> None:
        key = cells.chosen("q1", "cosine", "dhalion").key
        results = made(cells.of_table("7.9"), {key: {"slots_mean": 13.0, "actions": 27.0}})
        lines = shown(compare("7.9", results).compact())
        # label, slots paper, ours ± half, latency paper, ours ± half, p95 both, actions both
        assert row(lines, "Dhalion") == [
            *("Dhalion", "13.2", "13.0", "±0.3", "68.3", "50.0", "±1.0"),
            *("233.3", "200", "27", "27.0"),
        ]
        assert row(lines, "oracle")[2] == "8.0"

    def test_misprints_are_marked_and_explained(self) -> None:
        table = compare("7.9", made(cells.of_table("7.9")))
        assert row(shown(table.compact()), "HPA-CPU")[4] == "8.6*"
        assert "8.6* / 50.0 ±1.0" in table.full().markdown()
        assert any("8.6" in note and "6.4" in note for note in table.notes)

    def test_what_was_not_published_is_run_and_shown(self) -> None:
        lines = shown(compare("7.12", made(cells.of_table("7.12"))).compact())
        assert row(lines, "HPA-Varga")[:3] == ["HPA-Varga", "–", "10.0"]

    @pytest.mark.parametrize("id", published.TABLES)
    def test_fits_80_columns_and_loses_nothing(self, id: str) -> None:
        wild = {c.key: HUGE for c in EVERYTHING}
        ends = {(c.key, s): (0.0, 600.0) for c in EVERYTHING for s in ("latency_mean",)}
        results = made(EVERYTHING, wild, by_seed=ends, seeds=(100, 101))
        table = compare(id, results)
        lines = shown(table.compact())
        assert max(map(len, lines)) <= 80
        assert not any("…" in line for line in lines)
        for line in table.lines:
            assert any(text.startswith(line.label) for text in lines)

    def test_query_comparison_has_an_oracle_per_query(self) -> None:
        table = compare("7.18", made(cells.of_table("7.18")))
        oracles = [line.label for line in table.lines if line.policy == "oracle"]
        assert oracles == ["Q1 oracle", "Q2 oracle", "Q3 oracle", "Q5 oracle", "Q11 oracle"]

    def test_convergence(self) -> None:
        key = cells.chosen("q1", "convergence", "ds2").key
        settled = {(key, "stage2_converged"): (1, 1, 0, 1, 1), (key, "stage2_minutes"): (
            10, 12, 39, 12, 14
        ), (key, "stage2_actions"): (2, 3, 8, 3, 4)}  # fmt: skip
        results = made(cells.of_table("7.19"), by_seed=settled)
        line = next(x for x in shown(convergence.table(results)) if x.startswith("Q1 DS2"))
        # Of those that came to rest: (10 + 12 + 12 + 14) / 4 and (2 + 3 + 3 + 4) / 4.
        assert "11 min, 3" in line and "80 %: 12.0 min, 3.0" in line
        assert max(map(len, shown(convergence.table(results)))) <= 80
        document = convergence.document(results)["rows"][1]
        assert document["ours"][1]["converged"] == pytest.approx(0.8)
        assert document["paper"][0] == {"converged": False, "minutes": None, "actions": None}


class TestAccuracy:
    def test_distances_by_hand(self) -> None:
        """Table 7.3: slots 6.5, 9.4, 10.3 and latencies 311.8, 39.4, 11.7 in the paper."""
        ours = {
            1.0: {"slots_mean": 13.0, "latency_mean": 155.9},  # + 100 %, factor 2
            1.2: {"slots_mean": 9.4, "latency_mean": 39.4},  # the same
            1.4: {"slots_mean": 11.33, "latency_mean": 35.1},  # + 10 %, factor 3
        }
        figures = {
            cells.cell("q1", "cosine", "ds2", v, strict=True).key: f for v, f in ours.items()
        }
        table = compare("7.3", made(cells.of_table("7.3"), figures))
        found = {a.figure: a for a in accuracy.accuracy([table])}
        slots, latency = found["slots_mean"], found["latency_mean"]
        assert slots.median == pytest.approx(0.1) and slots.near == pytest.approx(2 / 3)
        assert latency.median == pytest.approx(2.0)
        assert latency.worst == "q1-cosine-ds2-1.4" and latency.farthest == pytest.approx(3.0)

    def test_cells_count_once_and_misprints_do_not(self) -> None:
        tables = [compare(id, made(EVERYTHING)) for id in published.TABLES]
        found = {a.figure: a.cells for a in accuracy.accuracy(tables)}
        assert found["slots_mean"] == 63  # 32 + 20 + 11: swept, workloads, other queries
        assert found["latency_mean"] == 63 and found["latency_p95"] == 62
        assert max(map(len, shown(accuracy.grid(accuracy.accuracy(tables))))) <= 80

    def test_mismatches_are_those_that_are_far(self) -> None:
        key = cells.cell("q1", "cosine", "ds2", 1.0, strict=True).key
        exact = {
            cells.of_row(r).key: {str(name): value for name, value in r.figures.items()}
            for r in published.TABLES["7.3"].rows
        }
        results = made(cells.of_table("7.3"), {**exact, key: {**exact[key], "slots_mean": 9.0}})
        grid = accuracy.mismatches([compare("7.3", results)])
        assert [r[:2] for r in grid.rows] == [("7.3 DS2 1.0", "6.5 / 9.0 ±0.2")]


class TestImproved:
    SCENE = ("q1", "cosine")

    def judged(self, latency: float, slots: float) -> str:
        """Of hpa+, against 50 s and 84,000 slot-seconds."""
        new = cells.cell(*self.SCENE, "hpa+").key
        figures = {new: {"latency_mean": latency, "slot_seconds": slots}}
        results = made(cells.of_improved(), figures)
        return improved.duel(results, *self.SCENE, "hpa+", "hpa-cpu").judgement

    @pytest.mark.parametrize(
        ("latency", "slots", "judgement"),
        [
            (40.0, 80e3, "dominates"),
            (40.0, 84e3, "dominates"),
            (50.0, 80e3, "dominates"),
            (50.0, 84e3, "tie"),
            (40.0, 90e3, "trade-off"),
            (60.0, 80e3, "trade-off"),
            (60.0, 84e3, "dominated"),
            (60.0, 90e3, "dominated"),
        ],
    )
    def test_judgement(self, latency: float, slots: float, judgement: str) -> None:
        assert self.judged(latency, slots) == judgement

    def test_counts_over_all_cells(self) -> None:
        better = {c.key: {"latency_mean": 20.0} for c in EVERYTHING if c.policy == "ds2+"}
        duels = improved.duels(made(cells.of_improved(), better))
        counts = improved.counts(duels)
        assert len(duels) == 3 * 6 * 4
        assert counts["ds2+"] == {"dominates": 24} and counts["hpa+"] == {"tie": 24}
        for grid in (improved.summary(duels), improved.compact(duels)):
            assert max(map(len, shown(grid))) <= 80
        assert "-60 %" in "\n".join(shown(improved.compact(duels)))
        assert improved.document(duels, 5)["counts"]["ds2+"] == {"dominates": 24}


class TestExtended:
    @pytest.mark.parametrize("section", extended.SECTIONS, ids=lambda s: s.name)
    def test_cells_can_be_built(self, section: extended.Section) -> None:
        found = section.cells()
        keys = [cell.key for cell in found]
        assert len(set(keys)) == len(keys)
        for cell in found[:: max(1, len(found) // 10)]:
            assert cell.fluid_spec().start
            assert cell.pattern(seed=1).offered(60.0) >= 0.0

    @pytest.mark.parametrize(
        "section", [s for s in extended.SECTIONS if s.name != "optimum"], ids=lambda s: s.name
    )
    def test_tables_fit_80_columns(self, section: extended.Section) -> None:
        more = EVERYTHING if section.main else []
        grids = section.tables(made([*more, *section.cells()]))
        assert grids
        for grid in grids:
            assert len(grid.rows) > 1
            assert max(map(len, shown(grid))) <= 80

    def test_distance_from_the_optimum(self) -> None:
        (section,) = (s for s in extended.SECTIONS if s.name == "optimum")
        some = [c for c in section.cells() if c.query == "q2" and c.key.endswith("low")]
        best = extended_tables.optimum("q2", 1e6, (100, 101))
        grids = section.tables(
            made(some, {c.key: {"slots_mean": 2.0 * sum(best.values())} for c in some})
        )
        assert len(grids) == 1
        assert {r[2] for r in grids[0].rows} == {"+100 %"}

    def test_the_limit_is_all_that_differs(self) -> None:
        pairs = extended.no_step_limit()
        for limited, free in zip(pairs[::2], pairs[1::2], strict=True):
            assert limited.guards == THESIS_GUARDS
            assert replace(free, key=limited.key, guards=THESIS_GUARDS) == limited
            assert free.guards == replace(THESIS_GUARDS, step_up=None)

    def test_a_hot_key_limits_the_capacity(self) -> None:
        for query, operator in extended.KEYED.items():
            shares = extended.hot_shares(query, operator)
            assert shares["none"] == 0.0 < shares["30"] < shares["70"] < 1.0


class TestOptimum:
    def test_is_never_below_the_need(self) -> None:
        found = extended_tables.optimum("q1", 1e6, (100,), seconds=1200)
        need = queries.create("q1").spec.fewest_slots({"source": 1e6})
        assert all(found[pool] >= slots for pool, slots in need.items())
        assert sum(found.values()) <= sum(need.values()) + len(need)

    def test_keeps_up(self) -> None:
        spec = queries.create("q1").spec
        plenty = dict.fromkeys(spec.start, 20)
        assert extended_tables.keeps_up(spec, plenty, 1e6, (100,), 600)
        assert not extended_tables.keeps_up(spec, {**plenty, "map": 1}, 1e6, (100,), 600)
