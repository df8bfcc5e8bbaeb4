"""Figure 7 on Spark: a picture for each policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.papers.gesscale.simulated.figures import HEIGHT, follow
from penstock.papers.gesscale.simulated.published import NAMES as POLICIES
from penstock.papers.gesscale.spark.taxi import TaxiOutcomes
from penstock.papers.pictures import canvas

NAMES = {policy: f"{policy}.png" for policy in POLICIES}


def draw_all(outcomes: TaxiOutcomes, seed: int, folder: Path) -> list[Path]:
    """Draw the policies that have run with a seed, into a folder."""
    drawn = []
    for policy, name in POLICIES.items():
        run = next((r for r in outcomes.of(policy) if r.seed == seed), None)
        if run is not None:
            drawn.append(folder / NAMES[policy])
            with canvas(drawn[-1], 3, height=HEIGHT, same_x=True) as places:
                follow(places, np.array(run.course), title=name, unit="seconds")
    return drawn
