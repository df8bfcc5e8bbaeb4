"""Rows as Kafka records: which partition and offset a row has, and its value as JSON.

**The rule of ids.** Row n of a table is the record with offset n div P in partition n mod P of a
topic with P partitions. So an offset is the id of a record: whoever knows the end offsets knows
which rows are there, and nothing needs to be remembered elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_QUOTE, _BACKSLASH, _FIRST_PRINTABLE = ord('"'), ord("\\"), 0x20


def rows_before(partition: int, offset: int, partitions: int) -> int:
    """The number of the row that has this place: all rows below it belong before it.

    >>> rows_before(3, 2, 4)
    11
    """
    return offset * partitions + partition


def end_of(partition: int, rows: int, partitions: int) -> int:
    """The end offset of a partition when the first so many rows of the table are in the topic.

    >>> [end_of(partition, 11, 4) for partition in range(4)]
    [3, 3, 3, 2]
    """
    return max(0, -(-(rows - partition) // partitions))


def complete_rows(ends: Mapping[int, int] | Sequence[int]) -> int:
    """How many rows are all below these end offsets: the number of the first that is not.

    Less than the sum of the offsets if some partitions are ahead of others.

    >>> complete_rows([3, 3, 3, 2]), complete_rows({0: 3, 1: 1})
    (11, 3)
    """
    by_partition = dict(ends) if isinstance(ends, Mapping) else dict(enumerate(ends))
    count = len(by_partition)
    return min((rows_before(p, offset, count) for p, offset in by_partition.items()), default=0)


def encode(rows: pa.RecordBatch) -> pa.BinaryArray:
    """Each row as a JSON object in UTF-8, with the columns in their order.

    Whole numbers as such, texts as texts, timestamps as ISO 8601 in UTC with six decimals.
    """
    pieces: list[pa.Array | str] = []
    before = "{"
    for field, column in zip(rows.schema, rows.columns, strict=True):
        begin, text, end = _value(column)
        pieces += [f"{before}{json.dumps(field.name)}:{begin}", text]
        before = f"{end},"
    pieces += [f"{before[:-1]}}}", ""]  # what closes the object, and what stands between pieces
    return pc.binary_join_element_wise(*pieces).cast(pa.binary())


def _value(column: pa.Array) -> tuple[str, pa.Array, str]:
    """What stands before, in and after the values of a column."""
    if pa.types.is_integer(column.type):
        return "", column.cast(pa.string()), ""
    if pa.types.is_timestamp(column.type):
        # As a time without a zone: Arrow is far faster then, and UTC has no rules.
        naive = column.cast(pa.int64()).view(pa.timestamp("us")).cast(pa.string())
        return '"', pc.binary_replace_slice(naive, 10, 11, "T"), 'Z"'
    return '"', _escaped(column) if _needs_escapes(column) else column, '"'


def _needs_escapes(column: pa.StringArray) -> bool:
    """Whether any character is one that JSON cannot have as it is; Nexmark's texts have none."""
    _, ends, data = column.buffers()
    if data is None:
        return False
    offsets = np.frombuffer(ends, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    used = np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]]
    bad = (used < _FIRST_PRINTABLE) | (used == _QUOTE) | (used == _BACKSLASH)
    return bool(bad.any())


def _escaped(column: pa.StringArray) -> pa.StringArray:
    texts = (json.dumps(text, ensure_ascii=False)[1:-1] for text in column.to_pylist())
    return pa.array(texts, type=pa.string(), size=len(column))
