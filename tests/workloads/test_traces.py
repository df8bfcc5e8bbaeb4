"""Traces: what a file says is what is offered, and a wrong file says which line is wrong."""

from __future__ import annotations

import csv
import gzip
import os
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.workloads.patterns import Trace, create, duration, per_second
from penstock.workloads.trace import SHIPPED


def write(folder: Path, text: str, name: str = "trace.csv") -> str:
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(path)


def minutes(*counts: float, start: str = "2013-05-01 00:00") -> str:
    begin = datetime.fromisoformat(start)
    rows = (f"{begin + timedelta(minutes=k):%Y-%m-%d %H:%M},{c}" for k, c in enumerate(counts))
    return "\n".join(["minute,count", *rows, ""])


class TestReplay:
    def test_counts_per_minute_are_spread_over_the_minute(self, tmp_path: Path) -> None:
        trace = Trace(file=write(tmp_path, minutes(60, 120, 0, 6)))
        assert [trace.rate(t) for t in (0.0, 59.9, 60.0, 120.0, 180.0)] == [1, 1, 2, 0, 0.1]
        assert per_second(trace, 240).reshape(4, 60).sum(axis=1) == pytest.approx([60, 120, 0, 6])
        assert trace.duration == duration(trace) == 240

    def test_it_ends_with_nothing(self, tmp_path: Path) -> None:
        trace = Trace(file=write(tmp_path, minutes(60, 120)))
        assert trace.rate(120.0) == 0 and trace.offered(1e9) == 180

    def test_or_begins_again(self, tmp_path: Path) -> None:
        trace = Trace(file=write(tmp_path, minutes(60, 120)), repeat=True)
        assert [trace.rate(t) for t in (119.0, 120.0, 180.0, 1201.0)] == [2, 1, 2, 1]
        assert trace.offered(1230.0) == pytest.approx(10 * 180 + 30)

    @given(
        counts=st.lists(st.integers(0, 10**6), min_size=2, max_size=20),
        scale=st.floats(0, 100),
        speed=st.floats(0.5, 100),
        t=st.floats(0, 2000),
    )
    def test_scale_and_speed(
        self,
        counts: list[int],
        scale: float,
        speed: float,
        t: float,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        file = write(tmp_path_factory.mktemp("trace"), minutes(*counts))
        plain, changed = Trace(file=file), Trace(file=file, scale=scale, speed=speed)
        for row, count in enumerate(counts):
            assert changed.rate((row + 0.5) * 60 / speed) == pytest.approx(scale * count / 60)
        assert changed.offered(t) == pytest.approx(scale / speed * plain.offered(speed * t))
        assert changed.offered(1e9) == pytest.approx(scale / speed * sum(counts))

    @pytest.mark.parametrize(
        "text",
        [
            "minute,count\n2013-05-01 00:00,3\n2013-05-01 00:01,4\n",
            "time,count\n2013-05-01T00:00:00Z,3\n2013-05-01T00:01:00Z,4\n",
            "time,count\n2013-05-01T00:00:00+02:00,3\n2013-05-01T00:01:00+02:00,4\n",
            "time,count\n1367366400,3\n1367366460,4\n",
            "time,count\n1367366400.5,3\n1367366460.5,4\n",
            "count,time\n3,0\n4,60\n",
            "place,Timestamp,Requests\nA,0,3\nB,60,4\n",
            "\ufefftime,count\r\n0,3\r\n60,4\r\n\r\n\n",
            '"time","count"\n"0","3"\n" 60 "," 4.0"\n',
        ],
    )
    def test_ways_to_write_the_same(self, text: str, tmp_path: Path) -> None:
        trace = Trace(file=write(tmp_path, text))
        assert trace.rate(30.0) == 3 / 60 and trace.rate(90.0) == 4 / 60
        assert trace.duration == 120
        assert Trace(file=write(tmp_path, text, "t.csv.gz")).offered(120.0) == trace.offered(120.0)

    def test_a_file_of_counts_only_is_per_second(self, tmp_path: Path) -> None:
        text = "count  # one line per second from 1995-07-01 00:00:01\n1\n0\n5\n"
        file = write(tmp_path, text)
        assert per_second(Trace(file=file), 4).tolist() == [1, 0, 5, 0]
        assert Trace(file=file, step=10).duration == 30

    def test_columns_by_name(self, tmp_path: Path) -> None:
        file = write(tmp_path, "when,in,out\n0,1,7\n1,2,8\n")
        trace = create("trace", {"file": file, "time_column": "when", "count_column": "out"})
        assert per_second(trace, 2).tolist() == [7, 8]
        rows = create("trace", {"file": file, "step": "60", "count_column": "in"})
        assert rows.offered(120.0) == 3

    def test_fill(self, tmp_path: Path) -> None:
        file = write(tmp_path, "time,count\n0,6\n60,12\n240,18\n")
        filled = {"zero": [0, 0], "last": [12, 12], "": [14, 16], "line": [14, 16]}
        for fill, between in filled.items():
            counts = [6, 12, *between, 18]
            trace = Trace(file=file, fill=fill)
            found = per_second(trace, 300).reshape(5, 60).sum(axis=1)
            assert found == pytest.approx(counts)

    def test_a_changed_file_is_another_trace(self, tmp_path: Path) -> None:
        before = Trace(file=write(tmp_path, minutes(60, 60)))
        assert before.offered(120.0) == 120
        file = write(tmp_path, minutes(90, 90))
        os.utime(file, ns=(1, 1))
        after = Trace(file=file)
        assert after.offered(120.0) == 180 and after != before
        assert before.offered(120.0) == 120


class TestShipped:
    @pytest.mark.parametrize(
        ("name", "days", "total", "low", "high"),
        [("taxi", 2, 1_018_277, 36, 650), ("nasa", 7, 567_783, 0, 195)],
    )
    def test_what_the_readme_says(
        self, name: str, days: int, total: int, low: int, high: int
    ) -> None:
        trace = create("trace", {"file": name})
        rates = np.array([trace.rate(60.0 * k) for k in range(days * 1440)]) * 60
        assert duration(trace) == days * 86400
        assert rates.sum() == pytest.approx(total)
        assert (round(rates.min()), round(rates.max())) == (low, high)

    @pytest.mark.parametrize("name", SHIPPED)
    def test_the_counts_are_those_of_the_file(self, name: str) -> None:
        path = Path(str(files("penstock.workloads").joinpath("data", f"{name}.csv.gz")))
        with gzip.open(path, "rt") as lines:
            counts = [float(row["count"]) for row in csv.DictReader(lines)]
        found = per_second(Trace(file=name), 60 * len(counts)).reshape(-1, 60).sum(axis=1)
        assert found == pytest.approx(counts, abs=1e-6)

    def test_they_are_small(self) -> None:
        folder = Path(str(files("penstock.workloads").joinpath("data")))
        counts = {"taxi.csv.gz", "nasa.csv.gz"}
        single = {"bc_paug89.csv.gz", "LICENSE.kpc-toolbox.txt", "pickups.csv.gz"}
        assert {p.name for p in folder.iterdir()} == {"README.md", *counts, *single}
        assert sum((folder / name).stat().st_size for name in counts) < 60_000
        assert (folder / "pickups.csv.gz").stat().st_size < 300_000
        assert sum(p.stat().st_size for p in folder.iterdir()) < 2_300_000


WRONG: dict[str, tuple[str, str]] = {
    "empty": ("", "is empty; a trace needs a header"),
    "only a header": ("minute,count\n", "has a header but no rows"),
    "one row": ("minute,count\n2013-05-01 00:00,4\n", "one row .* give step=SECONDS"),
    "no header": ("0,4\n60,5\n", "line 1: '0,4' is no header"),
    "no count column": ("minute,trips\n0,4\n60,5\n", "line 1: 'trips' may be anything; say what"),
    "no time column": ("day,count\n0,4\n60,5\n", "line 1: no time column .* time_column=NAME"),
    "text for a count": ("time,count\n0,4\n60,many\n", "line 3: count 'many' is not a number"),
    "negative": ("time,count\n0,4\n60,-5\n", "line 3: count -5 must be a finite number ≥ 0"),
    "infinite": ("time,count\n0,4\n60,inf\n", "line 3: count inf must be a finite"),
    "text for a time": ("time,count\nnoon,4\n", "line 2: time 'noon' is not a time; write ISO"),
    "nan for a time": ("time,count\nnan,4\n", "line 2: time 'nan' is not a time"),
    "twice": ("time,count\n0,4\n60,5\n60,6\n", "line 4: time '60' is not after '60'"),
    "too few values": ("time,count\n0,4\n60\n", "line 3: 1 values under 2 columns"),
    "too many values": ("time,count\n0,4\n60,5,6\n", "line 3: 3 values under 2 columns"),
    "empty line": ("time,count\n0,4\n\n60,5\n", "line 3: is empty"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_says_which_line_and_what_to_do(
    text: str, message: str, tmp_path: Path
) -> None:
    for name in ("wrong.csv", "wrong.csv.gz"):
        with pytest.raises(InputError, match=message) as caught:
            Trace(file=write(tmp_path, text, name))
        assert name in str(caught.value)


class TestOtherFaults:
    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"'nope.csv'.*No such file.*one of taxi, nasa"):
            Trace(file="nope.csv")
        with pytest.raises(InputError, match="cannot be read"):
            Trace(file=str(tmp_path))

    def test_damaged_gzip(self, tmp_path: Path) -> None:
        path = tmp_path / "cut.csv.gz"
        path.write_bytes(gzip.compress(minutes(*range(1000)).encode())[:200])
        with pytest.raises(InputError, match="the gzip file is damaged"):
            Trace(file=str(path))

    def test_not_text(self, tmp_path: Path) -> None:
        path = tmp_path / "picture.csv"
        path.write_bytes(b"\x89PNG\xff\xfe\x00")
        with pytest.raises(InputError, match="is not a text file in UTF-8"):
            Trace(file=str(path))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"fill": "zeros"}, "did you mean 'zero'"),
            ({"count_column": "cuont"}, "unknown value column of .* did you mean 'count'"),
            ({"time_column": "when"}, "unknown time column of .* 'when'"),
            ({"time_column": "count"}, "no count column among minute, count"),
            ({"step": -1}, "step = -1.0 must be"),
            ({"speed": 0}, "speed = 0 must be above 0"),
            ({"scale": -1}, "scale = -1.0"),
            ({"repeat": "often"}, "repeat = 'often' must be true or false"),
        ],
    )
    def test_wrong_parameters(
        self, parameters: dict[str, float | str], message: str, tmp_path: Path
    ) -> None:
        file = write(tmp_path, minutes(1, 2, 3))
        with pytest.raises(InputError, match=message):
            create("trace", {"file": file, **parameters})

    def test_a_gap_too_wide_to_fill(self, tmp_path: Path) -> None:
        file = write(tmp_path, "time,count\n0,1\n1,1\n99999999,1\n")
        with pytest.raises(InputError, match=r"100,000,000 rows of 1 s, more than 50,000,000"):
            Trace(file=file, fill="zero")
