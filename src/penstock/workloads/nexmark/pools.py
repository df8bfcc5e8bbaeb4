"""The texts of the events: pools made once per process, from which rows take by index.

The pools are the same for every seed; which text a row takes depends on the seed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.workloads.draws import below, draw, one_of

CHANNELS = 10_000  # besides the hot ones
TEXTS = 4096  # of each pool of random texts

STATES = ("az", "ca", "id", "or", "wa", "wy")
CITIES = (
    *("phoenix", "los angeles", "san francisco", "boise", "portland"),
    *("bend", "redmond", "seattle", "kent", "cheyenne"),
)
FIRST_NAMES = (
    *("peter", "paul", "luke", "john", "saul", "vicky"),
    *("kate", "julie", "sarah", "deiter", "walter"),
)
LAST_NAMES = (
    *("shultz", "abrams", "spencer", "white", "bartels"),
    *("walton", "smith", "jones", "noris"),
)
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


@cache
def states() -> pa.StringArray:
    """Nexmark's states."""
    return pa.array(STATES)


@cache
def cities() -> pa.StringArray:
    """Nexmark's cities; a person's city has nothing to do with the state, as there."""
    return pa.array(CITIES)


@cache
def names() -> pa.StringArray:
    """First and last names, all combinations."""
    return pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])


@cache
def texts(name: str, shortest: int, longest: int, spaces: bool = False) -> pa.StringArray:
    """Random lower-case texts of ``shortest`` to ``longest`` letters.

    With ``spaces`` every 13th character is a space; those at the ends are cut off.
    """
    lengths = shortest + below(longest - shortest + 1, draw(0, f"{name} lengths", 0, TEXTS))
    ends = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    bits = draw(0, f"{name} letters", 0, int(ends[-1]))
    letters = (ord("a") + below(26, bits)).astype(np.uint8)
    if spaces:
        letters[one_of(13, bits) == 0] = ord(" ")
    made = pa.StringArray.from_buffers(TEXTS, pa.py_buffer(ends), pa.py_buffer(letters))
    return pc.utf8_trim(made, " ") if spaces else made


@cache
def emails() -> pa.StringArray:
    """Two random texts around an @."""
    return pc.binary_join_element_wise(
        texts("user", 3, 6, spaces=True), "@", texts("host", 3, 4, spaces=True), ".com", ""
    )


@cache
def credit_cards() -> pa.StringArray:
    """Four times four digits."""
    digits = below(10_000, draw(0, "credit cards", 0, 4 * TEXTS)).reshape(TEXTS, 4)
    return pa.array([" ".join(f"{part:04d}" for part in row) for row in digits.tolist()])


@cache
def channels() -> pa.StringArray:
    """The ``CHANNELS`` ordinary channels, then the hot ones."""
    return pa.array([*(f"channel-{i}" for i in range(CHANNELS)), *HOT_CHANNELS])


@cache
def urls() -> pa.StringArray:
    """The address of each channel; nine of ten ordinary ones have its number, bits reversed."""
    count = CHANNELS + len(HOT_CHANNELS)
    folders = texts("folders", 3, 4).to_pylist()
    picks = [below(TEXTS, draw(0, f"folder {i}", 0, count)).tolist() for i in range(3)]
    numbered = (below(10, draw(0, "numbered", 0, count)) > 0).tolist()
    made = []
    for i, (a, b, c) in enumerate(zip(*picks, strict=True)):
        folder = f"{folders[a]}/{folders[b]}/{folders[c]}"
        number = f"&channel_id={channel_id(i)}" if i < CHANNELS and numbered[i] else ""
        made.append(f"https://www.nexmark.com/{folder}/item.htm?query=1{number}")
    return pa.array(made)


def channel_id(channel: int) -> int:
    """The absolute value of the channel's number with its 32 bits in reverse.

    >>> channel_id(7568)
    163053568
    """
    turned = int(f"{channel:032b}"[::-1], 2)
    return min(turned, 2**32 - turned)
