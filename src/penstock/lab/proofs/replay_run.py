"""One real run of an example under a load that goes up and down at fixed times, and its figures."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from penstock.core.codec import from_json, to_json
from penstock.core.errors import EngineError
from penstock.history.demand import Demand
from penstock.history.files import write_text
from penstock.lab.proofs.examples_course import thinned
from penstock.lab.proofs.examples_run import (
    BY_NAME,
    TIMES,
    Setting,
    events_of,
    playing,
)
from penstock.lab.proofs.proof import Say

FED = "fed.json"
RISE, FALL = 0.35, 0.65  # of the load's seconds: it is high in between
COUNTED_FROM = 0.2  # of the load's seconds: executors and the driver warm up before
LAST_BATCH = 240.0  # seconds that the batch may take which runs when the load ends
PROGRESS = b"QueryProgressEvent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """What a real run was fed, and by when; moments in epoch seconds.

    begun, rise, fall, end: of the load · counts: lines that had been fed by a moment
    """

    example: str
    setting: Setting
    begun: float
    rise: float
    fall: float
    end: float
    counts: tuple[tuple[float, int], ...]

    @property
    def seconds(self) -> float:
        """Of the load."""
        return self.end - self.begun

    @property
    def counted(self) -> tuple[float, float]:
        """The span that figures are about, in epoch seconds."""
        return self.begun + COUNTED_FROM * self.seconds, self.end

    def demand(self, start: float) -> Demand:
        """Lines/s as they were fed, from a moment on."""
        times, totals = (np.array(column, dtype=float) for column in zip(*self.counts, strict=True))
        edges = np.concatenate(([0.0], times[times > start] - start))
        came = np.interp(edges + start, times, totals)
        return Demand(start=start, edges=edges, rates=np.diff(came) / np.diff(edges))


def run(example: str, setting: Setting, seconds: float, *, folder: Path, say: Say) -> Fed:
    """Run an example for so many seconds; its folder also has its journal and its event log."""
    low = BY_NAME[example].low
    with playing(example, setting, folder=folder, say=say) as play:
        begun = play.feed.counts[0][0]

        def go_on_until(share: float) -> None:
            play.wait(lambda: False, begun + share * seconds - time.time())

        go_on_until(RISE)
        rise = play.load(TIMES * low)
        go_on_until(FALL)
        fall = play.load(low)
        go_on_until(1.0)
        end, ended = time.time(), _batches(folder)
        # Spark tells of a batch when it has ended.
        play.wait(lambda: _batches(folder) > ended, LAST_BATCH)
        counts = thinned(play.feed.counts)
    fed = Fed(
        example=example,
        setting=setting,
        begun=begun,
        rise=rise,
        fall=fall,
        end=end,
        counts=counts,
    )
    keep(fed, folder)
    return fed


def _batches(folder: Path) -> int:
    """Batches that have ended so far, by the event log."""
    return event_log_of(folder).read_bytes().count(PROGRESS)


def keep(fed: Fed, folder: Path) -> None:
    """Write what was fed beside the journal; a run without it is not done."""
    write_text(folder / FED, json.dumps(to_json(asdict(fed))) + "\n")


def kept(folder: Path) -> Fed | None:
    """What a finished run was fed."""
    path = folder / FED
    return from_json(Fed, json.loads(path.read_text())) if path.is_file() else None


def event_log_of(folder: Path) -> Path:
    """The only event log of a run."""
    logs = [p for p in events_of(folder).iterdir() if p.is_file() and not p.name.startswith(".")]
    if len(logs) != 1:
        raise EngineError(f"{events_of(folder)} holds {len(logs)} event logs; it should be one")
    return logs[0]
