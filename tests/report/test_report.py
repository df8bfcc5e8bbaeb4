"""The run folder and everything that is made from it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from matplotlib.image import imread
from rich.console import Console

from penstock.core.errors import InputError
from penstock.core.guards import Effect, Guards
from penstock.core.loop import Decision, State
from penstock.core.model import Change, OperatorSeen, Proposal, Rescale, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.history.journal import Entry, Header, Journal
from penstock.report import figure, page, runs, units
from penstock.report.build import finish, finish_journal
from penstock.report.run_tables import decisions_table, summary_table
from penstock.report.series import guards_of, sizes, ticks_of
from penstock.report.summary import summarize
from penstock.report.table import Table

ONE = Pipeline(operators={"in": Operator(pool="executors")})
TWO = Pipeline(
    operators={"in": Operator(pool="a"), "out": Operator(pool="b")}, edges=[("in", "out")]
)


def entry(
    time: float,
    *,
    slots: dict[str, int] | None = None,
    to: dict[str, int] | None = None,
    seen: dict[str, dict[str, float]] | None = None,
    pipeline: Pipeline = ONE,
    reason: str = "because",
    applied: bool = True,
    effects: tuple[Effect, ...] = (),
    rescales: tuple[Rescale, ...] = (),
    window: float = 10.0,
) -> Entry:
    slots = slots or dict.fromkeys(pipeline.pools, 2)
    snapshot = Snapshot(
        time=time,
        window=window,
        pipeline=pipeline,
        operators={
            name: OperatorSeen(parallelism=1.0, **(seen or {}).get(name, {}))  # type: ignore[arg-type]
            for name in pipeline.operators
        },
        pools={p: tuple(Slot(id=f"{p}{n}") for n in range(slots[p])) for p in slots},
        rescales=rescales,
    )
    targets = {
        p: Change(before=n, slots=(to or {}).get(p, n), raw=n + 0.25) for p, n in slots.items()
    }
    decision = Decision(
        seen=snapshot,
        proposal=Proposal(reason=reason),
        targets=targets,
        effects=effects,
        applied=applied and bool(to),
    )
    return Entry(decision=decision, state=State(last_seen=time))


def measured(offered: float, processed: float, lag: float, latency: float) -> dict[str, Any]:
    return {
        "in": {
            "offered_rate": offered,
            "arrival_rate": processed,
            "lag": lag,
            "latency": latency,
        }
    }


def write_run(
    root: Path, entries: Sequence[Entry], header: Header | None = None, **config: Any
) -> Path:
    with runs.recording(root, "try it", config, header or Header(policy="p", mode="act")) as run:
        for e in entries:
            run.record(e.decision, e.state)
    return run.folder


def some_entries() -> list[Entry]:
    return [
        entry(1010.0, seen=measured(100, 100, 0, 0.5), to={"executors": 4}),
        entry(1020.0, slots={"executors": 4}, seen=measured(200, 100, 1000, 5.0)),
        entry(1040.0, slots={"executors": 4}, seen=measured(200, 250, 0, 1.0)),
        entry(1050.0, slots={"executors": 4}, seen=measured(50, 50, 0, 0.5), to={"executors": 1}),
    ]


class TestSummary:
    def test_every_figure_is_weighted_by_time(self) -> None:
        s = summarize(Header(policy="p", mode="act", guards=Guards(maximum=8)), some_entries())
        assert s.ticks == 4
        assert s.duration == 50.0  # the first window counts, the third tick stands for 20 s
        assert s.offered == 100 * 10 + 200 * 10 + 200 * 20 + 50 * 10
        assert s.processed == 100 * 10 + 100 * 10 + 250 * 20 + 50 * 10
        assert s.kept_up == 0.8
        assert s.lag is not None and s.lag_seconds is not None and s.latency is not None
        assert (s.lag.mean, s.lag.p95, s.lag.maximum) == (200.0, 1000.0, 1000.0)
        assert (s.lag_seconds.mean, s.lag_seconds.maximum) == (1.0, 5.0)
        assert s.latency.mean == pytest.approx(1.6)
        assert (s.slots_min, s.slots_max) == (2, 4)
        assert s.slot_seconds == 2 * 10 + 4 * 40
        assert s.slots_mean == 3.6
        assert s.peak_saving == 4 * 50 - 180
        assert s.limit_saving == 8 * 50 - 180
        assert (s.actions, s.scale_ups, s.scale_downs, s.advices) == (2, 1, 1, 0)

    def test_nothing_measured_gives_none(self) -> None:
        s = summarize(Header(policy="p"), [entry(10.0), entry(20.0)])
        unknown = (s.offered, s.processed, s.kept_up, s.lag, s.lag_seconds, s.latency)
        assert unknown == (None,) * 6
        assert s.slots_mean == 2.0

    def test_no_entries(self) -> None:
        s = summarize(Header(policy="p"), [])
        assert (s.ticks, s.slots_mean, s.peak_saving_share) == (0, 0.0, None)

    def test_downtime_without_a_throughput_counts_by_its_growing_lag(self) -> None:
        up = entry(10.0, seen=measured(100, 100, 0, 0.1))
        down = entry(20.0, seen={"in": {"offered_rate": 100.0, "lag": 1000.0}})
        assert summarize(Header(policy="p"), [up, down]).kept_up == 0.5

    def test_stale_and_impossible_times_do_not_count(self) -> None:
        entries = [entry(10.0), entry(10.0), entry(5.0), entry(math.nan), entry(20.0)]
        s = summarize(Header(policy="p"), entries)
        assert (s.ticks, s.duration) == (2, 20.0)

    def test_advice_counts_once_until_it_changes(self) -> None:
        sizes_ = (4, 4, 5, 2, 4)
        entries = [
            entry(10.0 * n, to={"executors": size} if size != 2 else None, applied=False)
            for n, size in enumerate(sizes_, 1)
        ]
        s = summarize(Header(policy="p"), entries)
        assert (s.actions, s.scale_ups, s.advices) == (0, 0, 3)
        assert s.advised_slots == pytest.approx(sum(sizes_) / 5)

    def test_the_cap_limits_all_pools_together(self) -> None:
        header = Header(policy="p", guards=Guards(maximum=10, cap=15))
        assert summarize(header, [entry(10.0, pipeline=TWO)]).slots_limit == 15

    def test_later_snapshots_know_more_of_a_rescale(self) -> None:
        early = Rescale(time=10.0, pool="executors", before=2, after=4)
        late = Rescale(time=10.0, pool="executors", before=2, after=4, registered=3.0, steady=9.0)
        s = summarize(
            Header(policy="p"), [entry(20.0, rescales=(early,)), entry(30.0, rescales=(late,))]
        )
        assert s.rescales == (late,)


class TestSeries:
    def test_what_a_tick_did(self) -> None:
        (tick,) = ticks_of([entry(10.0, pipeline=TWO, slots={"a": 5, "b": 4}, to={"a": 8})])
        assert sizes(tick) == "a 5→8, b 4"
        assert (tick.total, tick.target_total, tick.raw_total, tick.growth) == (9, 12, 9.5, 3)

    def test_pools_share_a_guards_sentence(self) -> None:
        effects = tuple(
            Effect(guard="cool-down", pool=pool, before=4, after=2, why="10 s left")
            for pool in ("a", "b")
        )
        decision = entry(10.0, pipeline=TWO, effects=effects).decision
        assert guards_of(decision) == ["cool-down a 4→2, b 4→2: 10 s left"]


class TestFolder:
    def test_the_same_name_twice_gives_two_folders(self, tmp_path: Path) -> None:
        made = [runs.create(tmp_path, "a / b", {"x": 1}) for _ in range(3)]
        assert len(set(made)) == 3
        assert all(re.fullmatch(r"\d{8}T\d{6}Z-a-b(-\d)?", folder.name) for folder in made)
        assert json.loads((made[0] / "config.json").read_text())["x"] == 1

    def test_what_is_written_is_loaded(self, tmp_path: Path) -> None:
        entries = some_entries()
        header = Header(policy="p", parameters={"x": 1.5}, mode="act", seed=3, period=10.0)
        run = runs.load(write_run(tmp_path, entries, header, workload="w"))
        assert (run.header, list(run.entries)) == (header, entries)
        assert run.config["workload"] == "w"

    def test_a_failure_before_the_first_tick_leaves_nothing(self, tmp_path: Path) -> None:
        with (
            pytest.raises(KeyboardInterrupt),
            runs.recording(tmp_path, "x", {}, Header(policy="p")),
        ):
            raise KeyboardInterrupt
        assert list(tmp_path.iterdir()) == []

    def test_a_failure_later_leaves_a_run_that_says_so(self, tmp_path: Path) -> None:
        e = some_entries()[0]
        with (
            pytest.raises(RuntimeError),
            runs.recording(tmp_path, "x", {}, Header(policy="p")) as recording,
        ):
            recording.record(e.decision, e.state)
            raise RuntimeError("lost the cluster")
        run = runs.load(recording.folder)
        assert list(run.entries) == [e]
        assert run.config["ended_by"] == "RuntimeError: lost the cluster"

    def test_finish_writes_all_and_latest_points_at_it(self, tmp_path: Path) -> None:
        folder = write_run(tmp_path, some_entries())
        done = finish(folder)
        names = {path.name for path in folder.iterdir()}
        assert names == {runs.CONFIG, runs.JOURNAL, runs.METRICS, runs.PICTURE, runs.PAGE}
        assert done.summary.actions == 2
        assert runs.find("latest", tmp_path) == folder.resolve()
        assert runs.find(folder.name, tmp_path) == folder

    def test_latest_without_a_link_is_the_newest(self, tmp_path: Path) -> None:
        for name in ("20250101T000000Z-x", "20250102T000000Z-x"):
            (tmp_path / name).mkdir()
            (tmp_path / name / runs.JOURNAL).touch()
        assert runs.find("latest", tmp_path).name == "20250102T000000Z-x"

    def test_someones_own_folder_named_latest_stays(self, tmp_path: Path) -> None:
        (tmp_path / "latest").mkdir()
        finish(write_run(tmp_path, some_entries()))
        assert not (tmp_path / "latest").is_symlink()


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def put(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


class TestBrokenFolder:
    @pytest.mark.parametrize(
        ("damage", "words"),
        [
            (remove("config.json"), "config.json missing"),
            (remove("decisions.jsonl"), "decisions.jsonl missing"),
            (put("config.json", "{"), "cannot be read as JSON"),
            (put("config.json", "[]"), "must hold an object"),
            (put("decisions.jsonl", ""), "is empty"),
            (put("decisions.jsonl", "not json"), "line 1: not JSON"),
            (put("decisions.jsonl", '{"policy":"p"}\n'), "holds no decision"),
            (
                put("decisions.jsonl", '{"no":"p"}\n'),
                "is no journal: line 1: a JSON object with 'no'",
            ),
            (put("decisions.jsonl", '{"policy":"p"}\n{"decision":5}\n{}\n'), "damaged"),
            (lambda f: (f / "decisions.jsonl").write_bytes(b"\xff\xfe"), "damaged"),
        ],
    )
    def test_says_what_is_wrong(
        self, tmp_path: Path, damage: Callable[[Path], object], words: str
    ) -> None:
        folder = write_run(tmp_path, some_entries())
        damage(folder)
        with pytest.raises(InputError, match=re.escape(words)) as error:
            runs.load(folder)
        assert str(folder) in str(error.value)

    def test_no_folder_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no run at"):
            runs.load(tmp_path / "nothing")
        with pytest.raises(InputError, match="no run under"):
            runs.find("latest", tmp_path)

    def test_a_root_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match="cannot write a run under"):
            runs.create(tmp_path / "file", "x", {})


class TestMetrics:
    def test_rows_equal_the_journal(self, tmp_path: Path) -> None:
        entries = [
            entry(10.0, pipeline=TWO, slots={"a": 2, "b": 3}, seen=measured(9, 8, 7, 6)),
            entry(20.0, pipeline=TWO, slots={"a": 2, "b": 3}, to={"b": 5}),
        ]
        rows = pq.read_table(runs.write_metrics(tmp_path, entries)).to_pylist()
        assert len(rows) == 4
        for row, (e, name) in zip(rows, _each_operator(entries), strict=True):
            seen = e.decision.seen
            pool = seen.pipeline.operators[name].pool
            target = e.decision.targets[pool]
            assert (row["time"], row["operator"], row["pool"]) == (seen.time, name, pool)
            assert (row["slots"], row["target_slots"]) == (seen.slots(pool), target.slots)
            assert row["raw_target"] == target.raw
            for field in fields(OperatorSeen):
                if field.name != "arrivals":  # no number; they lie beside the journal
                    assert row[field.name] == getattr(seen.operators[name], field.name)

    def test_a_snapshot_that_nothing_was_decided_on(self, tmp_path: Path) -> None:
        decision = Decision(
            seen=Snapshot(time=1.0, window=1.0, pipeline=ONE, operators={}, pools={}),
            proposal=Proposal(reason="no change: no slot is known"),
        )
        path = runs.write_metrics(tmp_path, [Entry(decision=decision, state=State())])
        (row,) = pq.read_table(path).to_pylist()
        assert (row["slots"], row["target_slots"], row["parallelism"]) == (0, None, None)


def _each_operator(entries: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
    return ((e, name) for e in entries for name in e.decision.seen.pipeline.operators)


SCENARIOS = {
    "one pool": some_entries(),
    "nothing measured": [entry(10.0), entry(20.0)],
    "one tick": [entry(10.0, seen=measured(1, 1, 0, 0), to={"executors": 3})],
    "two pools": [entry(10.0, pipeline=TWO), entry(20.0, pipeline=TWO, to={"a": 1, "b": 3})],
    "all times alike": [entry(10.0, window=0.0), entry(10.0)],
    "two days": [entry(3600.0 * n, seen=measured(5e9, 5e9, 1, 1)) for n in range(1, 48)],
}


class TestPicture:
    @pytest.mark.parametrize("name", SCENARIOS)
    @pytest.mark.filterwarnings("error")
    def test_is_an_image_of_the_promised_size(self, tmp_path: Path, name: str) -> None:
        run = runs.load(write_run(tmp_path, SCENARIOS[name], workload={"name": "50 $x$ % of $y"}))
        image = imread(figure.draw(run))
        assert image.shape[:2] == (figure.HEIGHT, figure.WIDTH)
        assert image[..., :3].std() > 0.05  # something is drawn


HOSTILE = "</script><script>alert(1)</script><!--DATA--> & <b>"


class TestPage:
    @pytest.mark.parametrize("name", SCENARIOS)
    def test_data_are_valid_json(self, tmp_path: Path, name: str) -> None:
        data = _data(page.render(runs.load(write_run(tmp_path, SCENARIOS[name]))))
        assert len(data["time"]) == len(data["decisions"]) == len(ticks_of(SCENARIOS[name]))

    def test_loads_nothing_from_elsewhere(self, tmp_path: Path) -> None:
        text = page.render(runs.load(write_run(tmp_path, some_entries())))
        assert not re.findall(
            r"(?:src|href|action)\s*=", re.sub(r"<script.*?</script>", "", text, flags=re.S)
        )
        assert not re.findall(r"@import|url\(|<link|<iframe|<img|import\(", text)
        assert not re.findall(r"fetch\(|XMLHttpRequest|WebSocket|sendBeacon", text)
        assert "default-src 'none'" in text

    def test_what_others_wrote_is_escaped(self, tmp_path: Path) -> None:
        hostile = Pipeline(operators={HOSTILE: Operator(pool=HOSTILE)})
        guard: Any = HOSTILE
        effect = Effect(guard=guard, pool=HOSTILE, before=1, after=2, why=HOSTILE)
        rescale = Rescale(time=5.0, pool=HOSTILE, before=1, after=2, registered=1.0)
        e = entry(
            10.0,
            pipeline=hostile,
            to={HOSTILE: 3},
            reason=HOSTILE,
            effects=(effect,),
            rescales=(rescale,),
        )
        header = Header(policy=HOSTILE, parameters={HOSTILE: HOSTILE}, mode="act")
        text = page.render(runs.load(write_run(tmp_path, [e], header, workload=HOSTILE, x=HOSTILE)))
        assert "<script>alert" not in text
        assert text.count("<b>") == text.count('class="card"')
        assert text.count("</script>") == 3
        assert _data(text)["decisions"][0][1] == HOSTILE

    def test_changes_are_marked(self, tmp_path: Path) -> None:
        data = _data(page.render(runs.load(write_run(tmp_path, some_entries()))))
        assert [row[4] for row in data["decisions"]] == [1, 0, 0, 1]
        assert data["marks"] == [[10.0, 2, 4, True], [50.0, -3, 4, True]]


def _data(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def shown(*tables: Table) -> str:
    screen = Console(width=80, file=StringIO())
    for table in tables:
        screen.print(table)
    assert isinstance(screen.file, StringIO)
    return screen.file.getvalue()


class TestTables:
    @pytest.mark.parametrize("name", SCENARIOS)
    @pytest.mark.parametrize("mode", ["act", "advise"])
    def test_fit_in_80_columns(self, name: str, mode: str) -> None:
        header = Header(policy="[red]a policy with a long name and markup[/red]" * 2, mode=mode)
        summary = summary_table(summarize(header, SCENARIOS[name]))
        text = shown(summary, decisions_table(SCENARIOS[name]))
        assert max(len(line) for line in text.splitlines()) <= 80

    def test_markup_in_a_reason_is_text(self) -> None:
        table = decisions_table([entry(10.0, to={"executors": 3}, reason="[red]x[/] :smile:")])
        assert "[red]x[/] :smile:" in shown(table)

    def test_only_the_last_changes(self) -> None:
        entries = [entry(10.0 * n, to={"executors": 3}, reason=f"why{n}.") for n in range(1, 31)]
        text = shown(decisions_table(entries))
        assert "the last 12 of 30 changes" in text
        assert "why30." in text and "why18." not in text


def test_units() -> None:
    assert [units.count(v) for v in (0, 999, 999_999, 1.5e9)] == ["0", "999", "1M", "1.5G"]
    assert units.share(1.0) == "100 %"
    assert units.seconds(0.0) == "0 s"


class TestJournalAlone:
    """``penstock report decisions.jsonl``: a journal that is in no folder of a run."""

    def journal(self, folder: Path, name: str = "decisions.jsonl") -> Path:
        path = folder / name
        with Journal(path, Header(policy="mine", mode="act")) as journal:
            for e in some_entries():
                journal.record(e.decision, e.state)
        return path

    def test_picture_and_page_lie_beside_it(self, tmp_path: Path) -> None:
        path = self.journal(tmp_path)
        before = path.read_bytes()
        done = finish_journal(runs.find(str(path)))
        assert done.picture == tmp_path / "decisions.report.png"
        assert done.page == tmp_path / "decisions.report.html"
        assert imread(done.picture).shape[:2] == (figure.HEIGHT, figure.WIDTH)
        assert "decisions.jsonl" in done.page.read_text()
        assert done.summary.ticks == len(ticks_of(some_entries()))
        assert path.read_bytes() == before

    def test_or_in_another_folder(self, tmp_path: Path) -> None:
        done = finish_journal(self.journal(tmp_path), out=tmp_path / "new" / "out")
        assert done.page == tmp_path / "new" / "out" / "report.html"
        assert {p.name for p in tmp_path.iterdir()} == {"decisions.jsonl", "new"}
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match="choose another folder with --out"):
            finish_journal(self.journal(tmp_path), out=tmp_path / "file" / "out")

    def test_the_journal_of_a_whole_run_is_the_run(self, tmp_path: Path) -> None:
        folder = write_run(tmp_path, some_entries())
        assert runs.find(str(folder / "decisions.jsonl")) == folder

    def test_one_that_is_being_written(self, tmp_path: Path) -> None:
        path = self.journal(tmp_path)
        whole = path.read_bytes()
        path.write_bytes(whole[:-40])
        done = finish_journal(path)
        assert len(done.run.entries) == len(some_entries()) - 1

    def test_one_of_version_0_1(self, tmp_path: Path) -> None:
        old = Path(__file__).parents[1] / "reference" / "journal_0_1.jsonl"
        path = tmp_path / "old.jsonl.1"
        path.write_bytes(old.read_bytes())
        assert finish_journal(path).page == tmp_path / "old.jsonl.1.report.html"

    @pytest.mark.parametrize(
        ("content", "found"),
        [
            (b'{"policy":"p"}\n', "holds no decision yet"),
            (b"# Changelog\n", "not JSON (Expecting value) but '# Changelog'"),
            (b"\x89PNG\r\n\x1a\n\x00\x00", "but binary data"),
            (b"[1, 2]\n", "a JSON list"),
            (b'{"Event":"SparkListenerLogStart"}\n', "SparkListenerLogStart of a Spark event log"),
            (b'{"batchId":1,"runId":"x"}\n', "the progress of a streaming query"),
            (b'{"a":1,"b":2}\n', "a JSON object with 'a', 'b'"),
            (b'{"policy":"p"}\n{"a":1}\n', "line 2: not a decision but a JSON object with 'a'"),
        ],
    )
    def test_what_is_no_journal_is_named(self, tmp_path: Path, content: bytes, found: str) -> None:
        path = tmp_path / "file.txt"
        path.write_bytes(content)
        with pytest.raises(InputError, match=re.escape(found)) as error:
            finish_journal(path)
        assert str(path) in str(error.value)
        assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]
