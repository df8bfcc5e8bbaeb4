"""Which queries run, since when, and which of them nothing is known of. Pure: time is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from penstock.batches.running import Underway

NEW = 60.0  # seconds for which a query is new: until then it may still be planning its first batch
MOST_IDS = 1000  # of queries that ran once


class Presence:
    """Queries as they come and go, by the looks at them.

    without_since: when the last of them was seen; ``None`` while one runs
    gone: runs that were seen and no longer run, though Spark may not have told of their end yet
    """

    def __init__(self) -> None:
        self.without_since: float | None = None
        self.gone: set[str] = set()
        self._since: dict[str, float] = {}  # by run id
        self._runs: dict[str, str] = {}  # the last run of each query, by its id
        self._again: set[str] = set()  # runs that follow another one of their query

    def look(self, running: Mapping[str, Underway], now: float) -> None:
        """Note what runs at this moment, by run id."""
        if running:
            self.without_since = None
        elif self.without_since is None:
            self.without_since = now
        self.gone |= self._since.keys()
        self.gone -= running.keys()
        self._since = {run: self._since.get(run, now) for run in running}
        self._again &= running.keys()
        for run, at in running.items():
            before = self._runs.pop(at.query_id, run) if at.query_id else run
            if before != run:
                self._again.add(run)
            self._runs[at.query_id] = run
        while len(self._runs) > MOST_IDS:
            del self._runs[next(iter(self._runs))]

    def forget(self, told: Collection[str]) -> None:
        """Keep of the runs that are gone only those of which something is still ``told``."""
        self.gone &= set(told)

    def again(self, run: str, now: float) -> bool:
        """Whether a run follows another one of the same query, and is new."""
        return run in self._again and now - self._since[run] < NEW

    def unmeasured(
        self, running: Mapping[str, Underway], measured: Collection[str], now: float
    ) -> tuple[str, ...]:
        """Names of the queries of which nothing was measured, though they have work to do.

        One that waits for its first records has none, once it had the time to find some.
        """
        return tuple(
            at.query
            for run, at in running.items()
            if run not in measured
            and (at.batch is not None or at.kind == "continuous" or now - self._since[run] < NEW)
        )
