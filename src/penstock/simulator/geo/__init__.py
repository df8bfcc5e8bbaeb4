"""One scaled operator on nodes that are far apart: delay, skew and state by mechanism."""

from penstock.simulator.geo.engine import GeoEngine
from penstock.simulator.geo.job import Job, Keys, Windows
from penstock.simulator.geo.spec import GeoSpec

__all__ = ["GeoEngine", "GeoSpec", "Job", "Keys", "Windows"]
