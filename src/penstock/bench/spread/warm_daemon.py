"""The Python that Spark forks its workers from, with what their tasks need in memory.

Spark's own daemon has nothing of ours, so that each worker would import the package and load its
compiled kernels again. Spark starts this module by its name (``spark.python.daemon.module``), with
a path to zip files of PySpark, which Python would compile anew at each start.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:] = [place for place in sys.path if not Path(place).match("python/lib/*.zip")]

from pyspark.daemon import manager  # noqa: E402  the installed one, as on the driver

from penstock.comparison.cell import Cell  # noqa: E402

if __name__ == "__main__":
    Cell(key="warm", query="q1", workload="cosine", policy="ds2", minutes=1).run(seed=0)
    manager()
