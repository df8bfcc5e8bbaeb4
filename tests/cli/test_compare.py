"""``penstock compare``: policies side by side, paired by seed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.app import build
from penstock.cli.bench import bench
from penstock.cli.compare import compare
from penstock.comparison.results import Results
from penstock.core.errors import InputError

SHORT = ("--minutes", "10", "--seeds", "3", "--workers", "1")


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def shell(*arguments: str) -> Result:
    app = build({"compare": compare, "bench": bench})
    return CliRunner().invoke(app, ["compare", *arguments])


def printed(result: Result) -> Any:
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def test_policies_on_one_load() -> None:
    done = shell("--policies", "ds2,static:slots=30,ds2:over_provisioning=1.2", *SHORT)
    assert done.exit_code == 0, done.exception
    assert "against ds2" in done.stdout and "static 30" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "runs/" not in line)
    (row,) = re.findall(r"^ds2 1\.2 .*tie.*$", done.stdout, re.MULTILINE)
    assert row.count("tie") == 4  # 1.2 is the default: the same policy, run by run
    folder = Path("runs/latest").resolve()
    assert (folder / "report.png").is_file() and "picture" in done.stdout
    assert Results.load(folder).complete


def test_differences_are_paired_by_seed() -> None:
    document = printed(shell("--policies", "ds2,static:slots=25", "--json", "--no-save", *SHORT))
    (group,) = document["groups"]
    (row, _) = group["differences"]
    ds2, static, _ = (p["scores"]["slots_mean"]["mean"] for p in group["policies"])
    difference = row["scores"]["slots_mean"]
    assert difference["mean"] == pytest.approx(static - ds2)
    assert difference["relative"] == pytest.approx((static - ds2) / ds2)
    assert difference["verdict"] == "higher"
    assert document["files"] == {} and not Path("runs").exists()


def test_the_base_can_be_chosen() -> None:
    done = shell("--policies", "ds2,hpa-cpu", "--base", "hpa-cpu", "--json", "--no-save", *SHORT)
    (group,) = printed(done)["groups"]
    assert group["base"] == "hpa-cpu" and {d["label"] for d in group["differences"]} == {
        "ds2",
        "static (peak)",
    }


def test_a_trace_of_ones_own() -> None:
    rows = "\n".join(f"2026-01-01T00:{m:02}:00,{500 + 300 * (m % 5)}" for m in range(15))
    Path("last_week.csv").write_text(f"time,count\n{rows}\n")
    done = shell(
        "--policies", "ds2,static:slots=8", "--workload", "trace",
        "--workload-set", "file=last_week.csv", "--query", "q3", "--shared",
        "--seeds", "2", "--workers", "1", "--json", "--no-save",
    )  # fmt: skip
    (group,) = printed(done)["groups"]
    assert "q3, one pool · trace, file last_week" in group["title"]
    assert group["policies"][0]["minutes"] == 15.0


def test_recorded_traffic_is_told_and_not_rescaled() -> None:
    rows = "\n".join(f"{1_700_000_000_000 + 60_000 * m};{1000 * (m % 3)}" for m in range(12))
    Path("week.csv").write_text(f"time;total bids\n{rows}\n")
    run = ("--policies", "ds2,static:slots=8", "--trace", "week.csv", "--value-column",
           "total bids", "--as", "rate", "--json", "--no-save", "--seeds", "2",
           "--workers", "1")  # fmt: skip
    done = shell(*run)
    (group,) = printed(done)["groups"]
    assert group["policies"][0]["minutes"] == 12.0
    assert "epoch milliseconds" in done.stderr and "semicolons" in done.stderr
    assert "mean 1,000 records/s, peak 2,000 records/s; nothing is rescaled" in done.stderr
    assert "scale" not in group["title"]
    scaled = shell(*run, "--scale", "p100=4000", "--start-time", "1700000180")
    (group,) = printed(scaled)["groups"]
    assert "scale 2" in group["title"] and group["policies"][0]["minutes"] == 9.0
    assert "mean 2,000 records/s, peak 4,000 records/s; scaled by 2" in scaled.stderr


def test_a_finished_bench_can_be_looked_at_again() -> None:
    assert shell("--policies", "ds2,hpa-cpu", *SHORT).exit_code == 0
    first = printed(shell("latest", "--json"))
    assert first["groups"][0]["base"] == "ds2"
    turned = printed(shell(str(Path("runs/latest").resolve()), "--base", "hpa-cpu", "--json"))
    a = first["groups"][0]["differences"][0]["scores"]["latency_mean"]
    b = turned["groups"][0]["differences"][0]["scores"]["latency_mean"]
    assert a["mean"] == pytest.approx(-b["mean"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give either"),
        (("latest", "--policies", "ds2"), "give either"),
        (("latest",), "no run"),
        (("--policies", "ds3"), "unknown policy 'ds3'"),
        (("--policies", "ds2,ds2"), "'ds2' twice"),
        (("--policies", "ds2:fast"), "must look like KEY=VALUE"),
        (("--policies", "ds2:over_provisioning=x"), "is not a float"),
        (("--policies", "ds2", "--base", "hpa-cpu"), "no policy 'hpa-cpu' to compare with"),
        (("--policies", "ds2", "--query", "q9"), "unknown query 'q9'"),
        (("--policies", "ds2", "--workload", "wave"), "unknown workload 'wave'"),
        (("--policies", "ds2", "--workload-set", "low=-1"), "low = -1"),
        (("--policies", "ds2", "--guards", "hard"), "unknown guards 'hard'"),
        (("--policies", "ds2", "--seeds", "0"), "seeds = 0"),
        (("--policies", "ds2", "--start", "99"), "start = 99"),
        (("--policies", "ds2", "--workload", "trace", "--workload-set", "file=no.csv"), "no.csv"),
        (("--policies", "ds2", "--trace", "no.csv"), "no.csv"),
        (("--policies", "ds2", "--as", "rate"), "--as goes with recorded traffic"),
        (("--policies", "ds2", "--start-time", "9"), "--start-time goes with recorded traffic"),
        (("--policies", "ds2", "--trace", "x", "--workload-set", "a=1"), "--workload-set goes"),
    ],
)
def test_bad_input_writes_nothing(arguments: tuple[str, ...], words: str) -> None:
    done = shell(*arguments)
    assert isinstance(done.exception, InputError)
    assert words in str(done.exception)
    assert not Path("runs").exists()


def test_the_forecast_error_of_a_policy_that_forecasts_is_printed() -> None:
    arguments = ("--minutes", "60", "--seeds", "2", "--workers", "1", "--no-save")
    done = shell("--policies", "ds2,proactive", *arguments)
    assert done.exit_code == 0, done.exception
    (error,) = re.findall(r"forecast error of proactive: (\S+) ±\S+", done.stdout)
    assert 0 < float(error) < 1
    assert "forecast error of ds2" not in done.stdout
