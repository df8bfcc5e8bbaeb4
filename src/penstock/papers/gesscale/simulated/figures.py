"""Figures 3, 6 and 7 of the paper, in the fog of the first seed. [arkian21]"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from penstock.core.model import Change
from penstock.papers.gesscale.simulated import setups
from penstock.papers.gesscale.simulated.experiment import GesscaleOutcomes
from penstock.papers.gesscale.simulated.published import NAMES
from penstock.papers.gesscale.simulated.setups import LOAD, MAIN, SECONDS, key
from penstock.papers.pictures import COLOURS, canvas, words
from penstock.report.figure import GREY
from penstock.simulator.geo import GeoEngine
from penstock.simulator.series import Floats
from penstock.workloads.patterns import Step, per_second

HEIGHT = 220  # pixels
LOAD_COLOUR, LINE, IDEAL = GREY, COLOURS[0], COLOURS[1]
# Figure 3: the load rises beyond what two replicas carry, a third is added later.
LOW, HIGH, RISES, CHANGES, ENDS = 100.0, 190.0, 650, 800, 1200


def draw_all(outcomes: GesscaleOutcomes, seed: int, folder: Path) -> list[Path]:
    """Draw all pictures into a folder."""
    drawn = [folder / "figure-3.png", folder / "figure-6.png"]
    _figure_3(seed, drawn[0])
    _figure_6(seed, drawn[1])
    for letter, policy in zip("abcd", NAMES, strict=True):
        path = folder / f"figure-7{letter}.png"
        _figure_7(outcomes, policy, seed, path)
        drawn.append(path)
    return drawn


def reconfigured(seed: int) -> GeoEngine:
    """Two replicas, more load than they carry, a third one."""
    load = Step(low=LOW, high=HIGH, at=float(RISES))
    engine = GeoEngine(MAIN.spec(seed), load, seconds=ENDS, seed=seed)
    engine.advance(CHANGES)
    engine.apply({engine.spec.job.name: Change(before=2, slots=3, raw=3.0)})
    engine.advance(ENDS - CHANGES)
    return engine


def _figure_3(seed: int, path: Path) -> None:
    series = reconfigured(seed).series
    with canvas(path, 1, height=HEIGHT, same_x=True) as (axes,):
        axes.plot(series.offered, color=LOAD_COLOUR, lw=1, label="input")
        axes.plot(series.consumed, color=LINE, lw=1, label="throughput")
        _words(axes, "A reconfiguration", "records/s", "seconds")


def _figure_6(seed: int, path: Path) -> None:
    offered = per_second(LOAD, SECONDS)
    minutes = np.arange(SECONDS) / 60.0
    with canvas(path, 2, height=HEIGHT, same_x=True) as places:
        places[0].plot(minutes, offered, color=LINE, lw=0.8, label="input = throughput")
        _words(places[0], "The ideal auto-scaler", "records/s")
        places[1].plot(minutes, setups.replicas(MAIN, seed, offered), color=IDEAL, lw=1)
        _words(places[1], "", "replicas", "minutes")


def _figure_7(outcomes: GesscaleOutcomes, policy: str, seed: int, path: Path) -> None:
    run = outcomes.run(key(policy), seed)
    course = np.array(run.course if run is not None and run.course else [[0.0] * 5])
    with canvas(path, 3, height=HEIGHT, same_x=True) as places:
        follow(places, course, title=NAMES[policy], unit="minutes")


def follow(places: Sequence[Axes], course: Floats, *, title: str, unit: str) -> None:
    """Three panels over time: load and throughput, replicas, and how many too many."""
    moments = np.arange(len(course))
    places[0].plot(moments, course[:, 0], color=LOAD_COLOUR, lw=1, label="input")
    places[0].plot(moments, course[:, 1], color=LINE, lw=1, label="throughput")
    _words(places[0], title, "records/s")
    places[1].plot(moments, course[:, 2], color=LINE, lw=1, label="replicas")
    places[1].plot(moments, course[:, 3], color=IDEAL, lw=1, ls=":", label="ideal")
    _words(places[1], "", "replicas")
    places[2].fill_between(moments, course[:, 2] - course[:, 3], color=LINE, alpha=0.5)
    places[2].axhline(0.0, color=GREY, lw=1)
    _words(places[2], "", "too many", unit)


def _words(axes: Axes, title: str, left: str, below: str = "") -> None:
    words(axes, title, below, left)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, loc="upper left", ncols=2)
