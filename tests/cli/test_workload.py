"""``penstock workload``: pictures in a terminal and a file, figures, exit codes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.app import build
from penstock.cli.workload import workload
from penstock.core.errors import InputError
from penstock.report.workload_figure import terminal_chart
from penstock.workloads.patterns import PATTERNS, Constant, Convergence, Cosine, Spikes, create
from penstock.workloads.sampling import sample

BRAILLE = range(0x2801, 0x2900)
Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    app = build({})
    app.add_typer(workload, name="workload")

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["workload", *arguments])

    return invoke


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def rows_of(chart: str) -> list[str]:
    """The lines of a chart with dots, from the top; the axis cut off."""
    lines = [line for line in chart.split("\n") if "┤" in line or "│" in line]
    return [line.replace("│", "┤").partition("┤")[2] for line in lines]


class TestList:
    def test_all_names_with_one_line_each(self, run: Run) -> None:
        lines = run("list").stdout.splitlines()
        assert [line.split()[0] for line in lines[: len(PATTERNS)]] == list(PATTERNS)
        assert max(map(len, lines)) <= 80
        assert all(len(line.split()) > 3 for line in lines[: len(PATTERNS)])

    def test_json(self, run: Run) -> None:
        found = {d["name"]: d["parameters"] for d in document(run("list", "--json"))}
        assert set(found) == set(PATTERNS)
        assert found["random"]["change"] == 500e3
        assert "stamp" not in found["trace"]


class TestShow:
    @pytest.mark.parametrize("name", PATTERNS)
    def test_fits_into_80_columns_and_writes_nothing(
        self, name: str, run: Run, tmp_path: Path
    ) -> None:
        result = run("show", name)
        assert result.exit_code == 0
        assert max(map(len, result.stdout.splitlines())) <= 80
        assert any(ord(sign) in BRAILLE for sign in result.stdout)
        for word in ("records/s", "time (", "mean", "peak to mean", "total", "duration"):
            assert word in result.stdout
        assert list(tmp_path.iterdir()) == []

    def test_figures(self, run: Run) -> None:
        out = run(
            "show",
            "step",
            "--workload-set",
            "high=4e3",
            "--workload-set",
            "at=300",
            "--minutes",
            "10",
        ).stdout
        table = [" ".join(line.split()) for line in out.splitlines()]
        for line in (
            "mean 2.5k records/s",
            "lowest 1k records/s",
            "highest 4k records/s",
            "peak to mean 1.60",
            "total 1.5M records",
            "duration 10:00",
        ):
            assert line in table

    def test_the_parameters_are_shown_as_they_are_set(self, run: Run) -> None:
        out = run("show", "cosine", "--workload-set", "from_high=true", "--seed", "3").stdout
        assert "low=200000 high=2200000" in out and "from_high=true" in out and "seed=3" in out

    def test_the_length_is_the_workload_s_own(self, run: Run) -> None:
        def seconds(*arguments: str) -> float:
            return float(document(run("show", *arguments, "--json"))["figures"]["seconds"])

        assert seconds("convergence") == 5400
        assert seconds("trace") == 172_800
        assert seconds("random") == 8400
        assert seconds("random", "--workload-set", "minute=3") == 420
        assert seconds("random", "--minutes", "7") == 420

    def test_json(self, run: Run) -> None:
        found = document(run("show", "random", "--seed", "5", "--json"))
        load = create("random", seed=5)
        assert found["workload"] == {
            "name": "random", "start": 1.25e6, "change": 5e5, "maximum": 2.5e6,
            "minute": 60.0, "seed": 5,
        }  # fmt: skip
        assert found["every"] == 60.0 and found["picture"] is None
        assert found["rates"] == pytest.approx([load.rate(60.0 * k) for k in range(140)])
        assert found["figures"]["total"] == pytest.approx(load.offered(8400.0))
        assert found["seeds"][0]["figures"] == found["figures"]

    def test_several_seeds(self, run: Run) -> None:
        found = document(run("show", "spikes", "--seed", "3", "--seeds", "4", "--json"))
        assert [s["seed"] for s in found["seeds"]] == [3, 4, 5, 6]
        totals = [create("spikes", seed=s).offered(8400.0) for s in (3, 4, 5, 6)]
        assert [s["figures"]["total"] for s in found["seeds"]] == pytest.approx(totals)
        assert found["figures"]["total"] == pytest.approx(sum(totals) / 4)
        out = run("show", "spikes", "--workload-set", "seed=3", "--seeds", "4").stdout
        assert "lowest, mean and highest of 4 seeds" in out
        assert max(map(len, out.splitlines())) <= 80

    @pytest.mark.parametrize("seeds", ["1", "3"])
    def test_a_picture_where_it_is_asked_for(self, seeds: str, run: Run, tmp_path: Path) -> None:
        result = run("show", "random", "--seeds", seeds, "--picture", "load.png", "--json")
        assert document(result)["picture"] == "load.png"
        assert "load.png" in result.stderr
        data = (tmp_path / "load.png").read_bytes()
        assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24]) == (1600, 700)
        assert [p.name for p in tmp_path.iterdir()] == ["load.png"]

    def test_a_picture_of_nothing_and_of_a_long_trace(self, run: Run, tmp_path: Path) -> None:
        assert (
            run("show", "constant", "--workload-set", "rps=0", "--picture", "none.png").exit_code
            == 0
        )
        assert (
            run("show", "trace", "--workload-set", "file=nasa", "--picture", "long.png").exit_code
            == 0
        )
        assert {p.name for p in tmp_path.iterdir()} == {"none.png", "long.png"}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["cosin"], "did you mean 'cosine'"),
            (["cosine", "--workload-set", "lo=1"], "unknown parameter of workload cosine 'lo'"),
            (["cosine", "--workload-set", "low"], "must look like KEY=VALUE"),
            (["cosine", "--workload-set", "low=-1"], "low = -1.0 must be"),
            (["cosine", "--minutes", "0"], "--minutes 0 must be"),
            (["cosine", "--minutes", "nan"], "--minutes nan must be"),
            (["cosine", "--minutes", "1e12"], "cannot be drawn"),
            (
                ["random", "--minutes", "1e5", "--workload-set", "minute=0.1", "--json"],
                "take a shorter part",
            ),
            (["random", "--seed", "-1"], "seed = -1 must be"),
            (["random", "--seeds", "0"], "--seeds 0 must lie between 1 and 100"),
            (["constant", "--seeds", "2"], "constant draws nothing at random"),
            (["cosine", "--picture", "load.jpg"], "--picture load.jpg must end in .png"),
            (["cosine", "--picture", "no/load.png"], "there is no folder no"),
            (["trace", "--workload-set", "file=none.csv"], "'none.csv' cannot be read"),
            (
                ["trace", "--workload-set", "file=gap.csv", "--workload-set", "fill=none"],
                "gap.csv: 1 rows are missing.*fill=zero",
            ),
        ],
    )
    def test_bad_input_is_2_and_writes_nothing(
        self, arguments: list[str], message: str, run: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "gap.csv").write_text("time,count\n0,1\n60,1\n180,1\n")
        out = [] if "--picture" in arguments else ["--picture", "load.png"]
        result = run("show", *arguments, *out)
        with pytest.raises(InputError, match=message) as caught:
            raise result.exception or AssertionError(result.output)
        assert caught.value.exit_code == 2
        assert result.stdout == ""
        assert [p.name for p in tmp_path.iterdir()] == ["gap.csv"]


class TestChart:
    def test_a_constant_at_the_top_is_one_line_of_dots_at_the_top(self) -> None:
        rows = rows_of(terminal_chart([sample(Constant(rps=2000), 600.0)]))
        assert set(rows[0]) == {"⠉"}
        assert not any(row.strip() for row in rows[1:])

    def test_nothing_is_a_line_at_the_bottom(self) -> None:
        rows = rows_of(terminal_chart([sample(Constant(rps=0), 600.0)]))
        assert set(rows[-1]) == {"⣀"}
        assert not any(row.strip() for row in rows[:-1])

    def test_the_axis_is_labelled_from_0_to_a_round_top(self) -> None:
        chart = terminal_chart([sample(Cosine(), 8400.0)])
        labels = [line.partition("┤")[0].strip() for line in chart.split("\n") if "┤" in line]
        assert labels == ["2.4M", "1.8M", "1.2M", "600k", "0"]
        assert "time (minutes)" in chart
        assert chart.split("\n")[-2].split() == [str(m) for m in range(0, 141, 20)]

    def test_stages_stand_where_they_belong(self) -> None:
        rows = rows_of(terminal_chart([sample(Convergence(), 5400.0)]))
        width = len(rows[0].rstrip()) * 90 / 50  # the first stage ends at minute 50
        assert width == pytest.approx(74, abs=2)
        assert rows[-1].rstrip() == "⣀" * round(74 * 10 / 90) + rows[-1].rstrip()[-1]

    def test_a_spike_of_a_second_in_a_week_is_seen(self) -> None:
        load = Spikes(base=10, height=10, spacing=3e5, length=1, seed=1)
        one = sample(load, 7 * 86400.0)
        assert one.figures.highest > 50  # there is one
        rows = rows_of(terminal_chart([one]))
        assert any(sign != " " for sign in rows[3])

    @pytest.mark.parametrize("columns", [40, 61, 80])
    @pytest.mark.parametrize("seconds", [1.0, 45.0, 301.0, 50_000.0, 4e7, 1e9])
    def test_any_length_fits_any_width(self, columns: int, seconds: float) -> None:
        lines = terminal_chart([sample(Cosine(), seconds)], columns).split("\n")
        assert max(map(len, lines)) <= columns
        assert any(unit in lines[-1] for unit in ("seconds", "minutes", "hours", "days"))
