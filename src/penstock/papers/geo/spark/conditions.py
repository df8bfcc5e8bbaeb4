"""The conditions of the geo study that are measured on Spark: a job, and how far its sites are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.lab.queries.geo_jobs import GeoJob, JobSettings, create
from penstock.lab.sites.spec import Site, SitesSpec

MOST = 6  # executors, each at a site of its own
NEAR, FAR = 3, 3  # sites; the far ones are used last, as in the study
DELAY, SWING = 0.025, 0.010  # seconds one way, into the far sites           [arsalane24, III]
CPU = 0.2  # of a core, each executor
SCALE = 100.0  # by which the study's sensors are divided
ROWS: Mapping[str, int] = {"map": 8_000, "id-id": 4_000, "id-value": 4_000}
"""Records of a micro-batch: of a join those of one window, of Map about as much work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCondition:
    """A job whose far sites get packets ``delay`` seconds late, give or take ``jitter``."""

    job: str
    delay: float = 0.0
    jitter: float = 0.0

    @property
    def key(self) -> str:
        """A name for files."""
        swing = f"-{1e3 * self.jitter:.0f}" if self.jitter else ""
        return f"{self.job}-{1e3 * self.delay:.0f}{swing}ms"

    @property
    def words(self) -> str:
        """How late packets come, in words for a table."""
        swing = f" ± {1e3 * self.jitter:.0f}" if self.jitter else ""
        return f"{1e3 * self.delay:.0f}{swing} ms"

    @property
    def rows(self) -> int:
        """Records of a micro-batch."""
        return ROWS[self.job]

    def sites(self) -> SitesSpec:
        """Near ones, the first of them home; and far ones."""
        near = [Site(name=f"near-{n}", cpu=CPU) for n in range(1, NEAR + 1)]
        far = [
            Site(name=f"far-{n}", delay=self.delay, jitter=self.jitter, cpu=CPU)
            for n in range(1, FAR + 1)
        ]
        return SitesSpec(sites=(*near, *far))

    def pipeline(self, seed: int) -> GeoJob:
        """The job with the rows of a seed."""
        return create(self.job, JobSettings(scale=SCALE, seed=seed))


CONDITIONS = (
    SparkCondition(job="map"),
    SparkCondition(job="map", delay=DELAY),
    SparkCondition(job="id-id"),
    SparkCondition(job="id-id", delay=DELAY),
    SparkCondition(job="id-id", delay=DELAY, jitter=SWING),
    SparkCondition(job="id-value"),
)
