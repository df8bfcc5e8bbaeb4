"""What commands that start Spark have left behind when they have ended."""

from __future__ import annotations

from penstock.lab.host import leftovers


def nothing_left() -> bool:
    """What the commands that have ended here left behind; other tests may be running."""
    return not [run for run in leftovers.runs(leftovers.cache_folder()) if run.owner.dead]
