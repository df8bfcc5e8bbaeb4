"""Bench specs: what they expand to, and that every mistake is named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.bench.specs.spec import load
from penstock.comparison.cell import THESIS_GUARDS
from penstock.comparison.experiment import Experiment
from penstock.comparison.guards_table import PRESETS
from penstock.core.errors import InputError
from penstock.spark.settings.toml_file import seconds
from tests.places import ROOT

BENCHES = ROOT / "examples" / "bench"
EXAMPLES = sorted(p for p in BENCHES.glob("*.toml") if p.stem != "twin")  # it needs profiles

GOOD = """\
name = "small"
seeds = 2
minutes = 20

[[pipeline]]
query = "q1"

[[workload]]
name = "cosine"

[[policy]]
name = "ds2"
"""


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def reader(text: str, **options: Any) -> Experiment:
        path = tmp_path / "spec.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, **options)

    return reader


def changed(*replaced: tuple[str, str]) -> str:
    text = GOOD
    for old, new in replaced:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_smallest_spec(read: Any) -> None:
    spec = read(GOOD)
    (cell,) = spec.cells
    assert (spec.name, spec.seeds, spec.journals) == ("small", (0, 1), True)
    assert (cell.key, cell.minutes, cell.period, cell.slo) == ("q1-cosine-ds2", 20.0, 15.0, 60.0)
    assert cell.guards == PRESETS["default"] and not cell.guards.sleep
    assert read(GOOD, seeds=5).seeds == (0, 1, 2, 3, 4)


def test_lists_are_sweeps_over_their_product(read: Any) -> None:
    spec = read(
        """
        seeds = [4, 2]
        period = "30s"
        slo = "2 min"
        profile = ["restart", "live"]
        guards = "thesis"
        journals = false
        [[pipeline]]
        query = ["q1", "q2"]
        start = [2, 4]
        [[workload]]
        name = "constant"
        rps = [1e5, 2e5, 3e5]
        minutes = 10
        [[policy]]
        name = "ds2"
        over_provisioning = [1.0, 1.2]
        [[policy]]
        name = ["hpa-cpu", "static"]
        """
    )
    assert len(spec.cells) == 2 * 2 * 3 * 2 * 4
    assert len({cell.key for cell in spec.cells}) == len(spec.cells)
    assert spec.seeds == (4, 2) and not spec.journals
    first = spec.cells[0]
    assert first.key == "q1-2-constant-100k-restart-ds2-1.0"
    assert first.workload_parameters == {"rps": 1e5} and first.start == 2
    assert (first.period, first.slo, first.minutes) == (30.0, 120.0, 10.0)
    assert all(cell.guards == THESIS_GUARDS for cell in spec.cells)


def test_several_guards_and_overrides(read: Any) -> None:
    text = GOOD.replace(
        "[[pipeline]]",
        """
        [[guards]]
        preset = "thesis"
        step_up = "none"
        name = "free"
        [[guards]]
        cap = [60, 70]
        cool_down = "1 min"
        blackouts = ["22:00-06:00", "12:00-13:00"]
        [[pipeline]]
        shared = true
        spec = { capacity_noise = 0.0, hot_shares = { map = 0.2 } }
        """,
    )
    a, b, c = read(text).cells
    assert a.key == "q1-shared-cosine-free-ds2"
    assert a.guards.step_up is None and a.guards.sleep and a.guards.cap == 80
    assert (b.guards.cap, c.guards.cap, c.guards.cool_down) == (60, 70, 60.0)
    assert len(c.guards.blackouts) == 2
    assert a.fluid_spec().hot_shares == {"map": 0.2} and a.fluid_spec().capacity_noise == 0.0


def test_a_workload_runs_its_own_length_unless_told(read: Any) -> None:
    spec = read(changed(("minutes = 20", ""), ('"cosine"', '["cosine", "convergence"]')))
    assert [cell.minutes for cell in spec.cells] == [140.0, 90.0]


def test_a_trace_may_lie_beside_the_spec(read: Any, tmp_path: Path) -> None:
    rows = "\n".join(f"{60 * i},{100 + i}" for i in range(30))
    (tmp_path / "week.csv").write_text(f"time,count\n{rows}\n")
    text = changed(('"cosine"', '"trace"\nfile = "week.csv"'), ("minutes = 20", ""))
    (cell,) = read(text).cells
    assert cell.minutes == 30.0
    assert cell.pattern(0).rate(1799.0) == pytest.approx(129 / 60)  # a user's own: as recorded
    along = changed(('"cosine"', '"trace"\nfile = "nasa"'), ("minutes = 20", ""))
    (cell,) = read(along).cells
    assert cell.pattern(0).curve(0.0).rates.max() == pytest.approx(2.2e6)  # the query's peak


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_right(path: Path) -> None:
    spec = load(path)
    assert spec.cells and spec.seeds and spec.name == path.stem


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} >= {"quick", "thesis-q1"}


WRONG = {
    "not TOML": (("seeds = 2", "seeds 2"), "line 2: not TOML"),
    "unfinished TOML": (('name = "ds2"', 'name = "ds2'), "line 12: not TOML"),
    "unknown key": (("seeds = 2", "sedes = 2"), "line 2: unknown key 'sedes'; did you mean"),
    "key of a pipeline": (('query = "q1"', 'query = "q1"\nspeed = 2'), "line 7: unknown key"),
    "seeds 0": (("seeds = 2", "seeds = 0"), "line 2: seeds = 0 must be a whole number ≥ 1"),
    "seeds no number": (("seeds = 2", 'seeds = "two"'), "line 2: seeds = 'two'"),
    "seeds empty": (("seeds = 2", "seeds = []"), "line 2: seeds = \\[\\]"),
    "seeds twice": (("seeds = 2", "seeds = [1, 1]"), "different whole numbers"),
    "minutes text": (("minutes = 20", 'minutes = "long"'), "line 3: minutes = 'long'"),
    "minutes 0": (("minutes = 20", "minutes = 0"), "line 3: minutes = 0"),
    "minutes negative": (("minutes = 20", "minutes = -5"), "line 3: minutes = -5"),
    "period": (("seeds = 2", 'period = "often"'), "line 2: period = 'often' must be a duration"),
    "period too short": (("seeds = 2", 'period = "10ms"'), "line 2: period = 0.01"),
    "slo": (("seeds = 2", "slo = true"), "line 2: slo = True"),
    "profile": (("seeds = 2", 'profile = "liv"'), "line 2: .*did you mean 'live'"),
    "profile empty": (("seeds = 2", "profile = []"), "line 2: profile"),
    "engine other": (("seeds = 2", 'engine = "flink"'), "line 2: unknown engine 'flink'"),
    "journals": (("seeds = 2", "journals = 1"), "line 2: journals = 1 must be true or false"),
    "name": (('name = "small"', "name = 3"), "line 1: name = 3 must be a text"),
    "guards": (("seeds = 2", 'guards = "thesys"'), "line 2: .*did you mean 'thesis'"),
    "guards key": (("seeds = 2", "guards = { capp = 3 }"), "line 2: unknown key of guards 'capp'"),
    "guards value": (("seeds = 2", "guards = { cap = -3 }"), "line 2: cap -3 must be ≥ 1"),
    "guards type": (("seeds = 2", 'guards = { cap = "x" }'), "cap = 'x' must be a whole number"),
    "guards duration": (("seeds = 2", 'guards = {cool_down = "x"}'), "cool_down = 'x'"),
    "guards empty": (("seeds = 2", "guards = { cap = [] }"), "empty list in guards"),
    "cap below the start": (("seeds = 2", "guards = { cap = 9 }"), "15 slots .* cap of 9"),
    "query": (('query = "q1"', 'query = "q4"'), "line 6: unknown query 'q4'"),
    "no query": (('query = "q1"', "start = 3"), "needs a query, one of q1"),
    "start": (('query = "q1"', 'query = "q1"\nstart = 0'), "line 7: start = 0"),
    "start above the limits": (('query = "q1"', 'query = "q1"\nstart = 99'), "line 7: start = 99"),
    "start no number": (('query = "q1"', 'query = "q1"\nstart = true'), "line 7: start = True"),
    "spec key": (('query = "q1"', 'query = "q1"\n[pipeline.spec]\nnoize = 1'), "line 8: .*'noize'"),
    "spec value": (
        ('query = "q1"', 'query = "q1"\n[pipeline.spec]\ncapacity_noise = -1'),
        "line 8: capacity_noise = -1",
    ),
    "spec profile": (
        ('query = "q1"', 'query = "q1"\n[pipeline.spec]\nprofile = "live"'),
        "use the key `profile`",
    ),
    "spec operator": (
        ('query = "q1"', 'query = "q1"\n[pipeline.spec.hot_shares]\nmapp = 0.1'),
        "line 8: .*did you mean 'map'",
    ),
    "workload": (('"cosine"', '"cosinus"'), "line 9: unknown workload 'cosinus'; did you mean"),
    "workload parameter": (('"cosine"', '"cosine"\nhihg = 3'), "line 10: .*'hihg'.*'high'"),
    "negative rate": (('"cosine"', '"cosine"\nlow = -5'), "line 10: cosine: low = -5"),
    "rate no number": (('"cosine"', '"cosine"\nlow = "few"'), "line 10: cosine: low = 'few'"),
    "low above high": (('"cosine"', '"cosine"\nlow = 5e6'), "line 10: cosine: low = 5000000"),
    "no load": (('"cosine"', '"constant"\nrps = 0'), "line 8: .*offers no records"),
    "trace missing": (('"cosine"', '"trace"\nfile = "no.csv"'), "line 10: trace: file = 'no.csv'"),
    "trace empty": (('"cosine"', '"trace"\nfile = "empty.csv"'), "empty.csv: is empty"),
    "trace broken": (('"cosine"', '"trace"\nfile = "broken.csv"'), "broken.csv, line 3"),
    "policy": (('"ds2"', '"ds3"'), "line 12: unknown policy 'ds3'; did you mean 'ds2'"),
    "policy parameter": (('"ds2"', '"ds2"\nfactor = 2'), "line 13: .*'factor'"),
    "policy value": (('"ds2"', '"ds2"\nover_provisioning = 0'), "line 13: ds2: over_provisioning"),
    "policy type": (('"ds2"', '"ds2"\nover_provisioning = true'), "line 13: ds2: over_prov"),
    "policy table": (('"ds2"', '"ds2"\nover_provisioning = {a = 1}'), "line 13: ds2: over_prov"),
    "sweep empty": (('"ds2"', '"ds2"\nover_provisioning = []'), "line 13: .*empty list"),
    "one of a sweep": (('"ds2"', '"ds2"\nover_provisioning = [1.2, -1]'), "line 13: .*-1"),
    "policy without name": (('name = "ds2"', "target = 0.7"), "line 11: .*needs a name"),
    "policy no table": (('[[policy]]\nname = "ds2"', ""), "no \\[\\[policy\\]\\]"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_named_with_its_line(
    change: tuple[str, str], words: str, read: Any, tmp_path: Path
) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "broken.csv").write_text("time,count\n0,5\n60,-5\n")
    with pytest.raises(InputError, match=words) as caught:
        read(changed(change))
    assert caught.value.exit_code == 2


def test_mistakes_in_a_second_table_are_found_there(read: Any) -> None:
    with pytest.raises(InputError, match="line 15: ds2: over_provisioning"):
        read(GOOD + '[[policy]]\nname = "ds2"\nover_provisioning = -2\n')


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        load(tmp_path / "absent.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(InputError, match="not UTF-8"):
        load(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 0.5), ("15s", 15.0), ("5m", 300.0), ("2h", 7200.0), (7, 7.0), ("7", None),
     (True, None)],
)  # fmt: skip
def test_durations(text: Any, expected: float | None) -> None:
    assert seconds(text) == expected
