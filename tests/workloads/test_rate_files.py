"""Files of recorded traffic as people have them: what they say, and what is said of them."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.workloads.rate_files import text as texts
from penstock.workloads.rate_files.read import Reading, RecordedRates, read_rates


def read(folder: Path, text: str, name: str = "week.csv", **how: Any) -> RecordedRates:
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return read_rates(path, Reading(**how))


def prometheus(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> str:
    result = [{"metric": labels, "values": [list(v) for v in values]} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


ISO = "2026-11-01T00:00:0"
READ: dict[str, tuple[str, dict[str, Any], float, list[float], str]] = {
    "epoch seconds": ("time,count\n1700000000,3\n1700000060,4\n", {}, 60, [3, 4], "epoch seconds"),
    "epoch milliseconds": (
        "time,count\n1700000000000,3\n1700000060000,4\n", {}, 60, [3, 4], "epoch milliseconds",
    ),
    "epoch microseconds": (
        "time,count\n1700000000000000,3\n1700000060000000,4\n",
        {}, 60, [3, 4], "epoch microseconds",
    ),
    "ISO with a zone": (
        f"time,count\n{ISO}0+02:00,3\n{ISO}1+02:00,4\n", {}, 1, [3, 4], "with a zone",
    ),
    "ISO of seven digits": (
        "TIMESTAMP,count\n2023-11-16 18:17:03.0000000,3\n2023-11-16 18:17:04.0000000,4\n",
        {}, 1, [3, 4], "without a zone, taken as UTC",
    ),
    "milliseconds of its own": ("t_ms,count\n0,3\n500,4\n", {}, 0.5, [3, 4], "milliseconds from"),
    "a rate by its name": (
        "time,rate\n0,3\n60,4\n", {}, 60, [180, 240], "rate: records per second (by its name)",
    ),
    "a query of Prometheus": (
        'Time,"sum(rate(kafka_messages_in[5m]))"\n0,3\n60,4\n', {}, 60, [180, 240], "rate:",
    ),
    "told to be a rate": (
        "time,value\n0,3\n60,4\n", {"kind": "rate"}, 60, [180, 240], "(as told)",
    ),
    "a counter": (
        "time,records_total\n0,100\n60,160\n120,460\n", {}, 60, [60, 300], "counter:",
    ),
    "a counter that begins anew": (
        "time,records_total\n0,100\n60,160\n120,30\n180,40\n", {}, 60, [60, 30, 10],
        "began anew 1 times",
    ),
    "a counter with a gap": (
        "time,records_total\n0,0\n60,60\n120,120\n300,480\n",
        {}, 60, [60, 60, 120, 120, 120], "gaps: 1, 2 rows (40.0%), the longest 3 minutes",
    ),
    "offsets by partition": (
        "time,topic,partition,offset\n0,t,0,10\n0,t,1,500\n60,t,0,20\n60,t,1,530\n"
        "120,t,0,25\n120,t,1,530\n", {}, 60, [40, 5], "series: 2, summed",
    ),
    "semicolons and decimal commas": (
        "time;rate\n0;1,5\n60;2,25\n", {}, 60, [90, 135], "',' is the decimal mark",
    ),
    "thousands with semicolons": (
        "time;count\n0;1.234.567\n60;12\n", {}, 60, [1_234_567, 12], "'.' separates thousands",
    ),
    "thousands and decimals": (
        "time;count\n0;1.234,5\n60;12,25\n", {}, 60, [1234.5, 12.25], "'.' separates thousands",
    ),
    "thousands in quotes": (
        'time,count\n0,"1,234"\n60,"12"\n', {}, 60, [1234, 12], "',' separates thousands",
    ),
    "thousands by spaces": (
        "time\tcount\n0\t1 234\n60\t12\n", {}, 60, [1234, 12], "CSV with tabs",
    ),
    "Excel's first line": ("sep=;\ntime;count\n0;3\n60;4\n", {}, 60, [3, 4], "semicolons"),
    "comments": ("# from Grafana\ntime,count\n# all\n0,3\n60,4\n", {}, 60, [3, 4], "2 rows"),
    "missing values": (
        "time,count\n0,2\n60,NaN\n120,\n180,null\n240,10\n300,4\n360,4\n",
        {}, 60, [2, 4, 6, 8, 10, 4, 4], "gaps: 1, 3 rows (42.9%)",
    ),
    "missing rows": (
        "time,count\n0,2\n60,2\n240,8\n300,8\n", {}, 60, [2, 2, 4, 6, 8, 8],
        "filled by a straight line",
    ),
    "missing rows, last": (
        "time,count\n0,2\n60,2\n240,8\n300,8\n", {"fill": "last"}, 60, [2, 2, 2, 2, 8, 8],
        "filled by the last value",
    ),
    "missing rows, zero": (
        "time,count\n0,2\n60,2\n240,8\n300,8\n", {"fill": "zero"}, 60, [2, 2, 0, 0, 8, 8],
        "filled by 0",
    ),
    "jitter": (
        "time,count\n0.2,1\n60.1,2\n119.7,3\n180.4,4\n", {}, 60, [1, 2, 3, 4], "jitter:",
    ),
    "out of order": (
        "time,count\n60,2\n0,1\n120,3\n", {}, 60, [1, 2, 3], "1 rows were earlier",
    ),
    "uneven": (
        "time,count\n0,30\n30,90\n120,60\n180,60\n", {"step": 60.0}, 60, [60, 60, 60, 60],
        "30 to 90 s apart",
    ),
    "coarser than the file": (
        "time,rate\n0,1\n60,2\n120,3\n180,4\n", {"step": 120.0}, 120, [180, 420], "s apart",
    ),
    "finer than the file": (
        "time,count\n0,60\n60,120\n", {"step": 30.0}, 30, [30, 30, 60, 60], "spread over cells",
    ),
    "events": (
        "pickup,lon,lat\n2013-01-01 00:00:01,1,2\n2013-01-01 00:00:01,3,4\n"
        "2013-01-01 00:00:03,5,6\n", {"kind": "events"}, 1, [2, 0, 1], "one row per record",
    ),
    "nothing but times": (
        "time\n2013-01-01 00:00:01\n2013-01-01 00:00:01\n", {}, 1, [2], "nothing but times",
    ),
    "a web log": (
        'h - - [01/Jul/1995:00:00:01 -0400] "GET / HTTP/1.0" 200 6245\n'
        'h - - [01/Jul/1995:00:00:03 -0400] "GET / HTTP/1.0" 200 6245\n', {}, 1, [1, 0, 1],
        "a web log",
    ),
    "intervals": ("iat_us\n500000\n600000\n1000000\n", {}, 1, [1, 1, 1], "intervals of us"),
    "only counts": ("count\n1\n0\n5\n", {}, 1, [1, 0, 5], "none in the file"),
    "several columns": (
        "time,a,b\n0,1,2\n60,3,4\n", {"value_column": "a,b", "kind": "count"}, 60, [3, 7], "a, b",
    ),
    "a part": (
        "time,count\n0,1\n60,2\n120,3\n180,4\n", {"start": "60", "end": "180"}, 60, [2, 3], "",
    ),
    "a part by dates": (
        f"time,count\n{ISO}0,1\n{ISO}1,2\n{ISO}2,3\n", {"start": "2026-11-01 00:00:01"}, 1,
        [2, 3], "2026-11-01 00:00:01 to",
    ),
    "a count that never falls": (
        "time,count\n" + "".join(f"{60 * k},{100 + 50 * k}\n" for k in range(30)), {}, 60,
        [100.0 + 50 * k for k in range(30)], "--as counter",
    ),
    "Prometheus's JSON": (
        prometheus(({"__name__": "in_total", "p": "0"}, [(0, "1"), (60, "5")]),
                   ({"__name__": "in_total", "p": "1"}, [(0, "10"), (60, "10")])),
        {}, 60, [4], "Prometheus JSON of 2 series",
    ),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(("text", "how", "step", "counts", "said"), READ.values(), ids=READ)
def test_what_a_file_says(
    text: str,
    how: dict[str, Any],
    step: float,
    counts: list[float],
    said: str,
    packed: bool,
    tmp_path: Path,
) -> None:
    found = read(tmp_path, text, "week.csv.gz" if packed else "week.csv", **how)
    assert found.step == step
    assert found.counts == pytest.approx(counts)
    lines = "\n".join(found.understood.lines())
    assert said in lines and "nothing is rescaled" in lines
    assert found.understood.peak == pytest.approx(max(counts) / step)
    assert found.understood.mean == pytest.approx(sum(counts) / step / len(counts))


DEEP = "[" * 1000 + "]" * 1000
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "an unknown figure": ("time,value\n0,3\n60,4\n", {}, "line 1: 'value' may be anything; say"),
    "two figures": (
        "time,tokens,bytes\n0,3,1\n60,4,1\n",
        {},
        "line 1: no count column among time, tokens, bytes stands out; give value_column=tokens",
    ),
    "no figure": ("time,name\n0,a\n60,b\n", {}, "line 1: no count column among time, name; give"),
    "lag is no demand": ("time,consumer_lag\n0,3\n60,4\n", {}, "line 1: 'consumer_lag' tells what"),
    "with a unit": ("time,rate\n0,3\n60,4.5 kops\n", {}, "line 3: rate '4.5 kops' is not a number"),
    "other dates": ("time,count\n05/01/2013 10:00,3\n", {}, "line 2: time '05/01/2013 10:00' is"),
    "two units of time": (
        "time,count\n1700000000,1\n1700000060,1\n1700000120000,1\n",
        {},
        "line 4: time '1700000120000' is not epoch seconds like the others",
    ),
    "twice": (
        "time,count\n0,1\n60,1\n60,2\n",
        {},
        "line 4: time '60' is not after '60' in line 3; keep one",
    ),
    "mostly missing": ("time,count\n0,1\n60,\n120,\n180,\n240,2\n", {}, "3 of 5 rows .* missing"),
    "missing and refused": (
        "time,count\n0,1\n60,1\n180,1\n",
        {"fill": "none"},
        "1 rows are missing",
    ),
    "no values": ("time,count\n0,\n60,\n", {}, "no row has a value"),
    "one reading of a counter": ("time,x_total\n0,5\n", {"step": 1.0}, "at least two readings"),
    "an unknown kind": ("time,count\n0,1\n60,1\n", {"kind": "rats"}, "did you mean 'rate'"),
    "nothing between": ("time,count\n0,1\n60,1\n", {"start": "500"}, "nothing lies between"),
    "backwards": ("time,count\n0,1\n60,1\n", {"start": "9", "end": "3"}, "'9' must be before"),
    "no date": ("time,count\n0,1\n60,1\n", {"start": "noon"}, "start 'noon' is not a time"),
    "two servers' logs": (
        'h - - [01/Jul/1995:00:00:01 -0400] "GET /"\nstarted\n',
        {},
        "line 2: 'started' is no request",
    ),
    "half a JSON file": (prometheus(({}, [(0, "1")]))[:-5], {}, "is not JSON"),
    "other JSON": ('{"data": 1}', {}, "not Prometheus's answer"),
    "no pairs": (
        '{"data":{"result":[{"metric":{},"values":[[1]]}]}}',
        {},
        r"series 1: \[1\] is no \[time, value\] pair",
    ),
    "deep JSON": (DEEP, {}, "nested deeper than 64"),
    "a quote that never ends": ('time,count\n0,"1\n60,2\n', {}, "line 3: 1 values|is not"),
    "too long": ("time,count\n0,1\n1,1\n1e15,1\n", {}, "epoch|more than"),
    "an interval missing": ("iat_us\n5\nnan\n", {}, "line 3: an interval is missing"),
    "only blanks": (" \n\n", {}, "is empty"),
}


@pytest.mark.parametrize(("text", "how", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_says_where_and_the_way_out(
    text: str, how: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text, **how)
    if how.get("kind") != "rats":
        assert "week.csv" in str(caught.value)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MOST_BYTES", 1 << 20)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"time,count\n" + b"0" * (64 << 20)))
    with pytest.raises(InputError, match="holds more than 1 MiB of text; cut it"):
        read_rates(path, Reading())
    plain = tmp_path / "long.csv"
    plain.write_bytes(b"0" * (2 << 20))
    with pytest.raises(InputError, match="holds more than 1 MiB"):
        read_rates(plain, Reading())


def test_members_of_a_gzip_file_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "week.csv.gz"
    path.write_bytes(gzip.compress(b"time,count\n0,1\n") + gzip.compress(b"60,2\n"))
    assert read_rates(path, Reading()).counts.tolist() == [1, 2]


@given(
    values=st.lists(st.integers(0, 10**6), min_size=3, max_size=60),
    shuffle=st.randoms(use_true_random=False),
)
def test_order_does_not_matter_and_nothing_is_lost(
    values: list[int], shuffle: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [f"{60 * k},{v}" for k, v in enumerate(values)]
    shuffle.shuffle(rows)
    found = read(tmp_path_factory.mktemp("rows"), "\n".join(["time,count", *rows, ""]))
    assert found.counts.tolist() == values


@given(
    growth=st.lists(st.integers(0, 1000), min_size=2, max_size=40),
    apart=st.lists(st.floats(1.0, 100.0), min_size=40, max_size=40),
    step=st.floats(5.0, 50.0),
)
def test_a_counter_counts_all_however_it_is_read(
    growth: list[int],
    apart: list[float],
    step: float,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    times = np.cumsum(apart[: len(growth)])
    totals = np.cumsum(growth)
    rows = (f"{t:.6f},{n}" for t, n in zip(times, totals, strict=True))
    found = read(tmp_path_factory.mktemp("rows"), "\n".join(["time,n_total", *rows, ""]), step=step)
    assert found.counts.sum() == pytest.approx(sum(growth[1:]))
    assert math.isclose(len(found.counts), (times[-1] - times[0]) / step, abs_tol=1.001)
