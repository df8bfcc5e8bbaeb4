"""The papers on far nodes on real Spark: what is made of measurements, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from penstock.batches.values import Batch
from penstock.core.errors import InputError, MissingError
from penstock.lab.sites import requirements
from penstock.papers import harness
from penstock.papers.geo.spark import paper as geo
from penstock.papers.geo.spark.conditions import CONDITIONS, MOST, SparkCondition
from penstock.papers.geo.spark.levels import Climb, ClimbOutcome, ClimbOutcomes, Level
from penstock.papers.gesscale.simulated.published import NAMES
from penstock.papers.gesscale.spark import paper as gesscale
from penstock.papers.gesscale.spark import setup, taxi
from penstock.papers.gesscale.spark.findings import judge
from penstock.papers.gesscale.spark.taxi import TaxiOutcomes
from penstock.papers.running import RunFolder
from penstock.workloads.patterns import Constant
from tests.fakes.paper_commands import invoke

ONCE = gesscale.PAPER.asked(seeds=1, first_seed=5)


@pytest.fixture(autouse=True)
def _sites_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "choose", lambda wanted, *, jitter: "tun")


def level(slots: int, rate: float, **known: Any) -> Level:
    return Level(
        slots=slots,
        site=f"near-{slots}",
        delay=0.0,
        rate=rate,
        least=0.9 * rate,
        most=1.2 * rate,
        batches=4,
        busy=(0.5, 0.9),
        cpu=0.8,
        waits=0.1,
        skew=1.5,
        **known,
    )


def measured(first: float, gain: float, most: int, *, plus: float, simple: float) -> Climb:
    """Each further executor adds ``gain`` of the first; predictions are off by so much."""
    levels = []
    for slots in range(1, most + 1):
        rate = first * (1.0 + gain * (slots - 1))
        known = {
            "gesscale": (1.0 + simple) * rate,
            "plus": (1.0 + plus) * rate,
            "plus_width": 0.05 * rate,
        }
        levels.append(level(slots, rate, **(known if slots > 1 else {})))
    return Climb(levels=tuple(levels), off=0.4)


class TestLevels:
    def outcomes(self, climb: Climb, condition: SparkCondition) -> ClimbOutcomes:
        return ClimbOutcomes(runs=(ClimbOutcome(key=condition.key, seed=0, climb=climb),))

    def test_what_levels_say_together(self) -> None:
        condition = SparkCondition(job="map")
        climb = measured(100.0, 0.9, MOST, plus=-0.02, simple=0.1)
        found = self.outcomes(climb, condition)
        assert found.gain(condition) == pytest.approx(0.9)
        assert found.error(condition, "gesscale+") == pytest.approx(0.02)
        assert found.errors(condition, "gesscale", 3) == [pytest.approx(0.1)]
        assert len(found.errors(condition, "gesscale")) == MOST - 1  # the first was not foretold
        assert found.inside(condition) == 1.0

    def test_a_level_far_from_its_interval_is_not_inside(self) -> None:
        condition = SparkCondition(job="map")
        climb = measured(100.0, 0.9, MOST, plus=-0.2, simple=0.1)
        assert self.outcomes(climb, condition).inside(condition) == 0.0

    def test_far_sites_are_late_and_used_last(self) -> None:
        spec = SparkCondition(job="id-id", delay=0.025, jitter=0.01).sites()
        assert len(spec.sites) == MOST == spec.slots
        assert [spec[name].delay for name in spec.nearest(MOST)] == [0.0] * 3 + [0.025] * 3
        assert {site.jitter for site in spec.sites if site.delay} == {0.01}

    @pytest.mark.parametrize("condition", CONDITIONS, ids=lambda c: c.key)
    def test_batches_hold_whole_windows(self, condition: SparkCondition) -> None:
        job = condition.pipeline(seed=1)
        assert condition.rows % job.cycle == 0


class TestGeoOnSpark:
    @pytest.fixture
    def climbs(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Instead of Spark; the jobs that were asked for."""
        asked: list[str] = []

        def climb(spec: Any, job: Any, rows: int, *, most: int, seed: int, say: Any) -> Climb:
            asked.append(job.name)
            late = max(site.delay for site in spec.sites)
            gain = {"map": 0.9, "id-id": 0.7, "id-value": 0.6}[job.name]
            gain -= 4.0 * late * (job.name != "map")
            return measured(100.0 + seed, gain, most, plus=0.01, simple=0.2)

        monkeypatch.setattr(geo, "climb", climb)
        return asked

    def test_runs_writes_and_judges(self, climbs: list[str], tmp_path: Path) -> None:
        docs = tmp_path / "docs"
        result = invoke(
            "geo", "--on-spark", "--seeds", "1", "--out", str(tmp_path), "--docs", str(docs)
        )
        assert result.exit_code == 0, result.output
        assert climbs == [condition.job for condition in CONDITIONS]
        assert "5 of 5 findings held" in result.stdout
        wide = [line for line in result.stdout.splitlines() if not line.startswith(("run", "page"))]
        assert max(map(len, wide)) <= 80
        (folder,) = tmp_path.glob("*-geo-on-spark")
        assert imread(folder / "figures" / "levels.png").std() > 0.01
        written = {path.name for path in docs.iterdir()}
        assert written == {"geo-on-spark.md", "geo-on-spark-levels.png"}
        assert "`penstock reproduce geo --on-spark --seeds 1`" in (
            docs / "geo-on-spark.md"
        ).read_text(encoding="utf-8")

    def test_what_a_broken_off_run_has_finished_is_not_run_again(
        self, climbs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        good: Any = vars(geo)["climb"]

        def broken(spec: Any, job: Any, *rest: Any, **more: Any) -> Climb:
            if job.name == "id-id":
                raise KeyboardInterrupt
            found: Climb = good(spec, job, *rest, **more)
            return found

        monkeypatch.setattr(geo, "climb", broken)
        result = invoke("geo", "--on-spark", "--seeds", "1", "--out", str(tmp_path))
        assert result.exit_code != 0
        (folder,) = tmp_path.glob("*-geo-on-spark")
        assert f"go on with: penstock reproduce geo --on-spark --resume {folder}" in result.stderr
        monkeypatch.setattr(geo, "climb", good)
        result = invoke("geo", "--on-spark", "--resume", str(folder), "--json")
        assert result.exit_code == 0, result.output
        assert climbs == [condition.job for condition in CONDITIONS]  # each once
        assert len(json.loads(result.stdout)["findings"]) == 5

    def test_the_old_name_says_the_new_one_and_goes_on(
        self, climbs: list[str], tmp_path: Path
    ) -> None:
        result = invoke("geo-on-spark", "--seeds", "1", "--out", str(tmp_path), "--json")
        assert result.exit_code == 0, result.output
        first, *_ = result.stderr.splitlines()
        assert first == "`reproduce geo-on-spark` is now `reproduce geo --on-spark`"
        assert len(climbs) == len(CONDITIONS)
        assert len(json.loads(result.stdout)["findings"]) == 5

    def test_workers_are_refused(self, tmp_path: Path) -> None:
        result = invoke("geo", "--on-spark", "--workers", "2", "--out", str(tmp_path))
        assert isinstance(result.exception, InputError)
        assert "one run at a time" in str(result.exception)
        assert not list(tmp_path.iterdir())

    def test_without_root_nothing_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing(wanted: str, *, jitter: bool) -> str:
            raise MissingError("emulated sites: run as root")

        monkeypatch.setattr(requirements, "choose", missing)
        result = invoke("geo", "--on-spark", "--out", str(tmp_path))
        assert isinstance(result.exception, MissingError)
        assert not list(tmp_path.iterdir())


class TestTaxi:
    CARRIED = (250.0, 480.0, 700.0, 900.0, 880.0, 1300.0, 1290.0, 1280.0)

    def test_six_executors_just_carry_the_peak(self) -> None:
        rates = setup.offered(setup.load(self.CARRIED))
        assert len(rates) == setup.SECONDS
        assert rates.max() == pytest.approx(0.95 * self.CARRIED[5])
        assert setup.ideal(self.CARRIED, rates).max() == 6.0

    def test_the_ideal_takes_the_fewest_that_are_enough(self) -> None:
        rates = np.array([0.0, 250.0, 251.0, 890.0, 901.0, 1300.0, 5000.0])
        assert setup.ideal(self.CARRIED, rates).tolist() == [1, 1, 2, 4, 6, 6, 8]

    def test_the_fog_is_as_far_as_it_should_be(self) -> None:
        spec = setup.fog()
        assert spec[spec.home].delay == 0.0 and spec.slots == setup.NODES
        trips = [spec.rtt(a.name, b.name) for a in spec.sites for b in spec.sites]
        assert 0.1 < max(trips) <= 0.3

    def test_records_are_counted_once(self) -> None:
        """Three batches of 4 s read all of 10 s of events."""
        (events,) = setup.taxi(0).events(
            start=0.0, seconds=10.0, partitions=2, pattern=Constant(rps=30.0)
        )
        batches = [
            Batch(query="q", run_id="r", id=n, start=4.0 * n, duration=4.0, rows=100)
            for n in range(3)
        ]
        moments = np.arange(12.0)
        assert taxi._processed(batches, moments).sum() == pytest.approx(300.0)
        waiting = taxi._waiting(events, batches, moments)
        assert waiting[[0, 3, 4, 8, 11]].tolist() == [0.0, 90.0, 20.0, 40.0, 100.0]


class TestGesscaleOnSpark:
    @pytest.fixture(autouse=True)
    def _no_spark(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
        asked: list[tuple[str, int]] = []

        def climb(spec: Any, job: Any, rows: int, *, most: int, seed: int, say: Any) -> Climb:
            return measured(200.0, 0.9, most, plus=0.01, simple=0.2)

        def run(policy: str, seed: int, carried: list[float], *, say: Any) -> taxi.TaxiOutcome:
            asked.append((policy, seed))
            worse = list(NAMES).index("gesscale") - list(NAMES).index(policy)
            more = worse + 0.01 * seed
            return taxi.TaxiOutcome(
                key=policy,
                seed=seed,
                accuracy_o=1.0 + more,
                accuracy_u=0.5 + more,
                timeshare_o=40.0 + more,
                timeshare_u=20.0 + more,
                excess_time=0.1,
                reconfigurations=10.0 + worse,
                cost=15.0 + more,
                lag=3.0,
                records=1000,
                missing=0,
                course=((100.0, 90.0, 2.0, 3.0, 10.0), (110.0, 95.0, 3.0, 3.0, 20.0)),
            )

        monkeypatch.setattr(gesscale, "climb", climb)
        monkeypatch.setattr(gesscale, "run", run)
        yield asked

    def test_runs_writes_and_judges(
        self, _no_spark: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        docs = tmp_path / "docs"
        result = invoke("gesscale", "--on-spark", "--out", str(tmp_path), "--docs", str(docs))
        assert result.exit_code == 0, result.output
        assert _no_spark == [(policy, seed) for seed in range(3) for policy in NAMES]
        assert "6 of 7 findings held, 1 tie\n" in result.stdout
        assert "(f) tie" in result.stdout  # all work off their backlog in the same time
        (folder,) = tmp_path.glob("*-gesscale-on-spark")
        names = {f"{policy}.png" for policy in NAMES}
        assert {path.name for path in (folder / "figures").iterdir()} == names
        text = (docs / "gesscale-on-spark.md").read_text(encoding="utf-8")
        assert all(f"(gesscale-on-spark-{name})" in text for name in names)
        assert "`penstock reproduce gesscale --on-spark`" in text

    def test_what_is_not_held_has_its_measured_cause(self) -> None:
        """Gesscale is the worst of all here, in three runs that differ a little."""

        def run(policy: str, seed: int) -> taxi.TaxiOutcome:
            worse = float(policy == "gesscale")
            slots = (2.0, 4.0, 3.0) if worse else (2.0, 3.0, 3.0)
            return taxi.TaxiOutcome(
                key=policy,
                seed=seed,
                accuracy_o=1.0 + worse,
                accuracy_u=1.0 + worse + 0.01 * seed,
                timeshare_o=1.0,
                timeshare_u=1.0 + worse + 0.01 * seed,
                excess_time=0.1,
                reconfigurations=4.0 + worse,
                cost=9.0 + worse,
                lag=3.0,
                records=1000,
                missing=0,
                course=tuple((100.0, 90.0, n, 3.0, 250.0 - 50.0 * worse) for n in slots),
            )

        outcomes = TaxiOutcomes(runs=tuple(run(p, seed) for p in NAMES for seed in range(3)))
        found = {finding.id: finding for finding in judge(outcomes)}
        assert [found[letter].verdict for letter in "abcde"] == ["not held"] * 5
        assert "came: THR-NLUnaware 1.0 ±0.0" in found["a"].why
        assert "needs 3.0 executors in the mean: THR-NLUnaware 2.7 ±0.0" in found["b"].why
        (row,) = [row for row in gesscale.actions(outcomes).rows if row[0] == "Gesscale"]
        mean, most, came, catch_up, went, behind = (cell.split(" ")[0] for cell in row[1:])
        assert (mean, most, came, catch_up, went, behind) == (
            "3.0",
            "4.0",
            "2.0",
            "0",
            "1.0",
            "2.0",
        )
        last = run("gesscale", 0).course[-1]
        late = replace(
            run("gesscale", 0), course=((*last[:3], 3.0, 0.0), (*last[:2], 4.0, 3.0, 0.0))
        )
        assert (late.ups, late.catch_up) == (1, 1), "three carried the load"

    def test_what_executors_carry_is_measured_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = RunFolder(path=harness.begin(gesscale.PAPER, ONCE, tmp_path))
        first = harness.reproduce(gesscale.PAPER, ONCE, folder)
        monkeypatch.setattr(gesscale, "climb", lambda *_, **__: pytest.fail("measured again"))
        assert harness.reproduce(gesscale.PAPER, ONCE, folder) == replace(first)
