"""What the simulators share whose time goes in whole seconds: clock, downtime, series, noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from penstock.core.errors import InputError
from penstock.simulator import kernel as k
from penstock.simulator.actions import Actions
from penstock.simulator.series import Floats, Series
from penstock.simulator.spec import RescaleProfile

BEFORE = 15  # seconds before an action that its throughput is compared with
SLOWEST = 0.1  # noise never takes an operator or a node below this share of its speed


class SecondsEngine(ABC):
    """An engine of ``seconds`` seconds; parts of a second asked for are carried over.

    A subclass simulates in ``_run`` and puts sizes in force when they are due. The first rows of
    its ``_series`` are those of the fluid simulator's kernel, offered to CPU; its own follow.
    """

    def __init__(self, *, seconds: int, rows: int, seed: int, profile: RescaleProfile) -> None:
        if seconds < 1 or seconds != int(seconds):
            raise InputError(f"seconds {seconds} must be a whole number ≥ 1")
        if seed < 0:
            raise InputError(f"seed {seed} must be ≥ 0")
        self.seconds = int(seconds)
        self._now = self._seen = 0
        self._asked = 0.0
        self._series = np.zeros((rows, self.seconds))
        self._delivered = self._series[k.DELIVERED]
        self._actions = Actions(profile, generator(seed, 2))

    @abstractmethod
    def _run(self, until: int) -> None:
        """Simulate from now until a second; no size changes before it."""

    @abstractmethod
    def _put_in_force(self) -> None:
        """Change to the sizes that are due."""

    def advance(self, seconds: float) -> bool:
        """Simulate; false when more was asked for than the run has left."""
        if not (math.isfinite(seconds) and seconds >= 0):
            raise InputError(f"cannot advance by {seconds} s; it must be a finite number ≥ 0")
        self._asked += seconds
        wanted = int(self._asked + 1e-6)
        target = min(wanted, self.seconds)
        while self._now < target:
            until = min(target, self._actions.next_event)
            self._run(until)
            self._now = until
            if until == self._actions.next_event:
                self._put_in_force()
        return wanted <= self.seconds

    def _window(self) -> int:
        """Seconds since the last observation, which is now."""
        window = self._now - self._seen
        self._seen = self._now
        return window

    def _change(
        self, sizes: Mapping[str, tuple[int, int]], *, state: float = 0.0, moved: bool = False
    ) -> None:
        """Change pools from one size to another, at the cost that the profile says.

        state: records of state that have to move
        moved: whether slots go to other nodes, which is a change though their number stays
        """
        now = self._now
        recent = self._delivered[max(0, now - BEFORE) : now]
        rate = float(recent.mean()) if now else 0.0
        downtime = self._actions.ask(now, sizes, rate, state, moved=sizes if moved else ())
        whole = now + int(downtime)
        down = self._series[k.DOWN]
        down[now:whole] = 1.0
        if whole < self.seconds:
            down[whole] = max(down[whole], downtime - int(downtime))
        self._put_in_force()

    def _series_of(self, *, expired: Floats, slots: Mapping[str, Floats]) -> Series:
        """Every second simulated so far."""
        rows = self._series[:, : self._now]
        return Series(
            offered=rows[k.OFFERED],
            consumed=rows[k.CONSUMED],
            delivered=rows[k.DELIVERED],
            lag=rows[k.LAG],
            queue_latency=rows[k.QUEUE_LATENCY],
            latency=rows[k.LATENCY],
            down=rows[k.DOWN],
            cpu=rows[k.CPU],
            expired=expired,
            slots=slots,
        )


def generator(seed: int, use: int) -> np.random.Generator:
    """Random numbers of a run for one use, so that no use disturbs another.

    0: speed, 1: metrics, 2: costs of changes; further ones are an engine's own.
    """
    return np.random.default_rng([seed, use])


def speed_noise(seed: int, shape: tuple[int, int], *, share: float, memory: float) -> Floats:
    """Factors on the speed of each operator or node (rows) in each second; 1 without noise."""
    if not share:
        return np.ones(shape)
    noise = generator(seed, 0).standard_normal(shape)
    k.ar1(noise, memory)
    noise *= share
    noise += 1.0
    return np.maximum(noise, SLOWEST, out=noise)
